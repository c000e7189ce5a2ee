//! One step at a time.

use super::{Counts, Good, QStep, Sampler, TrainError, TrainSpec, TrainerState};
use crate::Result;
use crate::component::Component;
use crate::cov::Engine;
use crate::data::{Batch, Dataset};
use crate::error::{Error, NumericalError};
use crate::likelihood::Marginals;
use crate::linalg::all_finite;
use crate::model::{Bound, Model, Wanted, Workspace};
use crate::optim::{Adam, AdamSpec};
use crate::params::Entry;
use crate::variational::Form;

/// Trains a model's parameters; owns them, the optimisers, the generator and all buffers.
pub struct Trainer<'a, E: Engine> {
    pub(super) model: &'a Model,
    engine: &'a E,
    data: &'a Dataset,
    pub(super) spec: TrainSpec,
    pub(super) total_steps: u64,
    pub(super) values: Vec<f64>,
    pub(super) adam: Adam,
    sampler: Sampler,
    pub(super) step: u64,
    pub(super) good: Good,
    pub(super) halvings: u32,
    pub(super) calm: u64,
    pub(super) best: Option<f64>,
    pub(super) counts: Counts,
    pub(super) batch: Batch,
    indices: Vec<usize>,
    ws: Workspace<E>,
}

impl<E: Engine> std::fmt::Debug for Trainer<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer").field("spec", &self.spec).field("step", &self.step).finish_non_exhaustive()
    }
}

/// What one step did.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// Steps taken, this one included.
    pub step: u64,
    /// Steps planned.
    pub total_steps: u64,
    /// The bound on this step's minibatch, before the update. Not a number after a roll-back; `kl` and `elbo` are not
    /// numbers either where the divergence was not computed.
    pub bound: Bound,
    /// Adam's step size.
    pub rate: f64,
    /// The natural step size, 0 where Adam moves `q`.
    pub gamma: f64,
    /// Whether the bound is the best one reported so far.
    pub new_best: bool,
    /// What did not go smoothly.
    pub event: Option<Event>,
}

/// Numerical trouble that was mended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// `Kuu` needed more jitter than the spec says.
    JitterRaised {
        /// The jitter used, relative to the mean diagonal.
        jitter: f64,
        /// How often it was multiplied by ten, over all components.
        times: usize,
    },
    /// The step failed; parameters went back and step sizes were halved.
    RolledBack {
        /// Why.
        cause: NumericalError,
        /// Steps taken when the restored parameters were copied.
        to_step: u64,
        /// Factor now in force on both step sizes.
        scale: f64,
    },
}

impl<'a, E: Engine> Trainer<'a, E> {
    /// A trainer at its first step. Puts `q` into the form its steps need.
    pub fn new(
        model: &'a mut Model,
        engine: &'a E,
        data: &'a Dataset,
        spec: &TrainSpec,
        mut values: Vec<f64>,
    ) -> Result<Self> {
        spec.check()?;
        model.check_values(&values)?;
        model.set_form(form(spec), &mut values)?;
        let model: &'a Model = model;
        let state = TrainerState {
            step: 0,
            total_steps: spec.steps,
            good: Good { values: values.clone(), step: 0, age: 0, bound: None },
            values,
            adam: new_adam(&spec.adam, model).state().clone(),
            sampler: new_sampler(spec, model, data.len()),
            halvings: 0,
            calm: 0,
            best: None,
            counts: Counts::default(),
        };
        Self::assemble(model, engine, data, spec, state)
    }

    /// A trainer that continues where `state` was taken. Model, data and spec must be the ones of that run.
    pub fn resume(
        model: &'a mut Model,
        engine: &'a E,
        data: &'a Dataset,
        spec: &TrainSpec,
        state: TrainerState,
    ) -> Result<Self> {
        spec.check()?;
        model.assume_form(form(spec))?;
        Self::assemble(model, engine, data, spec, state)
    }

