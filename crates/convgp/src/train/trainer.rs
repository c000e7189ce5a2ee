//! One step at a time.

use super::{Counts, QStep, RollbackSnapshot, Sampler, TrainError, TrainSpec, TrainerState};
use crate::Result;
use crate::component::Component;
use crate::cov::Engine;
use crate::data::{Batch, Dataset};
use crate::error::{Error, NumericalError};
use crate::likelihood::Marginals;
use crate::linalg::all_finite;
use crate::model::{Evaluation, Model, Wanted, Workspace};
use crate::optim::{Adam, AdamSpec};
use crate::params::{Entry, Form, Params};

/// Trains a model's parameters; owns them, the optimisers, the generator and all buffers.
///
/// ```
/// # use convgp::{Model, ModelSpec, data::{Dataset, Images, Pixels, Targets}, rng::Rng};
/// # let spec = ModelSpec::from_toml(r#"
/// #     image = { height = 4, width = 4 }
/// #     likelihood = { type = "gaussian" }
/// #     [[components]]
/// #     views = { type = "patches", patch = [2, 2] }
/// #     kernel = { type = "rbf" }
/// #     inducing = { count = 3 }
/// # "#)?;
/// # let images = Images::new(spec.image, Pixels::F64((0..96).map(|i| f64::from(i * i % 17) / 17.0).collect()))?;
/// # let data = Dataset::new(images, Targets::real(vec![0.1, -0.4, 0.7, 0.2, 0.0, 0.3])?)?;
/// # let (model, params) = Model::new(&spec, Some(data.images()), &mut Rng::new(1))?;
/// use convgp::{cov::Fused, train::{TrainSpec, Trainer}};
///
/// let (engine, spec) = (Fused::<f64>::default(), TrainSpec { batch_size: 3, ..TrainSpec::default() });
/// let mut trainer = Trainer::new(&model, &engine, &data, &spec, params)?;
/// let report = trainer.step()?;
/// assert!(report.bound.is_some_and(|bound| bound.expectation.is_finite()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Trainer<'a, E: Engine> {
    pub(super) model: &'a Model,
    engine: &'a E,
    data: &'a Dataset,
    pub(super) spec: TrainSpec,
    pub(super) params: Params,
    pub(super) state: TrainerState,
    adam: Adam,
    pub(super) batch: Batch,
    indices: Vec<usize>,
    ws: Workspace<E>,
}

impl<E: Engine> std::fmt::Debug for Trainer<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer")
            .field("spec", &self.spec)
            .field("step", &self.state.step)
            .finish_non_exhaustive()
    }
}

