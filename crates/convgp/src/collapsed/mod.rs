//! Collapsed objectives for Gaussian noise: the posterior is integrated out in closed form.
//!
//! With `A` the stacked whitened covariances (`Mtot x N`), noise variance `s2`, `d_n = kff[n] - |A[:, n]|^2`,
//! `sigma_n = s2 + alpha d_n` and `B = I + A diag(1 / sigma) A^T`:
//!
//! ```text
//! q*: precision B,  theta = A diag(1 / sigma) y
//! value = -N/2 log(2 pi s2) - log|B| / 2 - sum_n y_n^2 / (2 sigma_n) + theta^T B^{-1} theta / 2
//!         - sum_n log(1 + beta d_n / s2) / (2 beta)
//! ```
//!
//! | objective | alpha | beta |
//! |---|---|---|
//! | the bound (Titsias, 2009) | 0 | 0: the last sum is that of `d_n / (2 s2)` |
//! | the tightened bound | 0 | 1 |
//! | power EP; FITC at 1 | alpha | alpha |
//!
//! `B` is factorised block by block, so nothing larger than one component's `M x M` is.

mod energy;

pub use energy::Adjoints;

use crate::Result;
use crate::cov::{Cov, Engine, Need};
use crate::data::{Batch, Dataset};
use crate::error::{NumericalError, SpecError};
use crate::exact::noise_and_targets;
use crate::linalg::{
    self, Accumulate, Cholesky, CholeskyScratch, Mat, NotPositiveDefinite, cholesky_pullback, gemm_lower,
    norm_squared, pack_lower,
};
use crate::model::{Jitter, Model, pull_jitter};
use crate::objective::{ALPHA, Objective};
use crate::params::{Form, Params};
use energy::{Inputs, Optimum};

/// A model with Gaussian noise and all its data, ready to be evaluated at any parameters.
#[derive(Debug)]
pub struct Collapsed<'a, E: Engine> {
    model: &'a Model,
    engine: &'a E,
    batch: Batch,
    objective: Objective,
}

/// Covariances of one component.
struct Part<E: Engine> {
    chol: Mat,
    /// Relative to the mean diagonal.
    jitter: f64,
    saved: E::Saved,
}

impl<'a, E: Engine> Collapsed<'a, E> {
    /// The bound. Needs a Gaussian likelihood and a dense posterior.
    pub fn new(model: &'a Model, engine: &'a E, values: &[f64], data: &Dataset) -> Result<Self> {
        model.check_images(data.images().shape())?;
        noise_and_targets(model, values, data.targets())?;
        if model.is_closed_form() {
            return Err(SpecError::ClosedFormOnly.into());
        }
        if model.variational().groups().len() != 1 {
            return Err(SpecError::CollapsedStructure.into());
        }
        let batch = data.batch(&(0..data.len()).collect::<Vec<_>>());
        Ok(Self { model, engine, batch, objective: Objective::default() })
    }

    /// Another objective in place of the bound.
    pub fn with_objective(self, objective: Objective) -> Result<Self> {
        if !objective.has_valid_alpha() {
            let value = objective.alpha();
            return Err(SpecError::Alpha { value, must: ALPHA }.into());
        }
        Ok(Self { objective, ..self })
    }

    /// The objective; `q` in `values` is not looked at.
    pub fn value(&self, values: &[f64]) -> Result<f64> {
        let (_, inputs) = self.project(values, Need::Value)?;
        Ok(self.optimum(&inputs)?.value)
    }

    /// Overwrites `q` in `params` by the best one, in whichever form it is. Returns the objective.
    pub fn set_optimal_q(&self, params: &mut Params) -> Result<f64> {
        let (parts, inputs) = self.project(params, Need::Value)?;
        let optimum = self.optimum(&inputs)?;
        let v = self.model.variational();
        let q = match params.form() {
            Form::Natural => natural(&optimum),
            Form::Covariance => covariance(&optimum)?,
        };
        let chol: Vec<Mat> = parts.into_iter().map(|p| p.chol).collect();
        let q = if v.whitened() { q } else { v.unwhiten(&q, &chol) };
        v.slot().of_mut(params).copy_from_slice(&q);
        Ok(optimum.value)
    }

