//! Training on all images at once with L-BFGS, for small problems.

use crate::Result;
use crate::collapsed::Collapsed;
use crate::cov::Engine;
use crate::data::Dataset;
use crate::model::{Model, Workspace};
use crate::optim::{FreeSpace, Lbfgs, Outcome, StopReason};
use crate::variational::Form;

/// What a full-batch run did.
#[derive(Debug, Clone, PartialEq)]
pub struct FullBatchReport {
    /// The bound at the start and after every step; never falls.
    pub bounds: Vec<f64>,
    /// Largest derivative in free coordinates at the end.
    pub gradient: f64,
    /// Evaluations of the bound.
    pub evaluations: usize,
    /// Why it stopped.
    pub reason: StopReason,
}

impl FullBatchReport {
    fn new(outcome: Outcome) -> Self {
        let Outcome { values, gradient, evaluations, reason, .. } = outcome;
        Self { bounds: values.iter().map(|v| -v).collect(), gradient, evaluations, reason }
    }
}

/// Maximises the bound in all trainable parameters, `q` included (in covariance form). Likelihoods that sample keep to
/// one set of draws, so that the bound is a function.
pub fn maximise_bound<E: Engine>(
    model: &mut Model,
    engine: &E,
    data: &Dataset,
    solver: &Lbfgs,
    values: &mut [f64],
) -> Result<FullBatchReport> {
    model.set_form(Form::Covariance, values)?;
    let model: &Model = model;
    let batch = data.batch(&(0..data.len()).collect::<Vec<_>>());
    let space = FreeSpace::new(model.layout());
    let (start, mut ws) = (space.gather(values), Workspace::<E>::default());
    let outcome = solver.minimise(
        |free, grad| {
            space.scatter(free, values);
            let bound = model.elbo_and_grad(engine, values, &batch, data.len(), 0, &mut ws)?;
            write_negated(grad, &space.pull(values, &ws.grad));
            Ok(-bound.elbo)
        },
        start,
    )?;
    space.scatter(&outcome.x, values);
    Ok(FullBatchReport::new(outcome))
}

/// Maximises the collapsed bound in everything but `q`, which ends at its optimum. Gaussian noise only.
pub fn maximise_collapsed<E: Engine>(
    model: &mut Model,
    engine: &E,
    data: &Dataset,
    solver: &Lbfgs,
    values: &mut [f64],
) -> Result<FullBatchReport> {
    model.set_form(Form::Covariance, values)?;
    let model: &Model = model;
    let mut collapsed = Collapsed::new(model, engine, values, data)?;
    let mut layout = model.layout().clone();
    layout.set_trainable("q", false)?;
    let space = FreeSpace::new(&layout);
    let start = space.gather(values);
    let outcome = solver.minimise(
        |free, grad| {
            space.scatter(free, values);
            let (bound, slopes) = collapsed.bound_and_grad(values)?;
            write_negated(grad, &space.pull(values, slopes));
            Ok(-bound)
        },
        start,
    )?;
    space.scatter(&outcome.x, values);
    collapsed.set_optimal_q(values)?;
    Ok(FullBatchReport::new(outcome))
}

fn write_negated(out: &mut [f64], x: &[f64]) {
    out.iter_mut().zip(x).for_each(|(o, x)| *o = -x);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelSpec;
    use crate::cov::Reference;
    use crate::exact::ExactGp;
    use crate::likelihood::LikelihoodSpec;
    use crate::rng::Rng;
    use crate::train::testing::{classes, regression, small_spec};

    #[test]
    fn the_bound_of_a_classifier_only_rises_and_comes_to_rest() {
        let data = classes(12, 3);
        let spec = ModelSpec { likelihood: LikelihoodSpec::probit(), ..small_spec() };
        let (mut model, mut values) = Model::new(&spec, Some(data.images()), &mut Rng::new(2)).unwrap();
        let solver = Lbfgs { gradient_tolerance: 1e-4, max_steps: 3000, ..Lbfgs::default() };
        let report = maximise_bound(&mut model, &Reference, &data, &solver, &mut values).unwrap();
        assert!(report.bounds.windows(2).all(|w| w[1] >= w[0] - 1e-12 * w[0].abs()), "monotone");
        assert_eq!(report.reason, StopReason::Gradient, "{} after {}", report.gradient, report.evaluations);
        let batch = data.batch(&(0..data.len()).collect::<Vec<_>>());
        let mut ws = Workspace::default();
        let bound = model.elbo(&Reference, &values, &batch, data.len(), 0, &mut ws).unwrap().elbo;
        assert!((bound - report.bounds[report.bounds.len() - 1]).abs() < 1e-10 * bound.abs());
    }

    #[test]
    fn the_collapsed_bound_rises_further_and_stays_below_the_evidence() {
        let data = regression(10, 1);
        let (mut model, start) = Model::new(&small_spec(), Some(data.images()), &mut Rng::new(2)).unwrap();
        let solver = Lbfgs { max_steps: 60, ..Lbfgs::default() };
        let (mut a, mut b) = (start.clone(), start.clone());
        let collapsed = maximise_collapsed(&mut model, &Reference, &data, &solver, &mut a).unwrap();
        let plain = maximise_bound(&mut model, &Reference, &data, &solver, &mut b).unwrap();
        let last = |r: &FullBatchReport| r.bounds[r.bounds.len() - 1];
        assert!(last(&collapsed) >= last(&plain), "{} and {}", last(&collapsed), last(&plain));
        assert!(last(&collapsed) > collapsed.bounds[0]);
        let evidence = ExactGp::new(&model, &a, &data).unwrap().log_evidence();
        assert!(last(&collapsed) <= evidence + 1e-9);
    }
}
