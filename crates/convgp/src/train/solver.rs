//! Ways to fit a model, all driven by [`run`](super::run()).

use super::{
    Control, Event, Observer, RunningMetrics, StepContext, StepReport, Trainer, TrainerState, Trigger,
    maximise_bound,
};
use crate::Result;
use crate::closed_form::{Options, Statistics, Summary};
use crate::cov::Engine;
use crate::data::Dataset;
use crate::model::Model;
use crate::objective::Objective;
use crate::optim::{Lbfgs, StopReason};
use crate::params::Params;
use std::path::PathBuf;

/// Evaluations of a run, unless the user says how often.
const EVALUATIONS: u64 = 20;
/// Steps of L-BFGS between looks at the clock. What it knows of the curvature is learned anew after each.
const ROUND: u64 = 20;

/// A way to fit a model.
pub trait Solver: Send {
    /// Works until `pause`, asked with the number of steps taken, says so, or until nothing is left to do. Says whether
    /// something is.
    fn advance(&mut self, pause: &mut (dyn FnMut(u64) -> bool + Send)) -> Result<Control>;

    /// Parameters so far.
    fn params(&self) -> &Params;

    /// The same, taken.
    fn into_params(self: Box<Self>) -> Params;

    /// Steps taken, and planned.
    fn steps(&self) -> (u64, u64);

    /// Changes the number of steps planned.
    fn set_total_steps(&mut self, total: u64);

    /// What the last steps looked like.
    fn metrics(&self) -> &RunningMetrics;

    /// Steps between evaluations, unless the user says how often: a function of the plan, so that a resumed run keeps the
    /// rhythm.
    fn evaluate_every(&self) -> u64 {
        self.steps().1.div_ceil(EVALUATIONS)
    }

    /// What did not go smoothly since this was last asked, and at which steps.
    fn take_events(&mut self) -> Vec<(u64, Event)> {
        Vec::new()
    }

    /// What a resumed run needs beside the parameters, if it can be resumed.
    fn state(&self) -> Option<&TrainerState> {
        None
    }

    /// What a user should know at the end.
    fn note(&self) -> Option<String> {
        None
    }

    /// What a finished fit was solved from, where it was asked to keep that.
    fn take_statistics(&mut self) -> Option<Statistics> {
        None
    }

    /// Gives buffers back when the work is done.
    fn release(&mut self) {}

    /// Whether the temperature of predictions is to be fitted afterwards.
    fn leaves_temperature(&self) -> bool {
        true
    }
}

/// Stochastic variational inference: natural-gradient and Adam steps on minibatches.
#[derive(Debug)]
pub struct Stochastic<'a, E: Engine> {
    trainer: Trainer<'a, E>,
    images: usize,
    metrics: RunningMetrics,
    events: Vec<(u64, Event)>,
}

impl<'a, E: Engine> Stochastic<'a, E> {
    /// By a trainer, at its first step or resumed.
    pub fn new(trainer: Trainer<'a, E>) -> Self {
        let images = trainer.images();
        Self { trainer, images, metrics: RunningMetrics::default(), events: Vec::new() }
    }
}

impl<E: Engine> Solver for Stochastic<'_, E> {
    fn advance(&mut self, pause: &mut (dyn FnMut(u64) -> bool + Send)) -> Result<Control> {
        let Self { trainer, images, metrics, events } = self;
        let stop = |report: &StepReport| if pause(report.step) { Control::Stop } else { Control::Continue };
        let watch = Observer::new(Trigger::Steps(1), |context: &StepContext<'_>| {
            metrics.look(context, *images);
            events.extend(context.report.event.clone().map(|event| (context.report.step, event)));
            Ok(())
        });
        trainer.run(stop, &mut [watch])?;
        let over = trainer.steps_taken() >= trainer.total_steps();
        Ok(if over { Control::Stop } else { Control::Continue })
    }
    fn params(&self) -> &Params {
        self.trainer.params()
    }
    fn into_params(self: Box<Self>) -> Params {
        self.trainer.into_params()
    }
    fn steps(&self) -> (u64, u64) {
        (self.trainer.steps_taken(), self.trainer.total_steps())
    }
    fn set_total_steps(&mut self, total: u64) {
        self.trainer.set_total_steps(total);
    }
    fn metrics(&self) -> &RunningMetrics {
        &self.metrics
    }
    fn take_events(&mut self) -> Vec<(u64, Event)> {
        std::mem::take(&mut self.events)
    }
    fn state(&self) -> Option<&TrainerState> {
        Some(self.trainer.state())
    }
    fn release(&mut self) {
        self.trainer.release();
    }
}

/// L-BFGS on all images at once, for small problems.
#[derive(Debug)]
pub struct FullBatch<'a, E: Engine> {
    model: &'a Model,
    engine: &'a E,
    data: &'a Dataset,
    objective: Objective,
    lbfgs: Lbfgs,
    params: Params,
    taken: u64,
    total: u64,
    metrics: RunningMetrics,
}

impl<'a, E: Engine> FullBatch<'a, E> {
    /// From these parameters; at most as many steps as `lbfgs` says.
    pub fn new(
        model: &'a Model,
        engine: &'a E,
        data: &'a Dataset,
        objective: Objective,
        lbfgs: Lbfgs,
        params: Params,
    ) -> Self {
        let (total, metrics) = (lbfgs.max_steps as u64, RunningMetrics::default());
        Self { model, engine, data, objective, lbfgs, params, taken: 0, total, metrics }
    }
}