    /// `A`, and `d` kept above zero.
    pub fn projection(&self, values: &[f64]) -> Result<(Mat, Vec<f64>)> {
        let (_, inputs) = self.project(values, Need::Value)?;
        Ok((inputs.a, inputs.d))
    }

    /// The objective's derivatives in `A`, `kff` and the noise.
    pub fn adjoints(&self, values: &[f64]) -> Result<Adjoints> {
        let (_, inputs) = self.project(values, Need::Value)?;
        Ok(inputs.adjoints(&self.optimum(&inputs)?))
    }

    /// The objective and its derivatives in every parameter; those in `q` are zero.
    pub fn value_and_grad(&self, values: &[f64]) -> Result<(f64, Vec<f64>)> {
        let (parts, inputs) = self.project(values, Need::Gradient)?;
        let optimum = self.optimum(&inputs)?;
        let bar = inputs.adjoints(&optimum);
        let mut grad = vec![0.0; values.len()];
        self.model.theta.of_mut(&mut grad)[0] = bar.noise;
        for (i, (c, mut part)) in self.model.components().iter().zip(parts).enumerate() {
            let (m, responses) = (part.chol.rows(), c.responses().len());
            let mut kuu_bar = Mat::zeros(m, m);
            let mut cov_bar = Cov { kuf: vec![Mat::zeros(m, bar.kff.len()); responses], kff: Vec::new() };
            cov_bar.kff.resize(responses, bar.kff.clone());
            for b in self.model.variational().blocks().iter().filter(|b| b.component == i) {
                let [a, a_bar] = [&inputs.a, &bar.a].map(|a| a.view().subrows(b.rows.start, m));
                gemm_lower(kuu_bar.view_mut(), Accumulate::Add, 1.0, a_bar, a.transpose());
                let kuf = cov_bar.kuf[b.response].view_mut();
                linalg::par_solve_lower_t_of(part.chol.view(), a_bar, kuf);
            }
            (0..m).for_each(|j| kuu_bar[(j, j)] *= 0.5);
            cholesky_pullback(part.chol.view(), &mut kuu_bar);
            if let Jitter::Relative(_) = self.model.spec().jitter {
                pull_jitter(&mut kuu_bar, part.jitter);
            }
            self.engine.kuu_pullback(c, values, &kuu_bar, &mut grad);
            self.engine.images_pullback(c, values, &self.batch, &mut part.saved, &cov_bar, &mut grad);
        }
        Ok((optimum.value, grad))
    }

    fn optimum(&self, inputs: &Inputs) -> Result<Optimum> {
        let sizes: Vec<usize> = self.model.variational().blocks().iter().map(|b| b.rows.len()).collect();
        inputs.optimum(&sizes)
    }

