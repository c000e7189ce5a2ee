//! `convgp inspect`: what is in a model file.

use crate::args::data::DataArgs;
use crate::args::model::ModelArg;
use crate::support::exit::Exit;
use crate::support::models::{data_for, model_file, read_model};
use anyhow::Result;
use clap::Args;
use convgp::FittedModel;
use convgp::cov::Fused;
use convgp::data::Images;
use convgp::fitted::AnswerRule;
use convgp::inspect::describe;
use convgp::params::Transform;
use serde::Serialize;
use std::io::Write;

/// Images that components' shares are computed on.
const SHARE_IMAGES: usize = 500;

/// List the parameters, components and sizes of a model file.
#[derive(Debug, Args)]
pub struct Inspect {
    #[command(flatten)]
    model: ModelArg,
    /// Data for which to compute each component's share of the variance of the latent functions.
    #[arg(long, value_name = "DATA")]
    on: Option<String>,
    #[command(flatten)]
    data: DataArgs,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
}

/// One parameter array.
#[derive(Debug, Serialize)]
struct Parameter {
    name: String,
    count: usize,
    constraint: &'static str,
    trainable: bool,
    mean: f64,
    smallest: f64,
    largest: f64,
}

/// A component's part in the latents.
#[derive(Debug, Serialize)]
struct Share {
    component: String,
    /// Of the sum over components of the variance of the means between images.
    share: f64,
}

/// Everything that is shown.
#[derive(Debug, Serialize)]
struct Report<'a> {
    file_bytes: u64,
    model: String,
    image: String,
    pixels: String,
    class_names: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    answer_rule: Option<AnswerRule>,
    parameters: Vec<Parameter>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shares: Vec<Share>,
}

/// Shows it.
pub fn run(args: &Inspect) -> Result<Exit> {
    let saved = read_model(&args.model)?;
    let shares = match &args.on {
        Some(source) => {
            let data = data_for(&saved, source, &args.data, None)?;
            let some: Vec<usize> = (0..data.len().min(SHARE_IMAGES)).collect();
            shares(&saved, &data.images().select(&some).map_err(convgp::Error::from)?)?
        }
        None => Vec::new(),
    };
    let report = Report {
        file_bytes: std::fs::metadata(model_file(&args.model)?)?.len(),
        model: describe(&saved.model),
        image: saved.model.spec().image.to_string(),
        pixels: saved.preparation.scaling.to_string(),
        class_names: &saved.class_names,
        answer_rule: saved.answer_rule,
        parameters: parameters(&saved),
        shares,
    };
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?,
        false => report.write(&mut out)?,
    }
    Ok(Exit::Done)
}

fn parameters(saved: &FittedModel) -> Vec<Parameter> {
    let entries = saved.params.layout().entries().iter();
    let row = |e: &convgp::params::Entry| {
        let v = e.slot.of(&saved.params);
        Parameter {
            name: e.name.clone(),
            count: v.len(),
            constraint: match e.transform {
                Transform::Real => "real",
                Transform::Positive | Transform::Scale => "positive",
                Transform::Unit => "in (0, 1)",
                Transform::Lower { .. } => "lower triangles",
            },
            trainable: e.trainable,
            mean: v.iter().sum::<f64>() / v.len() as f64,
            smallest: v.iter().copied().fold(f64::INFINITY, f64::min),
            largest: v.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    };
    entries.map(row).collect()
}

/// Variance of each component's means between images, summed over latents, as a part of all.
fn shares(saved: &FittedModel, images: &Images) -> Result<Vec<Share>> {
    let engine = Fused::<f32>::default();
    let predictor = saved.predictor(&engine)?;
    let latents = saved.model.likelihood().latents();
    let mut spread = Vec::new();
    for c in 0..saved.model.components().len() {
        let means = predictor.component_latents(c, images)?.mean;
        spread.push((0..latents).map(|l| variance(means.iter().skip(l).step_by(latents))).sum::<f64>());
    }
    let all: f64 = spread.iter().sum();
    let components = saved.model.components().iter().zip(spread);
    Ok(components.map(|(c, s)| Share { component: c.name().into(), share: s / all }).collect())
}

fn variance<'a>(values: impl Iterator<Item = &'a f64> + Clone) -> f64 {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    values.map(|v| (v - mean) * (v - mean)).sum::<f64>() / n
}

impl Report<'_> {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(out, "{}", self.model)?;
        writeln!(out, "images of {}, pixels: {}", self.image, self.pixels)?;
        if !self.class_names.is_empty() {
            writeln!(out, "classes: {}", self.class_names.join(", "))?;
        }
        if let Some(rule) = &self.answer_rule {
            writeln!(out, "{}", crate::commands::calibrate::describe(rule))?;
        }
        writeln!(out, "file: {}\n", convgp::memory::size_text(self.file_bytes))?;
        let width = self.parameters.iter().map(|p| p.name.len()).max().unwrap_or(0);
        writeln!(
            out,
            "{:width$}  {:>9}  {:15}  {:>11}  {:>11}  {:>11}",
            "parameter", "numbers", "constraint", "mean", "smallest", "largest"
        )?;
        for p in &self.parameters {
            let Parameter { name, count, constraint, mean, smallest, largest, .. } = p;
            let fixed = if p.trainable { "" } else { "  fixed" };
            writeln!(
                out,
                "{name:width$}  {count:>9}  {constraint:15}  {mean:>11.4e}  {smallest:>11.4e}  {largest:>11.4e}{fixed}"
            )?;
        }
        for s in &self.shares {
            writeln!(out, "share of {}: {:.1} %", s.component, 100.0 * s.share)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variance_by_hand() {
        assert_eq!(variance([1.0, 2.0, 6.0].iter()), 14.0 / 3.0);
    }
}
