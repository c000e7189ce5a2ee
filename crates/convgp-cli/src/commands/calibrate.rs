//! `convgp calibrate`: the confidence threshold of a model.

use crate::args::data::DataArgs;
use crate::args::model::{ModelArg, SplitName};
use crate::commands::predict::UNKNOWN;
use crate::run::folder::RunFolder;
use crate::run::request::absolute;
use crate::support::exit::{Exit, input};
use crate::support::images::fingerprint;
use crate::support::models::{data_for, model_file, read_model};
use anyhow::Result;
use clap::Args;
use convgp::data::Dataset;
use convgp::fitted::AnswerRule;
use convgp::metrics::threshold_for_risk;
use std::io::Write;
use std::path::PathBuf;

/// Set the confidence threshold for a target error rate.
///
/// Below the threshold the model answers "unknown". The threshold is saved in the model file.
#[derive(Debug, Args)]
pub struct Calibrate {
    #[command(flatten)]
    model: ModelArg,
    /// Images the model was not trained on: a file, a folder, or a name such as mnist.
    source: String,
    /// Target error rate among the answers, such as 0.01.
    #[arg(long, value_name = "RISK", value_parser = parse_risk)]
    risk: f64,
    /// Split of the data to use (default: test, else validation, else train).
    #[arg(long, value_enum)]
    split: Option<SplitName>,
    #[command(flatten)]
    data: DataArgs,
    /// File for the calibrated model (default: the model file is replaced).
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

fn parse_risk(text: &str) -> Result<f64, String> {
    let risk: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if (0.0..1.0).contains(&risk) { Ok(risk) } else { Err("it must be at least 0 and below 1".into()) }
}

/// Calibrates.
pub fn run(args: &Calibrate) -> Result<Exit> {
    let mut saved = read_model(&args.model)?;
    if saved.class_names.iter().any(|name| name == UNKNOWN) {
        return Err(input(format!(
            "the model has a class called {UNKNOWN:?}; the answer would be ambiguous"
        )));
    }
    let data = data_for(&saved, &args.source, &args.data, args.split)?;
    if trained_on(&data, args) {
        _ = writeln!(
            std::io::stderr(),
            "warning: {}: the model was trained on these images, on which it errs less often than on others: the threshold will \
             be too low. Use images it was not trained on, such as --split test",
            args.source
        );
    }
    let evaluation = saved.evaluate(&args.source, data)?;
    let Some(c) = evaluation.classified()? else {
        return Err(input("the model predicts real numbers; there are no classes to withhold"));
    };
    let found = threshold_for_risk(&c.confidences(), &c.correct(), args.risk).map_err(convgp::Error::from)?;
    let Some(threshold) = found else {
        return Err(input(format!(
            "{}: even the most confident answers are wrong more often than {}; nothing was changed. Allow a \
             larger --risk, or use more images",
            args.source, args.risk
        )));
    };
    let rule = AnswerRule { risk: args.risk, images: c.len(), threshold };
    saved.answer_rule = Some(rule);
    let path = args.output.clone().map_or_else(|| model_file(&args.model), Ok)?;
    saved.save(&path)?;
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(&rule)?)?,
        false => writeln!(out, "{}\nmodel: {}", describe(&rule), path.display())?,
    }
    Ok(Exit::Done)
}

/// Whether these are the training images of the run that the model lies in.
fn trained_on(data: &Dataset, args: &Calibrate) -> bool {
    let run = model_file(&args.model).ok().and_then(|model| RunFolder::open(model.parent()?).ok());
    let Some(record) = run.and_then(|run| run.record().ok()) else { return false };
    let same_split = args.split == Some(SplitName::Train) && absolute(&args.source) == record.source;
    same_split || fingerprint(data) == record.fingerprint
}

/// A rule in words.
pub fn describe(rule: &AnswerRule) -> String {
    let AnswerRule { risk, images, threshold: t } = rule;
    let percent = |x: f64| format!("{:.2} %", 100.0 * x);
    format!(
        "answers where the largest probability is at least {:.4}, else {UNKNOWN:?} (set for a risk of {risk} on {images} \
         images: {} answered, {} of the answers wrong, below {} with 95 % confidence)",
        t.threshold,
        percent(t.coverage),
        percent(t.error),
        percent(t.upper_error)
    )
}
