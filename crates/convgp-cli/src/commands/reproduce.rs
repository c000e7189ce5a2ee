//! `convgp reproduce`: the paper's experiments, and some beyond it, from committed specs, beside the published figures.

use crate::args::data::{DataArgs, Geometry};
use crate::args::run::RunArgs;
use crate::args::spec::recipe_names;
use crate::run::execute::Done;
use crate::run::record::TestCurve;
use crate::run::request::RunRequest;

use crate::run::spec::given;
use crate::support::duration;
use crate::support::exit::{Exit, usage};
use crate::support::interrupt;
use crate::support::progress::Progress;
use anyhow::{Context, Result};
use clap::Args;
use convgp::train::Ending;
use convgp_data::{SplitKind, registry};
use convgp_paper::catalog::{Settings, all};
use convgp_paper::record::{Made, read_all};
use convgp_paper::{Experiment, Recipe, Record, committed, curve, table};
use convgp_report::RunCurves;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Where a run keeps its [`Reproduction`].
const EXTRA: &str = "reproduces";
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
    /// Our settings or the published ones (default: ours, where the experiment has them).
    #[arg(long, value_parser = recipe_names(), help_heading = "Training")]
    recipe: Option<Recipe>,
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
    run: RunArgs,
}

/// What a run reproduces; kept in its `run.json`, so that a resumed run writes its record too.
#[derive(Debug, Serialize, Deserialize)]
struct Reproduction {
    /// Name of the experiment.
    experiment: String,
    /// Whose settings.
    recipe: Recipe,
    /// Folder for the record.
    results: PathBuf,
}

/// Runs, or shows.
pub fn run(args: &Reproduce) -> Result<Exit> {
    let mut out = std::io::stdout().lock();
    if args.list {
        list(&mut out)?;
    } else if let (Some(curves), Some(records)) = (&args.curves, &args.from) {
        for path in curve::draw(&read_all(records)?, records, curves)? {
            writeln!(out, "{}", path.display())?;
        }
    } else if args.table {
        let records = match &args.from {
            Some(folder) => read_all(folder)?,
            None => committed(),
        };
        table::write(&mut out, &table::of_all(&records), args.markdown)?;
    } else {
        drop(out);
        return train(args);
    }
    Ok(Exit::Done)
}

fn train(args: &Reproduce) -> Result<Exit> {
    let experiment = Experiment::find(args.name.as_deref().context("clap asks for it")?)?;
    let recipe = experiment.recipe(args.recipe);
    let settings = experiment.settings(recipe)?;
    if settings.full_batch.is_some() && args.run.stop_after.is_some() {
        return Err(usage("--stop-after: L-BFGS keeps no checkpoint to go on from"));
    }
    // Rectangles would otherwise be generated where they are not found.
    registry::locate(&experiment.data, args.data_dir.as_deref())?;
    let mut spec = experiment.spec(recipe)?;
    spec.train.seed = args.seed;
    spec.train.steps = args.steps.unwrap_or(spec.train.steps);
    let request = request(args, &experiment, recipe, settings)?;
    let choose = |_: &_| given(experiment.name, &spec, &args.set);
    let folder = |name: &str| format!("{name}-{recipe}-s{}", args.seed);
    interrupt::listen()?;
    let progress = Progress::new(spec.train.steps, args.run.quiet);
    let start = request.start(choose, folder, &args.run, &progress)?;
    super::conclude(start.execute(&args.run, progress)?, args.run.json)
}

fn request(
    args: &Reproduce,
    experiment: &Experiment,
    recipe: Recipe,
    settings: &Settings,
) -> Result<RunRequest> {
    let reproduction = Reproduction {
        experiment: experiment.name.into(),
        recipe,
        results: std::path::absolute(&args.out).context("--out")?,
    };
    Ok(RunRequest {
        source: experiment.data.clone(),
        data: DataArgs {
            data_dir: args.data_dir.clone(),
            classes: experiment.classes.clone(),
            splits: if args.validation { vec![SplitKind::Train] } else { Vec::new() },
            ..DataArgs::default()
        },
        geometry: Geometry::default(),
        validation: args.validation.then_some(HELD_OUT),
        time: if args.steps.is_some() { None } else { args.time.or(settings.time()) },
        test_curve: Some(TestCurve { first: experiment.first }),
        full_batch: settings.full_batch,
        extra: [(EXTRA.into(), serde_json::to_value(reproduction)?)].into_iter().collect(),
    })
}

/// Writes record and curve of a finished run that reproduces an experiment, and prints its row.
pub fn conclude(done: &Done, quiet: bool) -> Result<()> {
    let Some(reproduction) = done.record.extra.get(EXTRA).filter(|_| done.ending == Ending::Finished) else {
        return Ok(());
    };
    let Reproduction { experiment, recipe, results } =
        serde_json::from_value(reproduction.clone()).with_context(|| format!("run.json: {EXTRA}"))?;
    let curve = RunCurves::read(&done.run.results(), &experiment)?.points;
    let record = Record::of(&Made {
        experiment: &experiment,
        recipe,
        full_batch: done.record.full_batch,
        spec: &done.experiment,
        fitted: &done.fitted,
        training_images: done.training_images,
        steps: done.step,
        seconds: done.seconds,
        evaluations: &done.evaluations,
        curve: &curve,
    })?;
    let path = record.write(&results, &curve)?;
    if !quiet {
        let mut out = std::io::stdout().lock();
        writeln!(out, "record: {}\n", path.display())?;
        table::write(&mut out, &table::of_run(&record)?, false)?;
    }
    Ok(())
}

/// Names, data, budgets and titles.
fn list(out: &mut dyn Write) -> Result<()> {
    let width = all().map(|experiment| experiment.name.len()).max().unwrap_or(0);
    for experiment in all() {
        let budget = experiment.settings(experiment.recipe(None))?.budget();
        let Experiment { name, data, title, .. } = experiment;
        writeln!(out, "{name:width$}  {data:10}  {budget:>10}  {title}")?;
    }
    Ok(())
}
