//! `convgp update`: images are added to a closed-form model or removed from it, exactly.

use crate::args::data::DataArgs;
use crate::args::model::{ModelArg, SplitName};
use crate::run::folder::STATISTICS;
use crate::support::exit::{Exit, input, usage};
use crate::support::models::{data_for, model_file, read_model};
use anyhow::Result;
use clap::Args;
use convgp::closed_form::{Statistics, StatisticsError};
use std::io::Write;
use std::path::PathBuf;

/// Add images to a closed-form model, or remove some, without the other images.
///
/// The model becomes the one that a fit to the changed set gives, with the same kernels and inducing inputs. It needs the
/// statistics that `convgp train --keep-statistics` leaves beside it; they change too.
#[derive(Debug, Args)]
pub struct Update {
    #[command(flatten)]
    model: ModelArg,
    /// Images to add: a file, a folder, or a name such as mnist.
    #[arg(long, value_name = "DATA")]
    add: Option<String>,
    /// Images to remove; all of them must have been trained on.
    #[arg(long, value_name = "DATA")]
    remove: Option<String>,
    /// Split of the data to use.
    #[arg(long, value_enum, default_value = "train")]
    split: SplitName,
    #[command(flatten)]
    data: DataArgs,
    /// File of the statistics (default: statistics.safetensors beside the model).
    #[arg(long, value_name = "FILE")]
    statistics: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// Updates.
pub fn run(args: &Update) -> Result<Exit> {
    if args.add.is_none() && args.remove.is_none() {
        return Err(usage("nothing to do: give --add DATA, --remove DATA, or both"));
    }
    let path = model_file(&args.model)?;
    let mut fitted = read_model(&args.model)?;
    let file = args.statistics.clone().unwrap_or_else(|| path.with_file_name(STATISTICS));
    if !fitted.model.is_closed_form() {
        return Err(input(format!("{}: {}", path.display(), StatisticsError::Steps)));
    }
    if !file.is_file() {
        return Err(input(format!(
            "{}: no statistics; train with --keep-statistics, or name their file with --statistics",
            file.display()
        )));
    }
    let statistics = Statistics::load(&file, &fitted.model, &fitted.params)?;
    // Everything is read before anything is changed.
    let read = |source: &Option<String>| {
        source.as_ref().map(|s| data_for(&fitted, s, &args.data, Some(args.split))).transpose()
    };
    let (added, removed) = (read(&args.add)?, read(&args.remove)?);
    // A threshold that was set for the old model says nothing about the new one.
    let lost_rule = fitted.answer_rule.is_some();
    let (statistics, summary) = fitted.update(statistics, added.as_ref(), removed.as_ref())?;
    statistics.save(&file)?;
    fitted.save(&path)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&summary)?)?;
        return Ok(Exit::Done);
    }
    let count = |data: &Option<convgp::data::Dataset>| data.as_ref().map_or(0, convgp::data::Dataset::len);
    let (more, fewer) = (count(&added), count(&removed));
    let chosen = summary.chosen;
    let error = chosen.error.map_or(String::new(), |e| format!("error {:.2} %, ", 100.0 * e));
    writeln!(out, "{more} images added, {fewer} removed, {} in all", summary.images)?;
    writeln!(out, "leave-one-out on {} images: {error}NLPP {:.4}", summary.left_out, chosen.nlpp)?;
    if lost_rule {
        writeln!(out, "the answer rule was set for the old model and is gone: run convgp calibrate again")?;
    }
    writeln!(out, "model: {}", path.display())?;
    Ok(Exit::Done)
}
