//! The convgp command line. Results go to standard output, progress and errors to standard error.

mod calibrate;
mod card;
mod cli;
mod clock;
mod data;
mod demo;
mod doctor;
mod duration;
mod eval;
mod events;
mod exit;
mod explain;
mod figures;
mod inputs;
mod inspect;
mod interrupt;
mod memory;
mod plan;
mod predict;
mod progress;
mod recipe;
mod report;
mod reproduce;
mod run;
mod saved;
mod session;
mod shell;
mod source;
mod table;
mod train;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::Cli::parse().run() {
        Ok(exit) => exit.into(),
        Err(error) if exit::is_broken_pipe(&error) => exit::Exit::Done.into(),
        Err(error) => {
            // Whoever closed standard error does not want to hear of it.
            _ = writeln!(std::io::stderr(), "error: {}", exit::message(&error));
            exit::Exit::of(&error).into()
        }
    }
}
