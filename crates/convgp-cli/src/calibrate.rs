//! `convgp calibrate`: from which confidence on a model answers.

use crate::exit::{Exit, input};
use crate::predict::UNKNOWN;
use crate::saved::{ModelArg, SplitName, data_for};
use crate::source::DataArgs;
use anyhow::Result;
use clap::Args;
use convgp::io::AnswerRule;
use convgp::metrics::{Judged, threshold_for_risk};
use std::io::Write;
use std::path::PathBuf;

/// Set the threshold under which a model answers "unknown"; the model file remembers it.
#[derive(Debug, Args)]
pub struct Calibrate {
    #[command(flatten)]
    model: ModelArg,
    /// Images that were not trained on: a file, a folder, or a name such as mnist.
    source: String,
    /// Largest fraction of answers that may be wrong, such as 0.01.
    #[arg(long, value_name = "RISK", value_parser = parse_risk)]
    risk: f64,
    /// Which part of the data (default: test, else validation, else train).
    #[arg(long, value_enum)]
    split: Option<SplitName>,
    #[command(flatten)]
    data: DataArgs,
    /// Where the calibrated model is written (default: over the model file).
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// One JSON object instead of text.
    #[arg(long)]
    json: bool,
}

fn parse_risk(text: &str) -> Result<f64, String> {
    let risk: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if (0.0..1.0).contains(&risk) { Ok(risk) } else { Err("it must be at least 0 and below 1".into()) }
}

impl Calibrate {
    /// Calibrates.
    pub fn run(&self) -> Result<Exit> {
        let mut saved = self.model.load()?;
        if saved.class_names.iter().any(|name| name == UNKNOWN) {
            return Err(input(format!(
                "the model has a class called {UNKNOWN:?}; the answer would be ambiguous"
            )));
        }
        let data = data_for(&saved, &self.source, &self.data, self.split)?;
        let judged = Judged::new(&self.source, &saved.model, &saved.values, data)?;
        let Some(c) = judged.classified()? else {
            return Err(input("the model predicts real numbers; there are no classes to withhold"));
        };
        let found =
            threshold_for_risk(&c.confidences(), &c.correct(), self.risk).map_err(convgp::Error::from)?;
        let Some(threshold) = found else {
            return Err(input(format!(
                "{}: even the most confident answers are wrong more often than {}; nothing was changed. Allow a \
                 larger --risk, or use more images",
                self.source, self.risk
            )));
        };
        let rule = AnswerRule { risk: self.risk, images: c.len(), threshold };
        saved.answer_rule = Some(rule);
        let path = self.output.clone().map_or_else(|| self.model.file(), Ok)?;
        saved.save(&path)?;
        let mut out = std::io::stdout().lock();
        match self.json {
            true => writeln!(out, "{}", serde_json::to_string(&rule)?)?,
            false => writeln!(out, "{}\nmodel: {}", describe(&rule), path.display())?,
        }
        Ok(Exit::Done)
    }
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
