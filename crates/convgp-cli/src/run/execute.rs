//! A run from its start to its summary.

use crate::args::run::RunArgs;
use crate::commands::report;
use crate::run::card;
use crate::run::events::{Event, Events};
use crate::run::folder::RunFolder;
use crate::run::memory;
use crate::run::record::Record;
use crate::run::sink::{RunSink, Speed};
use crate::support::duration;
use crate::support::exit::Exit;
use crate::support::images::Parts;
use crate::support::interrupt;
use crate::support::metrics_table::write_table;
use crate::support::progress::Progress;
use anyhow::Result;
use convgp::closed_form::{Options, Precision};
use convgp::cov::Fused;
use convgp::data::Dataset;
use convgp::io::Checkpoint;
use convgp::metrics::{DatasetEvaluation, Metrics};
use convgp::optim::Lbfgs;
use convgp::params::Params;
use convgp::prepare::Preparation;
use convgp::train::{
    self, ClosedForm, Ended, Ending, ExperimentSpec, FullBatch, Problem, RunOptions, Solver, StatisticsFile,
    Stochastic, TrainSpec, Trainer,
};
use convgp::{FittedModel, Model};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Training images used for the final metrics where nothing was held out.
const TRAINING_SHOWN: usize = 2000;

/// What training images are called where nothing was held out.
const TRAINING: &str = "training";

/// A run about to begin or to go on.
pub struct TrainingRun {
    /// Its folder.
    pub run: RunFolder,
    /// What it was started with.
    pub record: Record,
    /// The images.
    pub parts: Parts,
    /// Model and training.
    pub experiment: ExperimentSpec,
    /// Where it goes on from, if it is resumed.
    pub saved: Option<Checkpoint>,
    /// The model.
    pub model: Model,
    /// Its initial parameters.
    pub params: Params,
}

impl TrainingRun {
    /// Trains, evaluates, reports and sums up.
    pub fn execute(self, args: &RunArgs, progress: Progress) -> Result<Done> {
        let TrainingRun { run, record, parts, experiment, saved, model, params } = self;
        let model = Arc::new(model);
        let mut events = Events::open(&run.events(), args.json)?;
        events.emit(&Event::Start {
            run: run.path(),
            step: saved.as_ref().map_or(0, |s| s.state.step),
            parameters: params.len(),
            train_images: parts.train.len(),
            threads: rayon::current_num_threads(),
            memory: memory::plan(&experiment, &parts)?.total(),
            reasons: &record.reasons,
        })?;
        let test_sets = record.test_curve.map(|curve| curve.test_sets(&parts)).transpose()?;
        let shown = test_sets.as_deref().and_then(|sets| sets.first()).map(|(_, data)| data);
        let mut sink = RunSink {
            run: &run,
            experiment: &experiment,
            fingerprint: &record.fingerprint,
            keep_best: parts.validation.is_some(),
            model: &model,
            preparation: Preparation {
                scaling: record.scaling_of(parts.train.images()),
                fit: record.geometry.fit.fit(),
            },
            class_names: parts.train.class_names(),
            budget: record.budget,
            events: &mut events,
            progress: &progress,
            speed: Speed::default(),
        };
        let problem =
            Problem { model: &model, data: &parts.train, held_out: parts.validation.as_ref().or(shown) };
        let options = RunOptions {
            evaluate_every: record.evaluate_every,
            checkpoint_every: Some(args.checkpoint_every),
            stop_after: args.stop_after,
            fit_temperature: experiment.train.fit_temperature,
            objective: experiment.train.objective,
            seconds: saved.as_ref().map_or(0.0, |s| s.seconds),
            best_nlpp: saved.as_ref().and_then(|s| s.best_nlpp),
            interrupt: Some(interrupt::flag()),
            ..RunOptions::new(record.budget)
        };
        let engines = Engines::default();
        let lbfgs = record.full_batch;
        let file = StatisticsFile { path: run.statistics(), keep: args.keep_statistics };
        let mut solver =
            engines.solver(&problem, &experiment.train, lbfgs, saved, params, file, &progress)?;
        let Ended { ending, step, seconds, temperature } =
            train::run(&problem, solver.as_mut(), &options, &mut sink)?;
        solver.note().into_iter().for_each(|line| progress.note(&line));
        let fitted = sink.fitted(solver.into_params(), temperature)?;
        if !temperature.is_one() {
            let value = temperature.value();
            progress.note(&format!("temperature: {value:.3}, by leaving training images out"));
            fitted.save(&run.model())?;
        }
        drop(progress);
        let evaluations = match ending {
            Ending::Finished => final_evaluations(&fitted, &parts, test_sets)?,
            _ => Vec::new(),
        };
        let metrics: Vec<(String, Metrics)> =
            evaluations.iter().map(|e| (e.name.clone(), e.metrics)).collect();
        for (split, metrics) in &metrics {
            events.emit(&Event::Result { split, metrics: *metrics })?;
        }
        card::write(&run, &record, &model, &metrics, (step, seconds))?;
        let peak_memory = convgp::memory::peak();
        let mut page = None;
        if ending == Ending::Finished && !args.no_report {
            // The model is safe; a report that fails must not look like a run that did.
            match write_report(&run, &record, &fitted, &evaluations) {
                Ok(()) => events.emit(&Event::Report { page: page.insert(report::page(&run.report())) })?,
                Err(error) => {
                    let what = format!("no report: {error:#}");
                    _ = writeln!(std::io::stderr(), "note: {what}");
                    events.emit(&Event::Trouble { step, seconds, what })?;
                }
            }
        }
        events.emit(&Event::End {
            step,
            seconds,
            ending: ending.name(),
            model: &run.model(),
            peak_memory,
        })?;
        if !args.json {
            summarise(&run, ending, (step, seconds), &metrics, page.as_deref())?;
        }
        let training_images = parts.train.len();
        Ok(Done { run, record, training_images, experiment, fitted, ending, step, seconds, evaluations })
    }
}

