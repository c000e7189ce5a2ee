//! `convgp completions`: made from the commands themselves.

use crate::commands::Cli;
use crate::support::exit::Exit;
use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;

/// Print shell completions.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Writes the script.
pub fn run(args: &Completions) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "convgp", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(Exit::Done)
}