impl<E: Engine> Solver for FullBatch<'_, E> {
    fn advance(&mut self, pause: &mut (dyn FnMut(u64) -> bool + Send)) -> Result<Control> {
        loop {
            let round = Lbfgs { max_steps: ROUND.min(self.total - self.taken) as usize, ..self.lbfgs };
            let report =
                maximise_bound(self.model, self.engine, self.data, self.objective, &round, &mut self.params)?;
            self.taken += report.bounds.len() as u64 - 1;
            self.metrics.bound = report.bounds.last().copied();
            if report.reason != StopReason::Steps || self.taken >= self.total {
                return Ok(Control::Stop);
            }
            if pause(self.taken) {
                return Ok(Control::Continue);
            }
        }
    }
    fn params(&self) -> &Params {
        &self.params
    }
    fn into_params(self: Box<Self>) -> Params {
        self.params
    }
    fn steps(&self) -> (u64, u64) {
        (self.taken, self.total)
    }
    fn set_total_steps(&mut self, total: u64) {
        self.total = total;
    }
    fn metrics(&self) -> &RunningMetrics {
        &self.metrics
    }
    fn evaluate_every(&self) -> u64 {
        ROUND
    }
}

/// The [closed form](crate::closed_form): no steps, one pass over the data.
pub struct ClosedForm<'a, E: Engine> {
    model: &'a Model,
    engine: &'a E,
    data: &'a Dataset,
    options: Options,
    params: Params,
    metrics: RunningMetrics,
    /// What was summed before it was paused.
    statistics: Option<Statistics>,
    /// Whether they are kept after the fit, and what was kept.
    keep: bool,
    kept: Option<Statistics>,
    file: Option<StatisticsFile>,
    summary: Option<Summary>,
    watch: Box<dyn FnMut(usize, usize) + Send + 'a>,
}

/// Where the closed form keeps statistics.
#[derive(Debug, Clone)]
pub struct StatisticsFile {
    /// The file. Written where a fit is paused; a fit begins with what is there.
    pub path: PathBuf,
    /// Whether it stays after the fit, so that images can be added and removed.
    pub keep: bool,
}

impl<E: Engine> std::fmt::Debug for ClosedForm<'_, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClosedForm").field("summary", &self.summary).finish_non_exhaustive()
    }
}

impl<'a, E: Engine> ClosedForm<'a, E> {
    /// With the kernels and inducing inputs of these parameters. `watch` is told how many of all images have been read.
    pub fn new(
        model: &'a Model,
        engine: &'a E,
        data: &'a Dataset,
        options: Options,
        params: Params,
        watch: impl FnMut(usize, usize) + Send + 'a,
    ) -> Self {
        let (metrics, watch) = (RunningMetrics::default(), Box::new(watch));
        let (statistics, keep, kept, file, summary) = (None, false, None, None, None);
        Self { model, engine, data, options, params, metrics, statistics, keep, kept, file, summary, watch }
    }

    /// The same, keeping statistics in memory after the fit if `keep` says so.
    #[must_use]
    pub fn keeping_statistics(mut self, keep: bool) -> Self {
        self.keep = keep;
        self
    }

    /// The same with a file for statistics.
    #[must_use]
    pub fn with_file(mut self, file: StatisticsFile) -> Self {
        self.file = Some(file);
        self
    }

    /// Statistics to go on with: those in memory, those in the file, or none yet.
    fn begun(&mut self) -> Result<Statistics> {
        let saved = self.file.as_ref().filter(|file| file.path.is_file());
        match (self.statistics.take(), saved) {
            (Some(statistics), _) => Ok(statistics),
            (None, Some(file)) => Statistics::load(&file.path, self.model, &self.params),
            (None, None) => self.model.new_statistics(&self.params, self.options.precision, self.data.len()),
        }
    }
}

impl<E: Engine> Solver for ClosedForm<'_, E> {
    fn advance(&mut self, pause: &mut (dyn FnMut(u64) -> bool + Send)) -> Result<Control> {
        let mut statistics = self.begun()?;
        let Self { model, engine, data, options, params, watch, file, .. } = self;
        let mut progress = |read: usize, all: usize| {
            watch(read, all);
            !pause(0)
        };
        let first = statistics.len();
        let whole = first == data.len()
            || model.add_to_statistics(*engine, params, data, first, &mut statistics, &mut progress)?;
        if let Some(file) = file.as_ref().filter(|file| file.keep || !whole) {
            statistics.save(&file.path)?;
        }
        if !whole {
            self.statistics = Some(statistics);
            return Ok(Control::Continue);
        }
        let kept = self.keep.then(|| statistics.clone());
        self.summary = Some(model.solve(params, statistics, options)?);
        self.kept = kept;
        if let Some(file) = file.as_ref().filter(|file| !file.keep && file.path.is_file()) {
            // What was kept for a resumed run has served; a file that stays does no harm.
            _ = std::fs::remove_file(&file.path);
        }
        Ok(Control::Stop)
    }
    fn params(&self) -> &Params {
        &self.params
    }
    fn into_params(self: Box<Self>) -> Params {
        self.params
    }
    fn steps(&self) -> (u64, u64) {
        (0, 0)
    }
    fn set_total_steps(&mut self, _total: u64) {}
    fn metrics(&self) -> &RunningMetrics {
        &self.metrics
    }
    fn note(&self) -> Option<String> {
        let Summary { outputs, left_out, chosen, .. } = self.summary.as_ref()?;
        let error = chosen.error.map_or(String::new(), |e| format!("error {:.2} %, ", 100.0 * e));
        Some(format!(
            "solved: D = {outputs} inducing outputs; leave-one-out on {left_out} images: {error}NLPP {:.4} \
             (noise {:.1e}, temperature {:.3})",
            chosen.nlpp, chosen.lambda, chosen.temperature
        ))
    }
    fn take_statistics(&mut self) -> Option<Statistics> {
        self.kept.take()
    }
    fn leaves_temperature(&self) -> bool {
        false
    }
}
