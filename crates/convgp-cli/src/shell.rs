//! Completions and manual page, made from the commands themselves.

use crate::cli::Cli;
use crate::exit::Exit;
use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;

/// Shell completions.
#[derive(Debug, Args)]
pub struct Completions {
    /// Which shell.
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    /// Writes the script.
    pub fn run(&self) -> Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "convgp", &mut script);
        std::io::stdout().lock().write_all(&script)?;
        Ok(Exit::Done)
    }
}

/// The manual page.
#[derive(Debug, Args)]
pub struct Man {
    /// Of one command instead of all.
    command: Option<String>,
}

impl Man {
    /// Writes the page in roff.
    pub fn run(&self) -> Result<Exit> {
        let mut cli = Cli::command();
        cli.build();
        let page = match &self.command {
            None => cli,
            Some(name) => cli
                .find_subcommand(name)
                .cloned()
                .ok_or_else(|| crate::exit::usage(format!("there is no command `{name}`")))?,
        };
        let mut roff = Vec::new();
        clap_mangen::Man::new(page).render(&mut roff)?;
        std::io::stdout().lock().write_all(&roff)?;
        Ok(Exit::Done)
    }
}
