//! One sitting of a run: steps until the plan is fulfilled, time is up or the user stops it, and what is saved on the way.

use crate::clock::Clock;
use crate::duration;
use crate::events::{Event, Events, trouble};
use crate::interrupt;
use crate::progress::Progress;
use crate::run::RunFolder;
use anyhow::Result;
use convgp::cov::Fused;
use convgp::data::Dataset;
use convgp::io::{Checkpoint, save_prepared_model};
use convgp::metrics::Figures;
use convgp::prepare::Preparation;
use convgp::train::pace::{FIRST_STEPS, Pace, WARM_UP};
use convgp::train::{
    Budget, Control, ExperimentSpec, Latest, Moment, Observer, StepReport, Trainer, Trigger,
};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::{Duration, Instant};

/// Evaluations in a run, unless the user says how often.
const EVALUATIONS: u64 = 20;
/// Steps of a sitting after which its speed is known.
const KNOWN: u64 = WARM_UP + FIRST_STEPS;

/// Why a sitting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The plan is fulfilled, or time is up.
    Finished,
    /// As many steps as this sitting was to take.
    Paused,
    /// Ctrl-C.
    Interrupted,
}

impl Ending {
    /// A word for events.
    pub fn name(self) -> &'static str {
        match self {
            Ending::Finished => "finished",
            Ending::Paused => "paused",
            Ending::Interrupted => "interrupted",
        }
    }
}

/// What a sitting came to.
#[derive(Debug)]
pub struct Trained {
    /// Why it ended.
    pub ending: Ending,
    /// Steps taken since the run began.
    pub step: u64,
    /// Seconds of training since then.
    pub seconds: f64,
    /// The parameters.
    pub values: Vec<f64>,
}

/// What stays the same during a sitting.
pub struct Setup<'a> {
    /// Where everything is written.
    pub run: &'a RunFolder,
    /// Model and training.
    pub experiment: &'a ExperimentSpec,
    /// Identity of the training data.
    pub fingerprint: &'a str,
    /// Images for the held-out curve.
    pub held_out: Option<&'a Dataset>,
    /// Whether they may choose the best model; test images may not.
    pub keep_best: bool,
    /// What was done to the images.
    pub preparation: Preparation,
    /// Names of the classes.
    pub class_names: &'a [String],
    /// How long to train.
    pub budget: Budget,
    /// Steps between evaluations.
    pub evaluate_every: Option<u64>,
    /// Time between checkpoints.
    pub checkpoint_every: Duration,
    /// Stop after so many steps of this sitting.
    pub stop_after: Option<u64>,
}

/// What the last steps looked like.
#[derive(Debug, Default)]
struct Seen {
    latest: Latest,
    troubles: Vec<(u64, String)>,
}

impl Seen {
    fn look(&mut self, m: &Moment<'_>, images: usize) {
        self.latest.look(m, images);
        self.troubles.extend(trouble(m.report).map(|what| (m.report.step, what)));
    }

    fn message(&self) -> String {
        let Latest { bound, log_density, error, .. } = &self.latest;
        let number = |name: &str, x: &Option<f64>| x.map_or(String::new(), |x| format!("{name} {x:.4}, "));
        let error = error.map_or(String::new(), |e| format!("training error {:.2} %", 100.0 * e));
        format!("{}{}{error}", number("bound", bound), number("log density", log_density))
    }
}

/// How long a run of so many steps will take, from the few that were timed. A run limited by time says its plan instead.
fn tell_time(progress: &Progress, budget: Budget, warm: Option<Instant>, report: &StepReport) {
    if let (Budget::Steps(total), Some(warm)) = (budget, warm) {
        let per_step = warm.elapsed().as_secs_f64() / FIRST_STEPS as f64;
        let left = duration::text(per_step * total.saturating_sub(report.step) as f64);
        progress.note(&format!("time: {:.1} ms per step, {left} to go for {total} steps", 1e3 * per_step));
    }
}

/// A sitting. The trainer outlives it.
pub struct Session<'t, 'a> {
    setup: &'a Setup<'a>,
    trainer: Trainer<'t, Fused>,
    images: usize,
    events: &'a mut Events,
    progress: &'a Progress,
    seen: RefCell<Seen>,
    pace: Pace,
    clock: Clock,
    first_step: u64,
    /// When the warm-up was over.
    warm: Cell<Option<Instant>>,
    best_nlpp: Option<f64>,
    evaluated_at: Option<u64>,
}

impl<'t, 'a> Session<'t, 'a> {
    /// Begins; `earlier` is what earlier sittings left: seconds and the best held-out figure.
    pub fn new(
        setup: &'a Setup<'a>,
        mut trainer: Trainer<'t, Fused>,
        data: &Dataset,
        events: &'a mut Events,
        progress: &'a Progress,
        earlier: (f64, Option<f64>),
    ) -> Self {
        let first_step = trainer.steps_taken();
        let pace = Pace::new(setup.budget, first_step, earlier.0);
        if let Some(total) = pace.first_total(trainer.total_steps()) {
            trainer.set_total_steps(total);
        }
        progress.start_at(first_step);
        Self {
            setup,
            trainer,
            images: data.len(),
            events,
            progress,
            seen: RefCell::default(),
            pace,
            clock: Clock::start(earlier.0),
            first_step,
            warm: Cell::default(),
            best_nlpp: earlier.1,
            evaluated_at: None,
        }
    }

    /// Steps between evaluations: a function of the plan, so that a resumed run keeps the rhythm.
    fn evaluate_every(&self) -> u64 {
        self.setup.evaluate_every.unwrap_or_else(|| self.trainer.total_steps().div_ceil(EVALUATIONS)).max(1)
    }