/// What a run leaves behind.
pub struct Done {
    /// Its folder.
    pub run: RunFolder,
    /// What it was started with.
    pub record: Record,
    /// Images trained on.
    pub training_images: usize,
    /// Model and training.
    pub experiment: ExperimentSpec,
    /// The model.
    pub fitted: FittedModel,
    /// Why it ended.
    pub ending: Ending,
    /// Steps taken.
    pub step: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Final answers; none before the run is finished.
    pub evaluations: Vec<DatasetEvaluation>,
}

impl Done {
    /// What the shell is told.
    pub fn exit(&self) -> Exit {
        if self.ending == Ending::Interrupted { Exit::Interrupted } else { Exit::Done }
    }
}

/// What solvers compute with: training in steps in single precision, on all images at once in double.
#[derive(Default)]
struct Engines {
    single: Fused<f32>,
    double: Fused<f64>,
}

impl Engines {
    /// The solver for a model: its closed form, L-BFGS where an experiment asks for it, or else steps.
    #[allow(clippy::too_many_arguments)] // each solver needs some of them
    fn solver<'a>(
        &'a self,
        &Problem { model, data, .. }: &Problem<'a>,
        plan: &TrainSpec,
        lbfgs: Option<Lbfgs>,
        saved: Option<Checkpoint>,
        params: Params,
        file: StatisticsFile,
        progress: &'a Progress,
    ) -> Result<Box<dyn Solver + 'a>> {
        if model.is_closed_form() {
            // Images are added to and removed from sums in double precision without a trace.
            let precision = if file.keep { Precision::Double } else { Precision::Single };
            let options = Options { precision, ..Options::default() };
            let watch = |read, all| progress.show(read as u64, all as u64, "images read".into());
            let solver = ClosedForm::new(model, &self.single, data, options, params, watch);
            return Ok(Box::new(solver.with_file(file)));
        }
        if let Some(lbfgs) = lbfgs {
            let (engine, objective) = (&self.double, plan.objective);
            return Ok(Box::new(FullBatch::new(model, engine, data, objective, lbfgs, params)));
        }
        let trainer = match saved {
            Some(s) => Trainer::resume(model, &self.single, data, plan, s.values, s.state)?,
            None => Trainer::new(model, &self.single, data, plan, params)?,
        };
        progress.start_at(trainer.steps_taken());
        Ok(Box::new(Stochastic::new(trainer)))
    }
}

fn summarise(
    run: &RunFolder,
    ending: Ending,
    (step, seconds): (u64, f64),
    metrics: &[(String, Metrics)],
    report: Option<&Path>,
) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match step {
        0 => writeln!(out, "solved in closed form in {}", duration::text(seconds))?,
        _ => writeln!(out, "{step} steps in {}", duration::text(seconds))?,
    }
    if ending == Ending::Finished {
        write_table(&mut out, metrics)?;
    } else if run.checkpoint().is_file() || run.statistics().is_file() {
        writeln!(out, "{}; go on with: convgp train --resume {}", ending.name(), run.path().display())?;
    } else {
        writeln!(out, "{}; nothing to go on from: start it again", ending.name())?;
    }
    writeln!(out, "model: {}", run.model().display())?;
    if run.best().is_file() {
        writeln!(out, "best on held-out images: {}", run.best().display())?;
    }
    if let Some(page) = report {
        writeln!(out, "report: {}", page.display())?;
    }
    Ok(())
}

/// Answers on everything that was not trained on, or else on some of what was.
fn final_evaluations(
    fitted: &FittedModel,
    parts: &Parts,
    test_sets: Option<Vec<(String, Dataset)>>,
) -> Result<Vec<DatasetEvaluation>> {
    let mut sets = Vec::new();
    sets.extend(parts.validation.as_ref().map(|d| ("validation".to_string(), d.clone())));
    match test_sets {
        Some(test_sets) => sets.extend(test_sets),
        None => sets.extend(parts.test.as_ref().map(|d| ("test".to_string(), d.clone()))),
    }
    if sets.is_empty() {
        sets.push((TRAINING.into(), convgp_data::limit_balanced(&parts.train, TRAINING_SHOWN, 0)?));
    }
    sets.into_iter().map(|(name, data)| Ok(fitted.evaluate(&name, data)?)).collect()
}

/// The report of a finished run, with results on test images, or else validation images.
fn write_report(
    run: &RunFolder,
    record: &Record,
    fitted: &FittedModel,
    evaluations: &[DatasetEvaluation],
) -> Result<()> {
    let held_out = evaluations.last().filter(|e| e.name != TRAINING);
    let report = report::of_run(run, record, &fitted.model)?.trained(fitted, held_out)?;
    Ok(report.write(&run.report())?)
}
