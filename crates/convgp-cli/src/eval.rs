//! `convgp eval`: how good a model is.

use crate::exit::Exit;
use crate::figures::{Figures, write_table};
use crate::saved::{ModelArg, SplitName, data_for};
use crate::source::DataArgs;
use anyhow::Result;
use clap::Args;
use std::io::Write;

/// Error and negative log predictive probability of a model on data.
#[derive(Debug, Args)]
pub struct Eval {
    #[command(flatten)]
    model: ModelArg,
    /// A file, a folder, or a name such as mnist.
    source: String,
    /// Which part of the data (default: test, else validation, else train).
    #[arg(long, value_enum)]
    split: Option<SplitName>,
    #[command(flatten)]
    data: DataArgs,
    /// One JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

impl Eval {
    /// Evaluates.
    pub fn run(&self) -> Result<Exit> {
        let saved = self.model.load()?;
        let data = data_for(&saved, &self.source, &self.data, self.split)?;
        let figures = Figures::of(&saved.model, &saved.values, &data)?;
        let mut out = std::io::stdout().lock();
        match self.json {
            true => writeln!(out, "{}", serde_json::to_string(&figures)?)?,
            false => write_table(&mut out, &[(self.source.clone(), figures)])?,
        }
        Ok(Exit::Done)
    }
}
