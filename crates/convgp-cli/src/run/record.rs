//! What a run was started with.

use crate::args::data::{DataArgs, Geometry};
use crate::support::exit::input;
use crate::support::images::Parts;
use anyhow::Result;
use convgp::data::{Dataset, Images};
use convgp::optim::Lbfgs;
use convgp::prepare::Scaling;
use convgp::train::Budget;
use convgp_data::FileHash;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a run was started with: `run.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Version of this program.
    pub version: String,
    /// Operating system and processor.
    pub system: String,
    /// The command, word by word.
    pub command: Vec<String>,
    /// Threads it had.
    pub threads: usize,
    /// Short name of the model.
    pub model: String,
    /// What was chosen for the user, and why.
    pub reasons: Vec<String>,
    /// Where the images came from.
    pub source: String,
    /// What was taken of them.
    pub data: DataArgs,
    /// How they were brought to one shape.
    pub geometry: Geometry,
    /// The units of their pixels; runs of version 0.1 do not say.
    #[serde(default)]
    pub scaling: Option<Scaling>,
    /// Fraction of training images that was held out.
    pub validation: Option<f64>,
    /// How long to train.
    pub budget: Budget,
    /// Steps between evaluations, if not chosen by the program.
    pub evaluate_every: Option<u64>,
    /// Test images are evaluated while it trains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_curve: Option<TestCurve>,
    /// L-BFGS on all images at once instead of minibatches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_batch: Option<Lbfgs>,
    /// Images used for training, validation and test.
    pub images: [usize; 3],
    /// SHA-256 over the training images and their targets.
    pub fingerprint: String,
    /// The files that were read.
    pub provenance: Vec<FileHash>,
    /// What the command that began it wants to know at its end, under a name of its own.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Record {
    /// The scale of the training images.
    pub fn scaling_of(&self, images: &Images) -> Scaling {
        self.scaling.unwrap_or_else(|| Scaling::as_stored(images))
    }
}

/// Test images are evaluated while training goes on, for curves; no model is chosen by them.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct TestCurve {
    /// Test images at the front that come first; all when absent.
    pub first: Option<usize>,
}

impl TestCurve {
    /// Refuses data that a run could not be evaluated by.
    pub fn check(self, parts: &Parts, source: &str) -> Result<()> {
        match (&parts.test, &parts.validation) {
            (None, None) => Err(input(format!(
                "{source}: there are no test images to judge by; add them to the data, or use --validation"
            ))),
            _ => Ok(()),
        }
    }

    /// The test images a run is evaluated on, first those at the front; none with a validation split.
    pub fn test_sets(self, parts: &Parts) -> Result<Vec<(String, Dataset)>> {
        let (Some(test), None) = (&parts.test, &parts.validation) else { return Ok(Vec::new()) };
        let mut sets = Vec::new();
        if let Some(first) = self.first.filter(|first| *first < test.len()) {
            let front = test.select(&(0..first).collect::<Vec<_>>()).map_err(convgp::Error::from)?;
            sets.push((format!("test, first {first}"), front));
        }
        sets.push(("test".into(), test.clone()));
        Ok(sets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_images_at_the_front_come_first() {
        let images = |count| convgp_data::generate::rectangles(count, 0);
        let parts = |validation| Parts { train: images(3), validation, test: Some(images(5)) };
        let sizes = |first, parts| -> Vec<usize> {
            let sets = TestCurve { first }.test_sets(&parts).unwrap();
            sets.iter().map(|(_, data)| data.len()).collect()
        };
        assert_eq!(sizes(Some(2), parts(None)), [2, 5]);
        assert_eq!(sizes(Some(5), parts(None)), [5]);
        assert_eq!(sizes(None, parts(None)), [5]);
        assert_eq!(sizes(Some(2), parts(Some(images(1)))), [0; 0]);
        let none = Parts { test: None, ..parts(None) };
        assert!(TestCurve { first: None }.check(&none, "x").is_err());
    }
}
