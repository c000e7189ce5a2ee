//! Telling images of another kind by a score.

use super::MetricsError;
use serde::Serialize;

/// How well a score separates outliers (which it should put higher) from ordinary images.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Separation {
    /// Probability that an outlier scores above an ordinary image, ties counting half.
    pub auroc: f64,
    /// Average precision with outliers as the positive class; depends on how many there are of either.
    pub aupr: f64,
    /// Fraction of ordinary images taken for outliers at the highest threshold that finds 95 % of the outliers.
    pub fpr_at_95: f64,
}

/// Compares the scores of ordinary images with those of outliers. Equal scores are told apart by no threshold.
pub fn separation(ordinary: &[f64], outliers: &[f64]) -> Result<Separation, MetricsError> {
    for (scores, what) in [(ordinary, "ordinary images"), (outliers, "outliers")] {
        if scores.is_empty() {
            return Err(MetricsError::Empty { what });
        }
        if let Some(image) = scores.iter().position(|s| !s.is_finite()) {
            return Err(MetricsError::Score { image, value: scores[image] });
        }
    }
    let mut all: Vec<(f64, bool)> = ordinary.iter().map(|s| (*s, false)).collect();
    all.extend(outliers.iter().map(|s| (*s, true)));
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (n_in, n_out) = (ordinary.len() as f64, outliers.len() as f64);
    let mut result = Separation { auroc: 0.0, aupr: 0.0, fpr_at_95: f64::NAN };
    let (mut hits, mut alarms) = (0.0, 0.0);
    for run in all.chunk_by(|a, b| a.0 == b.0) {
        let found = run.iter().filter(|s| s.1).count() as f64;
        let mistaken = run.len() as f64 - found;
        result.auroc += mistaken * (hits + 0.5 * found) / (n_in * n_out);
        hits += found;
        alarms += mistaken;
        result.aupr += found / n_out * hits / (hits + alarms);
        if result.fpr_at_95.is_nan() && hits >= 0.95 * n_out {
            result.fpr_at_95 = alarms / n_in;
        }
    }
    // Sums of many small terms may end an ulp above one.
    Ok(Separation { auroc: result.auroc.min(1.0), aupr: result.aupr.min(1.0), ..result })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes() {
        let perfect = separation(&[0.1, 0.2], &[0.3, 0.4, 0.5]).unwrap();
        assert_eq!(perfect, Separation { auroc: 1.0, aupr: 1.0, fpr_at_95: 0.0 });
        let blind = separation(&[1.0; 3], &[1.0; 2]).unwrap();
        assert_eq!(blind, Separation { auroc: 0.5, aupr: 0.4, fpr_at_95: 1.0 });
        let backwards = separation(&[0.5], &[0.1]).unwrap();
        assert_eq!((backwards.auroc, backwards.fpr_at_95), (0.0, 1.0));
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(separation(&[0.1], &[]), Err(MetricsError::Empty { what: "outliers" }));
        let nan = separation(&[0.1, f64::INFINITY], &[0.2]).unwrap_err();
        assert_eq!(nan, MetricsError::Score { image: 1, value: f64::INFINITY });
    }
}
