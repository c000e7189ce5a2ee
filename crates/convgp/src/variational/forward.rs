//! Marginals of the latents and the Kullback-Leibler divergence.

use super::{Form, PosteriorScratch, VarianceReport, Variational};
use crate::cov::{Cov, Need};
use crate::error::NumericalError;
use crate::likelihood::Marginals;
use crate::linalg::{
    self, Accumulate, Mat, cholesky_by_blocks, dot, gemm, invert_lower, norm_squared, solve_lower,
    solve_lower_t, unpack_lower,
};
use crate::params::{Params, packed_column};
use rayon::prelude::*;

/// A latent's precision is not positive definite (natural form only).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Indefinite {
    /// The latent.
    pub latent: usize,
}

impl From<Indefinite> for NumericalError {
    fn from(Indefinite { latent }: Indefinite) -> Self {
        Self::IndefinitePosterior { latent }
    }
}

impl Variational {
    /// Writes the marginals of all images and latents. `chol[c]` is the factor of component `c`'s `Kuu`, `cov[c]` its
    /// covariances. With [`Need::Mean`] the variances are left alone.
    ///
    /// Work: `L Mtot^2 B` flops in triangular products (full structure), latents in parallel.
    pub fn marginals(
        &self,
        params: &Params,
        chol: &[Mat],
        cov: &[Cov],
        need: Need,
        s: &mut PosteriorScratch,
        out: &mut Marginals,
    ) -> Result<VarianceReport, Indefinite> {
        let images = cov[0].kuf[0].cols();
        self.project(chol, cov, images, s);
        if let Some(shared) = self.shared {
            return Ok(self.shared_marginals(shared, params, cov, need, s, out));
        }
        if !self.whitened {
            self.write_whitened(params, chol, s);
        }
        self.factorise(params, s)?;
        out.resize(images, self.latents);
        // mean = A^T means, row-major B x L, which is column-major L x B.
        let mean = linalg::MatMut::from_column_major_slice_mut(&mut out.mean, self.latents, images);
        gemm(mean, Accumulate::Set, 1.0, s.means.view().transpose(), s.a.view());
        if need == Need::Mean {
            return Ok(VarianceReport::default());
        }
        let report = self.base_variances(cov, s);
        self.project_latents(params, s);
        for n in 0..images {
            for (l, norms) in s.norms.iter().enumerate() {
                out.var[n * self.latents + l] = s.base[n] + norms[n];
            }
        }
        Ok(report)
    }

    /// `A_b = L^{-1} Kuf_b`, stacked.
    pub(crate) fn project(&self, chol: &[Mat], cov: &[Cov], images: usize, s: &mut PosteriorScratch) {
        s.a.resize(self.total, images);
        for b in &self.blocks {
            let kuf = &cov[b.component].kuf[b.response];
            let rows = s.a.view_mut().subrows_mut(b.rows.start, b.rows.len());
            linalg::par_solve_lower_of(chol[b.component].view(), kuf.view(), rows);
        }
    }

    /// Fills the whitened means and, in natural form, the factors of the precisions.
    fn factorise(&self, params: &Params, s: &mut PosteriorScratch) -> Result<(), Indefinite> {
        s.means.resize(self.total, self.latents);
        let (mean, total) = (&self.q_values(params, &s.whitened)[..self.mean.len()], self.total);
        s.means.data_mut().copy_from_slice(mean);
        if params.form() == Form::Covariance {
            return Ok(());
        }
        s.factors.resize_with(self.latents, Vec::new);
        let pool = &s.pool;
        let mut failures: Vec<Option<Indefinite>> = vec![None; self.latents];
        s.factors
            .par_iter_mut()
            .zip(s.means.data_mut().par_chunks_mut(total))
            .zip(&mut failures)
            .enumerate()
            .for_each(|(latent, ((factors, mean), failure))| {
                factors.resize_with(self.groups.len(), Mat::default);
                for (group, c) in self.groups.iter().zip(factors) {
                    c.resize(group.order(), group.order());
                    unpack_lower(group.triangle(params, latent), c.view_mut());
                    let sizes = self.block_sizes(group);
                    let factored =
                        pool.with(|_, _, scratch| cholesky_by_blocks(c.view_mut(), &sizes, scratch));
                    if factored.is_err() {
                        *failure = Some(Indefinite { latent });
                        return;
                    }
                    // m = C^{-T} C^{-1} theta
                    let rows = &mut mean[group.rows.clone()];
                    let mut m = linalg::MatMut::from_column_major_slice_mut(rows, group.order(), 1);
                    solve_lower(c.view(), m.as_mut());
                    solve_lower_t(c.view(), m);
                }
            });
        failures.into_iter().flatten().next().map_or(Ok(()), Err)
    }

