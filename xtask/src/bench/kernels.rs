//! The engine's kernels against the machine's limit: Kuf, kff and their derivatives, on images in which no two views
//! are equal, on one thread.

use super::box_filter::BoxFilter;
use super::clock::{Times, Watch};
use super::limits::Limits;
use super::report::{Report, Row, Table};
use anyhow::Result;
use convgp::component::Component;
use convgp::cov::{Cov, Engine, Fused, Need};
use convgp::data::{Batch, ImageShape, Images, Pixels};
use convgp::kernel::{Family, RadialFn};
use convgp::rng::Rng;
use convgp::{Model, ModelSpec};
use std::hint::black_box;

/// A weighted convolution of some size.
#[derive(Debug, Clone, Copy)]
struct Case {
    side: usize,
    channels: usize,
    patch: usize,
    /// Patches through all channels rather than of each.
    through: bool,
    inducing: usize,
    batch: usize,
}

const BASE: Case = Case { side: 28, channels: 1, patch: 5, through: false, inducing: 750, batch: 32 };

fn cases(quick: bool) -> Vec<Case> {
    let colour = Case { side: 32, channels: 3, inducing: 1000, batch: 8, ..BASE };
    let all = vec![
        BASE,
        Case { inducing: 100, ..BASE },
        Case { inducing: 1500, ..BASE },
        Case { batch: 8, ..BASE },
        Case { batch: 128, ..BASE },
        Case { side: 14, ..BASE },
        Case { side: 44, batch: 16, ..BASE },
        Case { patch: 3, inducing: 16, ..BASE },
        Case { patch: 3, ..BASE },
        Case { patch: 7, ..BASE },
        colour,
        Case { through: true, batch: 32, ..colour },
    ];
    if quick { all.into_iter().take(2).map(|c| Case { batch: 8, ..c }).collect() } else { all }
}

/// All cases.
pub fn run(report: Report, limits: &Limits, quick: bool) -> Result<()> {
    let note = "One thread, images of random bytes (no two views are equal, so merging cannot help). An element is a \
                kernel value between a view and an inducing input (Kuf: B M P) or an unordered pair of views of one \
                image (kff: B P (P + 1) / 2). `Kuf` is the forward pass for means; `Kuf, moments` hands over what \
                derivatives in z and lengthscales need, a second product; `pullback` is everything after the forward \
                pass, for which Kuf is evaluated again for the weights. kff with M = 1, Kuf's time taken off; \
                `kff, derivatives` includes weights and lengthscale. The limit is the fused limit of the same sizes, \
                with the second product where there is one; for kff the cheaper of box filters and product. A limit \
                is the fastest of many runs, so elements per second and share are those of the fastest round too (of \
                a difference: the difference of the fastest rounds).";
    let mut table = report.table("kernels", note);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let rounds = if quick { 3 } else { 9 };
    pool.install(|| cases(quick).into_iter().try_for_each(|case| case.run(limits, rounds, &mut table)))
}

/// A component with its numbers and buffers.
struct Side {
    model: Model,
    values: convgp::params::Params,
    saved: <Fused<f32> as Engine>::Saved,
    cov: Cov,
    cov_bar: Cov,
    grad: Vec<f64>,
}

impl Side {
    fn new(case: Case, inducing: usize, images: &Images) -> Result<Self> {
        let channels = if case.through { "all" } else { "pooled" };
        let spec = format!(
            "image = {{ height = {side}, width = {side}, channels = {} }}\nlikelihood = {{ type = 'probit' }}\n\
             [[components]]\nviews = {{ type = 'patches', patch = {}, channels = '{channels}' }}\n\
             weights = 'learned'\nnormalise = true\nkernel = {{ type = 'rbf' }}\n\
             inducing = {{ count = {inducing} }}\n",
            case.channels,
            case.patch,
            side = case.side
        );
        let (model, values) = Model::new(&ModelSpec::from_toml(&spec)?, Some(images), &mut Rng::new(1))?;
        let (mut cov_bar, mut rng, grad) = (Cov::default(), Rng::new(2), vec![0.0; values.len()]);
        cov_bar.resize(1, inducing, case.batch);
        cov_bar.kuf[0].data_mut().iter_mut().for_each(|g| *g = rng.normal());
        cov_bar.kff[0].iter_mut().for_each(|g| *g = rng.normal());
        Ok(Self { model, values, saved: Default::default(), cov: Cov::default(), cov_bar, grad })
    }
    fn component(&self) -> &Component {
        &self.model.components()[0]
    }
    fn forward(&mut self, engine: &Fused<f32>, batch: &Batch, need: Need) {
        let c = &self.model.components()[0];
        engine.images(c, &self.values, batch, need, &mut self.saved, &mut self.cov);
    }
    fn pullback(&mut self, engine: &Fused<f32>, batch: &Batch) {
        let c = &self.model.components()[0];
        engine.images_pullback(c, &self.values, batch, &mut self.saved, &self.cov_bar, &mut self.grad);
    }
}

