//! The loop as a whole.

use super::testing::{classes, regression, small_spec};
use super::*;
use crate::component::Component;
use crate::cov::{Cov, Engine, Need, Reference};
use crate::data::{Batch, Dataset};
use crate::error::NumericalError;
use crate::likelihood::LikelihoodSpec;
use crate::linalg::Mat;
use crate::model::{Predictor, Workspace};
use crate::params::{Form, Params};
use crate::rng::Rng;
use crate::variational::Structure;
use crate::{Error, Model, ModelSpec};
use std::cell::RefCell;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

fn probit() -> ModelSpec {
    ModelSpec { likelihood: LikelihoodSpec::probit(), ..small_spec() }
}

fn build(spec: &ModelSpec, data: &Dataset) -> (Model, Params) {
    Model::new(spec, Some(data.images()), &mut Rng::new(6)).unwrap()
}

fn settings(q: QStep) -> TrainSpec {
    TrainSpec { q, batch_size: 8, steps: 24, report_every: 5, seed: 3, ..TrainSpec::default() }
}

fn always(_: &StepReport) -> Control {
    Control::Continue
}

/// Runs to the end, through a saved state at `pause` if there is one.
fn train(q: QStep, pause: Option<u64>) -> Params {
    let data = classes(30, 4);
    let (model, values) = build(&probit(), &data);
    let spec = settings(q);
    let mut trainer = Trainer::new(&model, &Reference, &data, &spec, values).unwrap();
    let Some(pause) = pause else {
        trainer.run(always, &mut []).unwrap();
        return trainer.into_params();
    };
    trainer.run(|r| if r.step == pause { Control::Stop } else { Control::Continue }, &mut []).unwrap();
    assert_eq!(trainer.steps_taken(), pause);
    let text = serde_json::to_string(trainer.state()).unwrap();
    let values = trainer.into_params().to_vec();
    let state: TrainerState = serde_json::from_str(&text).unwrap();
    let (fresh, _) = build(&probit(), &data);
    let mut trainer = Trainer::resume(&fresh, &Reference, &data, &spec, values, state).unwrap();
    trainer.run(always, &mut []).unwrap();
    trainer.into_params()
}

#[test]
fn a_resumed_run_ends_in_the_same_bits_for_any_number_of_threads() {
    for q in [QStep::Natural, QStep::Adam] {
        let on = |threads, pause| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| train(q, pause))
        };
        let whole = on(1, None);
        assert!(whole.iter().all(|v| v.is_finite()));
        assert_eq!(whole, on(2, None), "{q:?}: two threads");
        for pause in [1, 13, 23] {
            assert_eq!(whole, on(1, Some(pause)), "{q:?}: resumed at {pause}");
        }
        assert_eq!(whole, on(2, Some(7)), "{q:?}: resumed on two threads");
    }
}

#[test]
fn training_raises_the_bound() {
    let data = classes(40, 4);
    let elbo = |report: &StepReport| report.bound.unwrap().elbo().unwrap();
    for q in [QStep::Natural, QStep::Adam] {
        let (model, values) = build(&probit(), &data);
        let spec = TrainSpec { batch_size: 40, steps: 150, report_every: 1, ..settings(q) };
        let mut trainer = Trainer::new(&model, &Reference, &data, &spec, values).unwrap();
        let first = elbo(&trainer.step().unwrap());
        let last = elbo(&trainer.run(always, &mut []).unwrap().unwrap());
        assert!(last > first + 3.0, "{q:?}: from {first} to {last}");
        assert_eq!(
            trainer.counts(),
            Counts { clamped_variances: trainer.counts().clamped_variances, ..Counts::default() }
        );
    }
}

#[test]
fn one_full_natural_step_lands_on_the_collapsed_optimum() {
    let data = regression(11, 2);
    let (model, values) = build(&small_spec(), &data);
    let natural =
        NaturalSpec { gamma: 1.0, schedule: crate::optim::Schedule::default(), ..Default::default() };
    let frozen = ["conv", "image", "likelihood"].map(String::from).to_vec();
    let spec = TrainSpec { natural, frozen, batch_size: 11, ..settings(QStep::Natural) };
    let mut trainer = Trainer::new(&model, &Reference, &data, &spec, values).unwrap();
    trainer.step().unwrap();
    let after = trainer.into_params();
    let mut best = after.clone();
    let bound = crate::collapsed::Collapsed::new(&model, &Reference, &best, &data)
        .unwrap()
        .set_optimal_q(&mut best)
        .unwrap();
    assert!(after.iter().zip(&*best).all(|(a, b)| (a - b).abs() < 1e-9 * (1.0 + b.abs())), "bound {bound}");
}