    fn assemble(
        model: &'a Model,
        engine: &'a E,
        data: &'a Dataset,
        spec: &TrainSpec,
        state: TrainerState,
    ) -> Result<Self> {
        model.check_images(data.images().shape())?;
        model.likelihood().check_targets(data.targets())?;
        let TrainerState { step, total_steps, values, adam, sampler, good, halvings, calm, best, counts } =
            state;
        check_length("values", values.len(), model.layout().len())?;
        check_length("good.values", good.values.len(), model.layout().len())?;
        check_length("the sampler", sampler.count(), data.len())?;
        let fresh = new_adam(&spec.adam, model);
        let expected = fresh.state().first.len();
        let adam = fresh.with_state(adam).map_err(|s| TrainError::StateLength {
            what: "adam",
            found: s.first.len(),
            expected,
        })?;
        let batch = Batch::empty(data.images().shape());
        let (spec, indices, ws) = (spec.clone(), Vec::new(), Workspace::default());
        Ok(Self {
            model,
            engine,
            data,
            spec,
            total_steps,
            values,
            adam,
            sampler,
            step,
            good,
            halvings,
            calm,
            best,
            counts,
            batch,
            indices,
            ws,
        })
    }

    /// Everything needed to continue from here.
    pub fn state(&self) -> TrainerState {
        TrainerState {
            step: self.step,
            total_steps: self.total_steps,
            values: self.values.clone(),
            adam: self.adam.state().clone(),
            sampler: self.sampler.clone(),
            good: self.good.clone(),
            halvings: self.halvings,
            calm: self.calm,
            best: self.best,
            counts: self.counts,
        }
    }

    /// The model.
    pub fn model(&self) -> &'a Model {
        self.model
    }
    /// Current parameters, `q` in the form its steps need.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
    /// Current parameters, taken.
    pub fn into_values(self) -> Vec<f64> {
        self.values
    }
    /// Steps taken.
    pub fn steps_taken(&self) -> u64 {
        self.step
    }
    /// Steps planned.
    pub fn total_steps(&self) -> u64 {
        self.total_steps
    }
    /// Trouble so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }
    /// Marginals of the last minibatch, before the last update.
    pub fn marginals(&self) -> &Marginals {
        self.ws.marginals()
    }

    /// Changes the plan that schedules follow, as a run limited by time does once it knows its speed. The plan is part
    /// of the state, so a resumed run follows it too.
    pub fn set_total_steps(&mut self, total: u64) {
        self.total_steps = total;
    }

    /// One step: a minibatch, one evaluation, one update of everything. Numerical trouble is rolled back and reported;
    /// it is an error only after [`RecoverySpec::tries`](super::RecoverySpec::tries).
    pub fn step(&mut self) -> Result<StepReport> {
        self.sampler.next_batch(&mut self.indices);
        self.data.write_batch(&self.indices, &mut self.batch);
        self.sampler.write_weights(&self.indices, self.batch.weights_mut());
        let (rate, gamma) = self.step_sizes();
        let outcome = self.evaluate();
        let (bound, event) = match outcome {
            Ok(bound) => {
                self.note_good(&bound);
                self.sampler.learn(&self.indices, &self.ws.expect.value);
                self.update(rate, gamma);
                (bound, jitter_event(&bound))
            }
            Err(Error::Numerical(cause)) => (no_bound(), Some(self.roll_back(cause)?)),
            Err(other) => return Err(other),
        };
        self.step += 1;
        let new_best = bound.elbo.is_finite() && self.best.is_none_or(|best| bound.elbo > best);
        if new_best {
            self.best = Some(bound.elbo);
        }
        let (step, total_steps) = (self.step, self.total_steps);
        Ok(StepReport { step, total_steps, bound, rate, gamma, new_best, event })
    }

    /// Step sizes of Adam and of the natural step, roll-backs included.
    fn step_sizes(&self) -> (f64, f64) {
        let (adam, natural) = (&self.spec.adam, &self.spec.natural);
        let (step, total, scale) = (self.step, self.total_steps, self.scale());
        let gamma = match self.spec.q {
            QStep::Natural => natural.gamma * natural.schedule.factor(step, total) * scale,
            QStep::Adam => 0.0,
        };
        (adam.rate * adam.schedule.factor(step, total) * scale, gamma)
    }

    /// The bound and its gradient on the current batch; an error when anything is not finite.
    fn evaluate(&mut self) -> Result<Bound> {
        let free_kl = self.spec.q == QStep::Adam;
        let kl =
            free_kl || self.step.is_multiple_of(self.spec.report_every) || self.step + 1 == self.total_steps;
        let wanted = Wanted { gradient: true, kl };
        // The step numbers the draws of likelihoods that sample.
        let (count, draw) = (self.data.len(), self.step);
        let bound =
            self.model.evaluate(self.engine, &self.values, &self.batch, count, draw, wanted, &mut self.ws)?;
        let value = if kl { bound.elbo } else { bound.expectation };
        let entries = self.model.layout().entries().iter().filter(|e| e.trainable);
        let bad = entries.clone().find(|e| !all_finite(e.slot.of(&self.ws.grad)));
        if value.is_finite() && bad.is_none() {
            return Ok(bound);
        }
        let largest = |e: &&Entry| e.slot.of(&self.ws.grad).iter().fold(0.0f64, |m, g| m.max(g.abs()));
        let parameter = bad.or_else(|| entries.max_by(|a, b| largest(a).total_cmp(&largest(b))));
        let parameter = parameter.map_or(String::new(), |e| e.name.clone());
        Err(NumericalError::NonFinite { value, parameter }.into())
    }

    fn update(&mut self, rate: f64, gamma: f64) {
        if self.spec.q == QStep::Natural {
            let (v, reach) = (self.model.variational(), self.spec.natural.limit());
            v.natural_step(gamma, reach, &self.ws.expect, &self.ws.posterior, &mut self.values);
            if self.model.likelihood().ignores_level() {
                v.remove_common_mean(&self.ws.posterior, &mut self.values);
            }
        }
        self.adam.step(rate, &mut self.values, &self.ws.grad);
    }
}

