//! Options of all commands that read a model.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// A saved model.
#[derive(Debug, Clone, Args)]
pub struct ModelArg {
    /// A model file or a run folder.
    #[arg(value_name = "MODEL")]
    pub path: PathBuf,
    /// Use the model of a run folder that was best on validation images instead of the last one.
    #[arg(long)]
    pub best: bool,
}

/// A split of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SplitName {
    /// Training images.
    Train,
    /// Validation images.
    Validation,
    /// Test images.
    Test,
}
