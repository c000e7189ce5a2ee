//! What a finished reproduction leaves behind: a record and its curve, two files to be committed.

use crate::curve::{Trend, to_csv};
use crate::machine::{Machine, today};
use crate::{Error, Recipe, Result};
use convgp::FittedModel;
use convgp::cov::Fused;
use convgp::inspect::{Explainer, Share};
use convgp::io::write_atomically;
use convgp::metrics::{Binning, DatasetEvaluation, Reliability};
use convgp::optim::Lbfgs;
use convgp::train::ExperimentSpec;
use convgp_report::CurvePoint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Bins of equal width behind the calibration error.
const BINS: usize = 15;
/// Images that components' shares are computed on.
const SHARE_IMAGES: usize = 500;
/// What held-out training images are called.
const VALIDATION: &str = "validation";

// RECORDS: the files in `results/`, by name.
include!(concat!(env!("OUT_DIR"), "/records.rs"));

/// A finished run of an experiment.
#[derive(Debug)]
pub struct Made<'a> {
    /// Name of the experiment.
    pub experiment: &'a str,
    /// Whose settings.
    pub recipe: Recipe,
    /// L-BFGS on all images instead of minibatches.
    pub full_batch: Option<Lbfgs>,
    /// Model and training as specified.
    pub spec: &'a ExperimentSpec,
    /// The model.
    pub fitted: &'a FittedModel,
    /// Images trained on.
    pub training_images: usize,
    /// Steps taken.
    pub steps: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Its answers; first on the images the published figures are of.
    pub evaluations: &'a [DatasetEvaluation],
    /// How it came there.
    pub curve: &'a [CurvePoint],
}

/// A record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Name of the experiment.
    pub experiment: String,
    /// Whose settings.
    pub recipe: Recipe,
    /// Seed of initial parameters and minibatches.
    pub seed: u64,
    /// Images trained on.
    pub training_images: usize,
    /// Steps taken.
    pub steps: u64,
    /// Seconds of training, without evaluations.
    pub seconds: f64,
    /// What it ran on.
    pub machine: Machine,
    /// Version of this program.
    pub convgp: String,
    /// Day of the end, UTC.
    pub date: String,
    /// How good it is; first on the images the published figures are of.
    pub results: Vec<Outcome>,
    /// Whether it was still getting better at the end.
    pub trend: Option<Trend>,
    /// What each response of each component contributes.
    pub shares: Vec<ShareOf>,
    /// Learned parameters that are single numbers.
    pub parameters: BTreeMap<String, f64>,
    /// File with the curve, beside this one.
    pub curve: String,
    /// L-BFGS on all images instead of minibatches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_batch: Option<Lbfgs>,
    /// Model and training.
    pub spec: ExperimentSpec,
}

/// Figures on one set of images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Which images.
    pub on: String,
    /// How many.
    pub images: usize,
    /// Fraction of wrong classes.
    pub error: f64,
    /// Mean of `-log p(y | x)`.
    pub nlpp: f64,
    /// Expected calibration error, 15 bins of equal width.
    pub ece: f64,
}

/// A response's part; see [`Share`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShareOf {
    /// Name of the component.
    pub component: String,
    /// Index of the response within it.
    pub response: usize,
    /// Fraction of the prior variance.
    pub prior: f64,
    /// Fraction of the explained variance.
    pub explained: f64,
}

impl Record {
    /// Of a run that ended just now, on this machine.
    pub fn of(made: &Made<'_>) -> Result<Self> {
        let record = Self {
            experiment: made.experiment.into(),
            recipe: made.recipe,
            seed: made.spec.train.seed,
            training_images: made.training_images,
            steps: made.steps,
            seconds: made.seconds,
            machine: Machine::this(),
            convgp: env!("CARGO_PKG_VERSION").into(),
            date: today(),
            results: made.evaluations.iter().map(Outcome::of).collect::<Result<_>>()?,
            trend: Trend::of(made.curve),
            shares: shares(made)?,
            parameters: single_parameters(made),
            curve: String::new(),
            full_batch: made.full_batch,
            spec: made.spec.clone(),
        };
        Ok(Self { curve: format!("{}.csv", record.stem()), ..record })
    }

