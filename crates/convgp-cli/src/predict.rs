//! `convgp predict`: what a model says about images.

mod table;

use crate::exit::{Exit, usage};
use crate::saved::{ModelArg, SplitName, data_for, is_image_file};
use crate::source::{DataArgs, Geometry};
use anyhow::Result;
use clap::Args;
use convgp::cov::Fused;
use convgp::data::{Images, Targets};
use convgp::io::{SavedModel, write_atomically};
use convgp::likelihood::Predictive;
use convgp::metrics::most_probable;
use convgp::model::Predictor;
use std::io::Write;
use std::path::{Path, PathBuf};
use table::{Format, Table};

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

/// Images with a name each, and their labels where known.
struct Inputs {
    names: Vec<String>,
    images: Images,
    labels: Option<Vec<String>>,
}

impl Predict {
    /// Predicts.
    pub fn run(&self) -> Result<Exit> {
        let format = self.output.as_deref().map_or(Ok(Format::Csv), Format::of)?;
        let saved = self.model.load()?;
        let inputs = self.read(&saved)?;
        let bytes = predictions(&saved, inputs)?.to_bytes(format)?;
        match &self.output {
            Some(path) => write_atomically(path, &bytes)?,
            None => std::io::stdout().lock().write_all(&bytes)?,
        }
        Ok(Exit::Done)
    }

    fn read(&self, saved: &SavedModel) -> Result<Inputs> {
        let paths: Vec<PathBuf> = self.inputs.iter().map(PathBuf::from).collect();
        if paths.iter().all(|p| is_image_file(p) || holds_images(p)) {
            return self.read_files(saved, &paths);
        }
        let [source] = &self.inputs[..] else {
            let odd =
                paths.iter().find(|p| !is_image_file(p)).map_or(String::new(), |p| p.display().to_string());
            return Err(usage(format!("{odd}: not an image file; give image files, or one data set")));
        };
        let data = data_for(saved, source, &self.data, self.split)?;
        let labels = match data.targets() {
            Targets::Classes { labels, .. } => {
                labels.iter().map(|&l| data.class_names()[l as usize].clone()).collect()
            }
            Targets::Real(values) => values.iter().map(f64::to_string).collect(),
        };
        let names = (0..data.len()).map(|i| i.to_string()).collect();
        Ok(Inputs { names, images: data.images().clone(), labels: Some(labels) })
    }

    fn read_files(&self, saved: &SavedModel, paths: &[PathBuf]) -> Result<Inputs> {
        let geometry = Geometry::of_model(saved.model.spec().image, saved.preparation.fit);
        let read = convgp_data::read_images(paths, &self.data.options(&geometry)?)?;
        for skipped in &read.skipped {
            writeln!(std::io::stderr(), "skipped {}: {}", skipped.path, skipped.reason)?;
        }
        saved.preparation.scaling.check(&read.images).map_err(convgp::Error::from)?;
        let names = read.paths.iter().map(|p| p.display().to_string()).collect();
        Ok(Inputs { names, images: read.images, labels: None })
    }
}

/// Whether a folder holds image files directly.
fn holds_images(path: &Path) -> bool {
    std::fs::read_dir(path)
        .is_ok_and(|mut entries| entries.any(|e| e.is_ok_and(|e| is_image_file(&e.path()))))
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
            table.words("class", rows().map(|p| class_names[most_probable(p)].clone()).collect());
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

/// Entropy of class probabilities, in nats.
fn entropy(p: &[f64]) -> f64 {
    p.iter().filter(|&&p| p > 0.0).map(|p| -p * p.ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_is_zero_for_certainty_and_largest_for_none() {
        assert_eq!(entropy(&[0.0, 1.0, 0.0]), 0.0);
        assert!((entropy(&[0.25; 4]) - 4f64.ln()).abs() < 1e-15);
    }
}
