//! The contract every engine must keep, as a check that a new engine gets for free.
//!
//! [`cases`] is a zoo of components: every kind of kernel, view and weight on small, awkward shapes. [`check_engine`]
//! compares an engine's covariances with the sums of the module's documentation, written out here, and its pullbacks
//! with those of [`Reference`]; [`check_by_differences`] judges pullbacks by differences of the engine's own values.

mod zoo;

pub use zoo::{Case, cases};

use super::{Cov, Engine, Need, Reference};
use crate::component::Component;
use crate::data::{Batch, Images, Pixels};
use crate::linalg::Mat;
use crate::rng::Rng;

/// Largest errors an engine may make, relative to the largest entry of the same array (one covariance matrix, the
/// gradient in one parameter array).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Of covariances.
    pub value: f64,
    /// Of pullbacks.
    pub gradient: f64,
}

/// The largest errors that were seen, and where.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Worst {
    /// Of covariances.
    pub value: f64,
    /// Case and array of that.
    pub value_at: String,
    /// Of pullbacks.
    pub gradient: f64,
    /// Case and parameter of that.
    pub gradient_at: String,
}

/// Runs an engine through all [`cases`]:
///
/// - `kuu`, `kuf`, `kff` are the documented sums, and `kuf` is the same to the bit when only means are needed;
/// - pullbacks agree with those of [`Reference`], add to what is in the gradient, and touch nothing else;
/// - buffers of another case and another batch size may be reused; images do not influence one another.
///
/// Returns the worst errors seen, or a sentence about the first thing that is wrong.
pub fn check_engine<E: Engine>(engine: &E, tolerance: Tolerance) -> Result<Worst, String> {
    let (mut worst, mut saved, mut cov) = (Worst::default(), E::Saved::default(), Cov::default());
    for case in cases() {
        let fail = |e: String| format!("{}: {e}", case.name);
        check_values(engine, &case, tolerance.value, &mut saved, &mut cov, &mut worst).map_err(fail)?;
        let bars = Bars::random(&case, 7);
        let found = bars.pullback(engine, &case, &mut saved, &mut cov);
        let expected = bars.pullback(&Reference, &case, &mut (), &mut Cov::default());
        compare_gradients(&case, &found, &expected, tolerance.gradient, &mut worst).map_err(fail)?;
        check_alone(engine, &case).map_err(fail)?;
    }
    Ok(worst)
}

/// Compares pullbacks with fourth-order central differences of the engine's own covariances. For engines in double
/// precision; the errors reported are relative to the largest derivative in the same parameter array.
pub fn check_by_differences<E: Engine>(engine: &E, tolerance: f64) -> Result<Worst, String> {
    let mut worst = Worst::default();
    for case in cases() {
        let bars = Bars::random(&case, 11);
        let found = bars.pullback(engine, &case, &mut E::Saved::default(), &mut Cov::default());
        let differences: Vec<f64> = (0..case.values.len())
            .map(|i| {
                let h = 1e-3 * case.values[i].abs().max(0.3);
                let at = |step: f64| {
                    let mut values = case.values.clone();
                    values[i] += step;
                    bars.objective(engine, &case, &values)
                };
                (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h)
            })
            .collect();
        compare_gradients(&case, &found, &differences, tolerance, &mut worst)
            .map_err(|e| format!("{}: {e}", case.name))?;
    }
    Ok(worst)
}

fn compare(
    what: &str,
    found: &[f64],
    expected: &[f64],
    tolerance: f64,
    worst: (&mut f64, &mut String),
) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{what} has {} numbers, expected {}", found.len(), expected.len()));
    }
    let scale = expected.iter().fold(f64::MIN_POSITIVE, |s, e| s.max(e.abs()));
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        let error = (f - e).abs() / scale;
        if error > *worst.0 {
            (*worst.0, *worst.1) = (error, what.to_owned());
        }
        // Written so that a NaN fails.
        if !matches!(
            error.partial_cmp(&tolerance),
            Some(std::cmp::Ordering::Less | std::cmp::Ordering::Equal)
        ) {
            return Err(format!(
                "{what}[{i}] is {f}, expected {e}: relative error {error:.1e} > {tolerance:.1e}"
            ));
        }
    }
    Ok(())
}

