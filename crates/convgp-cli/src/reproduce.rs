//! `convgp reproduce`: the paper's experiments, and some beyond it, from committed specs, beside the published figures.

mod curve;
mod experiment;
mod full_batch;
mod machine;
mod record;
mod table;

pub use full_batch::full_batch;
pub use record::{Made, Reproduction};

use crate::duration;
use crate::exit::{Exit, usage};
use crate::interrupt;
use crate::progress::Progress;
use crate::recipe::{given, recipe_names};
use crate::source::{DataArgs, Geometry};
use crate::train::{Order, SittingArgs};
use anyhow::{Context, Result};
use clap::Args;
use convgp::preset::Recipe;
use convgp_data::{SplitKind, registry};
use experiment::{EXPERIMENTS, Experiment, Settings, all};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Fraction of the training images that `--validation` holds out: 5,000 of MNIST's.
const HELD_OUT: f64 = 1.0 / 12.0;

/// Run an experiment, or show what is known of all.
#[derive(Debug, Args)]
pub struct Reproduce {
    /// The experiment; `--list` names them.
    #[arg(value_name = "NAME", required_unless_present_any = ["list", "table", "curves"])]
    name: Option<String>,
    /// Name the experiments.
    #[arg(long, conflicts_with_all = ["name", "table"])]
    list: bool,
    /// Show the committed results of all experiments beside the published ones.
    #[arg(long, conflicts_with = "name")]
    table: bool,
    /// Show the table as Markdown.
    #[arg(long, requires = "table")]
    markdown: bool,
    /// Draw the records in the folder of `--from` over seconds of training, one figure for each quantity and data set
    /// (the ablation has its own), into this folder.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["name", "table", "list"], requires = "from")]
    curves: Option<PathBuf>,
    /// Show the records in this folder instead of the committed ones.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["name", "list"])]
    from: Option<PathBuf>,
    /// Our settings or the published ones.
    #[arg(long, value_parser = recipe_names(), default_value = "fast", help_heading = "Training")]
    recipe: Recipe,
    /// Train for so long (default: what the experiment says).
    #[arg(long, value_parser = duration::parse, conflicts_with = "steps", help_heading = "Training")]
    time: Option<Duration>,
    /// Train for so many steps.
    #[arg(long, value_name = "N", help_heading = "Training")]
    steps: Option<u64>,
    /// Seed of initial parameters and minibatches.
    #[arg(long, default_value_t = 0, help_heading = "Training")]
    seed: u64,
    /// Hold out a twelfth of the training images and judge by them; test images are not even opened.
    #[arg(long, help_heading = "Training")]
    validation: bool,
    /// Set any field of the spec, such as train.natural.gamma=0.1. May be repeated.
    #[arg(long, value_name = "FIELD=VALUE", help_heading = "Training")]
    set: Vec<String>,
    /// Folder with the data sets (default: $CONVGP_DATA, then the user's cache).
    #[arg(long, visible_alias = "data", value_name = "DIR", help_heading = "Data")]
    data_dir: Option<PathBuf>,
    /// Where the record is written.
    #[arg(long, value_name = "DIR", default_value = "results", help_heading = "Output")]
    out: PathBuf,
    #[command(flatten)]
    sitting: SittingArgs,
}

impl Reproduce {
    /// Runs, or shows.
    pub fn run(&self) -> Result<Exit> {
        let mut out = std::io::stdout().lock();
        if self.list {
            list(&mut out)?;
        } else if let (Some(curves), Some(records)) = (&self.curves, &self.from) {
            for path in curve::draw(&record::read_all(records)?, records, curves)? {
                writeln!(out, "{}", path.display())?;
            }
        } else if self.table {
            let records = match &self.from {
                Some(folder) => record::read_all(folder)?,
                None => record::committed(),
            };
            table::write(&mut out, &table::of_all(&records)?, self.markdown)?;
        } else {
            drop(out);
            return self.train();
        }
        Ok(Exit::Done)
    }

    fn train(&self) -> Result<Exit> {
        let name = self.name.as_deref().context("clap asks for it")?;
        let experiment = Experiment::find(name)?;
        let settings = experiment.settings(self.recipe).ok_or_else(|| {
            usage(format!("{name} is not the paper's, so it has no published settings; leave out --recipe"))
        })?;
        if settings.full_batch.is_some() && self.sitting.stop_after.is_some() {
            return Err(usage("--stop-after: L-BFGS keeps no checkpoint to go on from"));
        }
        // Rectangles would otherwise be generated where they are not found.
        registry::locate(&experiment.data, self.data_dir.as_deref())?;
        let mut spec = settings.spec();
        spec.train.seed = self.seed;
        spec.train.steps = self.steps.unwrap_or(spec.train.steps);
        let order = self.order(name, &experiment, settings)?;
        let choose = |_: &_| given(name, &spec, &self.set);
        let folder = |name: &str| format!("{name}-{}-s{}", self.recipe.name(), self.seed);
        interrupt::listen()?;
        let progress = Progress::new(spec.train.steps, self.sitting.quiet);
        let start = order.start(choose, folder, &self.sitting, &progress)?;
        self.sitting.conduct(start, progress)
    }

    fn order(&self, name: &str, experiment: &Experiment, settings: &Settings) -> Result<Order> {
        let splits = if self.validation { vec![SplitKind::Train] } else { Vec::new() };
        Ok(Order {
            source: experiment.data.clone(),
            data: DataArgs {
                data_dir: self.data_dir.clone(),
                classes: experiment.classes.clone(),
                splits,
                ..DataArgs::default()
            },
            geometry: Geometry::default(),
            validation: self.validation.then_some(HELD_OUT),
            time: if self.steps.is_some() { None } else { self.time.or(settings.time) },
            reproduces: Some(Reproduction {
                experiment: name.into(),
                recipe: self.recipe,
                results: std::path::absolute(&self.out).context("--out")?,
                first: experiment.first,
                full_batch: settings.full_batch,
            }),
        })
    }
}

/// Names, data, budgets and titles.
fn list(out: &mut dyn Write) -> Result<()> {
    let width = EXPERIMENTS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, experiment) in all() {
        let fast = experiment.settings(Recipe::Fast).map(Settings::budget).unwrap_or_default();
        writeln!(out, "{name:width$}  {:10}  {fast:>10}  {}", experiment.data, experiment.title)?;
    }
    Ok(())
}
