//! Seam 1: covariances of inducing outputs and images, and their pullbacks.
//!
//! ```text
//! kuu[m, m'] = k_g(z_m, z_m') + [m = m'] white
//! kuf[m, n]  = sum_p w_p k_g(z_m, x_n[p])               one matrix per response
//! kff[n]     = sum_pq w_p w_q k_g(x_n[p], x_n[q]) + white
//! ```
//!
//! Inference knows nothing else of a kernel. Two engines compute them: [`Reference`], naive and readable, the judge in
//! tests, and [`Fused`], tiled and vectorised.

#[cfg(any(test, feature = "testing"))]
pub mod contract;
mod exact;
mod fused;
mod normalise;
mod reference;

pub use exact::{exact_covariance, exact_cross_covariance};
pub use fused::{Fused, Lane, Optimizations};
pub use reference::Reference;

use crate::component::Component;
use crate::data::Batch;
use crate::linalg::Mat;

/// What will be done with the covariances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Only means: `kff` is not computed.
    Mean,
    /// Means and variances.
    Value,
    /// Also a pullback afterwards.
    Gradient,
}

/// Covariances with the images of a batch, one entry per response; cotangents have the same type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cov {
    /// `M x B` each.
    pub kuf: Vec<Mat>,
    /// `B` each; empty for [`Need::Mean`].
    pub kff: Vec<Vec<f64>>,
}

impl Cov {
    /// Makes room for `responses` blocks of `inducing x images`; contents are unspecified.
    pub fn resize(&mut self, responses: usize, inducing: usize, images: usize) {
        self.kuf.resize_with(responses, Mat::default);
        self.kff.resize_with(responses, Vec::new);
        self.kuf.iter_mut().for_each(|k| k.resize(inducing, images));
        self.kff.iter_mut().for_each(|k| k.resize(images, 0.0));
    }
}

/// A way to compute covariances. `values` is the model's parameter vector; buffers belong to the caller.
pub trait Engine: Sync {
    /// What the forward pass hands to the pullback.
    type Saved: Default + Send;

    /// Writes the symmetric `M x M` matrix `kuu`, white noise included, jitter not.
    fn kuu(&self, component: &Component, values: &[f64], kuu: &mut Mat);

    /// Adds the pullback of a symmetric `kuu_bar` to `grad`.
    fn kuu_pullback(&self, component: &Component, values: &[f64], kuu_bar: &Mat, grad: &mut [f64]);

    /// Writes `kuf` and (unless only means are needed) `kff` of every response.
    fn images(
        &self,
        component: &Component,
        values: &[f64],
        batch: &Batch,
        need: Need,
        saved: &mut Self::Saved,
        cov: &mut Cov,
    );

    /// Adds the pullback of [`Engine::images`] to `grad`. `saved` must come from a forward pass with the same values
    /// and batch and [`Need::Gradient`].
    fn images_pullback(
        &self,
        component: &Component,
        values: &[f64],
        batch: &Batch,
        saved: &mut Self::Saved,
        cov_bar: &Cov,
        grad: &mut [f64],
    );
}
