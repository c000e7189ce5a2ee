//! The collapsed bound for Gaussian noise (Titsias, 2009): the posterior is integrated out in closed form.
//!
//! With `A` the stacked whitened covariances (`Mtot x N`), noise variance `s2` and `B = I + A A^T / s2`:
//!
//! ```text
//! q*: precision B,  theta = A y / s2
//! bound = log N(y; 0, A^T A + s2 I) - sum_n (kff[n] - |A[:, n]|^2) / (2 s2)
//!       = -N/2 log(2 pi s2) - log|B| / 2 - |y|^2 / (2 s2) + theta^T B^{-1} theta / 2 - trace term
//! ```
//!
//! `B` is factorised block by block, so nothing larger than one component's `M x M` is. Derivatives come from the
//! envelope theorem: at `q*` the uncollapsed bound touches the collapsed one, and its derivative in `q` is zero, so its
//! derivatives in everything else are those of the collapsed bound.

use crate::Result;
use crate::cov::{Cov, Engine, Need};
use crate::data::{Batch, Dataset};
use crate::error::{NumericalError, SpecError};
use crate::exact::noise_and_targets;
use crate::linalg::{
    self, CholeskyScratch, Into, Mat, ViewMut, cholesky_by_blocks, gemm_lower, norm_squared, pack_lower,
    solve_lower, solve_lower_t,
};
use crate::model::{Model, Workspace};
use crate::variational::Form;

/// A model with Gaussian noise and all its data, ready to be evaluated at any parameters.
pub struct Collapsed<'a, E: Engine> {
    model: &'a Model,
    engine: &'a E,
    batch: Batch,
    ws: Workspace<E>,
}

impl<E: Engine> std::fmt::Debug for Collapsed<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collapsed").field("images", &self.batch.len()).finish_non_exhaustive()
    }
}

/// Factors of `Kuu` per component, `B` and `theta` of the optimal posterior, and the value they give.
struct Optimum {
    chol: Vec<Mat>,
    precision: Mat,
    factor: Mat,
    theta: Vec<f64>,
    bound: f64,
}

impl<'a, E: Engine> Collapsed<'a, E> {
    /// Needs a Gaussian likelihood and a dense posterior.
    pub fn new(model: &'a Model, engine: &'a E, values: &[f64], data: &Dataset) -> Result<Self> {
        model.check_images(data.images().shape())?;
        noise_and_targets(model, values, data.targets())?;
        let v = model.variational();
        if v.groups().len() != 1 {
            return Err(SpecError::CollapsedStructure.into());
        }
        let batch = data.batch(&(0..data.len()).collect::<Vec<_>>());
        Ok(Self { model, engine, batch, ws: Workspace::default() })
    }

    /// The bound; `q` in `values` is not looked at.
    pub fn bound(&self, values: &[f64]) -> Result<f64> {
        Ok(self.optimum(values)?.bound)
    }

    /// Overwrites `q` in `values` by the best one, in whichever form the model stores it. Returns the bound.
    pub fn set_optimal_q(&self, values: &mut [f64]) -> Result<f64> {
        let optimum = self.optimum(values)?;
        let v = self.model.variational();
        let q = match v.form() {
            Form::Natural => natural(&optimum),
            Form::Covariance => covariance(&optimum)?,
        };
        let q = if v.whitened() { q } else { v.unwhiten(&q, &optimum.chol) };
        v.slot().of_mut(values).copy_from_slice(&q);
        Ok(optimum.bound)
    }

    /// The bound and its derivatives in every parameter. `q` is set to its optimum; its own derivatives are zero, or left
    /// out in natural form, as always there.
    pub fn bound_and_grad(&mut self, values: &mut [f64]) -> Result<(f64, &[f64])> {
        let bound = self.set_optimal_q(values)?;
        let n = self.batch.len();
        self.model.elbo_and_grad(self.engine, values, &self.batch, n, 0, &mut self.ws)?;
        let q = self.model.variational().slot().range();
        self.ws.grad[q.start..].fill(0.0);
        Ok((bound, &self.ws.grad))
    }