fn check_values<E: Engine>(
    engine: &E,
    case: &Case,
    tolerance: f64,
    saved: &mut E::Saved,
    cov: &mut Cov,
    worst: &mut Worst,
) -> Result<(), String> {
    let Case { component: c, values, batch, .. } = case;
    let (expected_kuu, expected) = explicit_sums(c, values, batch);
    let mut check = |what: &str, found: &[f64], expected: &[f64]| {
        let what = format!("{what} of `{}`", case.name);
        compare(&what, found, expected, tolerance, (&mut worst.value, &mut worst.value_at))
    };
    let mut kuu = Mat::from_fn(3, 2, |_, _| f64::NAN);
    engine.kuu(c, values, &mut kuu);
    check("kuu", kuu.data(), expected_kuu.data())?;
    if (0..kuu.rows()).any(|i| (0..i).any(|j| kuu[(i, j)] != kuu[(j, i)])) {
        return Err("kuu is not symmetric to the bit".into());
    }
    engine.images(c, values, batch, Need::Value, saved, cov);
    let responses = c.responses().len();
    if (cov.kuf.len(), cov.kff.len()) != (responses, responses) {
        return Err(format!("{} blocks of kuf for {responses} responses", cov.kuf.len()));
    }
    for r in 0..responses {
        check(&format!("kuf[{r}]"), cov.kuf[r].data(), expected.kuf[r].data())?;
        check(&format!("kff[{r}]"), &cov.kff[r], &expected.kff[r])?;
    }
    let mut means = Cov::default();
    engine.images(c, values, batch, Need::Mean, &mut E::Saved::default(), &mut means);
    if means.kuf != cov.kuf {
        return Err("kuf differs when only means are needed".into());
    }
    Ok(())
}

/// The sums of the module's documentation, as they stand.
fn explicit_sums(c: &Component, values: &[f64], batch: &Batch) -> (Mat, Cov) {
    let k = |a: &[f64], b: &[f64]| c.kernel().value(c.theta(values), a, b);
    let white = c.white(values);
    let kuu = Mat::from_fn(c.inducing(), c.inducing(), |i, j| {
        k(c.z(values, i), c.z(values, j)) + if i == j { white } else { 0.0 }
    });
    let mut cov = Cov::default();
    for response in c.responses() {
        let p_count = response.views().count();
        // Views of a plane follow each other and may share a weight.
        let mut w: Vec<f64> = match response.weights_slot() {
            Some(slot) => {
                (0..p_count).map(|p| slot.of(values)[p * slot.len() / p_count] * response.scale()).collect()
            }
            None => vec![response.scale(); p_count],
        };
        if let Some(window) = response.window() {
            w.iter_mut().zip(window).for_each(|(w, phi)| *w *= phi);
        }
        let x: Vec<Vec<Vec<f64>>> = (0..batch.len())
            .map(|n| {
                let mut out = vec![0.0; p_count * response.views().len()];
                response.views().write(batch.image(n), &mut out);
                out.chunks_exact(response.views().len()).map(<[f64]>::to_vec).collect()
            })
            .collect();
        let z = |m: usize| c.z(values, m);
        cov.kuf.push(Mat::from_fn(c.inducing(), batch.len(), |m, n| {
            (0..p_count).map(|p| w[p] * k(z(m), &x[n][p])).sum()
        }));
        let pairs = |n: usize| (0..p_count).flat_map(move |p| (0..p_count).map(move |q| (n, p, q)));
        let product = |(n, p, q): (usize, usize, usize)| w[p] * w[q] * k(&x[n][p], &x[n][q]);
        cov.kff.push((0..batch.len()).map(|n| pairs(n).map(product).sum::<f64>() + white).collect());
    }
    (kuu, cov)
}

