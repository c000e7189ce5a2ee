//! `convgp demo`: the paper's first experiment, with generated data.

use crate::commands::report;
use crate::support::exit::Exit;
use crate::support::progress::Progress;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use convgp::FittedModel;
use convgp::cov::Fused;
use convgp::inspect::describe;
use convgp::metrics::Metrics;
use convgp::prepare::Preparation;
use convgp::train::{
    self, Budget, Ended, Problem, Request, Row, RunOptions, RunningMetrics, Sink, Solver, Status, Stochastic,
    Trainer,
};
use convgp_data::generate::rectangles;
use convgp_paper::{Experiment, Recipe};
use convgp_report::{CurvePoint, Report, RunCurves};
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

const TRAINING_IMAGES: usize = 1200;
const TEST_IMAGES: usize = 10_000;
/// Of the test images, those behind the curves.
const CURVE_IMAGES: usize = 1000;
/// Seeds of test images are this far from those of training images.
const TEST_SEED: u64 = 1 << 32;

/// Generate the paper's rectangles data, train on it and compare with the published results.
#[derive(Debug, Args)]
pub struct Demo {
    /// Model of the paper to train.
    #[arg(long, value_enum, default_value_t = Which::Weighted)]
    model: Which,
    /// Seed of data, initial parameters and minibatches.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of training steps (default: the spec's).
    #[arg(long)]
    steps: Option<u64>,
    /// File for the model (default: rectangles-MODEL.safetensors).
    #[arg(long)]
    out: Option<PathBuf>,
    /// Folder of the report (default: rectangles-MODEL-report).
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Write no report and evaluate nothing for it.
    #[arg(long, conflicts_with = "report")]
    no_report: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Which {
    /// One weight per patch position.
    Weighted,
    /// The same weight for all positions.
    Invariant,
}

impl Which {
    fn name(self) -> &'static str {
        match self {
            Which::Weighted => "weighted",
            Which::Invariant => "invariant",
        }
    }
    /// The experiment on the original rectangles.
    fn experiment(self) -> convgp_paper::Result<Experiment> {
        Experiment::find(&format!("rectangles-{}", self.name()))
    }
}

/// Runs it.
pub fn run(args: &Demo) -> Result<Exit> {
    let started = Instant::now();
    let catalogued = args.model.experiment()?;
    let published = catalogued.published.as_ref().context("the paper has figures on rectangles")?;
    let mut experiment = catalogued.spec(Recipe::Fast)?;
    experiment.train.seed = args.seed;
    experiment.train.steps = args.steps.unwrap_or(experiment.train.steps);
    let data = rectangles(TRAINING_IMAGES, args.seed);
    let test = rectangles(TEST_IMAGES, args.seed.wrapping_add(TEST_SEED));
    let (model, params) = experiment.initial_model(&data)?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "rectangles: {TRAINING_IMAGES} training images, {TEST_IMAGES} fresh test images, seed {}\n\
         model: {} convolution, 3x3 patches, {} inducing patches, {} parameters",
        args.seed,
        args.model.name(),
        model.components()[0].inducing(),
        params.len(),
    )?;

    let engine = Fused::<f32>::default();
    let plan = &experiment.train;
    let mut solver = Stochastic::new(Trainer::new(&model, &engine, &data, plan, params)?);
    let some = test.select(&(0..CURVE_IMAGES).collect::<Vec<_>>())?;
    let held_out = (!args.no_report).then_some(&some);
    let problem = Problem { model: &model, data: &data, held_out };
    let options =
        RunOptions { fit_temperature: plan.fit_temperature, ..RunOptions::new(Budget::Steps(plan.steps)) };
    let mut watch = Watch { progress: Progress::new(plan.steps, false), points: Vec::new() };
    let Ended { step, temperature, .. } = train::run(&problem, &mut solver, &options, &mut watch)?;
    let (metrics, points) = (solver.metrics().clone(), watch.finish());
    let params = Box::new(solver).into_params();
    let seconds = started.elapsed().as_secs_f64();
    let bound = metrics.bound.map_or(String::new(), |b| format!(", last bound {b:.2}"));
    writeln!(out, "trained: {step} steps in {seconds:.1} s{bound}")?;
    let RunningMetrics { roll_backs, jitter_raises, .. } = metrics;
    if roll_backs + jitter_raises > 0 {
        writeln!(out, "trouble: {roll_backs} roll-backs, jitter raised {jitter_raises} times")?;
    }

    let fitted = FittedModel::new(model, params, data.class_names().to_vec(), Preparation::default())?;
    let fitted = FittedModel { temperature, ..fitted };
    let training = Metrics::of(&fitted.predictor(&engine)?, &data)?;
    let evaluation = fitted.evaluate("fresh rectangles", test)?;
    let fresh = evaluation.metrics;
    writeln!(out, "\n                      error      NLPP")?;
    writeln!(out, "training images   {:>8}     {:.4}", training.error_text(), training.nlpp)?;
    writeln!(out, "fresh images      {:>8}     {:.4}", fresh.error_text(), fresh.nlpp)?;
    writeln!(out, "paper             {:>8}     {}", published.error, published.nlpp)?;

    let default = || PathBuf::from(format!("rectangles-{}.safetensors", args.model.name()));
    let path = args.out.clone().unwrap_or_else(default);
    fitted.save(&path)?;
    writeln!(out, "\nsaved: {} ({:.1} s in all)", path.display(), started.elapsed().as_secs_f64())?;
    if !args.no_report {
        let default = || PathBuf::from(format!("rectangles-{}-report", args.model.name()));
        let dir = args.report.clone().unwrap_or_else(default);
        let curves = RunCurves { name: args.model.name().into(), points };
        let report = Report::new(&format!("Rectangles, {} convolution", args.model.name()))
            .fact("model", &describe(&fitted.model))
            .fact("data", &format!("{TRAINING_IMAGES} training images, generated with seed {}", args.seed))
            .fact("training", &format!("{step} steps in {seconds:.1} s"))
            .fact("paper", &format!("error {}, NLPP {}", published.error, published.nlpp))
            .run(curves);
        report.trained(&fitted, Some(&evaluation))?.write(&dir)?;
        writeln!(out, "report: {}", report::page(&dir).display())?;
    }
    Ok(Exit::Done)
}