#[test]
fn a_level_common_to_all_latents_is_taken_off() {
    let data = classes(20, 1);
    let mut batch = Batch::empty(data.images().shape());
    data.write_batch(&(0..20).collect::<Vec<_>>(), &mut batch);
    for structure in [Structure::Full, Structure::MeanField] {
        let mut spec = ModelSpec { likelihood: LikelihoodSpec::softmax(2), ..small_spec() };
        spec.posterior.structure = structure;
        let (model, mut values) = build(&spec, &data);
        let rng = &mut Rng::new(8);
        model.variational().slot().of_mut(&mut values).iter_mut().for_each(|v| *v += 0.1 * rng.normal());
        let common: Vec<f64> = (0..model.variational().total()).map(|_| rng.normal()).collect();
        let means = model.variational().mean_slot();
        means.of_mut(&mut values).iter_mut().zip(common.iter().cycle()).for_each(|(m, c)| *m += c);
        model.set_form(Form::Natural, &mut values).unwrap();
        let mut ws = Workspace::default();
        let before = model.elbo(&Reference, &values, batch.of(20), &mut ws).unwrap();
        model.variational().center_latents(&ws.posterior, &mut values);
        let after = model.elbo(&Reference, &values, batch.of(20), &mut ws).unwrap();
        assert!((before.expectation - after.expectation).abs() < 1e-9, "{before:?}, {after:?}");
        assert!(after.kl < before.kl - 1.0, "{before:?}, {after:?}");
        model.set_form(Form::Covariance, &mut values).unwrap();
        let [first, second] = [0, 1].map(|l| model.variational().mean(&values, l));
        assert!(first.iter().zip(second).all(|(a, b)| (a + b).abs() < 1e-9));
    }
}

#[test]
fn no_image_moves_a_latent_further_than_the_trust_radius() {
    let data = classes(5, 1);
    let mut batch = Batch::empty(data.images().shape());
    data.write_batch(&[0], &mut batch);
    let mut spec = ModelSpec { likelihood: LikelihoodSpec::softmax(2), ..small_spec() };
    spec.components[0].kernel = toml::from_str("type = 'rbf'\nvariance = 1e6").unwrap();
    let largest_mean_after = |radius: Option<f64>| {
        let (model, mut values) = build(&spec, &data);
        model.set_form(Form::Natural, &mut values).unwrap();
        let mut ws = Workspace::default();
        model.elbo_and_grad(&Reference, &values, batch.of(1), &mut ws).unwrap();
        model.natural_step(1.0, radius, &ws, &mut values);
        model.set_form(Form::Covariance, &mut values).unwrap();
        let means = Predictor::new(&model, &Reference, &values).unwrap().means(data.images()).unwrap();
        means[..2].iter().fold(0.0f64, |largest, m| largest.max(m.abs()))
    };
    let (free, near) = (largest_mean_after(None), largest_mean_after(Some(3.0)));
    assert!(free > 30.0 && near > 1.0 && near <= 3.0 + 1e-9, "{free}, {near}");
    assert_eq!(largest_mean_after(Some(f64::INFINITY)), free);
}

#[test]
fn observers_are_called_when_due() {
    let data = classes(20, 1);
    let (model, values) = build(&probit(), &data);
    let seen = RefCell::new(Vec::new());
    let mut trainer = Trainer::new(&model, &Reference, &data, &settings(QStep::Natural), values).unwrap();
    let note = |tag: &'static str| {
        let seen = &seen;
        move |m: &StepContext<'_>| {
            assert!(m.batch_error().is_some_and(|e| (0.0..=1.0).contains(&e)));
            assert_eq!(m.state.step, m.report.step);
            seen.borrow_mut().push((tag, m.report.step));
            Ok(())
        }
    };
    let mut observers = [
        Observer::new(Trigger::Steps(10), note("steps")),
        Observer::new(Trigger::End, note("end")),
        Observer::new(Trigger::NewBest, note("best")),
        Observer::new(Trigger::Every(Duration::from_secs(3600)), note("hour")),
    ];
    let stop = |r: &StepReport| if r.step == 21 { Control::Stop } else { Control::Continue };
    trainer.run(stop, &mut observers).unwrap();
    drop(observers);
    let seen = seen.into_inner();
    let of = |tag| seen.iter().filter(|s| s.0 == tag).map(|s| s.1).collect::<Vec<_>>();
    assert_eq!((of("steps"), of("end"), of("hour")), (vec![10, 20], vec![21], vec![]));
    assert!(
        of("best").contains(&1) && of("best").iter().all(|s| s % 5 == 1),
        "only where the bound is known"
    );
}

