//! `convgp report`: figures and one HTML page about runs.

use crate::args::data::DataArgs;
use crate::args::model::ModelArg;
use crate::commands::calibrate;
use crate::run::folder::RunFolder;
use crate::run::record::Record;
use crate::support::duration;
use crate::support::exit::{Exit, input, usage};
use crate::support::images::{Parts, fingerprint, load};
use crate::support::models::{data_for, read_model};
use anyhow::Result;
use clap::Args;
use convgp::FittedModel;
use convgp::Model;
use convgp::data::Dataset;
use convgp::inspect::describe;
use convgp::metrics::DatasetEvaluation;
use convgp_report::{Report as Page, RunCurves};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Write figures and one HTML page about one or more runs.
#[derive(Debug, Args)]
pub struct Report {
    /// Run folders. The curves of all runs are drawn together; the model shown is the one of the first run.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Folder of the report (default: `report` in the first run folder).
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Data to evaluate on instead of the run's test images.
    #[arg(long, value_name = "DATA")]
    on: Option<String>,
    /// Show the model that was best on validation images instead of the last one.
    #[arg(long)]
    best: bool,
    #[command(flatten)]
    data: DataArgs,
}

/// Writes the report.
pub fn run(args: &Report) -> Result<Exit> {
    let runs = args.runs.iter().map(|path| RunFolder::open(path)).collect::<Result<Vec<_>>>()?;
    let (first, record) = (&runs[0], runs[0].record()?);
    let saved = read_model(&ModelArg { path: args.runs[0].clone(), best: args.best })?;
    let mut report = of_run(first, &record, &saved.model)?;
    for other in &runs[1..] {
        if is_regression(other)? != is_regression(first)? {
            let [a, b] = [first, other].map(RunFolder::name);
            return Err(usage(format!("one of {a} and {b} is a regression; their errors do not compare")));
        }
        report = report.run(curves(other)?);
    }
    if let Some(rule) = &saved.answer_rule {
        report = report.fact("answers", &calibrate::describe(rule));
    }
    let evaluation = results(args, &saved, &record)?;
    let report = report.trained(&saved, evaluation.as_ref())?;
    let dir = args.output.clone().unwrap_or_else(|| first.report());
    report.write(&dir)?;
    writeln!(std::io::stdout(), "report: {}", page(&dir).display())?;
    Ok(Exit::Done)
}

/// What the model says about the data asked for, or else about what the run held out, if that is still there.
fn results(args: &Report, saved: &FittedModel, record: &Record) -> Result<Option<DatasetEvaluation>> {
    let found = match &args.on {
        Some(source) => {
            let data = data_for(saved, source, &args.data, None)?;
            Ok((source.clone(), data))
        }
        None => reopen(args, record),
    };
    match found {
        Ok((name, data)) => Ok(Some(saved.evaluate(&name, data)?)),
        Err(error) => {
            writeln!(std::io::stderr(), "note: no results on images: {error:#}. Name data with --on DATA")?;
            Ok(None)
        }
    }
}

/// The images a run held out, read as it read them.
fn reopen(args: &Report, record: &Record) -> Result<(String, Dataset)> {
    let args = DataArgs {
        data_dir: args.data.data_dir.clone().or_else(|| record.data.data_dir.clone()),
        ..record.data.clone()
    };
    let loaded = load(&record.source, &args, &record.geometry)?;
    let parts = Parts::new(loaded, record.validation, &record.source)?;
    if fingerprint(&parts.train) != record.fingerprint {
        return Err(input(format!("{} does not hold the images this run was trained on", record.source)));
    }
    let scaling = record.scaling_of(parts.train.images());
    let parts = parts.on_scale(scaling)?;
    match (parts.test, parts.validation) {
        (Some(test), _) => Ok(("test".into(), test)),
        (None, Some(validation)) => Ok(("validation".into(), validation)),
        (None, None) => Err(input("the run held nothing out")),
    }
}

/// The HTML file in a report's folder.
pub fn page(dir: &Path) -> PathBuf {
    dir.join("report.html")
}

/// A report with the facts and the curves of a run.
pub fn of_run(run: &RunFolder, record: &Record, model: &Model) -> Result<Page> {
    let curves = curves(run)?;
    let [train, validation, test] = record.images;
    let images =
        format!("{}: {train} images for training, {validation} validation, {test} test", record.source);
    let mut report = Page::new(&run.name()).fact("model", &describe(model)).fact("data", &images);
    if let Some(last) = curves.points.last() {
        let (step, time) = (last.step, duration::text(last.seconds));
        report = report.fact("training", &format!("{step} steps in {time} on {} threads", record.threads));
    }
    let report = report.fact("command", &record.command.join(" "));
    Ok(report.fact("convgp", &record.version).run(curves))
}

fn curves(run: &RunFolder) -> Result<RunCurves> {
    let curves = RunCurves::read(&run.results(), &run.name())?;
    Ok(if is_regression(run)? { curves.of_regression() } else { curves })
}

fn is_regression(run: &RunFolder) -> Result<bool> {
    Ok(run.spec()?.model.likelihood.build().is_ok_and(|l| l.classes().is_none()))
}
