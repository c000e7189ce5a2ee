//! How good predictions are.

use crate::data::Targets;
use crate::likelihood::Predictive;

/// Fraction of images whose most probable class is not their label; `None` unless both are about classes. Ties go to
/// the lower class.
pub fn error_rate(predictive: &Predictive, targets: &Targets) -> Option<f64> {
    let (Predictive::Classes { probabilities, classes }, Targets::Classes { labels, .. }) =
        (predictive, targets)
    else {
        return None;
    };
    let rows = probabilities.chunks_exact(*classes);
    let wrong = rows.zip(labels).filter(|(row, label)| most_probable(row) != **label as usize).count();
    Some(wrong as f64 / labels.len() as f64)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_computed_figures() {
        let p = Predictive::Classes { probabilities: vec![0.2, 0.5, 0.3, 0.4, 0.4, 0.2], classes: 3 };
        let t = Targets::classes(vec![1, 1], 3).unwrap();
        assert_eq!(error_rate(&p, &t), Some(0.5), "the tie goes to class 0");
        assert!((nlpp(&[f64::ln(0.5), f64::ln(0.4)]) - 0.5 * -(0.5f64 * 0.4).ln()).abs() < 1e-15);
        let r = Predictive::Real { mean: vec![1.0, 2.0], var: vec![1.0; 2] };
        let y = Targets::real(vec![1.0, 4.0]).unwrap();
        assert_eq!(root_mean_square_error(&r, &y), Some(2f64.sqrt()));
        assert_eq!((error_rate(&r, &y), root_mean_square_error(&p, &t)), (None, None));
    }
}
