//! The commands. A new one is a file here and a line in the table below.

pub mod calibrate;
mod completions;
mod data;
mod demo;
mod doctor;
mod eval;
mod explain;
mod inspect;
mod man;
mod plan;
pub mod predict;
pub mod report;
pub mod reproduce;
mod train;
mod update;

use crate::run::execute::Done;
use crate::support::exit::{self, Exit};
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

impl Cli {
    /// Runs the command.
    pub fn run(&self) -> Result<Exit> {
        if let Some(threads) = self.threads {
            rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
        }
        self.command.run()
    }
}

/// Ends a run, whichever command it was: what the command that began the run left to do is done once it is finished.
fn conclude(done: Done, quiet: bool) -> Result<Exit> {
    reproduce::conclude(&done, quiet)?;
    Ok(done.exit())
}

/// One subcommand for each module: its options are the module's struct of that name, and so is its help.
macro_rules! commands {
    ($($module:ident: $Options:ident),* $(,)?) => {
        #[derive(Debug, Subcommand)]
        enum Command {
            $($Options(Box<$module::$Options>),)*
        }

        impl Command {
            fn run(&self) -> Result<Exit> {
                match self {
                    $(Command::$Options(options) => $module::run(options),)*
                }
            }
        }
    };
}

// In the order of `convgp --help`.
commands! {
    train: Train,
    eval: Eval,
    predict: Predict,
    update: Update,
    explain: Explain,
    calibrate: Calibrate,
    report: Report,
    inspect: Inspect,
    plan: Plan,
    data: Data,
    demo: Demo,
    reproduce: Reproduce,
    doctor: Doctor,
    completions: Completions,
    man: Man,
}
