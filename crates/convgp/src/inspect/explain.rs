//! From a frozen model to its evidence.
//!
//! The posterior knows images only through `kuf` and `kff`. Given a single weighted view in place of an image it returns
//! mean and variance of `w_p g(x[p])`; given a column of the identity, `alpha = L^{-T} E[v]`; given a column of `Kuu`, the
//! mean of an inducing output. No algebra is needed beyond [`Predictor`]'s own.

use super::{Evidence, Part};
use crate::Result;
use crate::component::{Component, Response};
use crate::cov::{Cov, Engine, Need};
use crate::data::{Batch, DataError, Images};
use crate::kernel::{Dims, Leaf};
use crate::likelihood::Marginals;
use crate::linalg::{Accumulate, Mat, gemm, norm_squared, par_solve_lower};
use crate::model::{Model, Predictor};
use crate::variational::{Block, PosteriorScratch};
use crate::views::Layout;

/// Columns that go through the posterior together, to bound memory.
const COLUMNS: usize = 256;

/// Takes predictions apart. Kernels are evaluated in double precision whatever the engine; with a double-precision
/// engine the parts sum to [`Predictor::latents`] to rounding.
#[derive(Debug)]
pub struct Explainer<'p, 'm, E: Engine> {
    pub(super) predictor: &'p Predictor<'m, E>,
    /// Per block, `M x L` row-major: the mean of latent `l` at an image is `sum_m kuf[m] alpha[m, l]`.
    pub(super) alpha: Vec<Vec<f64>>,
}

impl<'p, 'm, E: Engine> Explainer<'p, 'm, E> {
    /// Solves for the coefficients of the means.
    pub fn new(predictor: &'p Predictor<'m, E>) -> Result<Self> {
        let mut explainer = Self { predictor, alpha: Vec::new() };
        explainer.alpha = explainer.for_blocks(|_, b, m| {
            let identity = Mat::from_fn(m, m, |i, j| f64::from(i == j));
            Ok(explainer.posterior(b, &identity, None)?.mean)
        })?;
        Ok(explainer)
    }

    /// The model.
    pub fn model(&self) -> &'m Model {
        self.predictor.model
    }

    /// Its parameters, with `q` in covariance form.
    pub fn values(&self) -> &'p [f64] {
        &self.predictor.params
    }

    /// Latent functions.
    pub fn latents(&self) -> usize {
        self.predictor.model.variational().latents()
    }

    /// Posterior means of the inducing outputs of every response of every component, `M x L` row-major each.
    pub fn inducing_means(&self) -> Result<Vec<Vec<f64>>> {
        self.for_blocks(|_, b, m| {
            let mut factor = self.predictor.factors()[b.component].clone();
            factor.zero_upper();
            let mut kuu = Mat::zeros(m, m);
            gemm(kuu.view_mut(), Accumulate::Set, 1.0, factor.view(), factor.view().transpose());
            Ok(self.posterior(b, &kuu, None)?.mean)
        })
    }

    /// The evidence for image `index`: mean and standard deviation of every view's contribution to every latent.
    ///
    /// Work: `P M` kernel values and `L Mtot^2 P` flops.
    pub fn evidence(&self, images: &Images, index: usize) -> Result<Evidence> {
        let model = self.predictor.model;
        model.check_images(images.shape())?;
        if index >= images.count() {
            return Err(DataError::IndexOutOfRange { index, count: images.count() }.into());
        }
        let mut image = vec![0.0; images.shape().len()];
        images.write_image(index, &mut image);
        let latents = self.latents();
        let batch = Batch::of_images(images, &[index]);
        let factors: Vec<f64> =
            (0..model.components().len()).map(|i| self.predictor.image_factors(i, &batch)[0]).collect();
        let parts = self.for_blocks(|block, b, m| {
            let component = self.response(b).0;
            let Places { mut kuf, mut kff, layout } = self.places(b, &image);
            let factor = factors[b.component];
            kuf.data_mut().iter_mut().for_each(|k| *k /= factor);
            kff.iter_mut().for_each(|k| *k /= factor * factor);
            let q = self.posterior(b, &kuf, Some(&kff))?;
            let row_sum = |i: usize| (0..kuf.cols()).map(|p| kuf[(i, p)]).sum::<f64>();
            let alpha = &self.alpha[block];
            let inducing = (0..m).flat_map(|i| {
                let k = row_sum(i);
                alpha[i * latents..(i + 1) * latents].iter().map(move |a| k * a)
            });
            Ok(Part {
                component: component.name().into(),
                response: b.response,
                layout,
                mean: q.mean,
                sd: q.var.iter().map(|v| v.max(0.0).sqrt()).collect(),
                inducing: inducing.collect(),
                latents,
            })
        })?;
        Ok(Evidence { parts, latents })
    }

    /// What the places of an image contribute to the covariances of one response.
    fn places(&self, b: &Block, image: &[f64]) -> Places {
        let ((component, response), params) = (self.response(b), &self.predictor.params);
        if !response.views().is_staged() {
            let (kuf, kff) = weighted_views(component, response, params, image);
            return Places { kuf, kff, layout: response.views().layout() };
        }
        staged_places(component, response, params, &self.predictor.factors()[b.component], image)
    }

    fn response(&self, b: &Block) -> (&'m Component, &'m Response) {
        let component = &self.predictor.model.components()[b.component];
        (component, &component.responses()[b.response])
    }

    /// `f(index, block, M)` for every response of every component.
    fn for_blocks<T>(&self, f: impl Fn(usize, &Block, usize) -> Result<T>) -> Result<Vec<T>> {
        let blocks = self.predictor.model.variational().blocks();
        blocks.iter().enumerate().map(|(i, b)| f(i, b, b.rows.len())).collect()
    }

    /// Marginals of all latents for columns of covariances with block `b` alone; without `kff` only the means.
    fn posterior(&self, b: &Block, kuf: &Mat, kff: Option<&[f64]>) -> Result<Marginals> {
        let need = if kff.is_some() { Need::Value } else { Need::Mean };
        let (mut scratch, mut chunk, mut out) =
            (PosteriorScratch::default(), Marginals::default(), Marginals::default());
        for start in (0..kuf.cols()).step_by(COLUMNS) {
            let width = COLUMNS.min(kuf.cols() - start);
            let mut cov = self.blank(width);
            let own = &mut cov[b.component];
            (0..width).for_each(|n| own.kuf[b.response].col_mut(n).copy_from_slice(kuf.col(start + n)));
            if let Some(kff) = kff {
                own.kff[b.response].copy_from_slice(&kff[start..start + width]);
            }
            self.predictor.marginals(&cov, need, &mut scratch, &mut chunk)?;
            out.mean.extend_from_slice(&chunk.mean);
            if need == Need::Value {
                out.var.extend_from_slice(&chunk.var);
            }
        }
        Ok(out)
    }

    /// Covariances of `width` things that no component knows.
    fn blank(&self, width: usize) -> Vec<Cov> {
        let blank = |c: &Component| Cov {
            kuf: vec![Mat::zeros(c.inducing(), width); c.responses().len()],
            kff: vec![vec![0.0; width]; c.responses().len()],
        };
        self.predictor.model.components().iter().map(blank).collect()
    }
}

