//! The convgp command line. Results go to standard output, progress and errors to standard error.

mod args;
mod commands;
mod run;
mod support;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;
use support::exit::{self, Exit};

fn main() -> ExitCode {
    match commands::Cli::parse().run() {
        Ok(exit) => exit.into(),
        Err(error) if exit::is_broken_pipe(&error) => Exit::Done.into(),
        Err(error) => {
            // Whoever closed standard error does not want to hear of it.
            _ = writeln!(std::io::stderr(), "error: {}", exit::message(&error));
            Exit::of(&error).into()
        }
    }
}
