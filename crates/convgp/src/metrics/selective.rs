//! Answering only when sure: risk against coverage, and the threshold that keeps a risk.

use super::{MetricsError, check_confidences};
use serde::{Deserialize, Serialize};

/// Error among the most confident answers, for every number of answers.
#[derive(Debug, Clone, PartialEq)]
pub struct RiskCoverage {
    /// `risks[k - 1]` is the error among the `k` most confident answers. Equal confidences are answered in random order;
    /// this is the mean over orders.
    risks: Vec<f64>,
}

/// A run of equally confident answers: its confidence, how many, how many wrong.
struct Tie {
    confidence: f64,
    count: usize,
    wrong: usize,
}

/// Runs of equal confidence, the most confident first.
fn ties(confidences: &[f64], correct: &[bool]) -> Vec<Tie> {
    let mut order: Vec<usize> = (0..confidences.len()).collect();
    order.sort_by(|a, b| confidences[*b].total_cmp(&confidences[*a]));
    let runs = order.chunk_by(|a, b| confidences[*a] == confidences[*b]);
    runs.map(|run| Tie {
        confidence: confidences[run[0]],
        count: run.len(),
        wrong: run.iter().filter(|i| !correct[**i]).count(),
    })
    .collect()
}

impl RiskCoverage {
    /// Sorts the answers by confidence.
    pub fn new(confidences: &[f64], correct: &[bool]) -> Result<Self, MetricsError> {
        check_confidences(confidences, correct)?;
        let (mut risks, mut answered, mut wrong) = (Vec::with_capacity(correct.len()), 0.0, 0.0);
        for tie in ties(confidences, correct) {
            let rate = tie.wrong as f64 / tie.count as f64;
            for i in 1..=tie.count {
                risks.push((wrong + rate * i as f64) / (answered + i as f64));
            }
            answered += tie.count as f64;
            wrong += tie.wrong as f64;
        }
        Ok(Self { risks })
    }

    /// `(coverage, error)` for 1, 2, ... answers.
    pub fn points(&self) -> impl ExactSizeIterator<Item = (f64, f64)> + '_ {
        let n = self.risks.len() as f64;
        self.risks.iter().enumerate().map(move |(i, r)| ((i + 1) as f64 / n, *r))
    }
    /// Area under the curve: the mean over all numbers of answers.
    pub fn area(&self) -> f64 {
        self.risks.iter().sum::<f64>() / self.risks.len() as f64
    }
    /// Error when this fraction (rounded up to a whole number, at least one) of the images is answered.
    pub fn error_at(&self, coverage: f64) -> f64 {
        let n = self.risks.len();
        // Rounding must not turn 0.8 * 10 into 9 answers.
        let answers = (coverage * n as f64 - 1e-9).ceil().max(1.0) as usize;
        self.risks[answers.min(n) - 1]
    }
}

/// Answer when the confidence is at least `threshold`, otherwise say "unknown".
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Threshold {
    /// The least confidence that is answered.
    pub threshold: f64,
    /// Fraction of the images that gets an answer.
    pub coverage: f64,
    /// Fraction of the answers that is wrong.
    pub error: f64,
    /// What the error on new images could be: see [`upper_error_limit`] at 95 %.
    pub upper_error: f64,
}

impl Threshold {
    /// Whether an image gets an answer, by its class probabilities.
    pub fn answers(&self, probabilities: &[f64]) -> bool {
        probabilities.iter().any(|&p| p >= self.threshold)
    }
}

