//! One sitting of a run from its start to its summary.

use crate::card;
use crate::duration;
use crate::events::{Event, Events};
use crate::exit::Exit;
use crate::figures::write_table;
use crate::memory::Estimate;
use crate::progress::Progress;
use crate::report;
use crate::reproduce;
use crate::run::{Record, RunFolder};
use crate::session::{Ending, Session, Setup, Trained};
use crate::source::Parts;
use anyhow::Result;
use clap::Args;
use convgp::Model;
use convgp::cov::Fused;
use convgp::data::Dataset;
use convgp::io::{Checkpoint, save_prepared_model};
use convgp::metrics::{Figures, Judged};
use convgp::prepare::{Preparation, Scaling};
use convgp::train::{Budget, ExperimentSpec, Trainer, sharpness};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Training images used for the final figures where nothing was held out.
const TRAINING_SHOWN: usize = 2000;

/// What training images are called where nothing was held out.
const TRAINING: &str = "training";

/// What happens on the way, and what is written.
#[derive(Debug, Args)]
pub struct SittingArgs {
    /// Steps between evaluations (default: a twentieth of the run).
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub evaluate_every: Option<u64>,
    /// Time between checkpoints.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "5m", help_heading = "Training")]
    pub checkpoint_every: Duration,
    /// Stop after so many steps of this sitting, saved and ready to be resumed.
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub stop_after: Option<u64>,
    /// Where run folders are made.
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Output")]
    pub runs_dir: PathBuf,
    /// Memory that may be used, such as 4G (default: what is available).
    #[arg(long, value_name = "SIZE", value_parser = crate::memory::parse_size, help_heading = "Output")]
    pub memory: Option<u64>,
    /// Write no report at the end.
    #[arg(long, help_heading = "Output")]
    pub no_report: bool,
    /// Write events as JSON lines to standard output instead of the summary.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// No progress on standard error.
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// A run about to begin or to go on.
pub struct Start {
    /// Its folder.
    pub run: RunFolder,
    /// What it was started with.
    pub record: Record,
    /// The images.
    pub parts: Parts,
    /// Model and training.
    pub experiment: ExperimentSpec,
    /// What earlier sittings left.
    pub saved: Option<Checkpoint>,
    /// The model.
    pub model: Model,
    /// Its initial parameters.
    pub values: Vec<f64>,
}

impl SittingArgs {
    /// Trains, judges, reports and sums up.
    pub fn conduct(&self, start: Start, progress: Progress) -> Result<Exit> {
        let Start { run, record, parts, experiment, saved, mut model, values } = start;
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
        let published = record.reproduces.as_ref().map(|r| r.test_sets(&parts)).transpose()?;
        let shown = published.as_deref().and_then(|sets| sets.first()).map(|(_, data)| data);
        let setup = Setup {
            run: &run,
            experiment: &experiment,
            fingerprint: &record.fingerprint,
            held_out: parts.validation.as_ref().or(shown),
            keep_best: parts.validation.is_some(),
            preparation: Preparation {
                scaling: Scaling::of(parts.train.images()),
                fit: record.geometry.fit.fit(),
            },
            class_names: parts.train.class_names(),
            budget: record.budget,
            evaluate_every: record.evaluate_every,
            checkpoint_every: self.checkpoint_every,
            stop_after: self.stop_after,
        };
        let solver = record.reproduces.as_ref().and_then(|r| r.full_batch);
        let Trained { ending, step, seconds, values } = match solver {
            Some(solver) => reproduce::full_batch(
                solver,
                &setup,
                &parts.train,
                (&mut model, values),
                &mut events,
                &progress,
            )?,
            None => train(&setup, &parts.train, (&mut model, values), saved, &mut events, &progress)?,
        };
        if ending == Ending::Finished && experiment.train.sharpen {
            sharpen(&setup, &parts.train, &mut model, &values, &progress)?;
        }
        drop(progress);
        let judged = match ending {
            Ending::Finished => final_judgement(&model, &values, &parts, published)?,
            _ => Vec::new(),
        };
        let figures: Vec<(String, Figures)> = judged.iter().map(|j| (j.name.clone(), j.figures)).collect();
        for (split, figures) in &figures {
            events.emit(&Event::Result { split, figures: *figures })?;
        }
        card::write(&run, &record, &model, &figures, (step, seconds))?;
        let peak_memory = crate::memory::peak();
        let mut page = None;
        if ending == Ending::Finished && !self.no_report {
            // The model is safe; a report that fails must not look like a run that did.
            match write_report(&run, &record, &model, &values, &judged) {
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
        if !self.json {
            summarise(&run, ending, (step, seconds), &figures, page.as_deref())?;
        }
        if let (Ending::Finished, Some(reproduction)) = (ending, &record.reproduces) {
            let made =
                reproduce::Made { experiment: &experiment, model: &model, values: &values, step, seconds };
            reproduction.conclude(&run, &parts.train, &judged, &made, self.json)?;
        }
        Ok(if ending == Ending::Interrupted { Exit::Interrupted } else { Exit::Done })
    }
}

/// Steps until the sitting ends.
fn train(
    setup: &Setup<'_>,
    data: &Dataset,
    (model, values): (&mut Model, Vec<f64>),
    saved: Option<Checkpoint>,
    events: &mut Events,
    progress: &Progress,
) -> Result<Trained> {
    let (engine, plan) = (Fused::default(), &setup.experiment.train);
    let earlier = saved.as_ref().map_or((0.0, None), |s| (s.seconds, s.best_nlpp));
    let mut trainer = match saved {
        Some(s) => Trainer::resume(model, &engine, data, plan, s.state)?,
        None => Trainer::new(model, &engine, data, plan, values)?,
    };
    if let Budget::Steps(total) = setup.budget {
        trainer.set_total_steps(total);
    }
    Session::new(setup, trainer, data, events, progress, earlier).run()
}

/// Chooses how sure a finished model may be, and saves it so.
fn sharpen(
    setup: &Setup<'_>,
    data: &Dataset,
    model: &mut Model,
    values: &[f64],
    progress: &Progress,
) -> Result<()> {
    let Some(power) = sharpness(model, &Fused::<f32>::default(), values, data)? else { return Ok(()) };
    progress.note(&format!("answers: probabilities to the power {power:.2}, by leaving training images out"));
    model.set_sharpness(power)?;
    Ok(save_prepared_model(&setup.run.model(), model, values, setup.class_names, setup.preparation)?)
}

fn summarise(
    run: &RunFolder,
    ending: Ending,
    (step, seconds): (u64, f64),
    figures: &[(String, Figures)],
    report: Option<&Path>,
) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{step} steps in {}", duration::text(seconds))?;
    if ending == Ending::Finished {
        write_table(&mut out, figures)?;
    } else if run.checkpoint().is_file() {
        writeln!(out, "{}; go on with: convgp train --resume {}", ending.name(), run.path().display())?;
    } else {
        writeln!(out, "{}; L-BFGS cannot be resumed", ending.name())?;
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
fn final_judgement(
    model: &Model,
    values: &[f64],
    parts: &Parts,
    published: Option<Vec<(String, Dataset)>>,
) -> Result<Vec<Judged>> {
    let mut sets = Vec::new();
    sets.extend(parts.validation.as_ref().map(|d| ("validation".to_string(), d.clone())));
    match published {
        Some(published) => sets.extend(published),
        None => sets.extend(parts.test.as_ref().map(|d| ("test".to_string(), d.clone()))),
    }
    if sets.is_empty() {
        sets.push((TRAINING.into(), convgp_data::limit_balanced(&parts.train, TRAINING_SHOWN, 0)?));
    }
    sets.into_iter().map(|(name, data)| Ok(Judged::new(&name, model, values, data)?)).collect()
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
    let report = report.trained(model, values, class_names, held_out)?;
    Ok(report.write(&run.report())?)
}
