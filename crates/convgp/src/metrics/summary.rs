//! Everything about a set of answers in a few numbers.

use super::{Binning, Classified, Interval, MetricsError, Reliability, RiskCoverage};
use crate::rng::Rng;
use serde::Serialize;

/// Bins of either kind.
const BINS: usize = 15;
/// Draws behind every interval.
const DRAWS: usize = 1000;
/// What the intervals hold.
const LEVEL: f64 = 0.95;

/// An expected calibration error, and what to hold it against.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CalibrationError {
    /// The error itself.
    pub error: f64,
    /// 95 % bootstrap interval.
    pub interval: Interval,
    /// The central 95 % of what a perfectly calibrated model would show.
    pub null: Interval,
}

impl CalibrationError {
    fn new(
        confidences: &[f64],
        correct: &[bool],
        binning: Binning,
        rng: &mut Rng,
    ) -> Result<Self, MetricsError> {
        let r = Reliability::new(confidences, correct, binning)?;
        let (interval, null) = (r.bootstrap(DRAWS, LEVEL, rng), r.null_band(DRAWS, LEVEL, rng).error);
        Ok(Self { error: r.error(), interval, null })
    }
}

/// The figures of merit of class probabilities; defined in `docs/metrics.md`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Number of images.
    pub images: usize,
    /// Fraction of wrong answers.
    pub error: f64,
    /// Mean of `-log p(label)`.
    pub nlpp: f64,
    /// Brier score of all classes, 0 to 2.
    pub brier: f64,
    /// Expected calibration error in 15 bins of equal width.
    pub ece_equal_width: CalibrationError,
    /// Expected calibration error in 15 bins of equally many images.
    pub ece_equal_mass: CalibrationError,
    /// Area under the curve of risk against coverage.
    pub risk_coverage_area: f64,
    /// Error when only the most confident 80 % of the images are answered.
    pub error_at_80: f64,
    /// The same for 90 %.
    pub error_at_90: f64,
    /// The same for 95 %.
    pub error_at_95: f64,
}

impl Summary {
    /// Computes them; the seed is that of the simulated intervals.
    pub fn new(c: &Classified<'_>, seed: u64) -> Result<Self, MetricsError> {
        let (confidences, correct) = (c.confidences(), c.correct());
        let ece = |binning| CalibrationError::new(&confidences, &correct, binning, &mut Rng::new(seed));
        let curve = RiskCoverage::new(&confidences, &correct)?;
        Ok(Self {
            images: c.len(),
            error: c.error(),
            nlpp: c.nlpp(),
            brier: c.brier(),
            ece_equal_width: ece(Binning::EqualWidth(BINS))?,
            ece_equal_mass: ece(Binning::EqualMass(BINS))?,
            risk_coverage_area: curve.area(),
            error_at_80: curve.error_at(0.8),
            error_at_90: curve.error_at(0.9),
            error_at_95: curve.error_at(0.95),
        })
    }

    /// Name, value and remark of every figure, for tables.
    pub fn rows(&self) -> Vec<[String; 3]> {
        let row = |name: &str, value: String, remark: String| [name.to_string(), value, remark];
        let percent = |v: f64| format!("{:.2} %", 100.0 * v);
        let wrong = (self.error * self.images as f64).round();
        let ece = |name: &str, e: &CalibrationError| {
            let (i, n) = (e.interval, e.null);
            let remark = format!(
                "95 % interval {:.4} to {:.4}; a calibrated model would show {:.4} to {:.4}",
                i.lower, i.upper, n.lower, n.upper
            );
            row(name, format!("{:.4}", e.error), remark)
        };
        let selective = |coverage: &str, error: f64| {
            let name = format!("error at {coverage} % coverage");
            row(&name, percent(error), "the least sure images unanswered".into())
        };
        vec![
            row("error", percent(self.error), format!("{wrong} of {} images", self.images)),
            row("NLPP", format!("{:.4}", self.nlpp), "mean of -log p(label); smaller is better".into()),
            row("Brier score", format!("{:.4}", self.brier), "all classes, 0 to 2".into()),
            ece("ECE, 15 equal widths", &self.ece_equal_width),
            ece("ECE, 15 equal masses", &self.ece_equal_mass),
            row(
                "area under risk-coverage",
                format!("{:.5}", self.risk_coverage_area),
                "smaller is better".into(),
            ),
            selective("80", self.error_at_80),
            selective("90", self.error_at_90),
            selective("95", self.error_at_95),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_gathers_what_the_parts_say() {
        let mut rng = Rng::new(2);
        let sure: Vec<f64> = (0..200).map(|_| 0.5 + 0.5 * rng.uniform()).collect();
        let labels: Vec<u32> = sure.iter().map(|p| u32::from(rng.uniform() > *p)).collect();
        let probabilities: Vec<f64> = sure.iter().flat_map(|p| [*p, 1.0 - p]).collect();
        let c = Classified::new(&probabilities, &labels, 2).unwrap();
        let summary = Summary::new(&c, 0).unwrap();
        assert_eq!((summary.images, summary.error, summary.brier), (200, c.error(), c.brier()));
        for e in [summary.ece_equal_width, summary.ece_equal_mass] {
            assert!(e.null.contains(e.error) && e.interval.lower < e.interval.upper, "{e:?}");
        }
        assert!(summary.error_at_80 <= summary.error && summary.risk_coverage_area < summary.error);
        let rows = summary.rows();
        let wrong = labels.iter().filter(|l| **l == 1).count();
        assert_eq!(rows[0][2], format!("{wrong} of 200 images"));
        assert!(rows.iter().any(|r| r[0] == "error at 95 % coverage"));
        assert_eq!(summary, Summary::new(&c, 0).unwrap(), "equal seeds, equal intervals");
    }
}