/// The reference engine, except that from its `from`-th batch on `bad` batches come out as NaN.
struct Faulty {
    from: i64,
    bad: i64,
    calls: AtomicI64,
}

impl Engine for Faulty {
    type Saved = ();
    fn kuu(&self, c: &Component, values: &[f64], kuu: &mut Mat) {
        Reference.kuu(c, values, kuu);
    }
    fn kuu_pullback(&self, c: &Component, values: &[f64], kuu_bar: &Mat, grad: &mut [f64]) {
        Reference.kuu_pullback(c, values, kuu_bar, grad);
    }
    fn images(
        &self,
        c: &Component,
        values: &[f64],
        batch: &Batch,
        need: Need,
        saved: &mut (),
        cov: &mut Cov,
    ) {
        Reference.images(c, values, batch, need, saved, cov);
        // Two components: one evaluation is two calls.
        let call = self.calls.fetch_add(1, Ordering::Relaxed) / 2;
        if (self.from..self.from + self.bad).contains(&call) {
            cov.kuf[0].fill(f64::NAN);
        }
    }
    fn images_pullback(
        &self,
        c: &Component,
        values: &[f64],
        batch: &Batch,
        saved: &mut (),
        cov_bar: &Cov,
        grad: &mut [f64],
    ) {
        Reference.images_pullback(c, values, batch, saved, cov_bar, grad);
    }
}

fn faulty(from: i64, bad: i64) -> Faulty {
    Faulty { from, bad, calls: AtomicI64::new(0) }
}

#[test]
fn a_failed_step_is_rolled_back_and_shrunk_and_recovers() {
    let data = classes(20, 1);
    let (model, values) = build(&probit(), &data);
    let recovery = RecoverySpec { stable_steps: 6, ..RecoverySpec::default() };
    let spec = TrainSpec { recovery, ..settings(QStep::Natural) };
    let engine = faulty(12, 2);
    let mut trainer = Trainer::new(&model, &engine, &data, &spec, values).unwrap();
    let mut at_ten = Vec::new();
    for _ in 0..13 {
        if trainer.steps_taken() == 10 {
            at_ten = trainer.params().to_vec();
        }
        trainer.step().unwrap();
    }
    assert_eq!(&trainer.params()[..], at_ten, "back to the copy made at step 10");
    assert!(trainer.state().adam.first.iter().all(|m| *m == 0.0), "moments are forgotten");
    let second = trainer.step().unwrap();
    let Some(Event::RolledBack { cause, to_step, scale }) = second.event else { panic!("{second:?}") };
    assert!(matches!(cause, NumericalError::NonFinite { .. }) && second.bound.is_none());
    assert_eq!((to_step, scale), (10, 0.25));
    let quarter = trainer.step().unwrap();
    assert!(quarter.event.is_none() && quarter.bound.is_some());
    for _ in 0..9 {
        trainer.step().unwrap();
    }
    assert_eq!(trainer.counts().roll_backs, 2);
    assert_eq!(trainer.scale(), 0.5, "one back-off taken back after six stable steps, the other not yet");
}

#[test]
fn persistent_trouble_ends_in_an_error_that_names_everything() {
    let data = classes(20, 1);
    let (model, values) = build(&probit(), &data);
    let spec = TrainSpec { steps: 100, ..settings(QStep::Adam) };
    let engine = faulty(4, 1000);
    let mut trainer = Trainer::new(&model, &engine, &data, &spec, values).unwrap();
    let err = trainer.run(always, &mut []).unwrap_err();
    let Error::Numerical(NumericalError::Diverged {
        step,
        tries,
        last_bound,
        component,
        first,
        second,
        gap,
        cause,
    }) = err
    else {
        panic!("{err}")
    };
    assert_eq!((step, tries), (12, 8), "four good steps, eight roll-backs");
    assert!(last_bound.is_some_and(f64::is_finite) && gap > 0.0 && first < second);
    assert!(["conv", "image"].contains(&component.as_str()));
    assert!(matches!(*cause, NumericalError::NonFinite { .. }));
}

