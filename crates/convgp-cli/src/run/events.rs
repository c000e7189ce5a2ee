//! What happens in a run, one JSON object per line: `events.jsonl`, and standard output with `--json`.

use anyhow::{Context, Result};
use convgp::metrics::Metrics;
use convgp::train::Row;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// One line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event<'a> {
    /// A session begins; memory is the bytes it is expected to take.
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
    /// Final metrics on a split.
    Result {
        split: &'a str,
        #[serde(flatten)]
        metrics: Metrics,
    },
    /// The report was written.
    Report { page: &'a Path },
    /// A session ends; peak memory is what the process held at most.
    End { step: u64, seconds: f64, ending: &'a str, model: &'a Path, peak_memory: Option<u64> },
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
pub fn trouble(event: &convgp::train::Event) -> String {
    use convgp::train::Event as Trouble;
    match event {
        Trouble::JitterRaised { jitter, .. } => format!("jitter raised to {jitter:.0e}"),
        Trouble::RolledBack { cause, to_step, scale } => {
            format!("back to step {to_step}, step sizes times {scale}: {cause}")
        }
        other => format!("{other:?}"),
    }
}
