//! What a run leaves behind while it goes on: lines, rows, models and checkpoints.

use crate::run::events::{Event, Events, trouble};
use crate::run::folder::RunFolder;
use crate::support::duration;
use crate::support::progress::Progress;
use anyhow::Result;
use convgp::io::Checkpoint;
use convgp::likelihood::Temperature;
use convgp::metrics::Metrics;
use convgp::params::Params;
use convgp::prepare::Preparation;
use convgp::train::planner::{FIRST_STEPS, WARM_UP};
use convgp::train::{self, Budget, ExperimentSpec, Request, Row, RunningMetrics, Sink, Status};
use convgp::{FittedModel, Model};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Writes what happens into a run's folder and shows it.
pub struct RunSink<'a> {
    /// Where everything is written.
    pub run: &'a RunFolder,
    /// Model and training.
    pub experiment: &'a ExperimentSpec,
    /// Identity of the training data.
    pub fingerprint: &'a str,
    /// Whether held-out images may choose the best model; test images may not.
    pub keep_best: bool,
    /// The model.
    pub model: &'a Arc<Model>,
    /// What was done to the images.
    pub preparation: Preparation,
    /// Names of the classes.
    pub class_names: &'a [String],
    /// How long to train.
    pub budget: Budget,
    /// Events, line by line.
    pub events: &'a mut Events,
    /// The bar and the notes.
    pub progress: &'a Progress,
    /// How fast it is.
    pub speed: Speed,
}

/// Steps and time since the warm-up, until they have been told.
#[derive(Debug, Default)]
pub struct Speed {
    first_step: Option<u64>,
    mark: Option<(u64, Instant)>,
    told: bool,
}

impl RunSink<'_> {
    /// The model with these parameters.
    pub fn fitted(&self, params: Params, temperature: Temperature) -> convgp::Result<FittedModel> {
        let Self { model, class_names, preparation, .. } = self;
        let fitted = FittedModel::new(Arc::clone(model), params, class_names.to_vec(), *preparation)?;
        Ok(FittedModel { temperature, ..fitted })
    }

    fn save_model(&self, status: &Status<'_>, path: &Path) -> Result<()> {
        Ok(self.fitted(status.params.clone(), Temperature::ONE)?.save(path)?)
    }

    fn message(&self, metrics: &RunningMetrics) -> String {
        let RunningMetrics { bound, log_density, error, .. } = metrics;
        let number = |name: &str, x: &Option<f64>| x.map(|x| format!("{name} {x:.4}"));
        let error = error.map(|e| format!("training error {:.2} %", 100.0 * e));
        let word = self.experiment.train.objective.word();
        let parts = [number(word, bound), number("log density", log_density), error];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Says once how long a run of so many steps will take. A run limited by time says its plan instead.
    fn tell_time(&mut self, step: u64) {
        let Budget::Steps(total) = self.budget else { return };
        let Speed { first_step, mark, told } = &mut self.speed;
        let first = *first_step.get_or_insert(step);
        if step < first + WARM_UP || *told {
            return;
        }
        let (from, since) = *mark.get_or_insert((step, Instant::now()));
        if step >= from + FIRST_STEPS {
            *told = true;
            let per_step = since.elapsed().as_secs_f64() / (step - from) as f64;
            let left = duration::text(per_step * total.saturating_sub(step) as f64);
            let line = format!("time: {:.1} ms per step, {left} to go for {total} steps", 1e3 * per_step);
            self.progress.note(&line);
        }
    }
}

impl Sink for RunSink<'_> {
    type Error = anyhow::Error;

    fn tick(&mut self, status: &Status<'_>) -> Result<Request> {
        if status.step > 0 {
            self.progress.show(status.step, status.total_steps, self.message(status.metrics));
            self.tell_time(status.step);
        }
        Ok(Request::Continue)
    }

    fn plan(&mut self, status: &Status<'_>, seconds_per_step: f64) -> Result<()> {
        let Status { step, seconds, total_steps, .. } = *status;
        self.events.emit(&Event::Plan { step, seconds, seconds_per_step, total_steps })?;
        self.progress.note(&format!("plan: {total_steps} steps, {:.1} ms each", 1e3 * seconds_per_step));
        Ok(())
    }

    fn trouble(&mut self, status: &Status<'_>, step: u64, event: &train::Event) -> Result<()> {
        let what = trouble(event);
        self.progress.note(&format!("step {step}: {what}"));
        self.events.emit(&Event::Trouble { step, seconds: status.seconds, what })
    }

    fn evaluation(
        &mut self,
        status: &Status<'_>,
        row: &Row,
        held_out: Option<&Metrics>,
        is_best: bool,
    ) -> Result<Request> {
        let Row { step, seconds, .. } = row;
        let held_out = held_out.map(|f| format!("held out: error {}, NLPP {:.4}", f.error_text(), f.nlpp));
        let message = Some(self.message(status.metrics)).filter(|text| !text.is_empty());
        let said = [message, held_out].into_iter().flatten().collect::<Vec<_>>().join("; ");
        if !said.is_empty() {
            self.progress.note(&format!("step {step}, {seconds:.1} s: {said}"));
        }
        self.run.append_row(row)?;
        self.events.emit(&Event::Evaluation(row))?;
        if self.keep_best && is_best {
            self.save_model(status, &self.run.best())?;
        }
        Ok(Request::Continue)
    }

    fn checkpoint(&mut self, status: &Status<'_>) -> Result<()> {
        self.save_model(status, &self.run.model())?;
        let Status { step, seconds, best_nlpp, .. } = *status;
        let Some(state) = status.state else { return Ok(()) };
        let checkpoint = Checkpoint {
            experiment: self.experiment.clone(),
            data: self.fingerprint.into(),
            seconds,
            best_nlpp: best_nlpp.filter(|_| self.keep_best),
            values: status.params.to_vec(),
            state: state.clone(),
        };
        checkpoint.save(&self.run.checkpoint())?;
        self.events.emit(&Event::Checkpoint { step, seconds })
    }
}
