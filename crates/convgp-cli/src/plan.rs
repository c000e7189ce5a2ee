//! `convgp plan`: memory and time of a training run, without a run.

use crate::duration;
use crate::exit::Exit;
use crate::memory::{Estimate, available, parse_size, size_text};
use crate::recipe::RecipeArgs;
use crate::source::{DataArgs, Geometry, Parts};
use anyhow::Result;
use clap::Args;
use convgp::Model;
use convgp::cov::Fused;
use convgp::inspect::describe;
use convgp::train::{TrainSpec, Trainer};
use serde::Serialize;
use std::io::Write;
use std::time::Instant;

/// Steps before the clock is started.
const WARM_UP: u64 = 2;

/// Memory and time per step; refuses what does not fit and says what would.
#[derive(Debug, Args)]
pub struct Plan {
    /// A file, a folder, or a name such as mnist.
    source: String,
    #[command(flatten)]
    recipe: RecipeArgs,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    geometry: Geometry,
    /// Fraction of the training images that would be held out.
    #[arg(long, value_name = "FRACTION")]
    validation: Option<f64>,
    /// Memory that may be used, such as 4G (default: what is available).
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
    /// Steps to time; 0 leaves the time out.
    #[arg(long, value_name = "N", default_value_t = 3)]
    timed_steps: u64,
    /// One JSON object instead of text.
    #[arg(long)]
    json: bool,
}

/// What is reported.
#[derive(Debug, Serialize)]
struct Report {
    model: String,
    reasons: Vec<String>,
    memory: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    available: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_per_step: Option<f64>,
    steps: u64,
}

impl Plan {
    /// Plans.
    pub fn run(&self) -> Result<Exit> {
        let loaded = self.data.load(&self.source, &self.geometry)?;
        let parts = Parts::new(loaded, self.validation, &self.source)?;
        let mut chosen = self.recipe.choose(&parts.train, None)?;
        Estimate::new(&chosen.experiment, &parts)?.check(self.memory, &chosen.experiment, &parts)?;
        let (model, values) = chosen.build(&parts.train)?;
        let estimate = Estimate::new(&chosen.experiment, &parts)?;
        let train = &chosen.experiment.train;
        let description = describe(&model);
        let seconds_per_step = match self.timed_steps {
            0 => None,
            steps => Some(time_steps(model, values, &parts, train, steps)?),
        };
        let report = Report {
            model: description,
            reasons: chosen.reasons,
            memory: estimate.total(),
            available: available(),
            seconds_per_step,
            steps: train.steps,
        };
        let mut out = std::io::stdout().lock();
        match self.json {
            true => writeln!(out, "{}", serde_json::to_string(&report)?)?,
            false => report.write(&estimate, &mut out)?,
        }
        Ok(Exit::Done)
    }
}

/// Seconds of a step.
fn time_steps(
    mut model: Model,
    values: Vec<f64>,
    parts: &Parts,
    train: &TrainSpec,
    steps: u64,
) -> Result<f64> {
    let engine = Fused::<f32>::default();
    let mut trainer = Trainer::new(&mut model, &engine, &parts.train, train, values)?;
    for _ in 0..WARM_UP {
        trainer.step()?;
    }
    let started = Instant::now();
    for _ in 0..steps {
        trainer.step()?;
    }
    Ok(started.elapsed().as_secs_f64() / steps as f64)
}

impl Report {
    fn write(&self, estimate: &Estimate, out: &mut dyn Write) -> std::io::Result<()> {
        self.reasons.iter().try_for_each(|reason| writeln!(out, "chosen: {reason}"))?;
        writeln!(out, "model: {}", self.model)?;
        writeln!(out, "memory: {}", estimate.text())?;
        if let Some(available) = self.available {
            writeln!(out, "available: {}", size_text(available))?;
        }
        if let Some(seconds) = self.seconds_per_step {
            let all = duration::text(seconds * self.steps as f64);
            writeln!(out, "time: {:.1} ms per step, {all} for {} steps", 1e3 * seconds, self.steps)?;
        }
        Ok(())
    }
}
