//! How good predictions are, and how much they can be believed.
//!
//! | file | question |
//! |---|---|
//! | here | how often is the model wrong, how surprised is it ([`error_rate`], [`nlpp`], [`root_mean_square_error`])? |
//! | [`Classified`] | the same from probabilities and labels, with Brier score, confusion matrix and scores per image |
//! | [`Reliability`] | is a confidence of 90 % right nine times in ten (expected calibration error)? |
//! | [`RiskCoverage`], [`threshold_for_risk`] | what is gained by not answering when unsure? |
//! | [`separation`] | can images of another kind be told by a score? |
//! | [`DatasetEvaluation`], [`Metrics`] | what does a model say about a data set, and how good is it? |
//! | [`Summary`] | all of that about one set of images, as tables show it |
//!
//! Definitions and how to read them: `docs/metrics.md`. Nothing here depends on the order of the images; what is
//! random takes a generator.

mod calibration;
mod classified;
mod evaluation;
mod outliers;
mod resample;
mod selective;
mod summary;

pub use calibration::{Bin, Binning, NullBand, Reliability};
pub use classified::{Classified, entropy};
pub use evaluation::{DatasetEvaluation, Metrics};
pub use outliers::{Separation, separation};
pub use resample::Interval;
pub use selective::{RiskCoverage, Threshold, threshold_for_risk, upper_error_limit};
pub use summary::{CalibrationError, Summary};

use crate::data::Targets;
use crate::likelihood::Predictive;

/// Why something cannot be measured.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum MetricsError {
    #[error("there are no {what}; at least one is needed")]
    Empty { what: &'static str },
    #[error("{found} {what} for {expected} images; every image needs exactly one")]
    Count { what: &'static str, found: usize, expected: usize },
    #[error("{found} probabilities are not rows of {classes} classes")]
    Rows { found: usize, classes: usize },
    #[error("{what} {value} of image {image} is not a number between 0 and 1")]
    NotAProbability { what: &'static str, image: usize, value: f64 },
    #[error("probabilities of image {image} sum to {sum}, not to 1")]
    Sum { image: usize, sum: f64 },
    #[error("label {label} of image {image} is out of range; there are {classes} classes")]
    Label { image: usize, label: u32, classes: usize },
    #[error("score {value} of image {image} is not a finite number")]
    Score { image: usize, value: f64 },
    #[error("risk is {value}; it must lie between 0 and 1")]
    Risk { value: f64 },
}

/// Fraction of images whose most probable class is not their label; `None` unless both are about classes. Ties go to
/// the lower class.
pub fn error_rate(predictive: &Predictive, targets: &Targets) -> Option<f64> {
    weighted_error_rate(predictive, targets, &[])
}

/// The same where some images count more than others, as in a batch drawn with [weights](crate::data::Batch::weights);
/// none at all means that all count the same.
pub fn weighted_error_rate(predictive: &Predictive, targets: &Targets, weights: &[f64]) -> Option<f64> {
    let (Predictive::Classes { probabilities, classes }, Targets::Classes { labels, .. }) =
        (predictive, targets)
    else {
        return None;
    };
    let rows = probabilities.chunks_exact(*classes);
    let wrong =
        rows.zip(labels).enumerate().filter(|(_, (row, label))| most_probable(row) != **label as usize);
    // Not `sum`, whose zero is negative and would be shown as -0.00 %.
    let total = wrong.fold(0.0, |total, (n, _)| total + weights.get(n).copied().unwrap_or(1.0));
    Some(total / labels.len() as f64)
}

/// Index of the largest number, the first among equals.
pub fn most_probable(row: &[f64]) -> usize {
    (1..row.len()).fold(0, |best, k| if row[k] > row[best] { k } else { best })
}

/// Negative log predictive probability, the mean of `-log p(y_n | x_n)`, from what
/// [`Predictor::log_density`](crate::model::Predictor::log_density) gives.
pub fn nlpp(log_densities: &[f64]) -> f64 {
    -log_densities.iter().sum::<f64>() / log_densities.len() as f64
}

/// Root mean square error of predicted means; `None` unless both are real.
pub fn root_mean_square_error(predictive: &Predictive, targets: &Targets) -> Option<f64> {
    let (Predictive::Real { mean, .. }, Targets::Real(y)) = (predictive, targets) else {
        return None;
    };
    let sum: f64 = mean.iter().zip(y).map(|(m, y)| (m - y) * (m - y)).sum();
    Some((sum / y.len() as f64).sqrt())
}

/// Refuses confidences that are not probabilities, or not one for every answer.
fn check_confidences(confidences: &[f64], correct: &[bool]) -> Result<(), MetricsError> {
    if confidences.is_empty() {
        return Err(MetricsError::Empty { what: "confidences" });
    }
    if correct.len() != confidences.len() {
        let (found, expected) = (correct.len(), confidences.len());
        return Err(MetricsError::Count { what: "answers", found, expected });
    }
    match confidences.iter().position(|c| !(0.0..=1.0).contains(c)) {
        Some(image) => {
            Err(MetricsError::NotAProbability { what: "confidence", image, value: confidences[image] })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_computed_figures() {
        let p = Predictive::Classes { probabilities: vec![0.2, 0.5, 0.3, 0.4, 0.4, 0.2], classes: 3 };
        let t = Targets::classes(vec![1, 1], 3).unwrap();
        assert_eq!(error_rate(&p, &t), Some(0.5), "the tie goes to class 0");
        let none_wrong = Predictive::Classes { probabilities: vec![0.9, 0.1], classes: 2 };
        let error = error_rate(&none_wrong, &Targets::classes(vec![0], 2).unwrap()).unwrap();
        assert_eq!(format!("{error}"), "0", "not -0");
        assert!((nlpp(&[f64::ln(0.5), f64::ln(0.4)]) - 0.5 * -(0.5f64 * 0.4).ln()).abs() < 1e-15);
        let r = Predictive::Real { mean: vec![1.0, 2.0], var: vec![1.0; 2] };
        let y = Targets::real(vec![1.0, 4.0]).unwrap();
        assert_eq!(root_mean_square_error(&r, &y), Some(2f64.sqrt()));
        assert_eq!((error_rate(&r, &y), root_mean_square_error(&p, &t)), (None, None));
    }
}
