//! `convgp train`: from data to a run folder with a model in it.

mod order;
mod sitting;

pub use order::Order;
pub use sitting::{SittingArgs, Start};

use crate::duration;
use crate::exit::{Exit, input, usage};
use crate::interrupt;
use crate::progress::Progress;
use crate::recipe::RecipeArgs;
use crate::run::RunFolder;
use crate::source::{DataArgs, Geometry, Parts, fingerprint};
use anyhow::{Context, Result};
use clap::Args;
use convgp::io::Checkpoint;
use convgp::train::Budget;
use order::{absolute, load, short_name};
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    geometry: Geometry,
    #[command(flatten)]
    sitting: SittingArgs,
    /// Name in the run folder (default: data and model).
    #[arg(long, help_heading = "Output")]
    name: Option<String>,
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

impl Train {
    /// Trains.
    pub fn run(&self) -> Result<Exit> {
        interrupt::listen()?;
        let progress = Progress::new(self.recipe.steps.unwrap_or(0), self.sitting.quiet);
        let start = match &self.resume {
            Some(run) => self.resumed(run, &progress)?,
            None => self.fresh(&progress)?,
        };
        self.sitting.conduct(start, progress)
    }

    fn fresh(&self, progress: &Progress) -> Result<Start> {
        let source = self.source.as_deref().context("clap asks for it")?;
        let order = Order {
            source: source.into(),
            data: self.data.clone(),
            geometry: self.geometry,
            validation: self.validation,
            time: self.time,
            reproduces: None,
        };
        let choose = |data: &_| self.recipe.choose(data, self.time);
        let name =
            |model: &str| self.name.clone().unwrap_or_else(|| format!("{}-{model}", short_name(source)));
        order.start(choose, name, &self.sitting, progress)
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
        let loaded = load(&record.source, &record.data, &record.geometry, progress)?;
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
}