#[test]
fn states_of_other_runs_are_refused() {
    let data = classes(20, 1);
    let (model, values) = build(&probit(), &data);
    let spec = settings(QStep::Natural);
    let trainer = Trainer::new(&model, &Reference, &data, &spec, values).unwrap();
    let (state, mut values) = (trainer.state().clone(), trainer.into_params().to_vec());
    let fewer = data.select(&[0, 1, 2]).unwrap();
    let err = Trainer::resume(&model, &Reference, &fewer, &spec, values.clone(), state.clone()).unwrap_err();
    assert!(err.to_string().contains("the sampler has 20 numbers, the model and data need 3"), "{err}");
    let adam = settings(QStep::Adam);
    let err = Trainer::resume(&model, &Reference, &data, &adam, values.clone(), state.clone()).unwrap_err();
    assert!(err.to_string().contains("adam has"), "{err}");
    values.pop();
    let err = Trainer::resume(&model, &Reference, &data, &spec, values, state).unwrap_err();
    assert!(err.to_string().contains("values has"), "{err}");
}

#[test]
fn an_image_that_counts_twice_is_as_good_as_two() {
    let data = classes(30, 4);
    let (model, values) = build(&probit(), &data);
    let evaluate = |indices: &[usize], weights: &[f64]| {
        let mut batch = data.batch(indices);
        batch.weights_mut().extend(weights);
        let mut ws = crate::model::Workspace::default();
        let bound = model.elbo_and_grad(&Reference, &values, batch.of(30), &mut ws).unwrap();
        (bound.elbo, ws.grad)
    };
    let (elbo, grad) = evaluate(&[3, 3, 8], &[]);
    let (weighted_elbo, weighted_grad) = evaluate(&[3, 8], &[4.0 / 3.0, 2.0 / 3.0]);
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-11 * (1.0 + a.abs());
    assert!(close(elbo, weighted_elbo), "{elbo} {weighted_elbo}");
    for (i, (&a, &b)) in grad.iter().zip(&weighted_grad).enumerate() {
        assert!(close(a, b), "derivative {i}: {a} {b}");
    }
}

#[test]
fn frozen_parameters_keep_their_initial_values_and_the_others_move() {
    let data = regression(20, 1);
    for q in [QStep::Natural, QStep::Adam] {
        let initial = [("conv.kernel.variance".into(), 7.5), ("conv.weights".into(), 0.5)].into();
        let frozen = vec!["conv.kernel".into(), "image.z".into(), "conv.weights".into()];
        let train = TrainSpec { initial, frozen, ..settings(q) };
        let spec = ExperimentSpec { model: small_spec(), train };
        let (model, start) = spec.initial_model(&data).unwrap();
        assert_eq!(model.layout().entry("conv.kernel.variance").unwrap().slot.of(&start), [7.5]);
        let mut trainer = Trainer::new(&model, &Reference, &data, &spec.train, start.clone()).unwrap();
        trainer.run(always, &mut []).unwrap();
        let end = trainer.into_params();
        for e in model.layout().entries().iter().filter(|e| !e.name.starts_with("q.")) {
            let fixed = ["conv.kernel.variance", "conv.kernel.lengthscale", "image.z", "conv.weights"];
            let same = e.slot.of(&start) == e.slot.of(&end);
            assert_eq!(same, fixed.contains(&e.name.as_str()), "{}", e.name);
        }
    }
}

#[test]
fn names_that_are_no_parameters_are_refused() {
    let data = regression(20, 1);
    let attempt = |train| ExperimentSpec { model: small_spec(), train }.initial_model(&data).unwrap_err();
    for train in [
        TrainSpec { frozen: vec!["conv.kernl".into()], ..TrainSpec::default() },
        TrainSpec { initial: [("conv.kernl".into(), 1.0)].into(), ..TrainSpec::default() },
    ] {
        let message = attempt(train).to_string();
        assert!(message.contains("`conv.kernl`") && message.contains("conv.kernel.variance"), "{message}");
    }
    let negative = [("conv.kernel.variance".into(), -1.0)].into();
    let message = attempt(TrainSpec { initial: negative, ..TrainSpec::default() }).to_string();
    assert!(message.contains("it must be positive"), "{message}");
}
