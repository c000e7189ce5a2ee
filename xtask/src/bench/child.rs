//! One configuration in a process of its own, so that peak memory is its own.

use super::clock::{Others, Times, memory};
use super::configs::{Config, Sizes};
use super::images::{Kind, load};
use anyhow::{Context, Result, ensure};
use convgp::Model;
use convgp::cov::Fused;
use convgp::model::Predictor;
use convgp::rng::Rng;
use convgp::train::{QStep, TrainSpec, Trainer};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Which optimiser moves the posterior.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Adam for everything.
    Adam,
    /// Natural steps for q, Adam for the rest.
    Natural,
}

impl Mode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Adam => "adam",
            Mode::Natural => "natural",
        }
    }
}

/// What a child is to measure.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// Name of the configuration.
    pub config: String,
    /// Optimiser.
    pub mode: Mode,
    /// Images.
    pub images: Kind,
    /// Where the real ones are.
    pub data: Option<PathBuf>,
    /// Threads.
    pub threads: usize,
    /// Timed steps, after two that are not.
    pub steps: usize,
    /// Other sizes than the configuration's own.
    pub sizes: Sizes,
    /// Images to predict per run after training; 0 for none.
    pub predict: usize,
}

/// What a child measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// Seconds of each step.
    pub seconds: Vec<f64>,
    /// Seconds of the first step, when buffers are made.
    pub first: f64,
    /// Views of an image and numbers in a view, first component.
    pub views: (usize, usize),
    /// Peak resident memory of the process up to the last step, megabytes.
    pub peak: Option<f64>,
    /// Resident memory once the images were loaded, megabytes.
    pub loaded: Option<f64>,
    /// Per cent of the machine that other processes used.
    pub others: Option<f64>,
    /// Steps with numerical trouble: rolled back, or with raised jitter.
    pub trouble: u64,
    /// Seconds of making a predictor, where there was one.
    pub predictor: Option<f64>,
    /// Seconds of each prediction run.
    pub predictions: Vec<f64>,
}

impl Outcome {
    /// The steps.
    pub fn times(&self) -> Times {
        Times(self.seconds.clone())
    }
}

impl Job {
    /// Runs itself in a new process of this program.
    pub fn spawn(&self) -> Result<Outcome> {
        let program = std::env::current_exe().context("this program's own file")?;
        let output = Command::new(program)
            .args(["bench-child", &serde_json::to_string(self)?])
            .stderr(Stdio::inherit())
            .output()
            .context("a process for one configuration could not be started")?;
        ensure!(output.status.success(), "measuring {} failed: {}", self.config, output.status);
        let text = String::from_utf8(output.stdout)?;
        serde_json::from_str(&text).with_context(|| format!("{} answered {text:?}", self.config))
    }

    /// Training as a user would run it.
    pub fn train_spec(&self, config: &Config) -> TrainSpec {
        TrainSpec {
            batch_size: self.sizes.batch.unwrap_or(config.batch),
            q: match self.mode {
                Mode::Adam => QStep::Adam,
                Mode::Natural => QStep::Natural,
            },
            ..TrainSpec::default()
        }
    }

    fn measure(&self) -> Result<Outcome> {
        let config = Config::find(&self.config)?;
        rayon::ThreadPoolBuilder::new().num_threads(self.threads).build_global()?;
        let data = load(config, self.images, self.data.as_deref(), self.sizes)?;
        let loaded = memory("VmRSS");
        let (model, values) = Model::new(&config.model(self.sizes)?, Some(data.images()), &mut Rng::new(1))?;
        let views = model.components()[0].responses()[0].views();
        let views = (views.count(), views.len());
        let engine = Fused::<f32>::default();
        let mut trainer = Trainer::new(&model, &engine, &data, &self.train_spec(config), values)?;
        let start = Instant::now();
        trainer.step()?;
        let first = start.elapsed().as_secs_f64();
        trainer.step()?;
        let (others, mut seconds, mut trouble) = (Others::watch(), Vec::new(), 0);
        for _ in 0..self.steps {
            let start = Instant::now();
            let report = trainer.step()?;
            seconds.push(start.elapsed().as_secs_f64());
            trouble += u64::from(report.event.is_some());
        }
        let (others, peak) = (others.percent(), memory("VmHWM"));
        let mut outcome = Outcome {
            seconds,
            first,
            views,
            peak,
            loaded,
            others,
            trouble,
            predictor: None,
            predictions: Vec::new(),
        };
        if self.predict > 0 {
            let (model, values) = (trainer.model(), trainer.into_params());
            let indices: Vec<usize> = (0..self.predict.min(data.len())).collect();
            let images = data.images().select(&indices)?;
            let start = Instant::now();
            let predictor = Predictor::new(model, &engine, &values)?;
            outcome.predictor = Some(start.elapsed().as_secs_f64());
            predictor.predict(&images)?;
            for _ in 0..5 {
                let start = Instant::now();
                predictor.predict(&images)?;
                outcome.predictions.push(start.elapsed().as_secs_f64());
            }
        }
        Ok(outcome)
    }
}

/// The child's side: measures the job in `text` and answers in JSON.
#[allow(clippy::print_stdout)] // the answer
pub fn run(text: &str) -> Result<()> {
    let job: Job = serde_json::from_str(text)?;
    println!("{}", serde_json::to_string(&job.measure()?)?);
    Ok(())
}
