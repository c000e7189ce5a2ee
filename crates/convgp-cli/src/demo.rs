//! `convgp demo`: the paper's first experiment from nothing but this program.

use crate::progress::Progress;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use convgp::cov::Fused;
use convgp::data::Dataset;
use convgp::io::save_model;
use convgp::metrics::{error_rate, nlpp};
use convgp::model::{Model, Predictor};
use convgp::rng::Rng;
use convgp::train::{Control, ExperimentSpec, Trainer};
use convgp_data::generate::rectangles;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

const TRAINING_IMAGES: usize = 1200;
const TEST_IMAGES: usize = 10_000;
/// Seeds of test images are this far from those of training images.
const TEST_SEED: u64 = 1 << 32;
/// Stream of the generator that draws initial parameters.
const INITIAL_STREAM: u64 = 2;

/// Options of the demo.
#[derive(Debug, Args)]
pub struct Demo {
    /// Which model of the paper.
    #[arg(long, value_enum, default_value_t = Which::Weighted)]
    model: Which,
    /// Seed of data, initial parameters and minibatches.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Training steps, if not those of the spec.
    #[arg(long)]
    steps: Option<u64>,
    /// Where the model is saved (default: rectangles-MODEL.safetensors).
    #[arg(long)]
    out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Which {
    /// One weight per patch position.
    Weighted,
    /// All positions alike.
    Invariant,
}

impl Which {
    fn name(self) -> &'static str {
        match self {
            Which::Weighted => "weighted",
            Which::Invariant => "invariant",
        }
    }
    fn spec(self) -> &'static str {
        match self {
            Which::Weighted => include_str!("../specs/rectangles-weighted.toml"),
            Which::Invariant => include_str!("../specs/rectangles-invariant.toml"),
        }
    }
    /// Error in percent and NLPP of the paper, table 1.
    fn published(self) -> (f64, f64) {
        match self {
            Which::Weighted => (0.0, 0.005),
            Which::Invariant => (1.4, 0.055),
        }
    }
}

/// Error in percent and NLPP.
fn figures(predictor: &Predictor<'_, Fused>, data: &Dataset) -> Result<(f64, f64)> {
    let error = error_rate(&predictor.predict(data.images())?, data.targets());
    let error = error.context("the demo's models predict classes")?;
    Ok((100.0 * error, nlpp(&predictor.log_density(data)?)))
}

impl Demo {
    /// Runs it.
    pub fn run(&self) -> Result<()> {
        let started = Instant::now();
        let ExperimentSpec { model: model_spec, mut train } = ExperimentSpec::from_toml(self.model.spec())?;
        train.seed = self.seed;
        train.steps = self.steps.unwrap_or(train.steps);
        let data = rectangles(TRAINING_IMAGES, self.seed);
        let test = rectangles(TEST_IMAGES, self.seed.wrapping_add(TEST_SEED));
        let rng = &mut Rng::stream(self.seed, INITIAL_STREAM);
        let (mut model, values) = Model::new(&model_spec, Some(data.images()), rng)?;
        let mut out = std::io::stdout().lock();
        writeln!(
            out,
            "rectangles: {TRAINING_IMAGES} training images, {TEST_IMAGES} fresh test images, seed {}\n\
             model: {} convolution, 3x3 patches, {} inducing patches, {} parameters",
            self.seed,
            self.model.name(),
            model.components()[0].inducing(),
            values.len(),
        )?;

        let engine = Fused::default();
        let mut trainer = Trainer::new(&mut model, &engine, &data, &train, values)?;
        let progress = Progress::new(train.steps);
        let last = trainer.run(|_| Control::Continue, &mut [progress.observer()])?;
        drop(progress);
        let (counts, values) = (trainer.counts(), trainer.into_values());
        let seconds = started.elapsed().as_secs_f64();
        let bound = last.map_or(f64::NAN, |report| report.bound.elbo);
        writeln!(out, "trained: {} steps in {seconds:.1} s, last bound {bound:.2}", train.steps)?;
        if counts.roll_backs + counts.jitter_raises > 0 {
            writeln!(
                out,
                "trouble: {} roll-backs, jitter raised {} times",
                counts.roll_backs, counts.jitter_raises
            )?;
        }

        let predictor = Predictor::new(&model, &engine, &values)?;
        let (training, fresh) = (figures(&predictor, &data)?, figures(&predictor, &test)?);
        let published = self.model.published();
        writeln!(out, "\n                      error      NLPP")?;
        writeln!(out, "training images   {:6.2} %     {:.4}", training.0, training.1)?;
        writeln!(out, "fresh images      {:6.2} %     {:.4}", fresh.0, fresh.1)?;
        writeln!(out, "paper             {:6.1} %     {:.3}", published.0, published.1)?;

        let default = || PathBuf::from(format!("rectangles-{}.safetensors", self.model.name()));
        let path = self.out.clone().unwrap_or_else(default);
        save_model(&path, &model, &values, data.class_names())?;
        writeln!(out, "\nsaved: {} ({:.1} s in all)", path.display(), started.elapsed().as_secs_f64())?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_describe_the_models_of_the_paper() {
        for which in [Which::Weighted, Which::Invariant] {
            let spec = ExperimentSpec::from_toml(which.spec()).unwrap();
            spec.train.check().unwrap();
            let data = rectangles(50, 0);
            let (model, _) = Model::new(&spec.model, Some(data.images()), &mut Rng::new(0)).unwrap();
            let conv = &model.components()[0];
            assert_eq!((conv.inducing(), conv.responses()[0].views().count()), (16, 26 * 26));
            let weighted = conv.responses()[0].weights_slot().is_some();
            assert_eq!(weighted, matches!(which, Which::Weighted));
        }
    }

    #[test]
    fn a_few_steps_run_and_leave_a_model_behind() {
        let path = std::env::temp_dir().join(format!("convgp-demo-{}.safetensors", std::process::id()));
        let out = Some(path.clone());
        Demo { model: Which::Invariant, seed: 3, steps: Some(2), out }.run().unwrap();
        let saved = convgp::io::load_model(&path).unwrap();
        assert_eq!(saved.class_names, ["wide", "tall"]);
        std::fs::remove_file(path).unwrap();
    }
}