/// `w_p k_g(z_m, x[p])`, `M x P`, and `w_p^2 k_g(x[p], x[p])`. White noise belongs to the image, not to its views.
fn weighted_views(c: &Component, response: &Response, values: &[f64], image: &[f64]) -> (Mat, Vec<f64>) {
    let (views, theta, weights) = (response.views(), c.theta(values), response.weights(values));
    let mut all = vec![0.0; views.count() * views.len()];
    views.write(image, &mut all);
    let view = |p: usize| &all[p * views.len()..(p + 1) * views.len()];
    let kuf = Mat::from_fn(c.inducing(), views.count(), |m, p| {
        weights[p] * c.kernel().value(theta, view(p), c.z(values, m))
    });
    let kff = weights.iter().enumerate().map(|(p, w)| w * w * c.kernel().value(theta, view(p), view(p)));
    (kuf, kff.collect())
}

/// Covariances as sums over places of an image.
struct Places {
    /// `M x P`.
    kuf: Mat,
    kff: Vec<f64>,
    layout: Layout,
}

/// The places of the first stage, where a kernel on its responses is a function of distances.
///
/// `k(a, z)` grows from `k_0`, its value were the product `<a, z>` zero, to what it is as the product does; the growth is
/// shared out as the product is, and `k_0` evenly. Variances are those of the inducing outputs alone.
fn staged_places(c: &Component, response: &Response, values: &[f64], factor: &Mat, image: &[f64]) -> Places {
    let (views, theta, weights) = (response.views(), c.theta(values), response.weights(values));
    let plain = |l: &Leaf| !l.ard && l.dims == Dims::all(views.len());
    let terms = c.kernel().terms();
    let isotropic = terms.is_some_and(|terms| terms.iter().flat_map(|t| &t.leaves).all(plain));
    let products = views.products_by_place(image, c.z_slot().of(values)).filter(|_| isotropic);
    let (kuf, layout) = match products {
        Some((layout, products)) => {
            let mut view = vec![0.0; views.len()];
            views.write(image, &mut view);
            let (square, zero) = (norm_squared(&view), vec![0.0; views.len()]);
            let count = products.cols() as f64;
            let share = |m: usize| {
                let z = c.z(values, m);
                // A vector as far from zero as the view and `z` would be with nothing in common.
                let stretch = ((square + norm_squared(z)) / square.max(f64::MIN_POSITIVE)).sqrt();
                let apart: Vec<f64> = view.iter().map(|x| stretch * x).collect();
                let none = weights[0] * c.kernel().value(theta, &apart, &zero);
                let all = weights[0] * c.kernel().value(theta, &view, z);
                let product: f64 = (0..products.cols()).map(|p| products[(m, p)]).sum();
                if product.abs() < f64::EPSILON {
                    (0.0, all / count)
                } else {
                    ((all - none) / product, none / count)
                }
            };
            let shares: Vec<(f64, f64)> = (0..c.inducing()).map(share).collect();
            let kuf = |m: usize, p: usize| shares[m].0 * products[(m, p)] + shares[m].1;
            (Mat::from_fn(c.inducing(), products.cols(), kuf), layout)
        }
        None => {
            let (by_view, _) = weighted_views(c, response, values, image);
            let sum = |m: usize, _| (0..by_view.cols()).map(|p| by_view[(m, p)]).sum();
            let (planes, view) = (vec![String::new()], views.image_shape());
            let layout = Layout { planes, rows: 1, cols: 1, stride: (1, 1), view };
            (Mat::from_fn(c.inducing(), 1, sum), layout)
        }
    };
    let mut a = kuf.clone();
    par_solve_lower(factor.view(), a.view_mut());
    let kff = (0..a.cols()).map(|p| norm_squared(a.col(p))).collect();
    Places { kuf, kff, layout }
}
