//! `convgp plan`: memory and time of a training run, without starting it.

use crate::args::data::{DataArgs, Geometry, parse_fraction};
use crate::args::spec::SpecArgs;
use crate::run::memory::{self, parse_size};
use crate::run::spec::choose;
use crate::support::duration;
use crate::support::exit::Exit;
use crate::support::images::{Parts, load};
use anyhow::Result;
use clap::Args;
use convgp::Model;
use convgp::closed_form::Features;
use convgp::cov::Fused;
use convgp::data::Dataset;
use convgp::inspect::describe;
use convgp::memory::{Estimate, available, size_text};
use convgp::params::Params;
use convgp::prepare::Scaling;
use convgp::train::{TrainSpec, Trainer};
use serde::Serialize;
use std::io::Write;
use std::time::Instant;

/// Steps before the clock is started.
const WARM_UP: u64 = 2;

/// Images after which the speed of reading is known.
const TIMED_IMAGES: usize = 200;

/// Estimate the memory and time of a training run without starting it.
///
/// A run that does not fit in memory is refused, with settings that would fit.
#[derive(Debug, Args)]
pub struct Plan {
    /// A file, a folder, or a name such as mnist.
    source: String,
    #[command(flatten)]
    spec: SpecArgs,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    geometry: Geometry,
    /// Fraction of the training images to hold out for validation.
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    validation: Option<f64>,
    /// Memory limit, such as 4G (default: what is available).
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
    /// Number of steps to time; 0 skips the timing.
    #[arg(long, value_name = "N", default_value_t = 3)]
    timed_steps: u64,
    /// Print one JSON object instead of text.
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
    /// Of the closed form, without the solution.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_per_image: Option<f64>,
    images: usize,
    steps: u64,
}

/// Plans.
pub fn run(args: &Plan) -> Result<Exit> {
    let loaded = load(&args.source, &args.data, &args.geometry)?;
    let parts = Parts::new(loaded, args.validation, &args.source)?;
    let scaling = Scaling::learn(parts.train.images());
    let parts = parts.on_scale(scaling)?;
    let mut chosen = choose(&args.spec, &parts.train, None)?;
    memory::check(&chosen.experiment, &parts, args.memory)?;
    let (model, params) = chosen.build(&parts.train)?;
    let estimate = memory::plan(&chosen.experiment, &parts)?;
    let train = &chosen.experiment.train;
    let description = describe(&model);
    let (mut seconds_per_step, mut seconds_per_image) = (None, None);
    if args.timed_steps > 0 && model.is_closed_form() {
        seconds_per_image = Some(time_images(&model, &params, &parts.train)?);
    } else if args.timed_steps > 0 {
        seconds_per_step = Some(time_steps(&model, params, &parts, train, args.timed_steps)?);
    }
    let report = Report {
        model: description,
        reasons: chosen.decisions.iter().map(ToString::to_string).collect(),
        memory: estimate.total(),
        available: available(),
        seconds_per_step,
        seconds_per_image,
        images: parts.train.len(),
        steps: train.steps,
    };
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(&report)?)?,
        false => report.write(&estimate, &mut out)?,
    }
    Ok(Exit::Done)
}

/// Seconds of a step.
fn time_steps(model: &Model, params: Params, parts: &Parts, train: &TrainSpec, steps: u64) -> Result<f64> {
    let engine = Fused::<f32>::default();
    let mut trainer = Trainer::new(model, &engine, &parts.train, train, params)?;
    for _ in 0..WARM_UP {
        trainer.step()?;
    }
    let started = Instant::now();
    for _ in 0..steps {
        trainer.step()?;
    }
    Ok(started.elapsed().as_secs_f64() / steps as f64)
}

/// Seconds that the closed form takes for the features of an image and its copies.
fn time_images(model: &Model, params: &Params, data: &Dataset) -> Result<f64> {
    let engine = Fused::<f32>::default();
    let features = Features::new(model, &engine, params)?;
    let started = Instant::now();
    let mut read = 0;
    features.for_each(data.images(), 0, |indices, _, _| {
        read += indices.len();
        Ok(read < TIMED_IMAGES)
    })?;
    Ok(started.elapsed().as_secs_f64() / read as f64)
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
        if let Some(seconds) = self.seconds_per_image {
            let all = duration::text(seconds * self.images as f64);
            let (each, images) = (1e3 * seconds, self.images);
            writeln!(
                out,
                "time: {each:.2} ms per image, {all} to read {images} images; then they are solved"
            )?;
        }
        Ok(())
    }
}
