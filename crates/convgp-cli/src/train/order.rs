//! A new run: data are read, a model is chosen, the folder is made.

use super::sitting::{SittingArgs, Start};
use crate::memory::Estimate;
use crate::progress::Progress;
use crate::reproduce::Reproduction;
use crate::run::{Record, RunFolder};
use crate::source::{DataArgs, Geometry, Parts, fingerprint};
use anyhow::Result;
use convgp::Model;
use convgp::data::Dataset;
use convgp::inspect::describe;
use convgp::preset::Chosen;
use convgp::train::Budget;
use convgp_data::Loaded;
use std::path::Path;
use std::time::Duration;

/// What a run is to be made of.
#[derive(Debug)]
pub struct Order {
    /// Where the images are.
    pub source: String,
    /// What to take of them.
    pub data: DataArgs,
    /// How to bring them to one shape.
    pub geometry: Geometry,
    /// Fraction of the training images to hold out.
    pub validation: Option<f64>,
    /// How long to train, if not for the spec's number of steps.
    pub time: Option<Duration>,
    /// The experiment it reproduces, if it does.
    pub reproduces: Option<Reproduction>,
}

impl Order {
    /// A run about to begin: `choose` gives the spec for the training images, `name` the folder's name for a model.
    pub fn start(
        self,
        choose: impl FnOnce(&Dataset) -> Result<Chosen>,
        name: impl FnOnce(&str) -> String,
        sitting: &SittingArgs,
        progress: &Progress,
    ) -> Result<Start> {
        let loaded = load(&self.source, &self.data, &self.geometry, progress)?;
        let provenance = loaded.provenance.clone();
        let parts = Parts::new(loaded, self.validation, &self.source)?;
        self.reproduces.as_ref().map_or(Ok(()), |r| r.check(&parts))?;
        let mut chosen = choose(&parts.train)?;
        Estimate::new(&chosen.experiment, &parts)?.check(sitting.memory, &chosen.experiment, &parts)?;
        let (model, values) = chosen.build(&parts.train)?;
        tell_plan(progress, &parts, &model, &chosen.reasons);
        progress.note(&format!("memory: {}", Estimate::new(&chosen.experiment, &parts)?.text()));
        let budget = match self.time {
            Some(time) => Budget::Seconds(time.as_secs_f64()),
            None => Budget::Steps(chosen.experiment.train.steps),
        };
        let run = RunFolder::create(&sitting.runs_dir, &name(&chosen.name))?;
        progress.note(&format!("run: {}", run.path().display()));
        let record = Record {
            version: env!("CARGO_PKG_VERSION").into(),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            command: std::env::args().collect(),
            threads: rayon::current_num_threads(),
            model: chosen.name,
            reasons: chosen.reasons,
            source: absolute(&self.source),
            data: self.data,
            geometry: self.geometry,
            validation: self.validation,
            budget,
            evaluate_every: sitting.evaluate_every,
            reproduces: self.reproduces,
            images: [
                parts.train.len(),
                parts.validation.as_ref().map_or(0, Dataset::len),
                parts.test.as_ref().map_or(0, Dataset::len),
            ],
            fingerprint: fingerprint(&parts.train),
            provenance,
        };
        run.write_spec(&chosen.experiment)?;
        run.write_record(&record)?;
        Ok(Start { run, record, parts, experiment: chosen.experiment, saved: None, model, values })
    }
}

/// Reads images; what a user should know of is told.
pub fn load(source: &str, data: &DataArgs, geometry: &Geometry, progress: &Progress) -> Result<Loaded> {
    let loaded = data.load(source, geometry)?;
    loaded.notes.iter().for_each(|note| progress.note(&format!("data: {note}")));
    if let Some(first) = loaded.skipped.first() {
        let count = loaded.skipped.len();
        progress.note(&format!("data: {count} files skipped, the first: {}: {}", first.path, first.reason));
    }
    Ok(loaded)
}

/// What will be trained, and why.
fn tell_plan(progress: &Progress, parts: &Parts, model: &Model, reasons: &[String]) {
    let images = |name: &str, d: &Option<Dataset>| {
        d.as_ref().map_or(String::new(), |d| format!(", {} {name}", d.len()))
    };
    progress.note(&format!(
        "data: {} training images{}{} of {}",
        parts.train.len(),
        images("validation", &parts.validation),
        images("test", &parts.test),
        parts.train.images().shape(),
    ));
    reasons.iter().for_each(|reason| progress.note(&format!("chosen: {reason}")));
    progress.note(&format!("model: {}", describe(model)));
}

/// A word for a source: the name of the file or folder without its endings.
pub fn short_name(source: &str) -> String {
    let path = absolute(source);
    let name = Path::new(&path).file_name().map_or(source.into(), |n| n.to_string_lossy().into_owned());
    name.split('.').next().unwrap_or(&name).to_string()
}

/// A path that means the same from everywhere; names stay as they are.
pub fn absolute(source: &str) -> String {
    let full = std::fs::canonicalize(source);
    full.map_or_else(|_| source.to_string(), |p| p.to_string_lossy().into_owned())
}
