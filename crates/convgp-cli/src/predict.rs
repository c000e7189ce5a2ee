//! `convgp predict`: what a model says about images.

use crate::exit::Exit;
use crate::inputs::Inputs;
use crate::saved::{ModelArg, SplitName};
use crate::source::DataArgs;
use crate::table::{Format, Table};
use anyhow::Result;
use clap::Args;
use convgp::cov::Fused;
use convgp::io::{SavedModel, write_atomically};
use convgp::likelihood::Predictive;
use convgp::metrics::{entropy, most_probable};
use convgp::model::Predictor;
use std::io::Write;
use std::path::PathBuf;

/// What is said in place of a class where a calibrated model is not sure enough.
pub const UNKNOWN: &str = "unknown";

/// Class, probabilities, entropy, and mean and variance of every latent.
#[derive(Debug, Args)]
pub struct Predict {
    #[command(flatten)]
    model: ModelArg,
    /// Image files, a folder of image files, or data as for train.
    #[arg(required = true)]
    inputs: Vec<String>,
    /// Where to write; the ending chooses csv, jsonl or parquet (default: CSV on standard output).
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Which part of the data (default: test, else validation, else train).
    #[arg(long, value_enum)]
    split: Option<SplitName>,
    #[command(flatten)]
    data: DataArgs,
}

impl Predict {
    /// Predicts.
    pub fn run(&self) -> Result<Exit> {
        let format = self.output.as_deref().map_or(Ok(Format::Csv), Format::of)?;
        let saved = self.model.load()?;
        let inputs = Inputs::read(&saved, &self.inputs, &self.data, self.split)?;
        let bytes = predictions(&saved, inputs)?.to_bytes(format)?;
        match &self.output {
            Some(path) => write_atomically(path, &bytes)?,
            None => std::io::stdout().lock().write_all(&bytes)?,
        }
        Ok(Exit::Done)
    }
}

fn predictions(saved: &SavedModel, inputs: Inputs) -> Result<Table> {
    let SavedModel { model, values, class_names, .. } = saved;
    let engine = Fused::<f32>::default();
    let latents = Predictor::new(model, &engine, values)?.latents(&inputs.images)?;
    let predictive = model.likelihood().predict(model.likelihood_theta(values), &latents);
    let mut table = Table::new("image", inputs.names);
    if let Some(labels) = inputs.labels {
        table.words("label", labels);
    }
    let count = model.likelihood().latents();
    match predictive {
        Predictive::Classes { probabilities, classes } => {
            let rows = || probabilities.chunks_exact(classes);
            table.words("class", rows().map(|p| answer(saved, p).to_string()).collect());
            table.numbers("entropy", rows().map(entropy).collect());
            for (k, name) in class_names.iter().enumerate() {
                table.numbers(&format!("p_{name}"), rows().map(|p| p[k]).collect());
            }
        }
        Predictive::Real { mean, var } => {
            table.numbers("mean", mean);
            table.numbers("variance", var);
        }
    }
    for l in 0..count {
        let name = class_names.get(l).filter(|_| class_names.len() == count).cloned();
        let name = name.unwrap_or_else(|| l.to_string());
        let column = |v: &[f64]| v.iter().skip(l).step_by(count).copied().collect();
        table.numbers(&format!("latent_mean_{name}"), column(&latents.mean));
        table.numbers(&format!("latent_variance_{name}"), column(&latents.var));
    }
    Ok(table)
}

/// The class, or [`UNKNOWN`] where the model's answer rule withholds it.
pub fn answer<'a>(saved: &'a SavedModel, probabilities: &[f64]) -> &'a str {
    match &saved.answer_rule {
        Some(rule) if !rule.threshold.answers(probabilities) => UNKNOWN,
        _ => &saved.class_names[most_probable(probabilities)],
    }
}
