//! `convgp train`: from data to a run folder with a model in it.

use crate::args::data::{DataArgs, Geometry, parse_fraction};
use crate::args::run::RunArgs;
use crate::args::spec::SpecArgs;
use crate::run::execute::TrainingRun;
use crate::run::folder::RunFolder;
use crate::run::request::{RunRequest, absolute, load, short_name};
use crate::run::spec::choose;
use crate::support::duration;
use crate::support::exit::{Exit, input, usage};
use crate::support::images::{Parts, fingerprint};
use crate::support::interrupt;
use crate::support::progress::Progress;
use anyhow::{Context, Result};
use clap::Args;
use convgp::io::Checkpoint;
use convgp::train::Budget;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Train a model and write a run folder.
#[derive(Debug, Args)]
pub struct Train {
    /// Training data: a file, a folder, or a name: mnist, fashion-mnist, kmnist, cifar10, rectangles, sample.
    #[arg(required_unless_present = "resume")]
    source: Option<String>,
    /// Resume an interrupted run.
    #[arg(long, value_name = "RUN", conflicts_with_all = NOT_WITH_RESUME)]
    resume: Option<PathBuf>,
    #[command(flatten)]
    spec: SpecArgs,
    /// Train for this time instead of a number of steps: 90s, 30m, 2h.
    #[arg(long, value_parser = duration::parse, conflicts_with = "steps", help_heading = "Training")]
    time: Option<Duration>,
    /// Fraction of the training images to hold out for validation; they choose the best model.
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction, help_heading = "Training")]
    validation: Option<f64>,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    geometry: Geometry,
    #[command(flatten)]
    run: RunArgs,
    /// Name of the run folder, after its number (default: data and model).
    #[arg(long, help_heading = "Output")]
    name: Option<String>,
}

/// Options that are fixed when a run starts.
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

/// Trains.
pub fn run(args: &Train) -> Result<Exit> {
    interrupt::listen()?;
    let progress = Progress::new(args.spec.steps.unwrap_or(0), args.run.quiet);
    let start = match &args.resume {
        Some(run) => resumed(args, run, &progress)?,
        None => fresh(args, &progress)?,
    };
    super::conclude(start.execute(&args.run, progress)?, args.run.json)
}

fn fresh(args: &Train, progress: &Progress) -> Result<TrainingRun> {
    let source = args.source.as_deref().context("clap asks for it")?;
    let order = RunRequest {
        source: source.into(),
        data: args.data.clone(),
        geometry: args.geometry,
        validation: args.validation,
        time: args.time,
        test_curve: None,
        full_batch: None,
        extra: serde_json::Map::new(),
    };
    let choose = |data: &_| choose(&args.spec, data, args.time);
    let name = |model: &str| args.name.clone().unwrap_or_else(|| format!("{}-{model}", short_name(source)));
    order.start(choose, name, &args.run, progress)
}

fn resumed(args: &Train, path: &Path, progress: &Progress) -> Result<TrainingRun> {
    let run = RunFolder::open(path)?;
    let mut record = run.record()?;
    let saved = if run.checkpoint().is_file() {
        Some(Checkpoint::load(&run.checkpoint())?)
    } else if run.statistics().is_file() && !run.model().is_file() {
        None
    } else {
        let path = path.display();
        let what = if run.model().is_file() { "the run is finished" } else { "it ended before its first" };
        return Err(input(format!("{path}: no checkpoint; {what}. Start a new one")));
    };
    let experiment = run.spec()?;
    if saved.as_ref().is_some_and(|saved| experiment != saved.experiment) {
        return Err(input(format!(
            "{}: spec.toml is not the one the run began with. Undo the change, or start a new run with \
             --spec {0}/spec.toml",
            path.display()
        )));
    }
    if let Some(source) = &args.source {
        record.source = absolute(source);
    }
    record.data.data_dir = args.data.data_dir.clone().or(record.data.data_dir);
    let loaded = load(&record.source, &record.data, &record.geometry, progress)?;
    let parts = Parts::new(loaded, record.validation, &record.source)?;
    let scaling = record.scaling_of(parts.train.images());
    let parts = parts.on_scale(scaling)?;
    let found = fingerprint(&parts.train);
    let expected = saved.as_ref().map_or(&record.fingerprint, |saved| &saved.data);
    if found != *expected {
        return Err(input(format!(
            "{} does not hold the images this run was trained on (SHA-256 {found} instead of {expected}). \
             Name the right data after --resume RUN",
            record.source
        )));
    }
    let (model, params) = experiment.initial_model(&parts.train)?;
    let Some(mut saved) = saved else {
        progress.note(&format!("resuming {}", path.display()));
        return Ok(TrainingRun { run, record, parts, experiment, saved: None, model, params });
    };
    record.budget = match (args.time, args.spec.steps) {
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
        // A plan that is used up must not end the run: it is made anew from the speed of this run.
        saved.state.total_steps = saved.state.total_steps.max(saved.state.step + 1);
    }
    run.write_record(&record)?;
    run.cut_results(saved.state.step)?;
    progress.note(&format!("resuming {} at step {}", path.display(), saved.state.step));
    Ok(TrainingRun { run, record, parts, experiment, saved: Some(saved), model, params })
}
