//! `convgp predict`: predictions of a model for images.

use crate::args::data::DataArgs;
use crate::args::model::{ModelArg, SplitName};
use crate::support::exit::Exit;
use crate::support::inputs::Inputs;
use crate::support::models::read_model;
use crate::support::table::{Format, Table};
use anyhow::Result;
use clap::Args;
use convgp::FittedModel;
use convgp::cov::Fused;
use convgp::io::write_atomically;
use convgp::likelihood::Predictive;
use convgp::metrics::entropy;
use std::io::Write;
use std::path::PathBuf;

/// What is said in place of a class where a calibrated model is not sure enough.
pub const UNKNOWN: &str = "unknown";

/// Predict classes, probabilities, entropy and latent values of images.
#[derive(Debug, Args)]
pub struct Predict {
    #[command(flatten)]
    model: ModelArg,
    /// Image files, a folder of image files, or data as for train.
    #[arg(required = true)]
    inputs: Vec<String>,
    /// File to write; its ending chooses csv, jsonl or parquet (default: CSV on standard output).
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Split of the data to use (default: test, else validation, else train).
    #[arg(long, value_enum)]
    split: Option<SplitName>,
    #[command(flatten)]
    data: DataArgs,
}

/// Predicts.
pub fn run(args: &Predict) -> Result<Exit> {
    let format = args.output.as_deref().map_or(Ok(Format::Csv), Format::of)?;
    let saved = read_model(&args.model)?;
    let inputs = Inputs::read(&saved, &args.inputs, &args.data, args.split)?;
    let bytes = predictions(&saved, inputs)?.to_bytes(format)?;
    match &args.output {
        Some(path) => write_atomically(path, &bytes)?,
        None => std::io::stdout().lock().write_all(&bytes)?,
    }
    Ok(Exit::Done)
}

fn predictions(saved: &FittedModel, inputs: Inputs) -> Result<Table> {
    let FittedModel { model, class_names, .. } = saved;
    let engine = Fused::<f32>::default();
    let predictor = saved.predictor(&engine)?;
    let latents = predictor.latents(&inputs.images)?;
    let predictive = predictor.predict_from(&latents);
    let mut table = Table::new("image", inputs.names);
    if let Some(labels) = inputs.labels {
        table.words("label", labels);
    }
    let count = model.likelihood().latents();
    match predictive {
        Predictive::Classes { probabilities, classes } => {
            let rows = || probabilities.chunks_exact(classes);
            table.words("class", rows().map(|p| saved.answer(p).unwrap_or(UNKNOWN).to_string()).collect());
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
