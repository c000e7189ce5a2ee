//! Watching a run. Observers see, and may save or print; the run itself never does.

use super::{StepReport, Trainer, TrainerState};
use crate::Result;
use crate::cov::Engine;
use crate::data::Batch;
use crate::likelihood::Marginals;
use crate::metrics::weighted_error_rate;
use crate::model::Model;
use crate::params::Params;
use std::time::{Duration, Instant};

/// Whether a run goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Take another step.
    Continue,
    /// Stop after this one.
    Stop,
}

/// When an observer is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// After every so many steps, counted from the run's first (so a resumed run keeps the rhythm).
    Steps(u64),
    /// When so much time has passed since the last call.
    Every(Duration),
    /// When the reported bound is the best so far.
    NewBest,
    /// When the run ends, for whatever reason but an error.
    End,
}

/// What an observer sees.
pub struct StepContext<'a> {
    /// The step.
    pub report: &'a StepReport,
    /// Time since [`Trainer::run`] was called.
    pub elapsed: Duration,
    /// The model.
    pub model: &'a Model,
    /// Parameters after the step.
    pub params: &'a Params,
    /// The step's minibatch.
    pub batch: &'a Batch,
    /// Marginals on it, before the update.
    pub marginals: &'a Marginals,
    /// What the trainer remembers beside them, for a checkpoint.
    pub state: &'a TrainerState,
}

impl std::fmt::Debug for StepContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepContext").field("report", self.report).finish_non_exhaustive()
    }
}

impl StepContext<'_> {
    /// Estimate of the training error from the step's minibatch; `None` for regression, or when the step was rolled back.
    pub fn batch_error(&self) -> Option<f64> {
        self.report.bound?;
        let theta = self.model.likelihood_theta(self.params);
        let predictive = self.model.likelihood().predict(theta, self.marginals);
        weighted_error_rate(&predictive, self.batch.targets(), self.batch.weights())
    }
}

type Action<'o> = Box<dyn FnMut(&StepContext<'_>) -> Result<()> + 'o>;

/// Something to do at certain moments of a run.
pub struct Observer<'o> {
    trigger: Trigger,
    last: Option<Instant>,
    action: Action<'o>,
}

impl std::fmt::Debug for Observer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").field("trigger", &self.trigger).finish_non_exhaustive()
    }
}

impl<'o> Observer<'o> {
    /// Calls `action` when `trigger` says so. An error ends the run.
    pub fn new(trigger: Trigger, action: impl FnMut(&StepContext<'_>) -> Result<()> + 'o) -> Self {
        Self { trigger, last: None, action: Box::new(action) }
    }

    fn is_due(&mut self, report: &StepReport, now: Instant, ended: bool) -> bool {
        match self.trigger {
            Trigger::Steps(n) => report.step.is_multiple_of(n.max(1)),
            Trigger::NewBest => report.new_best,
            Trigger::End => ended,
            Trigger::Every(period) => {
                let due = self.last.is_none_or(|last| now.duration_since(last) >= period);
                if due {
                    self.last = Some(now);
                }
                due
            }
        }
    }
}

impl<E: Engine> Trainer<'_, E> {
    /// Steps until the plan is fulfilled or `stop` says so. Returns the last step's report, `None` when there was no
    /// step left to take.
    pub fn run(
        &mut self,
        mut stop: impl FnMut(&StepReport) -> Control,
        observers: &mut [Observer<'_>],
    ) -> Result<Option<StepReport>> {
        let started = Instant::now();
        observers.iter_mut().for_each(|o| o.last = Some(started));
        let mut last = None;
        while self.state.step < self.state.total_steps {
            let report = self.step()?;
            let ended = stop(&report) == Control::Stop || self.state.step >= self.state.total_steps;
            self.notify(&report, started, ended, observers)?;
            last = Some(report);
            if ended {
                break;
            }
        }
        Ok(last)
    }

    fn notify(
        &self,
        report: &StepReport,
        started: Instant,
        ended: bool,
        observers: &mut [Observer<'_>],
    ) -> Result<()> {
        let now = Instant::now();
        let context = StepContext {
            report,
            elapsed: now.duration_since(started),
            model: self.model,
            params: &self.params,
            batch: &self.batch,
            marginals: self.marginals(),
            state: &self.state,
        };
        for o in observers {
            if o.is_due(report, now, ended) {
                (o.action)(&context)?;
            }
        }
        Ok(())
    }
}