    /// Writes it and its curve into a folder; returns its path.
    pub fn write(&self, folder: &Path, curve: &[CurvePoint]) -> Result<PathBuf> {
        std::fs::create_dir_all(folder).map_err(|source| Error::Access { path: folder.into(), source })?;
        let path = folder.join(format!("{}.json", self.stem()));
        let text = serde_json::to_string_pretty(self).expect("a record is plain data") + "\n";
        for (path, bytes) in [(folder.join(&self.curve), to_csv(curve)?), (path.clone(), text.into_bytes())] {
            write_atomically(&path, &bytes)?;
        }
        Ok(path)
    }

    /// Whether it is about held-out training images, which settings may be chosen by.
    pub fn is_validation(&self) -> bool {
        self.results.iter().any(|r| r.on == VALIDATION)
    }

    /// Name of its files without their endings.
    fn stem(&self) -> String {
        let suffix = if self.is_validation() { "-validation" } else { "" };
        format!("{}-{}-s{}{suffix}", self.experiment, self.recipe.name(), self.seed)
    }
}

impl Outcome {
    fn of(evaluation: &DatasetEvaluation) -> Result<Self> {
        let classified = evaluation.classified()?.ok_or(Error::NoClasses)?;
        let (confidences, correct) = (classified.confidences(), classified.correct());
        let reliability = Reliability::new(&confidences, &correct, Binning::EqualWidth(BINS));
        Ok(Self {
            on: evaluation.name.clone(),
            images: evaluation.metrics.images,
            error: classified.error(),
            nlpp: evaluation.metrics.nlpp,
            ece: reliability.map_err(convgp::Error::from)?.error(),
        })
    }
}

fn shares(made: &Made<'_>) -> Result<Vec<ShareOf>> {
    let Some(first) = made.evaluations.first() else { return Ok(Vec::new()) };
    let images = first.data.images();
    let some: Vec<usize> = (0..images.count().min(SHARE_IMAGES)).collect();
    let engine = Fused::<f32>::default();
    let predictor = made.fitted.predictor(&engine)?;
    let shares = Explainer::new(&predictor)?.shares(&images.select(&some).map_err(convgp::Error::from)?)?;
    let own = |s: Share| ShareOf {
        component: s.component,
        response: s.response,
        prior: s.prior,
        explained: s.explained,
    };
    Ok(shares.into_iter().map(own).collect())
}

fn single_parameters(made: &Made<'_>) -> BTreeMap<String, f64> {
    let single = |e: &convgp::params::Entry| match e.slot.of(&made.fitted.params) {
        [value] => Some((e.name.clone(), *value)),
        _ => None,
    };
    made.fitted.model.layout().entries().iter().filter_map(single).collect()
}

/// The records that came with the program.
pub fn committed() -> Vec<Record> {
    RECORDS.iter().map(|text| serde_json::from_str(text).expect("a test reads every record")).collect()
}

/// The records in a folder.
pub fn read_all(dir: &Path) -> Result<Vec<Record>> {
    let access = |path: &Path| {
        let path = path.to_path_buf();
        |source| Error::Access { path, source }
    };
    let entries = std::fs::read_dir(dir).map_err(access(dir))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "json"));
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).map_err(access(path))?;
        serde_json::from_str(&text).map_err(|source| Error::NotARecord { path: path.clone(), source })
    };
    paths.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_records_are_of_test_images_and_bring_their_curves() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/results"));
        let from_folder = read_all(folder).unwrap();
        assert_eq!(committed(), from_folder, "all files are built in");
        for record in from_folder {
            assert!(!record.is_validation() && folder.join(&record.curve).is_file(), "{}", record.stem());
        }
    }
}
