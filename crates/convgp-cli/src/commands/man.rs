//! `convgp man`: made from the commands themselves.

use crate::commands::Cli;
use crate::support::exit::Exit;
use anyhow::Result;
use clap::{Args, CommandFactory};
use std::io::Write;

/// Print the manual page.
#[derive(Debug, Args)]
pub struct Man {
    /// Command to describe (default: the program as a whole).
    command: Option<String>,
}

/// Writes the page in roff.
pub fn run(args: &Man) -> Result<Exit> {
    let mut cli = Cli::command();
    cli.build();
    let page = match &args.command {
        None => cli,
        Some(name) => cli
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| crate::support::exit::usage(format!("there is no command `{name}`")))?,
    };
    let mut roff = Vec::new();
    clap_mangen::Man::new(page).render(&mut roff)?;
    std::io::stdout().lock().write_all(&roff)?;
    Ok(Exit::Done)
}
