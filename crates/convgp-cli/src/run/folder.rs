//! The folder of a run: numbered, never overwritten.

use super::record::Record;
use crate::support::exit::input;
use anyhow::{Context, Result};
use convgp::io::write_atomically;
use convgp::train::{ExperimentSpec, Row};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The statistics of a closed-form model, beside it.
pub const STATISTICS: &str = "statistics.safetensors";

/// A run's folder.
#[derive(Debug, Clone)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// Makes the next folder `runs/0001-name`. Two programs that start at once get two folders.
    pub fn create(runs: &Path, name: &str) -> Result<Self> {
        fs::create_dir_all(runs).with_context(|| format!("making {}", runs.display()))?;
        let mut number = 1 + last_number(runs)?;
        loop {
            let path = runs.join(format!("{number:04}-{}", plain(name)));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path }),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(e) => return Err(e).with_context(|| format!("making {}", path.display())),
            }
        }
    }

    /// An existing run.
    pub fn open(path: &Path) -> Result<Self> {
        let run = Self { path: path.into() };
        if !run.record_path().is_file() {
            let path = path.display();
            return Err(input(format!("{path}: not a run folder (it has no run.json)")));
        }
        Ok(run)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// The last model.
    pub fn model(&self) -> PathBuf {
        self.path.join("model.safetensors")
    }
    /// The model with the best held-out figure.
    pub fn best(&self) -> PathBuf {
        self.path.join("best.safetensors")
    }
    /// Everything a resumed run needs.
    pub fn checkpoint(&self) -> PathBuf {
        self.path.join("checkpoint.safetensors")
    }
    /// What a closed-form model was solved from.
    pub fn statistics(&self) -> PathBuf {
        self.path.join(STATISTICS)
    }
    /// Events, line by line.
    pub fn events(&self) -> PathBuf {
        self.path.join("events.jsonl")
    }
    /// One row per evaluation.
    pub fn results(&self) -> PathBuf {
        self.path.join("results.csv")
    }
    /// The report's folder.
    pub fn report(&self) -> PathBuf {
        self.path.join("report")
    }
    /// The folder's own name.
    pub fn name(&self) -> String {
        let full = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        full.file_name().map_or_else(|| self.path.display().to_string(), |n| n.to_string_lossy().into_owned())
    }
    /// The model card.
    pub fn card(&self) -> PathBuf {
        self.path.join("MODEL_CARD.md")
    }
    fn spec_path(&self) -> PathBuf {
        self.path.join("spec.toml")
    }
    fn record_path(&self) -> PathBuf {
        self.path.join("run.json")
    }

    /// Writes `run.json`.
    pub fn write_record(&self, record: &Record) -> Result<()> {
        Ok(write_atomically(&self.record_path(), (serde_json::to_string_pretty(record)? + "\n").as_bytes())?)
    }

    /// Reads `run.json`.
    pub fn record(&self) -> Result<Record> {
        let path = self.record_path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text).map_err(|e| input(format!("{}: {e}", path.display())))
    }

    /// Writes `spec.toml`.
    pub fn write_spec(&self, spec: &ExperimentSpec) -> Result<()> {
        Ok(write_atomically(&self.spec_path(), toml::to_string(spec)?.as_bytes())?)
    }

    /// Reads `spec.toml`.
    pub fn spec(&self) -> Result<ExperimentSpec> {
        let path = self.spec_path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        ExperimentSpec::from_toml(&text).with_context(|| path.display().to_string())
    }

    /// Appends a row to `results.csv`, with a header if it is the first.
    pub fn append_row(&self, row: &Row) -> Result<()> {
        let path = self.results();
        let file = fs::OpenOptions::new().create(true).append(true).open(&path);
        let file = file.with_context(|| path.display().to_string())?;
        let header = file.metadata()?.len() == 0;
        let mut writer = csv::WriterBuilder::new().has_headers(header).from_writer(file);
        writer.serialize(row)?;
        Ok(writer.flush()?)
    }

    /// Drops rows after `step`, which a run that goes on from there will write again.
    pub fn cut_results(&self, step: u64) -> Result<()> {
        let path = self.results();
        let Ok(text) = fs::read_to_string(&path) else { return Ok(()) };
        let is_before = |line: &&str| {
            let first = line.split(',').next().unwrap_or_default();
            first.parse::<u64>().map_or(true, |s| s <= step)
        };
        let kept: String = text.lines().filter(is_before).map(|l| format!("{l}\n")).collect();
        Ok(write_atomically(&path, kept.as_bytes())?)
    }
}

/// The number of an entry `0012-name`.
fn number_of(name: &str) -> Option<u32> {
    name.split_once('-')?.0.parse().ok()
}

fn last_number(runs: &Path) -> Result<u32> {
    let entries = fs::read_dir(runs).with_context(|| runs.display().to_string())?;
    let numbers = entries.flatten().filter_map(|e| number_of(&e.file_name().to_string_lossy()));
    Ok(numbers.max().unwrap_or(0))
}

/// Letters and digits of any alphabet, dots and single dashes only.
fn plain(name: &str) -> String {
    let keep = |c: char| if c.is_alphanumeric() || c == '.' { c } else { '-' };
    let kept = name.to_lowercase().chars().map(keep).collect::<String>();
    let words: Vec<&str> = kept.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-").trim_matches(['-', '.']).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(step: u64) -> Row {
        Row {
            step,
            seconds: 0.5,
            bound: Some(-1.25),
            train_log_density: None,
            kl: None,
            train_error: None,
            held_out_error: None,
            held_out_nlpp: None,
            rate: 0.1,
            gamma: 0.0,
            roll_backs: 0,
            jitter_raises: 0,
        }
    }

    #[test]
    fn folders_are_numbered_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let name = |run: RunFolder| run.path().file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(
            name(RunFolder::create(dir.path(), "My Digits/weighted").unwrap()),
            "0001-my-digits-weighted"
        );
        assert_eq!(plain("Bugs é -- Über_2.1/"), "bugs-é-über-2.1");
        fs::create_dir(dir.path().join("0007-other")).unwrap();
        assert_eq!(name(RunFolder::create(dir.path(), "x").unwrap()), "0008-x");
        assert_eq!(name(RunFolder::create(dir.path(), "x").unwrap()), "0009-x");
        assert!(RunFolder::open(&dir.path().join("0007-other")).is_err());
    }

    #[test]
    fn rows_that_will_come_again_are_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunFolder::create(dir.path(), "x").unwrap();
        run.cut_results(3).unwrap();
        (1..5).for_each(|step| run.append_row(&row(10 * step)).unwrap());
        run.cut_results(20).unwrap();
        let text = fs::read_to_string(run.results()).unwrap();
        assert!(text.starts_with("step,seconds,bound,"), "{text}");
        assert_eq!(text.lines().count(), 3);
        run.append_row(&row(30)).unwrap();
        assert!(fs::read_to_string(run.results()).unwrap().ends_with("30,0.5,-1.25,,,,,,0.1,0.0,0,0\n"));
    }
}
