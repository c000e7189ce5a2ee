//! Training on all images at once with L-BFGS, for small problems.

use crate::Result;
use crate::collapsed::Collapsed;
use crate::cov::Engine;
use crate::data::Dataset;
use crate::model::{Model, Workspace};
use crate::objective::Objective;
use crate::optim::{FreeSpace, Lbfgs, Outcome, StopReason};
use crate::params::{Form, Params};
use crate::train::TrainSpec;

/// What a full-batch run did.
#[derive(Debug, Clone, PartialEq)]
pub struct FullBatchReport {
    /// The objective at the start and after every step; never falls.
    pub bounds: Vec<f64>,
    /// Largest derivative in free coordinates at the end.
    pub gradient: f64,
    /// Evaluations of it.
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

/// Maximises the bound, or a power-EP energy, in all trainable parameters, `q` included (in covariance form).
/// Likelihoods that sample keep to one set of draws, so that it is a function.
pub fn maximise_bound<E: Engine>(
    model: &Model,
    engine: &E,
    data: &Dataset,
    objective: Objective,
    solver: &Lbfgs,
    params: &mut Params,
) -> Result<FullBatchReport> {
    TrainSpec { objective, ..TrainSpec::default() }.check()?;
    model.set_form(Form::Covariance, params)?;
    let layout = params.layout().clone();
    let batch = data.batch(&(0..data.len()).collect::<Vec<_>>());
    let space = FreeSpace::new(&layout);
    let (start, mut ws) = (space.gather(params), Workspace::<E>::default());
    let outcome = solver.minimise(
        |free, grad| {
            space.scatter(free, params);
            let alpha = objective.alpha();
            let bound = model.energy_and_grad(engine, params, batch.of(data.len()), alpha, &mut ws)?;
            write_negated(grad, &space.pull(params, &ws.grad));
            Ok(-bound.elbo)
        },
        start,
    )?;
    space.scatter(&outcome.x, params);
    Ok(FullBatchReport::new(outcome))
}

/// Maximises a collapsed objective in everything but `q`, which ends at its optimum. Gaussian noise only.
pub fn maximise_collapsed<E: Engine>(
    model: &Model,
    engine: &E,
    data: &Dataset,
    objective: Objective,
    solver: &Lbfgs,
    params: &mut Params,
) -> Result<FullBatchReport> {
    model.set_form(Form::Covariance, params)?;
    let collapsed = Collapsed::new(model, engine, params, data)?.with_objective(objective)?;
    let mut layout = params.layout().clone();
    layout.set_trainable("q", false)?;
    let space = FreeSpace::new(&layout);
    let start = space.gather(params);
    let outcome = solver.minimise(
        |free, grad| {
            space.scatter(free, params);
            let (value, slopes) = collapsed.value_and_grad(params)?;
            write_negated(grad, &space.pull(params, &slopes));
            Ok(-value)
        },
        start,
    )?;
    space.scatter(&outcome.x, params);
    collapsed.set_optimal_q(params)?;
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
        let (model, mut values) = Model::new(&spec, Some(data.images()), &mut Rng::new(2)).unwrap();
        let solver = Lbfgs { gradient_tolerance: 1e-4, max_steps: 3000, ..Lbfgs::default() };
        let report =
            maximise_bound(&model, &Reference, &data, Objective::default(), &solver, &mut values).unwrap();
        assert!(report.bounds.windows(2).all(|w| w[1] >= w[0] - 1e-12 * w[0].abs()), "monotone");
        assert_eq!(report.reason, StopReason::Gradient, "{} after {}", report.gradient, report.evaluations);
        let batch = data.batch(&(0..data.len()).collect::<Vec<_>>());
        let mut ws = Workspace::default();
        let bound = model.elbo(&Reference, &values, batch.of(data.len()), &mut ws).unwrap().elbo;
        assert!((bound - report.bounds[report.bounds.len() - 1]).abs() < 1e-10 * bound.abs());
    }

    #[test]
    fn the_collapsed_bound_rises_further_and_stays_below_the_evidence() {
        let data = regression(10, 1);
        let (model, start) = Model::new(&small_spec(), Some(data.images()), &mut Rng::new(2)).unwrap();
        let solver = Lbfgs { max_steps: 60, ..Lbfgs::default() };
        let (mut a, mut b) = (start.clone(), start.clone());
        let collapsed =
            maximise_collapsed(&model, &Reference, &data, Objective::default(), &solver, &mut a).unwrap();
        let plain = maximise_bound(&model, &Reference, &data, Objective::default(), &solver, &mut b).unwrap();
        let last = |r: &FullBatchReport| r.bounds[r.bounds.len() - 1];
        assert!(last(&collapsed) >= last(&plain), "{} and {}", last(&collapsed), last(&plain));
        assert!(last(&collapsed) > collapsed.bounds[0]);
        let evidence = ExactGp::new(&model, &a, &data).unwrap().log_evidence();
        assert!(last(&collapsed) <= evidence + 1e-9);
    }
}