    fn optimum(&self, values: &[f64]) -> Result<Optimum> {
        let (noise, y) = noise_and_targets(self.model, values, self.batch.targets())?;
        let (chol, a, base) = self.project(values)?;
        let (m, n) = (a.rows(), a.cols());
        let mut theta = vec![0.0; m];
        for (i, y) in y.iter().enumerate() {
            theta.iter_mut().zip(a.col(i)).for_each(|(t, a)| *t += a * y / noise);
        }
        let mut precision = Mat::zeros(m, m);
        gemm_lower(precision.view_mut(), Into::Set, 1.0 / noise, a.view(), a.view().transpose());
        (0..m).for_each(|i| precision[(i, i)] += 1.0);
        let mut factor = precision.clone();
        let sizes: Vec<usize> = self.model.variational().blocks().iter().map(|b| b.rows.len()).collect();
        cholesky_by_blocks(factor.view_mut(), &sizes, &mut CholeskyScratch::default())
            .map_err(|_| NumericalError::IndefinitePosterior { latent: 0 })?;
        let mut c = theta.clone();
        solve_lower(factor.view(), ViewMut::from_column_major_slice_mut(&mut c, m, 1));
        let log_det: f64 = (0..m).map(|i| libm::log(factor[(i, i)])).sum();
        let constant = 0.5 * n as f64 * libm::log(std::f64::consts::TAU * noise);
        let fit = 0.5 * norm_squared(&c) - 0.5 * norm_squared(y) / noise;
        let bound = fit - constant - log_det - 0.5 * base.iter().sum::<f64>() / noise;
        Ok(Optimum { chol, precision, factor, theta, bound })
    }

    /// Factors of every `Kuu`, `A`, and `kff[n] - |A[:, n]|^2` kept above zero as the uncollapsed bound does.
    fn project(&self, values: &[f64]) -> Result<(Vec<Mat>, Mat, Vec<f64>)> {
        let (v, n) = (self.model.variational(), self.batch.len());
        let mut a = Mat::zeros(v.total(), n);
        let (mut base, mut chol) = (vec![0.0; n], Vec::new());
        for (i, c) in self.model.components().iter().enumerate() {
            let (mut kuu, mut factor, mut cov) = (Mat::default(), Mat::default(), Cov::default());
            self.engine.kuu(c, values, &mut kuu);
            self.model.factorise(i, values, &kuu, &mut factor, &mut CholeskyScratch::default())?;
            let saved = &mut E::Saved::default();
            self.engine.images(c, values, &self.batch, Need::Value, saved, &mut cov);
            for b in v.blocks().iter().filter(|b| b.component == i) {
                let rows = a.view_mut().subrows_mut(b.rows.start, b.rows.len());
                linalg::par_solve_lower_of(factor.view(), cov.kuf[b.response].view(), rows);
                base.iter_mut().zip(&cov.kff[b.response]).for_each(|(s, k)| *s += k);
            }
            chol.push(factor);
        }
        base.iter_mut().enumerate().for_each(|(i, s)| *s = (*s - norm_squared(a.col(i))).max(0.0));
        Ok((chol, a, base))
    }
}

/// `theta`, then the packed precision.
fn natural(o: &Optimum) -> Vec<f64> {
    let mut q = o.theta.clone();
    let start = q.len();
    q.resize(start + crate::params::packed_len(start), 0.0);
    pack_lower(o.precision.view(), 0.0, 1.0, &mut q[start..]);
    q
}

