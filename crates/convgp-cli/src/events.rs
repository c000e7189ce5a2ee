//! What happens in a run, one JSON object per line: `events.jsonl`, and standard output with `--json`.

use crate::figures::Figures;
use anyhow::{Context, Result};
use convgp::train::StepReport;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// One line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event<'a> {
    /// A sitting begins; memory is the bytes it is expected to take.
    Start {
        run: &'a Path,
        step: u64,
        parameters: usize,
        train_images: usize,
        threads: usize,
        memory: u64,
        reasons: &'a [String],
    },
    /// A run limited by time knows its speed.
    Plan { step: u64, seconds: f64, seconds_per_step: f64, total_steps: u64 },
    /// A row of results.csv.
    Evaluation(&'a Row),
    /// Numerical trouble that was mended.
    Trouble { step: u64, seconds: f64, what: String },
    /// The run was saved.
    Checkpoint { step: u64, seconds: f64 },
    /// Final figures on a split.
    Result {
        split: &'a str,
        #[serde(flatten)]
        figures: Figures,
    },
    /// The report was written.
    Report { page: &'a Path },
    /// A sitting ends; peak memory is what the process held at most.
    End { step: u64, seconds: f64, ending: &'a str, model: &'a Path, peak_memory: Option<u64> },
}

/// One evaluation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    /// Steps taken.
    pub step: u64,
    /// Time in training.
    pub seconds: f64,
    /// The last bound that was computed, on a minibatch.
    pub bound: Option<f64>,
    /// Expected log density per training image, on a minibatch.
    pub train_log_density: Option<f64>,
    /// Divergence of the posterior, when it was computed.
    pub kl: Option<f64>,
    /// Running error on minibatches.
    pub train_error: Option<f64>,
    /// Error on held-out images, or their root mean square error.
    pub held_out_error: Option<f64>,
    /// Negative log predictive probability on held-out images.
    pub held_out_nlpp: Option<f64>,
    /// Adam's step size.
    pub rate: f64,
    /// Natural step size.
    pub gamma: f64,
    /// Steps rolled back so far.
    pub roll_backs: u64,
    /// Steps with raised jitter so far.
    pub jitter_raises: u64,
}

/// The lines' destinations.
#[derive(Debug)]
pub struct Events {
    file: File,
    echo: bool,
}

impl Events {
    /// Appends to a file; `echo` repeats every line on standard output.
    pub fn open(path: &Path, echo: bool) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        Ok(Self { file: file.with_context(|| path.display().to_string())?, echo })
    }

    /// Writes a line, at once.
    pub fn emit(&mut self, event: &Event<'_>) -> Result<()> {
        let line = serde_json::to_string(event)? + "\n";
        self.file.write_all(line.as_bytes()).context("events.jsonl")?;
        if self.echo {
            let mut out = std::io::stdout().lock();
            out.write_all(line.as_bytes())?;
            out.flush()?;
        }
        Ok(())
    }
}

/// What to say about a step that did not go smoothly.
pub fn trouble(report: &StepReport) -> Option<String> {
    use convgp::train::Event as Trouble;
    Some(match report.event.as_ref()? {
        Trouble::JitterRaised { jitter, .. } => format!("jitter raised to {jitter:.0e}"),
        Trouble::RolledBack { cause, to_step, scale } => {
            format!("back to step {to_step}, step sizes times {scale}: {cause}")
        }
        other => format!("{other:?}"),
    })
}