    /// Covariances of every component, and what the objective depends on.
    fn project(&self, values: &[f64], need: Need) -> Result<(Vec<Part<E>>, Inputs)> {
        let (noise, y) = noise_and_targets(self.model, values, self.batch.targets())?;
        let (v, n) = (self.model.variational(), self.batch.len());
        let mut a = Mat::zeros(v.total(), n);
        let (mut d, mut parts) = (vec![0.0; n], Vec::new());
        for (i, c) in self.model.components().iter().enumerate() {
            let (mut kuu, mut chol, mut cov) = (Mat::default(), Mat::default(), Cov::default());
            self.engine.kuu(c, values, &mut kuu);
            let (jitter, _) =
                self.model.factorise(i, values, &kuu, &mut chol, &mut CholeskyScratch::default())?;
            let mut saved = E::Saved::default();
            self.engine.images(c, values, &self.batch, need, &mut saved, &mut cov);
            for b in v.blocks().iter().filter(|b| b.component == i) {
                let rows = a.view_mut().subrows_mut(b.rows.start, b.rows.len());
                linalg::par_solve_lower_of(chol.view(), cov.kuf[b.response].view(), rows);
                d.iter_mut().zip(&cov.kff[b.response]).for_each(|(s, k)| *s += k);
            }
            parts.push(Part { chol, jitter, saved });
        }
        d.iter_mut().enumerate().for_each(|(i, s)| *s = (*s - norm_squared(a.col(i))).max(0.0));
        let log_scale = libm::log(self.model.likelihood().gaussian_noise().unwrap_or_default().scale);
        Ok((parts, Inputs { a, d, y, log_scale, noise, objective: self.objective }))
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
    let mut q = o.mean();
    let s = Cholesky::new(o.factor.inverse())
        .map_err(|e| indefinite("covariance of the collapsed posterior", e, m))?;
    q.resize(m + crate::params::packed_len(m), 0.0);
    pack_lower(s.lower().view(), 0.0, 1.0, &mut q[m..]);
    Ok(q)
}

fn indefinite(matrix: &'static str, e: NotPositiveDefinite, size: usize) -> NumericalError {
    let remedy = "raise the noise variance or `jitter`";
    NumericalError::IndefiniteMatrix { matrix, row: e.row, size, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelSpec;
    use crate::cov::Reference;
    use crate::exact::ExactGp;
    use crate::model::{PosteriorSpec, Workspace};
    use crate::rng::Rng;
    use crate::train::testing::{regression, small_spec};
    use crate::variational::Structure;

    fn model(whiten: bool, data: &Dataset) -> (Model, Params) {
        let posterior = PosteriorSpec { structure: Structure::Full, whiten, rank: None };
        Model::new(&ModelSpec { posterior, ..small_spec() }, Some(data.images()), &mut Rng::new(4)).unwrap()
    }

    #[test]
    fn touches_the_uncollapsed_bound_at_the_optimum_in_every_form() {
        let data = regression(9, 2);
        for (whiten, form) in [(true, Form::Covariance), (true, Form::Natural), (false, Form::Covariance)] {
            let (model, mut values) = model(whiten, &data);
            model.set_form(form, &mut values).unwrap();
            let collapsed = Collapsed::new(&model, &Reference, &values, &data).unwrap();
            let bound = collapsed.set_optimal_q(&mut values).unwrap();
            let mut ws = Workspace::default();
            let batch = data.batch(&(0..data.len()).collect::<Vec<_>>());
            let full = model.elbo_and_grad(&Reference, &values, batch.of(data.len()), &mut ws).unwrap();
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
                model.elbo(&Reference, &values, batch.of(data.len()), &mut Workspace::default()).unwrap();
            assert!(prior.elbo < bound);
        }
    }

    #[test]
    fn derivatives_match_differences_of_the_collapsed_value() {
        let data = regression(7, 5);
        let (model, values) = model(true, &data);
        let collapsed = Collapsed::new(&model, &Reference, &values, &data).unwrap();
        let grad = collapsed.value_and_grad(&values).unwrap().1;
        let scale = grad.iter().fold(0.0f64, |m, g| m.max(g.abs()));
        for i in 0..model.variational().slot().range().start {
            let at = |h: f64| {
                let mut v = values.clone();
                v[i] += h;
                collapsed.value(&v).unwrap()
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
        let posterior = PosteriorSpec { structure: Structure::MeanField, whiten: true, rank: None };
        let spec = ModelSpec { posterior, ..small_spec() };
        let (model, values) = Model::new(&spec, Some(data.images()), &mut Rng::new(0)).unwrap();
        let err = Collapsed::new(&model, &Reference, &values, &data).unwrap_err();
        assert!(matches!(err, crate::Error::Spec(SpecError::CollapsedStructure)), "{err}");
    }
}
