//! One covariance for all latents: what the closed-form solver leaves.
//!
//! With Gaussian noise of one size every latent has the posterior covariance `S = (I + A_N A_N^T / noise)^{-1}` of the
//! whitened inducing outputs, `A_N` being those of all training images. It is kept as the lower factor `C` of its
//! inverse, or, where training images are fewer than inducing outputs, as `W` with `S = I - W W^T`. Variances are
//! multiplied by `scale`, the kernel's variance that the residuals ask for.

use super::{PosteriorScratch, VarianceReport, Variational};
use crate::cov::{Cov, Need};
use crate::likelihood::Marginals;
use crate::linalg::{Accumulate, Mat, MatMut, MatRef, gemm, norm_squared, par_gemm, par_solve_packed_lower};
use crate::params::{Layout, ParamError, ParamInit, Slot, Transform};

/// Where the numbers of a shared covariance are stored, after the means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    scale: Slot,
    /// `W`, `Mtot x rank` column-major, if that is what is stored.
    explained: Option<Slot>,
}

impl Shared {
    pub(super) fn register(
        total: usize,
        rank: Option<usize>,
        layout: &mut Layout,
        values: &mut Vec<f64>,
    ) -> Result<Self, ParamError> {
        let explained = rank.map(|rank| {
            let zeros = vec![0.0; total * rank];
            layout.add(values, "q", ParamInit::array("explained", Transform::Real, zeros))
        });
        let explained = explained.transpose()?;
        let scale = layout.add(values, "q", ParamInit::positive("scale", 1.0))?;
        Ok(Self { scale, explained })
    }

    /// How many numbers there are besides the triangle.
    pub(super) fn len(self) -> usize {
        self.scale.len() + self.explained.map_or(0, |s| s.len())
    }
    /// Slot of the factor on variances.
    pub fn scale_slot(self) -> Slot {
        self.scale
    }
    /// Slot of `W`, for a covariance of low rank.
    pub fn explained_slot(self) -> Option<Slot> {
        self.explained
    }
}

impl Variational {
    /// [`Variational::marginals`] for a shared covariance.
    pub(super) fn shared_marginals(
        &self,
        shared: Shared,
        values: &[f64],
        cov: &[Cov],
        need: Need,
        s: &mut PosteriorScratch,
        out: &mut Marginals,
    ) -> VarianceReport {
        let images = s.a.cols();
        out.resize(images, self.latents);
        let means = MatRef::from_column_major_slice(self.mean.of(values), self.total, self.latents);
        let mean = MatMut::from_column_major_slice_mut(&mut out.mean, self.latents, images);
        par_gemm(mean, Accumulate::Set, 1.0, means.transpose(), s.a.view());
        if need == Need::Mean {
            return VarianceReport::default();
        }
        let report = self.base_variances(cov, s);
        s.products.resize_with(1, Mat::default);
        s.norms.resize_with(1, Vec::new);
        let (a, product) = (&s.a, &mut s.products[0]);
        let norms: Vec<f64> = match shared.explained {
            Some(slot) => {
                let rank = slot.len() / self.total;
                let w = MatRef::from_column_major_slice(slot.of(values), self.total, rank);
                product.resize(rank, images);
                par_gemm(product.view_mut(), Accumulate::Set, 1.0, w.transpose(), a.view());
                let left = |n: usize| norm_squared(a.col(n)) - norm_squared(product.col(n));
                (0..images).map(|n| left(n).max(0.0)).collect()
            }
            None => {
                product.clone_from(a);
                par_solve_packed_lower(self.groups[0].slot.of(values), self.total, product.view_mut());
                (0..images).map(|n| norm_squared(product.col(n))).collect()
            }
        };
        let scale = shared.scale.of(values)[0];
        for (n, norm) in norms.iter().enumerate() {
            out.var[n * self.latents..(n + 1) * self.latents].fill(scale * (s.base[n] + norm));
        }
        s.norms[0] = norms;
        report
    }

    /// Adds `A^T S_l A` to `cov` and applies the scale of a shared covariance to all of it. Must follow
    /// [`Variational::marginals`].
    pub(crate) fn add_inducing_covariance(
        &self,
        values: &[f64],
        latent: usize,
        s: &PosteriorScratch,
        cov: &mut Mat,
    ) {
        let t = s.product(latent).view();
        let explained = self.shared.and_then(|shared| shared.explained);
        if explained.is_some() {
            let a = s.a.view();
            gemm(cov.view_mut(), Accumulate::Add, 1.0, a.transpose(), a);
        }
        let sign = if explained.is_some() { -1.0 } else { 1.0 };
        gemm(cov.view_mut(), Accumulate::Add, sign, t.transpose(), t);
        if let Some(shared) = self.shared {
            let scale = shared.scale.of(values)[0];
            cov.data_mut().iter_mut().for_each(|c| *c *= scale);
        }
    }
}
