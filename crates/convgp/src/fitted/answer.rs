//! When a model answers at all.

use crate::metrics::Threshold;
use serde::{Deserialize, Serialize};

/// Answer only above a threshold that was set, on images not trained on, to keep a risk.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AnswerRule {
    /// The error that was to be kept.
    pub risk: f64,
    /// Number of images the threshold was set on.
    pub images: usize,
    /// The threshold, and what it did on those images.
    #[serde(flatten)]
    pub threshold: Threshold,
}

impl AnswerRule {
    /// What is wrong with it, in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        let t = self.threshold.threshold;
        if (0.0..=1.0).contains(&t) {
            return Ok(());
        }
        Err(format!(
            "answers are given from a threshold {t}, which is not a probability; calibrate the model again"
        ))
    }
}
