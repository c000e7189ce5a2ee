//! What a finished reproduction leaves behind: a record and its curve, two files to be committed.

use super::curve::{Trend, to_csv};
use super::machine::{Machine, today};
use super::table;
use crate::exit::input;

use crate::run::RunFolder;
use crate::source::Parts;
use anyhow::{Context, Result};
use convgp::Model;
use convgp::cov::Fused;
use convgp::data::Dataset;
use convgp::inspect::{Explainer, Share};
use convgp::io::write_atomically;
use convgp::metrics::{Binning, Judged, Reliability};
use convgp::model::Predictor;
use convgp::optim::Lbfgs;
use convgp::preset::Recipe;
use convgp::train::ExperimentSpec;
use convgp_report::RunCurves;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Bins of equal width behind the calibration error.
const BINS: usize = 15;
/// Images that components' shares are computed on.
const SHARE_IMAGES: usize = 500;
/// What held-out training images are called.
const VALIDATION: &str = "validation";

// RECORDS: the files in `results/`, by name.
include!(concat!(env!("OUT_DIR"), "/records.rs"));

/// What a run reproduces; kept in its `run.json`, so that a resumed run writes its record too.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Reproduction {
    /// Name of the experiment.
    pub experiment: String,
    /// Whose settings.
    pub recipe: Recipe,
    /// Folder for the record.
    pub results: PathBuf,
    /// Test images at the front that the published figures are of.
    pub first: Option<usize>,
    /// L-BFGS on all images instead of minibatches.
    pub full_batch: Option<Lbfgs>,
}

/// A trained model and what it took.
pub struct Made<'a> {
    /// Model and training as specified.
    pub experiment: &'a ExperimentSpec,
    /// The model.
    pub model: &'a Model,
    /// Its parameters.
    pub values: &'a [f64],
    /// Steps taken.
    pub step: u64,
    /// Seconds of training.
    pub seconds: f64,
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

impl Reproduction {
    /// Refuses data that a run could not be judged by.
    pub fn check(&self, parts: &Parts) -> Result<()> {
        match (&parts.test, &parts.validation) {
            (None, None) => Err(input(format!(
                "{}: there are no test images to judge by; add them to the data, or use --validation",
                self.experiment
            ))),
            _ => Ok(()),
        }
    }

    /// The test images a run is judged on, first those of the published figures; none with a validation split.
    pub fn test_sets(&self, parts: &Parts) -> Result<Vec<(String, Dataset)>> {
        let (Some(test), None) = (&parts.test, &parts.validation) else { return Ok(Vec::new()) };
        let mut sets = Vec::new();
        if let Some(first) = self.first.filter(|first| *first < test.len()) {
            let front = test.select(&(0..first).collect::<Vec<_>>()).map_err(convgp::Error::from)?;
            sets.push((format!("test, first {first}"), front));
        }
        sets.push(("test".into(), test.clone()));
        Ok(sets)
    }

    /// Writes record and curve of a finished run, and prints its row.
    pub fn conclude(
        &self,
        run: &RunFolder,
        train: &Dataset,
        judged: &[Judged],
        made: &Made<'_>,
        quiet: bool,
    ) -> Result<()> {
        let points = RunCurves::read(&run.results(), &self.experiment)?.points;
        let record = Record {
            experiment: self.experiment.clone(),
            recipe: self.recipe,
            seed: made.experiment.train.seed,
            training_images: train.len(),
            steps: made.step,
            seconds: made.seconds,
            machine: Machine::this(),
            convgp: env!("CARGO_PKG_VERSION").into(),
            date: today(),
            results: judged.iter().map(Outcome::of).collect::<Result<_>>()?,
            trend: Trend::of(&points),
            shares: shares(made, judged)?,
            parameters: single_parameters(made),
            curve: String::new(),
            full_batch: self.full_batch,
            spec: made.experiment.clone(),
        };
        let record = Record { curve: format!("{}.csv", record.stem()), ..record };
        std::fs::create_dir_all(&self.results).with_context(|| self.results.display().to_string())?;
        write_atomically(&self.results.join(&record.curve), &to_csv(&points)?)?;
        let path = self.results.join(format!("{}.json", record.stem()));
        write_atomically(&path, (serde_json::to_string_pretty(&record)? + "\n").as_bytes())?;
        if !quiet {
            let mut out = std::io::stdout().lock();
            writeln!(out, "record: {}\n", path.display())?;
            table::write(&mut out, &table::of_run(&record)?, false)?;
        }
        Ok(())
    }
}

impl Record {
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
    fn of(judged: &Judged) -> Result<Self> {
        let classified = judged.classified()?.context("experiments are about classes")?;
        let (confidences, correct) = (classified.confidences(), classified.correct());
        let reliability = Reliability::new(&confidences, &correct, Binning::EqualWidth(BINS));
        Ok(Self {
            on: judged.name.clone(),
            images: judged.figures.images,
            error: classified.error(),
            nlpp: judged.figures.nlpp,
            ece: reliability.map_err(convgp::Error::from)?.error(),
        })
    }
}

fn shares(made: &Made<'_>, judged: &[Judged]) -> Result<Vec<ShareOf>> {
    let images = judged.first().context("something is always judged")?.data.images();
    let some: Vec<usize> = (0..images.count().min(SHARE_IMAGES)).collect();
    let engine = Fused::<f32>::default();
    let predictor = Predictor::new(made.model, &engine, made.values)?;
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
    let single = |e: &convgp::params::Entry| match e.slot.of(made.values) {
        [value] => Some((e.name.clone(), *value)),
        _ => None,
    };
    made.model.layout().entries().iter().filter_map(single).collect()
}

/// The records that came with the program.
pub fn committed() -> Vec<Record> {
    RECORDS.iter().map(|text| serde_json::from_str(text).expect("a test reads every record")).collect()
}

/// The records in a folder.
pub fn read_all(dir: &Path) -> Result<Vec<Record>> {
    let entries = std::fs::read_dir(dir).map_err(|e| input(format!("{}: {e}", dir.display())))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "json"));
    paths.sort();
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        serde_json::from_str(&text)
            .map_err(|e| input(format!("{}: no record of an experiment: {e}", path.display())))
    };
    paths.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_are_of_the_images_at_the_front() {
        let reproduction = |first| Reproduction {
            experiment: "x".into(),
            recipe: Recipe::Fast,
            results: PathBuf::new(),
            first,
            full_batch: None,
        };
        let images = |count| convgp_data::generate::rectangles(count, 0);
        let parts = |validation| Parts { train: images(3), validation, test: Some(images(5)) };
        let sizes = |first, parts| -> Vec<usize> {
            let sets = reproduction(first).test_sets(&parts).unwrap();
            sets.iter().map(|(_, data)| data.len()).collect()
        };
        assert_eq!(sizes(Some(2), parts(None)), [2, 5]);
        assert_eq!(sizes(Some(5), parts(None)), [5]);
        assert_eq!(sizes(None, parts(None)), [5]);
        assert_eq!(sizes(Some(2), parts(Some(images(1)))), [0; 0]);
        assert!(reproduction(None).check(&Parts { test: None, ..parts(None) }).is_err());
    }

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
