//! `convgp train`: from data to a run folder with a model in it.

use crate::card;
use crate::duration;
use crate::events::{Event, Events};
use crate::exit::{Exit, input, usage};
use crate::figures::write_table;
use crate::interrupt;
use crate::memory::Estimate;
use crate::progress::Progress;
use crate::recipe::RecipeArgs;
use crate::report;
use crate::run::{Record, RunFolder};
use crate::session::{Ending, Session, Setup};
use crate::source::{DataArgs, Geometry, Parts, fingerprint};
use anyhow::{Context, Result};
use clap::Args;
use convgp::Model;
use convgp::cov::Fused;
use convgp::data::Dataset;
use convgp::inspect::describe;
use convgp::io::Checkpoint;
use convgp::metrics::{Figures, Judged};
use convgp::prepare::{Preparation, Scaling};
use convgp::train::{Budget, ExperimentSpec, Trainer};
use convgp_data::Loaded;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Training images used for the final figures where nothing was held out.
const TRAINING_SHOWN: usize = 2000;

/// What training images are called where nothing was held out.
const TRAINING: &str = "training";

/// Train a model; writes a run folder.
#[derive(Debug, Args)]
pub struct Train {
    /// A file, a folder, or a name: mnist, fashion-mnist, kmnist, cifar10, rectangles, sample.
    #[arg(required_unless_present = "resume")]
    source: Option<String>,
    /// Go on with an interrupted run.
    #[arg(long, value_name = "RUN", conflicts_with_all = NOT_WITH_RESUME)]
    resume: Option<PathBuf>,
    #[command(flatten)]
    recipe: RecipeArgs,
    /// Train for so long instead of a number of steps: 90s, 30m, 2h.
    #[arg(long, value_parser = duration::parse, conflicts_with = "steps", help_heading = "Training")]
    time: Option<Duration>,
    /// Hold out this fraction of the training images for the curve and the best model.
    #[arg(long, value_name = "FRACTION", help_heading = "Training")]
    validation: Option<f64>,
    /// Steps between evaluations (default: a twentieth of the run).
    #[arg(long, value_name = "N", help_heading = "Training")]
    evaluate_every: Option<u64>,
    /// Time between checkpoints.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "5m", help_heading = "Training")]
    checkpoint_every: Duration,
    /// Stop after so many steps of this sitting, saved and ready to be resumed.
    #[arg(long, value_name = "N", help_heading = "Training")]
    stop_after: Option<u64>,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    geometry: Geometry,
    /// Where run folders are made.
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Output")]
    runs_dir: PathBuf,
    /// Name in the run folder (default: data and model).
    #[arg(long, help_heading = "Output")]
    name: Option<String>,
    /// Memory that may be used, such as 4G (default: what is available).
    #[arg(long, value_name = "SIZE", value_parser = crate::memory::parse_size, help_heading = "Output")]
    memory: Option<u64>,
    /// Write no report at the end.
    #[arg(long, help_heading = "Output")]
    no_report: bool,
    /// Write events as JSON lines to standard output instead of the summary.
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// No progress on standard error.
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
}

/// What a run has settled once and for all.
const NOT_WITH_RESUME: [&str; 16] = [
    "spec",
    "model",
    "recipe",
    "inducing",
    "patch",
    "batch",
    "seed",
    "set",
    "validation",
    "classes",
    "limit",
    "size",
    "fit",
    "colour",
    "runs_dir",
    "name",
];

/// A run about to begin or to go on.
struct Start {
    run: RunFolder,
    record: Record,
    parts: Parts,
    experiment: ExperimentSpec,
    saved: Option<Checkpoint>,
    model: Model,
    values: Vec<f64>,
}