/// What one step did.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    /// Steps taken, this one included.
    pub step: u64,
    /// Steps planned.
    pub total_steps: u64,
    /// The bound on this step's minibatch, before the update; none where it could not be computed and the step was
    /// rolled back.
    pub bound: Option<Evaluation>,
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
        model: &'a Model,
        engine: &'a E,
        data: &'a Dataset,
        spec: &TrainSpec,
        mut params: Params,
    ) -> Result<Self> {
        spec.check()?;
        model.check_values(&params)?;
        spec.freeze(&mut params)?;
        model.set_form(form(spec), &mut params)?;
        let state = TrainerState {
            step: 0,
            total_steps: spec.steps,
            snapshot: RollbackSnapshot { values: params.to_vec(), step: 0, age: 0, bound: None },
            adam: new_adam(&spec.adam, model, &params).initial_state(),
            sampler: new_sampler(spec, model, data.len()),
            backoffs: 0,
            stable_steps: 0,
            best: None,
            counts: Counts::default(),
        };
        Self::assemble(model, engine, data, spec, params, state)
    }

    /// A trainer that continues where `values` and `state` were taken. Model, data and spec must be the ones of that run.
    pub fn resume(
        model: &'a Model,
        engine: &'a E,
        data: &'a Dataset,
        spec: &TrainSpec,
        values: Vec<f64>,
        mut state: TrainerState,
    ) -> Result<Self> {
        spec.check()?;
        check_length("values", values.len(), model.layout().len())?;
        let mut params = model.params(values, form(spec))?;
        spec.freeze(&mut params)?;
        // Checkpoints from before `frozen` hold moments of parameters whose rate was zero.
        state.adam.forget_frozen(params.layout(), |e| spec.frozen.iter().any(|name| e.is_within(name)));
        Self::assemble(model, engine, data, spec, params, state)
    }

    fn assemble(
        model: &'a Model,
        engine: &'a E,
        data: &'a Dataset,
        spec: &TrainSpec,
        params: Params,
        state: TrainerState,
    ) -> Result<Self> {
        model.check_images(data.images().shape())?;
        model.likelihood().check_targets(data.targets())?;
        let adam = new_adam(&spec.adam, model, &params);
        check_length("snapshot.values", state.snapshot.values.len(), model.layout().len())?;
        check_length("the sampler", state.sampler.count(), data.len())?;
        check_length("adam", state.adam.first.len(), adam.len())?;
        check_length("adam", state.adam.second.len(), adam.len())?;
        let batch = Batch::empty(data.images().shape());
        let (spec, indices, ws) = (spec.clone(), Vec::new(), Workspace::default());
        Ok(Self { model, engine, data, spec, params, state, adam, batch, indices, ws })
    }

    /// Everything needed to continue from here, beside the parameters.
    pub fn state(&self) -> &TrainerState {
        &self.state
    }

    /// The model.
    pub fn model(&self) -> &'a Model {
        self.model
    }
    /// Current parameters, `q` in the form its steps need.
    pub fn params(&self) -> &Params {
        &self.params
    }
    /// Current parameters, taken.
    pub fn into_params(self) -> Params {
        self.params
    }
    /// Number of training images.
    pub(super) fn images(&self) -> usize {
        self.data.len()
    }
    /// Steps taken.
    pub fn steps_taken(&self) -> u64 {
        self.state.step
    }
    /// Steps planned.
    pub fn total_steps(&self) -> u64 {
        self.state.total_steps
    }
    /// Trouble so far.
    pub fn counts(&self) -> Counts {
        self.state.counts
    }
    /// Gives its buffers back; the next step makes them anew.
    pub fn release(&mut self) {
        self.ws = Workspace::default();
    }
    /// Marginals of the last minibatch, before the last update.
    pub fn marginals(&self) -> &Marginals {
        self.ws.marginals()
    }

    /// Changes the plan that schedules follow, as a run limited by time does once it knows its speed. The plan is part
    /// of the state, so a resumed run follows it too.
    pub fn set_total_steps(&mut self, total: u64) {
        self.state.total_steps = total;
    }

    /// One step: a minibatch, one evaluation, one update of everything. Numerical trouble is rolled back and reported;
    /// it is an error only after [`RecoverySpec::tries`](super::RecoverySpec::tries).
    pub fn step(&mut self) -> Result<StepReport> {
        self.state.sampler.next_batch(&mut self.indices);
        self.data.write_batch(&self.indices, &mut self.batch);
        self.state.sampler.write_weights(&self.indices, self.batch.weights_mut());
        let (rate, gamma) = self.step_sizes();
        let outcome = self.evaluate();
        let (bound, event) = match outcome {
            Ok(bound) => {
                self.note_success(&bound);
                self.state.sampler.update_scores(&self.indices, &self.ws.expect.value);
                self.update(rate, gamma);
                (Some(bound), jitter_event(&bound))
            }
            Err(Error::Numerical(cause)) => (None, Some(self.roll_back(cause)?)),
            Err(other) => return Err(other),
        };
        self.state.step += 1;
        let elbo = bound.and_then(|b| b.elbo());
        let new_best = elbo.is_some_and(|elbo| self.state.best.is_none_or(|best| elbo > best));
        if new_best {
            self.state.best = elbo;
        }
        let TrainerState { step, total_steps, .. } = self.state;
        Ok(StepReport { step, total_steps, bound, rate, gamma, new_best, event })
    }

    /// Step sizes of Adam and of the natural step, roll-backs included.
    fn step_sizes(&self) -> (f64, f64) {
        let (adam, natural) = (&self.spec.adam, &self.spec.natural);
        let (step, total, scale) = (self.state.step, self.state.total_steps, self.scale());
        let gamma = match self.spec.q {
            QStep::Natural => natural.gamma * natural.schedule.factor(step, total) * scale,
            QStep::Adam => 0.0,
        };
        (adam.rate * adam.schedule.factor(step, total) * scale, gamma)
    }

    /// The bound and its gradient on the current batch; an error when anything is not finite.
    fn evaluate(&mut self) -> Result<Evaluation> {
        let free_kl = self.spec.q == QStep::Adam;
        let TrainerState { step, total_steps, .. } = self.state;
        let kl = free_kl || step.is_multiple_of(self.spec.report_every) || step + 1 == total_steps;
        let wanted = Wanted { alpha: self.spec.objective.alpha(), gradient: true, kl };
        // The step numbers the draws of likelihoods that sample.
        let count = self.data.len();
        let bound = self.model.evaluate(
            self.engine,
            &self.params,
            self.batch.of(count).at_draw(step),
            wanted,
            &mut self.ws,
        )?;
        let value = bound.elbo().unwrap_or(bound.expectation);
        let entries = self.params.layout().entries().iter().filter(|e| e.trainable);
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
        let Self { params, state: TrainerState { adam, .. }, .. } = self;
        if self.spec.q == QStep::Natural {
            let (v, radius) = (self.model.variational(), self.spec.natural.limit());
            v.natural_step(gamma, radius, &self.ws.expect, &self.ws.posterior, params);
            if self.model.likelihood().is_shift_invariant() {
                v.center_latents(&self.ws.posterior, params);
            }
        }
        self.adam.step(adam, rate, params, &self.ws.grad);
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
    let fixed = model.likelihood().parameters().is_empty();
    let importance_fraction = if fixed { spec.importance_fraction } else { 0.0 };
    Sampler::new(count, spec.batch_size, spec.replacement, importance_fraction, spec.seed)
}

/// Adam with a rate for each kind of parameter.
pub fn new_adam(spec: &AdamSpec, model: &Model, params: &Params) -> Adam {
    let q = model.variational().slot().range();
    Adam::new(*spec, params.layout(), |entry| {
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

fn jitter_event(bound: &Evaluation) -> Option<Event> {
    let Evaluation { jitter, jitter_raised: times, .. } = *bound;
    (times > 0).then_some(Event::JitterRaised { jitter, times })
}