/// Shows progress and keeps the curve.
struct Watch {
    progress: Progress,
    points: Vec<CurvePoint>,
}

impl Watch {
    /// The curve; progress is shown no longer.
    fn finish(self) -> Vec<CurvePoint> {
        self.points
    }
}

impl Sink for Watch {
    type Error = convgp::Error;

    fn tick(&mut self, status: &Status<'_>) -> convgp::Result<Request> {
        let density = status.metrics.log_density;
        let message = density.map_or(String::new(), |d| format!("log density {d:.4}"));
        self.progress.show(status.step, status.total_steps, message);
        Ok(Request::Continue)
    }

    fn evaluation(
        &mut self,
        _: &Status<'_>,
        row: &Row,
        held_out: Option<&Metrics>,
        _: bool,
    ) -> convgp::Result<Request> {
        let Row { step, seconds, bound, .. } = *row;
        let point = |m: &Metrics| CurvePoint {
            step,
            seconds,
            bound,
            error: m.error,
            rmse: m.rmse,
            nlpp: Some(m.nlpp),
        };
        self.points.extend(held_out.map(point));
        Ok(Request::Continue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_describe_the_models_of_the_paper() {
        for which in [Which::Weighted, Which::Invariant] {
            let spec = which.experiment().unwrap().spec(Recipe::Fast).unwrap();
            let data = rectangles(50, 0);
            let (model, _) = spec.initial_model(&data).unwrap();
            let conv = &model.components()[0];
            assert_eq!((conv.inducing(), conv.responses()[0].views().count()), (16, 26 * 26));
            let weighted = conv.responses()[0].weights_slot().is_some();
            assert_eq!(weighted, matches!(which, Which::Weighted));
        }
    }

    #[test]
    fn a_few_steps_run_and_leave_a_model_behind() {
        let dir = tempfile::tempdir().unwrap();
        let [model, report] = ["m.safetensors", "report"].map(|name| dir.path().join(name));
        let demo = |report: Option<PathBuf>| {
            let (out, no_report) = (Some(model.clone()), report.is_none());
            run(&Demo { model: Which::Invariant, seed: 3, steps: Some(2), out, report, no_report }).unwrap();
            std::fs::read(&model).unwrap()
        };
        assert_eq!(demo(None), demo(Some(report.clone())), "measuring for the report changes nothing");
        let saved = FittedModel::load(&model).unwrap();
        assert_eq!(saved.class_names, ["wide", "tall"]);
        let page = std::fs::read_to_string(report::page(&report)).unwrap();
        assert!(page.contains("data-figure=\"error-steps\"") && page.contains("fresh rectangles"));
    }
}