impl Train {
    /// Trains.
    pub fn run(&self) -> Result<Exit> {
        interrupt::listen()?;
        let progress = Progress::new(self.recipe.steps.unwrap_or(0), self.quiet);
        let Start { run, record, parts, experiment, saved, mut model, values } = match &self.resume {
            Some(run) => self.resumed(run, &progress)?,
            None => self.fresh(&progress)?,
        };
        let mut events = Events::open(&run.events(), self.json)?;
        events.emit(&Event::Start {
            run: run.path(),
            step: saved.as_ref().map_or(0, |s| s.state.step),
            parameters: values.len(),
            train_images: parts.train.len(),
            threads: rayon::current_num_threads(),
            memory: Estimate::new(&experiment, &parts)?.total(),
            reasons: &record.reasons,
        })?;
        let engine = Fused::default();
        let earlier = saved.as_ref().map_or((0.0, None), |s| (s.seconds, s.best_nlpp));
        let mut trainer = match saved {
            Some(s) => Trainer::resume(&mut model, &engine, &parts.train, &experiment.train, s.state)?,
            None => Trainer::new(&mut model, &engine, &parts.train, &experiment.train, values)?,
        };
        if let Budget::Steps(total) = record.budget {
            trainer.set_total_steps(total);
        }
        let preparation =
            Preparation { scaling: Scaling::of(parts.train.images()), fit: record.geometry.fit.fit() };
        let setup = Setup {
            run: &run,
            experiment: &experiment,
            fingerprint: &record.fingerprint,
            held_out: parts.validation.as_ref(),
            preparation,
            class_names: parts.train.class_names(),
            budget: record.budget,
            evaluate_every: record.evaluate_every,
            checkpoint_every: self.checkpoint_every,
            stop_after: self.stop_after,
        };
        let session = Session::new(&setup, trainer, &parts.train, &mut events, &progress, earlier);
        let (ending, trainer, seconds) = session.run()?;
        let (step, model) = (trainer.steps_taken(), trainer.model());
        let values = trainer.into_values();
        drop(progress);
        let judged = match ending {
            Ending::Finished => final_judgement(model, &values, &parts)?,
            _ => Vec::new(),
        };
        let figures: Vec<(String, Figures)> = judged.iter().map(|j| (j.name.clone(), j.figures)).collect();
        for (split, figures) in &figures {
            events.emit(&Event::Result { split, figures: *figures })?;
        }
        card::write(&run, &record, model, &figures, (step, seconds))?;
        let peak_memory = crate::memory::peak();
        let mut page = None;
        if ending == Ending::Finished && !self.no_report {
            // The model is safe; a report that fails must not look like a run that did.
            match write_report(&run, &record, model, &values, &judged) {
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
        self.summarise(&run, ending, (step, seconds), &figures, page.as_deref())?;
        Ok(if ending == Ending::Interrupted { Exit::Interrupted } else { Exit::Done })
    }

    fn load(
        &self,
        source: &str,
        data: &DataArgs,
        geometry: &Geometry,
        progress: &Progress,
    ) -> Result<Loaded> {
        let loaded = data.load(source, geometry)?;
        loaded.notes.iter().for_each(|note| progress.note(&format!("data: {note}")));
        if let Some(first) = loaded.skipped.first() {
            let count = loaded.skipped.len();
            progress
                .note(&format!("data: {count} files skipped, the first: {}: {}", first.path, first.reason));
        }
        Ok(loaded)
    }

    fn fresh(&self, progress: &Progress) -> Result<Start> {
        let source = self.source.as_deref().context("clap asks for it")?;
        let loaded = self.load(source, &self.data, &self.geometry, progress)?;
        let provenance = loaded.provenance.clone();
        let parts = Parts::new(loaded, self.validation, source)?;
        let mut chosen = self.recipe.choose(&parts.train, self.time)?;
        Estimate::new(&chosen.experiment, &parts)?.check(self.memory, &chosen.experiment, &parts)?;
        let (model, values) = chosen.build(&parts.train)?;
        tell_plan(progress, &parts, &model, &chosen.reasons);
        progress.note(&format!("memory: {}", Estimate::new(&chosen.experiment, &parts)?.text()));
        let budget = match self.time {
            Some(time) => Budget::Seconds(time.as_secs_f64()),
            None => Budget::Steps(chosen.experiment.train.steps),
        };
        let name = self.name.clone().unwrap_or_else(|| format!("{}-{}", short_name(source), chosen.name));
        let run = RunFolder::create(&self.runs_dir, &name)?;
        progress.note(&format!("run: {}", run.path().display()));
        let record = Record {
            version: env!("CARGO_PKG_VERSION").into(),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            command: std::env::args().collect(),
            threads: rayon::current_num_threads(),
            model: chosen.name,
            reasons: chosen.reasons,
            source: absolute(source),
            data: self.data.clone(),
            geometry: self.geometry,
            validation: self.validation,
            budget,
            evaluate_every: self.evaluate_every,
            images: [
                parts.train.len(),
                parts.validation.as_ref().map_or(0, Dataset::len),
                parts.test.as_ref().map_or(0, Dataset::len),
            ],
            fingerprint: fingerprint(&parts.train),
            provenance,
        };
        run.write_spec(&chosen.experiment)?;
        run.write_record(&record)?;
        Ok(Start { run, record, parts, experiment: chosen.experiment, saved: None, model, values })
    }

    fn resumed(&self, path: &Path, progress: &Progress) -> Result<Start> {
        let run = RunFolder::open(path)?;
        let mut record = run.record()?;
        if !run.checkpoint().is_file() {
            let path = path.display();
            return Err(input(format!(
                "{path}: no checkpoint; the run ended before its first. Start it again"
            )));
        }
        let mut saved = Checkpoint::load(&run.checkpoint())?;
        if run.spec()? != saved.experiment {
            return Err(input(format!(
                "{}: spec.toml is not the one the run began with. Undo the change, or start a new run with \
                 --spec {0}/spec.toml",
                path.display()
            )));
        }
        if let Some(source) = &self.source {
            record.source = absolute(source);
        }
        record.data.data_dir = self.data.data_dir.clone().or(record.data.data_dir);
        let loaded = self.load(&record.source, &record.data, &record.geometry, progress)?;
        let parts = Parts::new(loaded, record.validation, &record.source)?;
        let found = fingerprint(&parts.train);
        if found != saved.data {
            return Err(input(format!(
                "{} does not hold the images this run was trained on (SHA-256 {found} instead of {}). \
                 Name the right data after --resume RUN",
                record.source, saved.data
            )));
        }
        record.budget = match (self.time, self.recipe.steps) {
            (Some(time), _) => Budget::Seconds(time.as_secs_f64()),
            (None, Some(steps)) => Budget::Steps(steps),
            (None, None) => record.budget,
        };
        let over = match record.budget {
            Budget::Steps(steps) => saved.state.step >= steps,
            Budget::Seconds(limit) => saved.seconds >= limit,
        };
        if over {
            let (step, time) = (saved.state.step, duration::text(saved.seconds));
            return Err(usage(format!(
                "the run is finished ({step} steps, {time}); to go on, ask for more with --steps or --time"
            )));
        }
        if let Budget::Seconds(_) = record.budget {
            // A plan that is used up must not end the run: it is made anew from the speed of this sitting.
            saved.state.total_steps = saved.state.total_steps.max(saved.state.step + 1);
        }
        run.write_record(&record)?;
        run.cut_results(saved.state.step)?;
        let experiment = saved.experiment.clone();
        let (model, values) = experiment.initial_model(&parts.train)?;
        progress.note(&format!("resuming {} at step {}", path.display(), saved.state.step));
        Ok(Start { run, record, parts, experiment, saved: Some(saved), model, values })
    }

    fn summarise(
        &self,
        run: &RunFolder,
        ending: Ending,
        (step, seconds): (u64, f64),
        figures: &[(String, Figures)],
        report: Option<&Path>,
    ) -> Result<()> {
        if self.json {
            return Ok(());
        }
        let mut out = std::io::stdout().lock();
        writeln!(out, "{step} steps in {}", duration::text(seconds))?;
        if ending == Ending::Finished {
            write_table(&mut out, figures)?;
        } else {
            writeln!(out, "{}; go on with: convgp train --resume {}", ending.name(), run.path().display())?;
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
}

/// What will be trained, and why.
fn tell_plan(progress: &Progress, parts: &Parts, model: &Model, reasons: &[String]) {
    let images = |name: &str, d: &Option<Dataset>| {
        d.as_ref().map_or(String::new(), |d| format!(", {} {name}", d.len()))
    };
    progress.note(&format!(
        "data: {} training images{}{} of {}",
        parts.train.len(),
        images("validation", &parts.validation),
        images("test", &parts.test),
        parts.train.images().shape(),
    ));
    reasons.iter().for_each(|reason| progress.note(&format!("chosen: {reason}")));
    progress.note(&format!("model: {}", describe(model)));
}

/// Answers on everything that was not trained on, or else on some of what was.
fn final_judgement(model: &Model, values: &[f64], parts: &Parts) -> Result<Vec<Judged>> {
    let mut sets = Vec::new();
    sets.extend(parts.validation.as_ref().map(|d| ("validation", d.clone())));
    sets.extend(parts.test.as_ref().map(|d| ("test", d.clone())));
    if sets.is_empty() {
        sets.push((TRAINING, convgp_data::limit_balanced(&parts.train, TRAINING_SHOWN, 0)?));
    }
    sets.into_iter().map(|(name, data)| Ok(Judged::new(name, model, values, data)?)).collect()
}

/// The report of a finished run, with results on test images, or else validation images.
fn write_report(
    run: &RunFolder,
    record: &Record,
    model: &Model,
    values: &[f64],
    judged: &[Judged],
) -> Result<()> {
    let class_names = judged.first().map_or(&[][..], |j| j.data.class_names());
    let held_out = judged.last().filter(|j| j.name != TRAINING);
    let report = report::of_run(run, record, model)?;
    Ok(report.trained(model, values, class_names, held_out)?.write(&run.report())?)
}

/// A word for a source: the name of the file or folder without its endings.
fn short_name(source: &str) -> String {
    let path = absolute(source);
    let name = Path::new(&path).file_name().map_or(source.into(), |n| n.to_string_lossy().into_owned());
    name.split('.').next().unwrap_or(&name).to_string()
}

/// A path that means the same from everywhere; names stay as they are.
fn absolute(source: &str) -> String {
    let full = std::fs::canonicalize(source);
    full.map_or_else(|_| source.to_string(), |p| p.to_string_lossy().into_owned())
}