/// An image's covariances are the same whatever else is in the batch, up to the tolerance of a changed order of sums.
fn check_alone<E: Engine>(engine: &E, case: &Case) -> Result<(), String> {
    let Case { component: c, values, batch, .. } = case;
    let run = |batch: &Batch| {
        let mut cov = Cov::default();
        engine.images(c, values, batch, Need::Value, &mut E::Saved::default(), &mut cov);
        cov
    };
    let (all, last) = (run(batch), batch.len() - 1);
    let pixels = Images::new(batch.shape(), Pixels::F64(batch.image(last).to_vec())).expect("finite pixels");
    let alone = run(&Batch::of_images(&pixels, &[0]));
    for r in 0..c.responses().len() {
        if all.kuf[r].col(last) != alone.kuf[r].col(0) || all.kff[r][last] != alone.kff[r][0] {
            return Err(format!(
                "image {last} has other covariances alone than among {} images",
                batch.len()
            ));
        }
    }
    Ok(())
}

/// Random cotangents of everything, which make one number of all covariances.
struct Bars {
    kuu: Mat,
    cov: Cov,
}

impl Bars {
    fn random(case: &Case, seed: u64) -> Self {
        let (mut rng, m, b) = (Rng::new(seed), case.component.inducing(), case.batch.len());
        let mut kuu = Mat::from_fn(m, m, |_, _| rng.normal());
        kuu.mirror_lower();
        let responses = case.component.responses().len();
        let kuf = (0..responses).map(|_| Mat::from_fn(m, b, |_, _| rng.normal())).collect();
        let kff = (0..responses).map(|_| (0..b).map(|_| rng.normal()).collect()).collect();
        Self { kuu, cov: Cov { kuf, kff } }
    }

    fn objective<E: Engine>(&self, engine: &E, case: &Case, values: &[f64]) -> f64 {
        let (mut kuu, mut cov) = (Mat::default(), Cov::default());
        engine.kuu(&case.component, values, &mut kuu);
        engine.images(&case.component, values, &case.batch, Need::Value, &mut E::Saved::default(), &mut cov);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
        let kuf: f64 = cov.kuf.iter().zip(&self.cov.kuf).map(|(k, g)| dot(k.data(), g.data())).sum();
        let kff: f64 = cov.kff.iter().zip(&self.cov.kff).map(|(k, g)| dot(k, g)).sum();
        dot(kuu.data(), self.kuu.data()) + kuf + kff
    }

    /// The gradient, added to a gradient that was not zero, which is taken away again.
    fn pullback<E: Engine>(&self, engine: &E, case: &Case, saved: &mut E::Saved, cov: &mut Cov) -> Vec<f64> {
        let Case { component: c, values, batch, .. } = case;
        let start: Vec<f64> = (0..values.len()).map(|i| 0.5 - (i % 7) as f64).collect();
        let mut grad = start.clone();
        engine.kuu_pullback(c, values, &self.kuu, &mut grad);
        engine.images(c, values, batch, Need::Gradient, saved, cov);
        engine.images_pullback(c, values, batch, saved, &self.cov, &mut grad);
        grad.iter().zip(&start).map(|(g, s)| g - s).collect()
    }
}

fn compare_gradients(
    case: &Case,
    found: &[f64],
    expected: &[f64],
    tolerance: f64,
    worst: &mut Worst,
) -> Result<(), String> {
    for e in case.layout.entries() {
        let what = format!("d{} of `{}`", e.name, case.name);
        let (found, expected) = (e.slot.of(found), e.slot.of(expected));
        if e.name.starts_with("other") && found.iter().any(|f| *f != 0.0) {
            return Err(format!("{what}: a parameter that is not the component's was touched"));
        }
        compare(&what, found, expected, tolerance, (&mut worst.gradient, &mut worst.gradient_at))?;
    }
    Ok(())
}
