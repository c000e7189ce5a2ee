//! The fast engine: tiles in the first-level cache, vectorised, threaded, identical views merged.
//!
//! Nothing of size `B x P x M` or `B x P x P` exists. Per image the views are cut out, equal ones merged, and tiles of
//! views x inducing inputs are evaluated, summed and thrown away:
//!
//! | file | what |
//! |---|---|
//! | `micro` | the innermost loops, compiled for the machine at run time |
//! | `cols` | inducing inputs packed in panels, views scaled in rows, a term's values on a tile |
//! | `merge` | cutting out views and merging equal ones |
//! | `kuf`, `kff` | the two sums over views, with their derivatives |
//! | `box_filter` | kff by box filters, for windows that do not merge |
//! | `tables` | the innermost loops of location-aware kernels |
//! | `location_aware` | kernels with a factor that only depends on a view's place |
//! | `single_view` | responses with a single view, such as whole images |
//! | `pooled` | windows that share kernel values |
//! | `dense` | rows against columns without a sum: Kuu, whole images, tables |
//! | `images` | one batch: images in parallel, sums in a fixed order |

mod box_filter;
mod cols;
mod dense;
mod images;
mod kff;
mod kuf;
mod location_aware;
mod merge;
pub(crate) mod micro;
mod pooled;
mod single_view;
mod tables;

use super::{Cov, Engine, Need, Reference};
use crate::component::Component;
use crate::data::Batch;
use crate::kernel::Term;
use crate::linalg::Mat;
use cols::{Cols, Rows, Tile};
use images::SavedImages;
pub use micro::Lane;
use micro::has_fma;
use rayon::prelude::*;
use std::marker::PhantomData;
use std::ops::Range;

/// Switches of the fused engine. All of them leave the results unchanged up to rounding: they exist to measure what each
/// idea buys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Optimizations {
    /// Merge identical views of an image.
    pub merge: bool,
    /// Hand moments from the forward pass to the pullback, so that only the weights need the views again.
    pub handover: bool,
    /// Visit half of the pairs of kff.
    pub symmetric: bool,
    /// Distances of kff by box filters where that is cheaper.
    pub box_filter: bool,
    /// Use AVX2 and fused multiply-add where the machine has them.
    pub vector: bool,
}

impl Default for Optimizations {
    fn default() -> Self {
        Self { merge: true, handover: true, symmetric: true, box_filter: true, vector: true }
    }
}

/// The fast engine, with tiles in `T` (`f32` unless said otherwise). `Kuu` is always computed in `f64`.
///
/// ```
/// # use convgp::{Model, ModelSpec, data::{Dataset, Images, Pixels, Targets}, rng::Rng};
/// # let spec = ModelSpec::from_toml(r#"
/// #     image = { height = 4, width = 4 }
/// #     likelihood = { type = "gaussian" }
/// #     [[components]]
/// #     views = { type = "patches", patch = [2, 2] }
/// #     kernel = { type = "rbf" }
/// #     inducing = { count = 3 }
/// # "#)?;
/// # let images = Images::new(spec.image, Pixels::F64((0..96).map(|i| f64::from(i * i % 17) / 17.0).collect()))?;
/// # let data = Dataset::new(images, Targets::real(vec![0.1, -0.4, 0.7, 0.2, 0.0, 0.3])?)?;
/// # let (model, params) = Model::new(&spec, Some(data.images()), &mut Rng::new(1))?;
/// use convgp::{cov::{Fused, Reference}, model::Predictor};
///
/// let fast = Predictor::new(&model, &Fused::<f64>::default(), &params)?.latents(data.images())?;
/// let plain = Predictor::new(&model, &Reference, &params)?.latents(data.images())?;
/// assert!(fast.var.iter().zip(&plain.var).all(|(a, b)| (a - b).abs() < 1e-9));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Fused<T: Lane = f32> {
    optimizations: Optimizations,
    fma: bool,
    precision: PhantomData<T>,
}

impl<T: Lane> Default for Fused<T> {
    fn default() -> Self {
        Self::with_optimizations(Optimizations::default())
    }
}

impl<T: Lane> Fused<T> {
    /// An engine with some of its ideas switched off.
    pub fn with_optimizations(optimizations: Optimizations) -> Self {
        Self { optimizations, fma: optimizations.vector && has_fma(), precision: PhantomData }
    }
}

/// What the forward pass hands to the pullback, and all buffers in between.
#[derive(Debug, Default)]
pub struct Saved<T: Lane> {
    single: SavedImages<T>,
    /// For kernels whose slopes need double precision (see [`crate::kernel::Radial::SINGLE`]).
    double: SavedImages<f64>,
}

/// Rows of `Kuu` computed together; fixed, so that bits do not depend on the number of threads.
const KUU_ROWS: usize = 96;

