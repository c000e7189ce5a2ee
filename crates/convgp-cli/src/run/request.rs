//! A new run: data are read, a model is chosen, the folder is made.

use super::execute::TrainingRun;
use crate::args::data::{DataArgs, Geometry};
use crate::args::run::RunArgs;
use crate::run::folder::RunFolder;
use crate::run::memory;
use crate::run::record::{Record, TestCurve};
use crate::support::images::{self, Parts, fingerprint};
use crate::support::progress::Progress;
use anyhow::Result;
use convgp::Model;
use convgp::data::Dataset;
use convgp::inspect::describe;
use convgp::optim::Lbfgs;
use convgp::prepare::Scaling;
use convgp::preset::ResolvedConfig;
use convgp::train::Budget;
use convgp_data::Loaded;
use serde_json::{Map, Value};
use std::path::Path;
use std::time::Duration;

/// What a run is to be made of.
#[derive(Debug)]
pub struct RunRequest {
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
    /// Whether test images are evaluated while it trains.
    pub test_curve: Option<TestCurve>,
    /// L-BFGS on all images at once instead of minibatches.
    pub full_batch: Option<Lbfgs>,
    /// What the command wants to know at the end, whichever command goes on with it.
    pub extra: Map<String, Value>,
}

impl RunRequest {
    /// A run about to begin: `choose` gives the spec for the training images, `name` the folder's name for a model.
    pub fn start(
        self,
        choose: impl FnOnce(&Dataset) -> Result<ResolvedConfig>,
        name: impl FnOnce(&str) -> String,
        args: &RunArgs,
        progress: &Progress,
    ) -> Result<TrainingRun> {
        let loaded = load(&self.source, &self.data, &self.geometry, progress)?;
        let provenance = loaded.provenance.clone();
        let parts = Parts::new(loaded, self.validation, &self.source)?;
        let scaling = Scaling::learn(parts.train.images());
        let parts = parts.on_scale(scaling)?;
        self.test_curve.map_or(Ok(()), |curve| curve.check(&parts, &self.source))?;
        let mut chosen = choose(&parts.train)?;
        memory::check(&chosen.experiment, &parts, args.memory)?;
        let (model, params) = chosen.build(&parts.train)?;
        let reasons: Vec<String> = chosen.decisions.iter().map(ToString::to_string).collect();
        progress.note(&format!("data: {scaling}"));
        tell_plan(progress, &parts, &model, &reasons);
        progress.note(&format!("memory: {}", memory::plan(&chosen.experiment, &parts)?.text()));
        let budget = match self.time {
            Some(time) => Budget::Seconds(time.as_secs_f64()),
            None => Budget::Steps(chosen.experiment.train.steps),
        };
        let run = RunFolder::create(&args.runs_dir, &name(&chosen.name))?;
        progress.note(&format!("run: {}", run.path().display()));
        let record = Record {
            version: env!("CARGO_PKG_VERSION").into(),
            system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            command: std::env::args().collect(),
            threads: rayon::current_num_threads(),
            model: chosen.name,
            reasons,
            source: absolute(&self.source),
            data: self.data,
            geometry: self.geometry,
            scaling: Some(scaling),
            validation: self.validation,
            budget,
            evaluate_every: args.evaluate_every,
            test_curve: self.test_curve,
            full_batch: self.full_batch,
            images: [
                parts.train.len(),
                parts.validation.as_ref().map_or(0, Dataset::len),
                parts.test.as_ref().map_or(0, Dataset::len),
            ],
            fingerprint: fingerprint(&parts.train),
            provenance,
            extra: self.extra,
        };
        run.write_spec(&chosen.experiment)?;
        run.write_record(&record)?;
        Ok(TrainingRun { run, record, parts, experiment: chosen.experiment, saved: None, model, params })
    }
}

/// Reads images; what a user should know of is told.
pub fn load(source: &str, data: &DataArgs, geometry: &Geometry, progress: &Progress) -> Result<Loaded> {
    let loaded = images::load(source, data, geometry)?;
    loaded.notes.iter().for_each(|note| progress.note(&format!("data: {note}")));
    if let Some(first) = loaded.skipped.first() {
        let count = loaded.skipped.len();
        let files = if count == 1 { "file" } else { "files" };
        progress.note(&format!("data: {count} {files} skipped, the first: {}: {}", first.path, first.reason));
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
