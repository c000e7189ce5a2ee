//! The commands and their help.

use crate::exit::{self, Exit};
use crate::{
    calibrate, data, demo, doctor, eval, explain, inspect, plan, predict, report, reproduce, shell, train,
};
use anyhow::Result;
use clap::{Parser, Subcommand};

/// Convolutional Gaussian processes: image models that know what they do not know.
#[derive(Debug, Parser)]
#[command(name = "convgp", version, about, after_help = exit::HELP)]
pub struct Cli {
    /// Threads to use (default: all).
    #[arg(long, global = true, value_name = "N")]
    threads: Option<usize>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train a model and write a run folder.
    Train(Box<train::Train>),
    /// Error, NLPP, calibration and risk of a model on data; strange images.
    Eval(eval::Eval),
    /// Class probabilities, entropy and latents of images.
    Predict(predict::Predict),
    /// What every patch of an image contributed to every class.
    Explain(explain::Explain),
    /// Set from which confidence on a model answers, to keep a risk.
    Calibrate(calibrate::Calibrate),
    /// Figures and one HTML page of one or more runs.
    Report(report::ReportRuns),
    /// Parameters, components and sizes of a model file.
    Inspect(inspect::Inspect),
    /// Memory and time of a training run, without starting it.
    Plan(Box<plan::Plan>),
    /// Data sets: look into one, fetch one, list them.
    Data(data::Data),
    /// Generate the paper's rectangles data, train on it, and compare with the published figures.
    Demo(demo::Demo),
    /// Run an experiment of the paper, or beyond it, beside the published figures.
    Reproduce(Box<reproduce::Reproduce>),
    /// Check machine and program.
    Doctor(doctor::Doctor),
    /// Shell completions, on standard output.
    Completions(shell::Completions),
    /// The manual page, on standard output.
    Man(shell::Man),
}

impl Cli {
    /// Runs the command.
    pub fn run(&self) -> Result<Exit> {
        if let Some(threads) = self.threads {
            rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
        }
        match &self.command {
            Command::Train(train) => train.run(),
            Command::Eval(eval) => eval.run(),
            Command::Predict(predict) => predict.run(),
            Command::Explain(explain) => explain.run(),
            Command::Calibrate(calibrate) => calibrate.run(),
            Command::Report(report) => report.run(),
            Command::Inspect(inspect) => inspect.run(),
            Command::Plan(plan) => plan.run(),
            Command::Data(data) => data.run(),
            Command::Demo(demo) => demo.run(),
            Command::Reproduce(reproduce) => reproduce.run(),
            Command::Doctor(doctor) => doctor.run(),
            Command::Completions(completions) => completions.run(),
            Command::Man(man) => man.run(),
        }
    }
}