impl<T: Lane> Engine for Fused<T> {
    type Saved = Saved<T>;

    fn kuu(&self, c: &Component, values: &[f64], kuu: &mut Mat) {
        let Some(terms) = c.kernel().terms() else {
            return Reference.kuu(c, values, kuu);
        };
        let (m, theta) = (c.inducing(), c.theta(values));
        let mut cols = Cols::<f64>::default();
        cols.fill(&terms, theta, m, |i| c.z(values, i), None);
        kuu.resize(m, m);
        kuu.data_mut().par_chunks_mut(KUU_ROWS * m).enumerate().for_each(|(chunk, out)| {
            let (first, count) = (chunk * KUU_ROWS, out.len() / m);
            let rows = inducing_rows(c, values, &cols, first..first + count);
            // The lower triangle suffices.
            let panels = first / <f64 as Lane>::NR..cols.panels;
            dense::values(self.fma, &cols, panels, &rows, &mut Tile::default(), out, m);
        });
        kuu.mirror_lower();
        exact_diagonal(c, values, &terms, kuu);
    }

    fn kuu_pullback(&self, c: &Component, values: &[f64], kuu_bar: &Mat, grad: &mut [f64]) {
        let Some(terms) = c.kernel().terms() else {
            return Reference.kuu_pullback(c, values, kuu_bar, grad);
        };
        let (m, theta) = (c.inducing(), c.theta(values));
        let mut cols = Cols::<f64>::default();
        cols.fill(&terms, theta, m, |i| c.z(values, i), None);
        let parts = (0..m.div_ceil(KUU_ROWS)).into_par_iter().map(|part| {
            let first = part * KUU_ROWS;
            inducing_rows(c, values, &cols, first..m.min(first + KUU_ROWS))
        });
        let rows: Vec<Rows<f64>> = parts.collect();
        let (mut theta_bar, z_bar) = (vec![0.0; theta.len()], c.z_slot().of_mut(grad));
        // z_m is the column of (m', m) and the row of its mirror image: twice what the columns alone see.
        let groups = dense::pullback_by_columns(self.fma, &cols, &rows, kuu_bar, 2.0, z_bar, &mut theta_bar);
        dense::finish_variances(&cols, theta, &groups, &mut theta_bar);
        c.theta_slot().of_mut(grad).iter_mut().zip(&theta_bar).for_each(|(g, t)| *g += t);
        if let Some(white) = c.white_slot() {
            white.of_mut(grad)[0] += (0..m).map(|i| kuu_bar[(i, i)]).sum::<f64>();
        }
    }

    fn images(
        &self,
        c: &Component,
        values: &[f64],
        batch: &Batch,
        need: Need,
        saved: &mut Saved<T>,
        cov: &mut Cov,
    ) {
        let Self { optimizations, fma, .. } = *self;
        match c.kernel().terms() {
            None => Reference.images(c, values, batch, need, &mut (), cov),
            Some(terms) if needs_double(&terms) => {
                images::forward(optimizations, fma, &terms, c, values, batch, need, &mut saved.double, cov);
            }
            Some(terms) => {
                images::forward(optimizations, fma, &terms, c, values, batch, need, &mut saved.single, cov)
            }
        }
    }

    fn images_pullback(
        &self,
        c: &Component,
        values: &[f64],
        batch: &Batch,
        saved: &mut Saved<T>,
        cov_bar: &Cov,
        grad: &mut [f64],
    ) {
        match c.kernel().terms() {
            None => Reference.images_pullback(c, values, batch, &mut (), cov_bar, grad),
            Some(terms) if needs_double(&terms) => {
                images::pullback(self.fma, c, values, batch, &mut saved.double, cov_bar, grad);
            }
            Some(_) => images::pullback(self.fma, c, values, batch, &mut saved.single, cov_bar, grad),
        }
    }
}

fn needs_double(terms: &[Term]) -> bool {
    terms.iter().flat_map(|t| &t.leaves).any(|l| !l.radial.single())
}

/// The diagonal of `Kuu` is known exactly: every radial function is one at zero. White noise is added here.
fn exact_diagonal(c: &Component, values: &[f64], terms: &[Term], kuu: &mut Mat) {
    let theta = c.theta(values);
    let product = |t: &Term| t.leaves.iter().map(|l| l.variance(theta)).product::<f64>();
    let diagonal = terms.iter().map(product).sum::<f64>() + c.white(values);
    (0..kuu.rows()).for_each(|i| kuu[(i, i)] = diagonal);
}

/// Some inducing inputs as rows against all of them as columns.
fn inducing_rows(c: &Component, values: &[f64], cols: &Cols<f64>, range: Range<usize>) -> Rows<f64> {
    let mut rows = Rows::default();
    rows.fill(cols, range.len(), |i| c.z(values, range.start + i));
    rows
}