impl Case {
    fn run(self, limits: &Limits, rounds: usize, table: &mut Table) -> Result<()> {
        let shape = ImageShape::new(self.side, self.side, self.channels)?;
        let mut rng = Rng::new(3);
        // Enough images that there are distinct views for all inducing inputs.
        let count = self.batch.max(32);
        let pixels = (0..count * shape.len()).map(|_| rng.below(256) as u8).collect();
        let images = Images::new(shape, Pixels::U8(pixels))?;
        let batch = Batch::of_images(&images, &(0..self.batch).collect::<Vec<_>>());
        let engine = Fused::<f32>::default();
        let (mut full, mut one) = (Side::new(self, self.inducing, &images)?, Side::new(self, 1, &images)?);
        let mut watch = Watch::default();
        for round in 0..=rounds {
            watch.time("kuf", || full.forward(&engine, &batch, Need::Mean));
            watch.time("forward", || full.forward(&engine, &batch, Need::Gradient));
            watch.time("pullback", || full.pullback(&engine, &batch));
            watch.time("mean 1", || one.forward(&engine, &batch, Need::Mean));
            watch.time("value 1", || one.forward(&engine, &batch, Need::Value));
            watch.time("gradient 1", || one.forward(&engine, &batch, Need::Gradient));
            if round == 0 {
                watch.clear();
            }
        }
        let (p, e) = (full.component().responses()[0].views().count(), full.component().view_len());
        let values = (self.batch * self.inducing * p) as f64;
        let pairs = (self.batch * p * (p + 1)) as f64 / 2.0;
        let product = limits.product(e, p, self.inducing);
        let moments = product * (e + 1) as f64 / e as f64;
        let geometry = BoxFilter {
            side: self.side,
            patch: self.patch,
            channels: if self.through { self.channels } else { 1 },
        };
        let distance = limits.box_filter(geometry).min(limits.product(e, p, p));
        let kff = watch.times("gradient 1").plus(-1.0, &watch.times("mean 1"));
        let rest = watch.times("forward").plus(-1.0, &kff);
        let both = watch.times("forward").plus(1.0, &watch.times("pullback"));
        let exp = limits.exp;
        let fastest = |name: &str| watch.times(name).min();
        let fastest_kff = fastest("gradient 1") - fastest("mean 1");
        let mut show = |kernel: &str, times: &Times, fastest: f64, elements: f64, ideal: f64| {
            table.add(&self.row(kernel, (e, p), times, fastest, elements, ideal));
        };
        show("Kuf", &watch.times("kuf"), fastest("kuf"), values, product + exp);
        show("Kuf, moments", &rest, fastest("forward") - fastest_kff, values, product + moments + exp);
        show("pullback", &watch.times("pullback"), fastest("pullback"), values, product + exp);
        let value = watch.times("value 1").plus(-1.0, &watch.times("mean 1"));
        show("kff", &value, fastest("value 1") - fastest("mean 1"), pairs, distance + exp);
        show("kff, derivatives", &kff, fastest_kff, pairs, distance + exp);
        let ideal = (values * (2.0 * product + moments + 2.0 * exp) + pairs * (distance + exp)) / values;
        show("forward and back, all", &both, fastest("forward") + fastest("pullback"), values, ideal);
        Ok(())
    }

    /// `ideal`: seconds per element at the limit.
    fn row(
        self,
        kernel: &str,
        (e, p): (usize, usize),
        times: &Times,
        fastest: f64,
        elements: f64,
        ideal: f64,
    ) -> Row {
        let rate = elements / fastest;
        vec![
            ("kernel", kernel.into()),
            ("E", e.into()),
            ("P", p.into()),
            ("M", self.inducing.into()),
            ("B", self.batch.into()),
            ("median_ms", (1e3 * times.median()).into()),
            ("fastest_ms", (1e3 * fastest).into()),
            ("slowest_ms", (1e3 * times.max()).into()),
            ("G_elements_per_s", (rate / 1e9).into()),
            ("limit_G_per_s", (1e-9 / ideal).into()),
            ("share_percent", (100.0 * rate * ideal).into()),
        ]
    }
}

/// Radial functions over a tile, through the engine's own entry.
pub fn radials(report: Report, quick: bool) {
    let note =
        "One thread, tiles of 768 distances in f32 (384 in f64), each function with and without its slope.";
    let mut table = report.table("exp", note);
    let (seconds, fma) = (if quick { 0.05 } else { 0.4 }, super::loops::has_fma());
    for family in Family::ALL {
        let radial = family.radial();
        for slopes in [false, true] {
            let rate = 768.0 / single(radial, slopes, fma, seconds);
            let double = 384.0 / double(radial, slopes, fma, seconds);
            table.add(&vec![
                ("function", family.name().into()),
                ("slope", if slopes { "yes" } else { "no" }.into()),
                ("f32_G_values_per_s", (rate / 1e9).into()),
                ("f64_G_values_per_s", (double / 1e9).into()),
            ]);
        }
    }
}

fn single(radial: &dyn RadialFn, slopes: bool, fma: bool, seconds: f64) -> f64 {
    let from: Vec<f32> = (0..768).map(|i| i as f32 / 100.0).collect();
    let (mut value, mut slope) = (vec![0.0f32; 768], vec![0.0f32; 768]);
    super::clock::fastest(seconds, || {
        radial.tile_f32(&from, &mut value, slopes.then_some(&mut slope[..]), fma);
        black_box((&mut value, &mut slope));
    })
}

fn double(radial: &dyn RadialFn, slopes: bool, fma: bool, seconds: f64) -> f64 {
    let from: Vec<f64> = (0..384).map(|i| f64::from(i) / 50.0).collect();
    let (mut value, mut slope) = (vec![0.0f64; 384], vec![0.0f64; 384]);
    super::clock::fastest(seconds, || {
        radial.tile_f64(&from, &mut value, slopes.then_some(&mut slope[..]), fma);
        black_box((&mut value, &mut slope));
    })
}