/// The threshold with the largest coverage whose error, on these images, is at most `risk`; `None` when even the most
/// confident answers are wrong too often.
///
/// A threshold is a number, so equally confident answers are given or withheld together. The error is that of the images the
/// threshold was chosen on; it flatters, the more so the fewer they are. `upper_error` says by how much it may: with 300
/// images and no mistake the limit is still 1 %. Choose on images that were not trained on.
pub fn threshold_for_risk(
    confidences: &[f64],
    correct: &[bool],
    risk: f64,
) -> Result<Option<Threshold>, MetricsError> {
    check_confidences(confidences, correct)?;
    if !(0.0..=1.0).contains(&risk) {
        return Err(MetricsError::Risk { value: risk });
    }
    let (mut answered, mut wrong, mut best) = (0, 0, None);
    for tie in ties(confidences, correct) {
        answered += tie.count;
        wrong += tie.wrong;
        let error = wrong as f64 / answered as f64;
        if error <= risk {
            best = Some((tie.confidence, answered, wrong, error));
        }
    }
    Ok(best.map(|(threshold, answered, wrong, error)| Threshold {
        threshold,
        coverage: answered as f64 / correct.len() as f64,
        error,
        upper_error: upper_error_limit(wrong, answered, 0.95),
    }))
}

/// One-sided upper limit of Clopper and Pearson: the largest error rate under which `wrong` or fewer mistakes among
/// `answers` have a probability of at least `1 - level`. Holds for a threshold fixed in advance; one chosen on the same
/// images deserves a little more.
pub fn upper_error_limit(wrong: usize, answers: usize, level: f64) -> f64 {
    if wrong >= answers {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if at_most(wrong, answers, middle) > 1.0 - level { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// Probability of at most `wrong` mistakes among `answers` at this error rate.
fn at_most(wrong: usize, answers: usize, rate: f64) -> f64 {
    let n = answers as f64;
    let log_choose = |k: f64| libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
    let term = |k: f64| libm::exp(log_choose(k) + k * libm::log(rate) + (n - k) * libm::log1p(-rate));
    (0..=wrong).map(|k| term(k as f64)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equally_confident_answers_do_not_depend_on_their_order() {
        let a = RiskCoverage::new(&[0.9, 0.5, 0.5], &[true, true, false]).unwrap();
        let b = RiskCoverage::new(&[0.5, 0.9, 0.5], &[false, true, true]).unwrap();
        assert_eq!(a, b);
        let risks: Vec<f64> = a.points().map(|p| p.1).collect();
        assert_eq!(risks, [0.0, 0.25, 1.0 / 3.0]);
        assert!((a.area() - (0.25 + 1.0 / 3.0) / 3.0).abs() < 1e-15);
        assert_eq!((a.error_at(0.01), a.error_at(0.5), a.error_at(1.0)), (0.0, 0.25, 1.0 / 3.0));
    }

    #[test]
    fn a_threshold_keeps_whole_ties_and_the_largest_coverage() {
        // Sorted: right, wrong, then eight right ones. One mistake in ten is within 10 %, one in two is not.
        let confidences = [0.99, 0.98, 0.9, 0.9, 0.9, 0.9, 0.8, 0.8, 0.7, 0.6];
        let correct = [true, false, true, true, true, true, true, true, true, true];
        let at = |risk| threshold_for_risk(&confidences, &correct, risk).unwrap();
        let all = at(0.1).unwrap();
        assert_eq!((all.threshold, all.coverage, all.error), (0.6, 1.0, 0.1));
        assert!(all.upper_error > 0.35, "ten images prove little");
        let strict = at(0.05).unwrap();
        assert_eq!((strict.threshold, strict.coverage), (0.99, 0.1));
        assert_eq!(threshold_for_risk(&[0.9, 0.9], &[true, false], 0.2).unwrap(), None);
        assert_eq!(threshold_for_risk(&[0.9], &[true], -0.1), Err(MetricsError::Risk { value: -0.1 }));
    }

    #[test]
    fn no_mistake_among_n_leaves_the_rule_of_three() {
        // (1 - p)^n = 0.05
        let exact = 1.0 - 0.05f64.powf(1.0 / 300.0);
        assert!((upper_error_limit(0, 300, 0.95) - exact).abs() < 1e-12);
        assert_eq!(upper_error_limit(5, 5, 0.95), 1.0);
    }
}
