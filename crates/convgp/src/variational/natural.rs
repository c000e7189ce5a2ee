//! Natural-gradient steps, and the change between the two forms of `q`.

use super::{Form, Indefinite, PosteriorScratch, Variational};
use crate::likelihood::Expectations;
use crate::linalg::{self, Accumulate, Cholesky, Mat, NotPositiveDefinite, gemm, pack_lower};
use crate::params::{Params, Transform, packed_column, packed_len};
use rayon::prelude::*;

impl Variational {
    /// One natural-gradient step of size `gamma` from the evaluation held in `s` and `expect` (derivatives already
    /// scaled by `N / B`), in place:
    ///
    /// ```text
    /// Lambda <- (1 - gamma) Lambda + gamma (I - 2 A diag(gv) A^T)
    /// theta  <- (1 - gamma) theta  + gamma (A gm - 2 A diag(gv) A^T m)
    /// ```
    ///
    /// With a `trust_radius`, `gv` is taken to be at most `-|gm| / (2 trust_radius)`: the parabola that stands for an image's likelihood
    /// then has its top no further than `trust_radius` from the present mean, and every precision stays positive definite, for
    /// any likelihood. Where the means come to rest does not depend on it. Infinity only takes positive `gv` for zero.
    ///
    /// In block-diagonal structure the products are cut to the diagonal blocks.
    ///
    /// Work: `L Mtot^2 B` flops; the factorisation is paid by the next evaluation.
    pub fn natural_step(
        &self,
        gamma: f64,
        trust_radius: Option<f64>,
        expect: &Expectations,
        s: &PosteriorScratch,
        params: &mut Params,
    ) {
        debug_assert!(params.form() == Form::Natural && self.whitened);
        let (latents, total, images) = (self.latents, self.total, s.a.cols());
        let slot = self.slot().of_mut(params);
        let (thetas, triangles) = slot.split_at_mut(self.mean.len());
        let triangles = self.split_by_latent(triangles);
        let (a, means, pool) = (&s.a, &s.means, &s.pool);
        thetas.par_chunks_mut(total).zip(triangles).enumerate().for_each(|(l, (theta, mut triangles))| {
            let gv = |n: usize| {
                let (gm, gv) = (expect.mean_bar[n * latents + l], expect.var_bar[n * latents + l]);
                trust_radius.map_or(gv, |trust_radius| gv.min(-0.5 * gm.abs() / trust_radius))
            };
            for (group, precision) in self.groups.iter().zip(&mut triangles) {
                let (start, order) = (group.rows.start, group.order());
                let rows = group.rows.clone();
                pool.with(|panel, weighted, _| {
                    // weighted = A diag(-2 gv); its last use gives both updates.
                    weighted.resize(order, images);
                    let mut shift = vec![0.0; order];
                    for n in 0..images {
                        let a_n = &a.col(n)[rows.clone()];
                        let scale = -2.0 * gv(n);
                        weighted.col_mut(n).iter_mut().zip(a_n).for_each(|(w, a)| *w = scale * a);
                        let m_a = linalg::dot(a_n, &means.col(l)[rows.clone()]);
                        let c = expect.mean_bar[n * latents + l] + scale * m_a;
                        shift.iter_mut().zip(a_n).for_each(|(s, a)| *s += c * a);
                    }
                    for (first, width) in linalg::panels(order) {
                        panel.resize(order - first, width);
                        let weighted = weighted.view().subrows(first, order - first);
                        let a = a.view().subrows(start + first, width);
                        gemm(panel.view_mut(), Accumulate::Set, gamma, weighted, a.transpose());
                        for k in 0..width {
                            let out = &mut precision[linalg::packed_range(order, first + k)];
                            let new = &panel.col(k)[k..];
                            out.iter_mut().zip(new).for_each(|(p, n)| *p = (1.0 - gamma) * *p + n);
                            out[0] += gamma;
                        }
                    }
                    let theta = &mut theta[rows.clone()];
                    theta.iter_mut().zip(&shift).for_each(|(t, s)| *t = (1.0 - gamma) * *t + gamma * s);
                });
            }
        });
    }

    /// Takes off the means, in natural form, what those of the evaluation held in `s` have in common:
    /// `theta_l <- theta_l - Lambda_l sum_k m_k / L`.
    ///
    /// To a likelihood that ignores a common level this changes nothing, and `q` comes nearer to the prior. Natural
    /// steps hardly do it themselves: each latent believes the data to hold it where it is.
    pub(crate) fn center_latents(&self, s: &PosteriorScratch, params: &mut Params) {
        debug_assert!(params.form() == Form::Natural && self.whitened);
        let mut common = vec![0.0; self.total];
        for l in 0..self.latents {
            common.iter_mut().zip(s.means.col(l)).for_each(|(c, m)| *c += m / self.latents as f64);
        }
        let slot = self.slot().of_mut(params);
        let (thetas, triangles) = slot.split_at_mut(self.mean.len());
        let triangles = self.split_by_latent(triangles);
        thetas.par_chunks_mut(self.total).zip(triangles).for_each(|(theta, triangles)| {
            for (group, precision) in self.groups.iter().zip(triangles) {
                subtract_product(precision, &common[group.rows.clone()], &mut theta[group.rows.clone()]);
            }
        });
    }