    /// `kff - |A|^2`, which exact arithmetic keeps above zero.
    pub(super) fn base_variances(&self, cov: &[Cov], s: &mut PosteriorScratch) -> VarianceReport {
        let images = s.a.cols();
        let mut report = VarianceReport::default();
        s.base.resize(images, 0.0);
        s.clamped.resize(images, false);
        s.base.par_iter_mut().zip(s.a.data().par_chunks(self.total)).for_each(|(b, a)| *b = norm_squared(a));
        for n in 0..images {
            let kff: f64 = cov.iter().flat_map(|c| &c.kff).map(|k| k[n]).sum();
            let base = kff - s.base[n];
            s.clamped[n] = base < 0.0;
            s.base[n] = base.max(0.0);
            if s.clamped[n] {
                report.clamped += 1;
                report.worst = report.worst.min(base / kff.max(f64::MIN_POSITIVE));
            }
        }
        report
    }

    /// `R_l^T A` or `C_l^{-1} A`, and the squared norms of its columns: any square root of `S_l` will do for variances.
    fn project_latents(&self, params: &Params, s: &mut PosteriorScratch) {
        s.products.resize_with(self.latents, Mat::default);
        s.norms.resize_with(self.latents, Vec::new);
        let (a, pool, factors) = (&s.a, &s.pool, &s.factors);
        let q = self.q_values(params, &s.whitened);
        s.products.par_iter_mut().zip(&mut s.norms).enumerate().for_each(|(l, (t, norms))| {
            t.resize(self.total, a.cols());
            for (g, group) in self.groups.iter().enumerate() {
                let (start, order) = (group.rows.start, group.order());
                let a_rows = a.view().subrows(start, order);
                let mut t_rows = t.view_mut().subrows_mut(start, order);
                match params.form() {
                    Form::Covariance => pool.with(|panel, _, _| {
                        let triangle = self.q_triangle(q, g, l);
                        for (first, width) in linalg::panels(order) {
                            linalg::unpack_panel(triangle, order, first, width, panel);
                            let out = t_rows.as_mut().subrows_mut(first, width);
                            let a = a_rows.subrows(first, order - first);
                            gemm(out, Accumulate::Set, 1.0, panel.view().transpose(), a);
                        }
                    }),
                    Form::Natural => {
                        t_rows.copy_from(a_rows);
                        solve_lower(factors[l][g].view(), t_rows);
                    }
                }
            }
            norms.clear();
            norms.extend((0..t.cols()).map(|n| norm_squared(t.col(n))));
        });
    }

    /// The numbers of the whitened `q`: the stored ones, or the whitened copy.
    pub(super) fn q_values<'a>(&self, values: &'a [f64], whitened: &'a [f64]) -> &'a [f64] {
        if self.whitened { self.slot().of(values) } else { whitened }
    }

    /// Packed triangle of group `g` and latent `l` in an array laid out like [`Variational::slot`].
    pub(super) fn q_triangle<'a>(&self, q: &'a [f64], g: usize, l: usize) -> &'a [f64] {
        let group = &self.groups[g];
        let start = group.slot.range().start - self.mean.range().start;
        let len = group.slot.len() / self.latents;
        &q[start + l * len..start + (l + 1) * len]
    }

    /// `sum_l KL(q(v_l) || N(0, I))`. Must follow [`Variational::marginals`] with the same values. In natural form it
    /// needs the inverse factors, `L Mtot^3 / 3` flops more.
    pub fn kl(&self, params: &Params, s: &PosteriorScratch) -> f64 {
        let q = self.q_values(params, &s.whitened);
        let per_latent = |l: usize| {
            let mean = norm_squared(s.means.col(l));
            let groups = (0..self.groups.len()).map(|g| match params.form() {
                Form::Covariance => covariance_kl(self.q_triangle(q, g, l), self.groups[g].order()),
                Form::Natural => natural_kl(&s.factors[l][g], &s.pool),
            });
            0.5 * (mean - self.total as f64) + groups.sum::<f64>()
        };
        let parts: Vec<f64> = (0..self.latents).into_par_iter().map(per_latent).collect();
        parts.iter().sum()
    }
}

/// `|R|^2 / 2 - sum_i log R[i, i]`.
fn covariance_kl(triangle: &[f64], order: usize) -> f64 {
    let log_det: f64 = (0..order).map(|j| libm::log(triangle[packed_column(order, j)])).sum();
    0.5 * dot(triangle, triangle) - log_det
}

/// The same from the factor of the precision: `|C^{-1}|^2 / 2 + sum_i log C[i, i]`.
fn natural_kl(c: &Mat, pool: &super::Pool) -> f64 {
    let order = c.rows();
    let log_det: f64 = (0..order).map(|j| libm::log(c[(j, j)])).sum();
    let trace: f64 = pool.with(|inverse, _, _| {
        inverse.resize(order, order);
        invert_lower(inverse.view_mut(), c.view());
        (0..order).map(|j| norm_squared(&inverse.col(j)[j..])).sum()
    });
    0.5 * trace + log_det
}