/// `B^{-1} theta`, then the packed lower factor of `B^{-1}`.
fn covariance(o: &Optimum) -> Result<Vec<f64>> {
    let m = o.theta.len();
    let mut q = o.theta.clone();
    let mut mean = ViewMut::from_column_major_slice_mut(&mut q, m, 1);
    solve_lower(o.factor.view(), mean.as_mut());
    solve_lower_t(o.factor.view(), mean);
    let (mut inverse, mut s) = (Mat::zeros(m, m), Mat::zeros(m, m));
    linalg::invert_lower(inverse.view_mut(), o.factor.view());
    linalg::own_t_times_lower(s.view_mut(), inverse.view());
    linalg::cholesky(s.view_mut(), &mut CholeskyScratch::default())
        .map_err(|_| NumericalError::IndefinitePosterior { latent: 0 })?;
    q.resize(m + crate::params::packed_len(m), 0.0);
    pack_lower(s.view(), 0.0, 1.0, &mut q[m..]);
    Ok(q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelSpec;
    use crate::cov::Reference;
    use crate::exact::ExactGp;
    use crate::model::PosteriorSpec;
    use crate::rng::Rng;
    use crate::train::testing::{regression, small_spec};
    use crate::variational::Structure;

    fn model(whiten: bool, data: &Dataset) -> (Model, Vec<f64>) {
        let posterior = PosteriorSpec { structure: Structure::Full, whiten };
        Model::new(&ModelSpec { posterior, ..small_spec() }, Some(data.images()), &mut Rng::new(4)).unwrap()
    }

    #[test]
    fn touches_the_uncollapsed_bound_at_the_optimum_in_every_form() {
        let data = regression(9, 2);
        for (whiten, form) in [(true, Form::Covariance), (true, Form::Natural), (false, Form::Covariance)] {
            let (mut model, mut values) = model(whiten, &data);
            model.set_form(form, &mut values).unwrap();
            let collapsed = Collapsed::new(&model, &Reference, &values, &data).unwrap();
            let bound = collapsed.set_optimal_q(&mut values).unwrap();
            let mut ws = Workspace::default();
            let batch = data.batch(&(0..data.len()).collect::<Vec<_>>());
            let full = model.elbo_and_grad(&Reference, &values, &batch, data.len(), 0, &mut ws).unwrap();
            assert!((full.elbo - bound).abs() < 1e-9 * bound.abs(), "{} against {bound}", full.elbo);
            let q = &ws.grad[model.variational().slot().range().start..];
            assert!(q.iter().all(|g| g.abs() < 1e-8), "stationary in q");
        }
    }

    #[test]
    fn stays_below_the_evidence_and_prefers_its_own_q() {
        for seed in 0..5 {
            let data = regression(10, seed);
            let (model, values) = model(true, &data);
            let evidence = ExactGp::new(&model, &values, &data).unwrap().log_evidence();
            let collapsed = Collapsed::new(&model, &Reference, &values, &data).unwrap();
            let bound = collapsed.set_optimal_q(&mut values.clone()).unwrap();
            assert!(bound <= evidence, "{bound} above {evidence}");
            let batch = data.batch(&(0..data.len()).collect::<Vec<_>>());
            let prior =
                model.elbo(&Reference, &values, &batch, data.len(), 0, &mut Workspace::default()).unwrap();
            assert!(prior.elbo < bound);
        }
    }

    #[test]
    fn derivatives_match_differences_of_the_collapsed_value() {
        let data = regression(7, 5);
        let (model, mut values) = model(true, &data);
        let mut collapsed = Collapsed::new(&model, &Reference, &values, &data).unwrap();
        let grad = collapsed.bound_and_grad(&mut values).unwrap().1.to_vec();
        let scale = grad.iter().fold(0.0f64, |m, g| m.max(g.abs()));
        for i in 0..model.variational().slot().range().start {
            let at = |h: f64| {
                let mut v = values.clone();
                v[i] += h;
                collapsed.bound(&v).unwrap()
            };
            let h = 1e-4 * (1.0 + values[i].abs());
            // Fourth order, so that neither truncation nor rounding is seen.
            let d = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
            assert!((d - grad[i]).abs() < 1e-7 * (scale + d.abs()), "{i}: {d} against {}", grad[i]);
        }
    }

    #[test]
    fn other_likelihoods_and_structures_are_refused() {
        let data = regression(4, 0);
        let posterior = PosteriorSpec { structure: Structure::MeanField, whiten: true };
        let spec = ModelSpec { posterior, ..small_spec() };
        let (model, values) = Model::new(&spec, Some(data.images()), &mut Rng::new(0)).unwrap();
        let err = Collapsed::new(&model, &Reference, &values, &data).unwrap_err();
        assert!(matches!(err, crate::Error::Spec(SpecError::CollapsedStructure)), "{err}");
    }
}
