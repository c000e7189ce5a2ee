//! `convgp demo`: the paper's first experiment from nothing but this program.

use crate::exit::Exit;
use crate::progress::Progress;
use crate::report;
use anyhow::Result;
use clap::{Args, ValueEnum};
use convgp::cov::Fused;
use convgp::data::Dataset;
use convgp::inspect::describe;
use convgp::io::save_model;
use convgp::metrics::{Figures, Judged};
use convgp::preset::paper_spec;
use convgp::train::{Control, ExperimentSpec, Moment, Observer, Trainer, Trigger};
use convgp_data::generate::rectangles;
use convgp_report::{CurvePoint, Report, RunCurves};
use std::cell::Cell;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

const TRAINING_IMAGES: usize = 1200;
const TEST_IMAGES: usize = 10_000;
/// Of the test images, those behind the curves.
const CURVE_IMAGES: usize = 1000;
/// Points of a curve.
const CURVE_POINTS: u64 = 20;
/// Seeds of test images are this far from those of training images.
const TEST_SEED: u64 = 1 << 32;

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
    /// Folder of the report (default: rectangles-MODEL-report).
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Write no report, and measure no curves for it.
    #[arg(long, conflicts_with = "report")]
    no_report: bool,
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
            Which::Weighted => paper_spec("rectangles-weighted"),
            Which::Invariant => paper_spec("rectangles-invariant"),
        }
        .expect("the library holds the paper's specs")
    }
    /// Error in percent and NLPP of the paper, table 1.
    fn published(self) -> (f64, f64) {
        match self {
            Which::Weighted => (0.0, 0.005),
            Which::Invariant => (1.4, 0.055),
        }
    }
}

impl Demo {
    /// Runs it.
    pub fn run(&self) -> Result<Exit> {
        let started = Instant::now();
        let mut experiment = ExperimentSpec::from_toml(self.model.spec())?;
        experiment.train.seed = self.seed;
        experiment.train.steps = self.steps.unwrap_or(experiment.train.steps);
        let data = rectangles(TRAINING_IMAGES, self.seed);
        let test = rectangles(TEST_IMAGES, self.seed.wrapping_add(TEST_SEED));
        let (mut model, values) = experiment.initial_model(&data)?;
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

        let engine = Fused::<f32>::default();
        let mut trainer = Trainer::new(&mut model, &engine, &data, &experiment.train, values)?;
        let progress = Progress::new(experiment.train.steps, false);
        let bound = Cell::new(None);
        let show = Observer::new(Trigger::Steps(1), |m: &Moment<'_>| {
            let elbo = m.report.bound.elbo;
            bound.set(elbo.is_finite().then_some(elbo).or(bound.get()));
            let (step, total) = (m.report.step, m.report.total_steps);
            progress.show(
                step,
                total,
                format!("log density {:.4}", m.report.bound.expectation / data.len() as f64),
            );
            Ok(())
        });
        let (mut points, some) = (Vec::new(), test.select(&(0..CURVE_IMAGES).collect::<Vec<_>>())?);
        let every = experiment.train.steps.div_ceil(CURVE_POINTS).max(1);
        let measure = Observer::new(Trigger::Steps(every), |m: &Moment<'_>| {
            points.push(curve_point(m, bound.get(), &some)?);
            Ok(())
        });
        let mut observers = vec![show];
        observers.extend((!self.no_report).then_some(measure));
        trainer.run(|_| Control::Continue, &mut observers)?;
        drop(observers);
        drop(progress);
        let (counts, values) = (trainer.counts(), trainer.into_values());
        let seconds = started.elapsed().as_secs_f64();
        let bound = bound.get().unwrap_or(f64::NAN);
        writeln!(out, "trained: {} steps in {seconds:.1} s, last bound {bound:.2}", experiment.train.steps)?;
        if counts.roll_backs + counts.jitter_raises > 0 {
            writeln!(
                out,
                "trouble: {} roll-backs, jitter raised {} times",
                counts.roll_backs, counts.jitter_raises
            )?;
        }

        let training = Figures::of(&model, &values, &data)?;
        let judged = Judged::new("fresh rectangles", &model, &values, test)?;
        let fresh = judged.figures;
        let published = self.model.published();
        writeln!(out, "\n                      error      NLPP")?;
        writeln!(out, "training images   {:>8}     {:.4}", training.error_text(), training.nlpp)?;
        writeln!(out, "fresh images      {:>8}     {:.4}", fresh.error_text(), fresh.nlpp)?;
        writeln!(out, "paper             {:6.1} %     {:.3}", published.0, published.1)?;

        let default = || PathBuf::from(format!("rectangles-{}.safetensors", self.model.name()));
        let path = self.out.clone().unwrap_or_else(default);
        save_model(&path, &model, &values, data.class_names())?;
        writeln!(out, "\nsaved: {} ({:.1} s in all)", path.display(), started.elapsed().as_secs_f64())?;
        if !self.no_report {
            let default = || PathBuf::from(format!("rectangles-{}-report", self.model.name()));
            let dir = self.report.clone().unwrap_or_else(default);
            let curves = RunCurves { name: self.model.name().into(), points };
            let report = Report::new(&format!("Rectangles, {} convolution", self.model.name()))
                .fact("model", &describe(&model))
                .fact(
                    "data",
                    &format!("{TRAINING_IMAGES} training images, generated with seed {}", self.seed),
                )
                .fact("training", &format!("{} steps in {seconds:.1} s", experiment.train.steps))
                .fact("paper", &format!("error {:.1} %, NLPP {:.3}", published.0, published.1))
                .run(curves);
            report.trained(&model, &values, data.class_names(), Some(&judged))?.write(&dir)?;
            writeln!(out, "report: {}", report::page(&dir).display())?;
        }
        Ok(Exit::Done)
    }
}

/// How good the model is on some images at a moment of its training, beside the latest bound.
fn curve_point(m: &Moment<'_>, bound: Option<f64>, images: &Dataset) -> convgp::Result<CurvePoint> {
    let Figures { error, rmse, nlpp, .. } = Figures::of(m.model, m.values, images)?;
    let (step, seconds) = (m.report.step, m.elapsed.as_secs_f64());
    Ok(CurvePoint { step, seconds, bound, error, rmse, nlpp: Some(nlpp) })
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
            Demo { model: Which::Invariant, seed: 3, steps: Some(2), out, report, no_report }.run().unwrap();
            std::fs::read(&model).unwrap()
        };
        assert_eq!(demo(None), demo(Some(report.clone())), "measuring for the report changes nothing");
        let saved = convgp::io::load_model(&model).unwrap();
        assert_eq!(saved.class_names, ["wide", "tall"]);
        let page = std::fs::read_to_string(report::page(&report)).unwrap();
        assert!(page.contains("data-figure=\"error-steps\"") && page.contains("fresh rectangles"));
    }
}
