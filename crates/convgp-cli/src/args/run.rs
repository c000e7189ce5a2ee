//! Options of a training run that are not about its model or data.

use crate::run::memory::parse_size;
use crate::support::duration;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Evaluation, checkpoints, limits and output of a run.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Steps between evaluations (default: a twentieth of all steps).
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub evaluate_every: Option<u64>,
    /// Time between checkpoints.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "5m", help_heading = "Training")]
    pub checkpoint_every: Duration,
    /// Stop after this many steps and save a checkpoint; `train --resume` continues.
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub stop_after: Option<u64>,
    /// Keep statistics beside a closed-form model, so that `convgp update` can add and remove images.
    #[arg(long, help_heading = "Output")]
    pub keep_statistics: bool,
    /// Folder in which run folders are made.
    #[arg(long, value_name = "DIR", default_value = "runs", help_heading = "Output")]
    pub runs_dir: PathBuf,
    /// Memory limit, such as 4G (default: what is available).
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Output")]
    pub memory: Option<u64>,
    /// Write no report.
    #[arg(long, help_heading = "Output")]
    pub no_report: bool,
    /// Print events as JSON lines instead of the summary.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Show no progress.
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}
