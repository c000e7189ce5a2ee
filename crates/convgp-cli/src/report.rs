//! `convgp report`: what runs looked like and what was learned, as figures and one HTML page.

use crate::calibrate;
use crate::duration;
use crate::exit::{Exit, input, usage};
use crate::run::{Record, RunFolder};
use crate::saved::{ModelArg, data_for};
use crate::source::{DataArgs, Parts, fingerprint};
use anyhow::Result;
use clap::Args;
use convgp::Model;
use convgp::data::Dataset;
use convgp::inspect::describe;
use convgp::io::SavedModel;
use convgp::likelihood::LikelihoodSpec;
use convgp::metrics::Judged;
use convgp_report::{Report, RunCurves};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Write figures and one HTML page.
#[derive(Debug, Args)]
pub struct ReportRuns {
    /// Folders of runs. The curves of all are overlaid; the model is that of the first.
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Where to write (default: the folder `report` of the first run).
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Show results on these data instead of the run's test images.
    #[arg(long, value_name = "DATA")]
    on: Option<String>,
    /// Show the best model on held-out images instead of the last.
    #[arg(long)]
    best: bool,
    #[command(flatten)]
    data: DataArgs,
}

impl ReportRuns {
    /// Writes the report.
    pub fn run(&self) -> Result<Exit> {
        let runs = self.runs.iter().map(|path| RunFolder::open(path)).collect::<Result<Vec<_>>>()?;
        let (first, record) = (&runs[0], runs[0].record()?);
        let saved = ModelArg { path: self.runs[0].clone(), best: self.best }.load()?;
        let mut report = of_run(first, &record, &saved.model)?;
        for other in &runs[1..] {
            if is_regression(other)? != is_regression(first)? {
                let [a, b] = [first, other].map(RunFolder::name);
                return Err(usage(format!(
                    "one of {a} and {b} is a regression; their errors do not compare"
                )));
            }
            report = report.run(curves(other)?);
        }
        if let Some(rule) = &saved.answer_rule {
            report = report.fact("answers", &calibrate::describe(rule));
        }
        let judged = self.results(&saved, &record)?;
        let report = report.trained(&saved.model, &saved.values, &saved.class_names, judged.as_ref())?;
        let dir = self.output.clone().unwrap_or_else(|| first.report());
        report.write(&dir)?;
        writeln!(std::io::stdout(), "report: {}", page(&dir).display())?;
        Ok(Exit::Done)
    }

    /// What the model says about the data asked for, or else about what the run held out, if that is still there.
    fn results(&self, saved: &SavedModel, record: &Record) -> Result<Option<Judged>> {
        let found = match &self.on {
            Some(source) => {
                let data = data_for(saved, source, &self.data, None)?;
                Ok((source.clone(), data))
            }
            None => self.reopen(record),
        };
        match found {
            Ok((name, data)) => Ok(Some(Judged::new(&name, &saved.model, &saved.values, data)?)),
            Err(error) => {
                writeln!(
                    std::io::stderr(),
                    "note: no results on images: {error:#}. Name data with --on DATA"
                )?;
                Ok(None)
            }
        }
    }

    /// The images a run held out, read as it read them.
    fn reopen(&self, record: &Record) -> Result<(String, Dataset)> {
        let args = DataArgs {
            data_dir: self.data.data_dir.clone().or_else(|| record.data.data_dir.clone()),
            ..record.data.clone()
        };
        let loaded = args.load(&record.source, &record.geometry)?;
        let parts = Parts::new(loaded, record.validation, &record.source)?;
        if fingerprint(&parts.train) != record.fingerprint {
            return Err(input(format!("{} does not hold the images this run was trained on", record.source)));
        }
        match (parts.test, parts.validation) {
            (Some(test), _) => Ok(("test".into(), test)),
            (None, Some(validation)) => Ok(("validation".into(), validation)),
            (None, None) => Err(input("the run held nothing out")),
        }
    }
}

/// The HTML file in a report's folder.
pub fn page(dir: &Path) -> PathBuf {
    dir.join("report.html")
}

/// A report with the facts and the curves of a run.
pub fn of_run(run: &RunFolder, record: &Record, model: &Model) -> Result<Report> {
    let curves = curves(run)?;
    let [train, validation, test] = record.images;
    let images =
        format!("{}: {train} images for training, {validation} validation, {test} test", record.source);
    let mut report = Report::new(&run.name()).fact("model", &describe(model)).fact("data", &images);
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
    Ok(matches!(run.spec()?.model.likelihood, LikelihoodSpec::Gaussian { .. }))
}