    /// Rewrites the stored numbers in the other form. Natural parameters are moved by natural steps only, so the
    /// layout marks them as not trainable. The error names the first latent that cannot be rewritten.
    pub fn set_form(&self, form: Form, params: &mut Params) -> Result<(), Indefinite> {
        if form == params.form() {
            return Ok(());
        }
        let total = self.total;
        let slot = self.slot().of_mut(params);
        let (means, triangles) = slot.split_at_mut(self.mean.len());
        let triangles = self.split_by_latent(triangles);
        let rewrite = |(latent, (mean, mut triangles)): (usize, (&mut [f64], Vec<&mut [f64]>))| {
            for (group, packed) in self.groups.iter().zip(&mut triangles) {
                let mean = &mut mean[group.rows.clone()];
                match form {
                    Form::Natural => to_natural(group.order(), mean, packed),
                    Form::Covariance => {
                        to_covariance(group.order(), mean, packed).map_err(|_| Indefinite { latent })?;
                    }
                }
            }
            Ok(())
        };
        let latents = means.par_chunks_mut(total).zip(triangles).enumerate().map(rewrite);
        latents.collect::<Vec<_>>().into_iter().collect::<Result<(), Indefinite>>()?;
        self.assume_form(form, params);
        Ok(())
    }

    /// Says which form the stored numbers are in, without rewriting them: for numbers that were saved in that form.
    pub(crate) fn assume_form(&self, form: Form, params: &mut Params) {
        let natural = form == Form::Natural;
        params.assume_form(form, |layout| {
            layout.set_form("q.mean", Transform::Real, !natural);
            for (i, group) in self.groups.iter().enumerate() {
                let name = if self.groups.len() > 1 { format!("q.factor.{i}") } else { "q.factor".into() };
                let lower = Transform::Lower { order: group.order() };
                layout.set_form(&name, if natural { Transform::Real } else { lower }, !natural);
            }
        });
    }
}

/// `y -= P x` for a symmetric matrix of which the packed lower triangle is given.
fn subtract_product(packed: &[f64], x: &[f64], y: &mut [f64]) {
    for j in 0..x.len() {
        let column = &packed[linalg::packed_range(x.len(), j)];
        y[j] -= linalg::dot(column, &x[j..]);
        y[j + 1..].iter_mut().zip(&column[1..]).for_each(|(y, p)| *y -= p * x[j]);
    }
}

/// `m, R -> theta = S^{-1} m, Lambda = S^{-1} = R^{-T} R^{-1}`.
fn to_natural(order: usize, mean: &mut [f64], packed: &mut [f64]) {
    let covariance = Cholesky::from_packed(packed, order);
    covariance.solve(mean);
    pack_lower(covariance.inverse().view(), 0.0, 1.0, packed);
}

/// `theta, Lambda -> m, R`, `R` the lower Cholesky factor of `Lambda^{-1}`.
fn to_covariance(order: usize, mean: &mut [f64], packed: &mut [f64]) -> Result<(), NotPositiveDefinite> {
    let mut precision = Mat::zeros(order, order);
    linalg::unpack_lower(packed, precision.view_mut());
    let precision = Cholesky::new(precision)?;
    precision.solve(mean);
    let covariance = Cholesky::new(precision.inverse())?;
    pack_lower(covariance.lower().view(), 0.0, 1.0, packed);
    debug_assert_eq!(packed.len(), packed_len(order));
    debug_assert!((0..order).all(|j| packed[packed_column(order, j)] > 0.0));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PosteriorSpec;
    use crate::params::Layout;
    use std::sync::Arc;

    #[test]
    fn the_error_names_the_first_latent_whose_precision_is_indefinite() {
        let (mut layout, mut values) = (Layout::default(), Vec::new());
        let q =
            Variational::register(4, &[(3, 1)], PosteriorSpec::default(), &mut layout, &mut values).unwrap();
        let mut params = Params::new(Arc::new(layout), values);
        q.set_form(Form::Natural, &mut params).unwrap();
        let triangles = q.groups()[0].slot.of_mut(&mut params);
        for latent in [3, 2] {
            triangles[latent * packed_len(3)] = -1.0;
        }
        let error = q.set_form(Form::Covariance, &mut params).unwrap_err();
        assert_eq!(error, Indefinite { latent: 2 });
    }
}