    /// Trains. Saves model and checkpoint before it returns.
    pub fn run(mut self) -> Result<Trained> {
        let mut checkpointed = Instant::now();
        loop {
            self.stretch(checkpointed)?;
            self.tell_troubles()?;
            let step = self.trainer.steps_taken();
            if let Some((total, per_step)) =
                self.pace.plan(step, self.clock.seconds(), self.trainer.total_steps())
            {
                self.trainer.set_total_steps(total);
                let seconds = self.clock.seconds();
                let event = Event::Plan { step, seconds, seconds_per_step: per_step, total_steps: total };
                self.events.emit(&event)?;
                self.progress.note(&format!("plan: {total} steps, {:.1} ms each", 1e3 * per_step));
            }
            let ending = self.ending();
            if step.is_multiple_of(self.evaluate_every()) || ending == Some(Ending::Finished) {
                self.evaluate()?;
            }
            if ending.is_some() || checkpointed.elapsed() >= self.setup.checkpoint_every {
                self.save()?;
                checkpointed = Instant::now();
            }
            if let Some(ending) = ending {
                let seconds = self.clock.seconds();
                return Ok(Trained { ending, step, seconds, values: self.trainer.into_values() });
            }
        }
    }

    /// Steps until something is due.
    fn stretch(&mut self, checkpointed: Instant) -> Result<()> {
        let every = self.evaluate_every();
        let (seen, images, progress) = (&self.seen, self.images, self.progress);
        let (pace, setup, first) = (&self.pace, self.setup, self.first_step);
        let (clock, warm) = (self.clock, &self.warm);
        let due = |report: &StepReport| {
            let seconds = clock.seconds();
            report.step.is_multiple_of(every)
                || checkpointed.elapsed() >= setup.checkpoint_every
                || pace.is_due(report.step, seconds)
                || setup.stop_after.is_some_and(|n| report.step - first >= n)
                || interrupt::asked()
        };
        let stop = |report: &StepReport| if due(report) { Control::Stop } else { Control::Continue };
        let watch = Observer::new(Trigger::Steps(1), |m: &Moment<'_>| {
            let mut seen = seen.borrow_mut();
            seen.look(m, images);
            progress.show(m.report.step, m.report.total_steps, seen.message());
            match m.report.step - first {
                WARM_UP => warm.set(Some(Instant::now())),
                KNOWN => tell_time(progress, setup.budget, warm.get(), m.report),
                _ => {}
            }
            Ok(())
        });
        self.trainer.run(stop, &mut [watch])?;
        Ok(())
    }

    fn ending(&self) -> Option<Ending> {
        let step = self.trainer.steps_taken();
        if step >= self.trainer.total_steps() || self.pace.is_over(self.clock.seconds()) {
            Some(Ending::Finished)
        } else if interrupt::asked() {
            Some(Ending::Interrupted)
        } else if self.setup.stop_after.is_some_and(|n| step - self.first_step >= n) {
            Some(Ending::Paused)
        } else {
            None
        }
    }

    fn tell_troubles(&mut self) -> Result<()> {
        for (step, what) in std::mem::take(&mut self.seen.borrow_mut().troubles) {
            self.progress.note(&format!("step {step}: {what}"));
            let seconds = self.clock.seconds();
            self.events.emit(&Event::Trouble { step, seconds, what })?;
        }
        Ok(())
    }

    /// A row of results; keeps the model if it is the best on held-out images.
    fn evaluate(&mut self) -> Result<()> {
        let step = self.trainer.steps_taken();
        if self.evaluated_at.replace(step) == Some(step) {
            return Ok(());
        }
        let seconds = self.clock.seconds();
        let (model, values, data) = (self.trainer.model(), self.trainer.values(), self.setup.held_out);
        let held_out = self.clock.aside(|| data.map(|data| Figures::of(model, values, data)).transpose())?;
        let seen = self.seen.borrow();
        let row = seen.latest.row(step, seconds, held_out);
        let held_out = held_out
            .map_or(String::new(), |f| format!("; held out: error {}, NLPP {:.4}", f.error_text(), f.nlpp));
        self.progress.note(&format!("step {step}, {seconds:.1} s: {}{held_out}", seen.message()));
        self.setup.run.append_row(&row)?;
        self.events.emit(&Event::Evaluation(&row))?;
        let is_best = row.held_out_nlpp.is_some_and(|n| self.best_nlpp.is_none_or(|best| n < best));
        if self.setup.keep_best && is_best {
            self.best_nlpp = row.held_out_nlpp;
            self.save_model(&self.setup.run.best())?;
        }
        Ok(())
    }

    fn save_model(&self, path: &Path) -> Result<()> {
        let Setup { class_names, preparation, .. } = self.setup;
        let (model, values) = (self.trainer.model(), self.trainer.values());
        Ok(save_prepared_model(path, model, values, class_names, *preparation)?)
    }

    fn save(&mut self) -> Result<()> {
        self.save_model(&self.setup.run.model())?;
        let (step, seconds) = (self.trainer.steps_taken(), self.clock.seconds());
        let checkpoint = Checkpoint {
            experiment: self.setup.experiment.clone(),
            data: self.setup.fingerprint.into(),
            seconds,
            best_nlpp: self.best_nlpp,
            state: self.trainer.state(),
        };
        checkpoint.save(&self.setup.run.checkpoint())?;
        self.events.emit(&Event::Checkpoint { step, seconds })
    }
}