fn form(spec: &TrainSpec) -> Form {
    match spec.q {
        QStep::Natural => Form::Natural,
        QStep::Adam => Form::Covariance,
    }
}

fn check_length(what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected { Ok(()) } else { Err(TrainError::StateLength { what, found, expected }.into()) }
}

/// The minibatches a spec asks for. Likelihoods sum the derivatives in their own parameters over images before weights
/// could count, so with such parameters all images are drawn alike.
fn new_sampler(spec: &TrainSpec, model: &Model, count: usize) -> Sampler {
    let focus = if model.likelihood().parameters().is_empty() { spec.focus } else { 0.0 };
    Sampler::new(count, spec.batch_size, spec.replacement, focus, spec.seed)
}

/// Adam with a rate for each kind of parameter.
pub fn new_adam(spec: &AdamSpec, model: &Model) -> Adam {
    let q = model.variational().slot().range();
    Adam::new(*spec, model.layout(), |entry| {
        let start = entry.slot.range().start;
        let of = |c: &&Component| c.z_slot().range().end > start;
        match model.components().iter().find(of) {
            Some(c) if c.z_slot() == entry.slot => spec.z,
            Some(c) if c.responses().iter().any(|r| r.weights_slot() == Some(entry.slot)) => spec.weights,
            Some(_) => spec.kernel,
            None if q.contains(&start) => spec.q,
            None => spec.likelihood,
        }
    })
}

fn jitter_event(bound: &Bound) -> Option<Event> {
    let Bound { jitter, jitter_raised: times, .. } = *bound;
    (times > 0).then_some(Event::JitterRaised { jitter, times })
}

fn no_bound() -> Bound {
    Bound { elbo: f64::NAN, expectation: f64::NAN, kl: f64::NAN, ..Bound::default() }
}
