//! Temperature of a trained model's probabilities.

use crate::Result;
use crate::cov::Engine;
use crate::data::{Dataset, Targets};
use crate::likelihood::special::log_sum_exp;
use crate::likelihood::{Predictive, Temperature};
use crate::model::Model;
use crate::objective::Objective;
use crate::params::Params;

/// Training images looked at; more change the answer by less than the answer matters.
const MOST_IMAGES: usize = 4000;
/// Powers tried lie between this and its inverse.
const LARGEST: f64 = 4.0;
/// Halvings, or nearly, of an interval.
const ITERATIONS: usize = 30;

/// The temperature of predicted probabilities that training images, each left out in its turn, ask for; 1 for likelihoods
/// that have none.
///
/// The bound prefers posteriors that are too broad, the more so the fewer images there are, and answers that are right come
/// out less sure than they deserve. Images left out ([`Model::leave_one_out`]) show by how much, though a little too
/// much, for kernel, weights and inducing inputs have seen them. Of all powers that are worse than the best one by no more
/// than the standard error of the difference, the one nearest to 1 is therefore taken.
pub fn fit_temperature<E: Engine>(
    model: &Model,
    engine: &E,
    params: &Params,
    data: &Dataset,
    objective: Objective,
) -> Result<Temperature> {
    if !model.likelihood().calibratable() {
        return Ok(Temperature::ONE);
    }
    let count = data.len().min(MOST_IMAGES);
    let indices: Vec<usize> = (0..count).map(|i| i * data.len() / count).collect();
    let marginals = model.leave_one_out(engine, params, data, &indices, objective.alpha())?;
    let theta = model.likelihood_theta(params);
    let (Predictive::Classes { probabilities, classes }, Targets::Classes { labels, .. }) =
        (model.likelihood().predict(theta, &marginals), data.targets())
    else {
        return Ok(Temperature::ONE);
    };
    let labels: Vec<usize> = indices.iter().map(|&i| labels[i] as usize).collect();
    let logs: Vec<f64> = probabilities.iter().map(|p| libm::log(p.max(f64::MIN_POSITIVE))).collect();
    Ok(Temperature::from_inverse(cautious_power(&logs, classes, &labels))?)
}

/// The power nearest to 1 whose mean loss exceeds the least by no more than the difference's standard error.
fn cautious_power(logs: &[f64], classes: usize, labels: &[usize]) -> f64 {
    let losses = |log_power: f64| losses(libm::exp(log_power), logs, classes, labels);
    let bounds = libm::log(LARGEST);
    let best = minimum(|x| mean_and_error(&losses(x)).0, -bounds, bounds);
    let at_best = losses(best);
    let good = |log_power: f64| {
        let differences: Vec<f64> = losses(log_power).iter().zip(&at_best).map(|(a, b)| a - b).collect();
        let (mean, error) = mean_and_error(&differences);
        mean <= error
    };
    if good(0.0) {
        return 1.0;
    }
    let (mut bad_end, mut good_end) = (0.0, best);
    for _ in 0..ITERATIONS {
        let middle = 0.5 * (bad_end + good_end);
        *(if good(middle) { &mut good_end } else { &mut bad_end }) = middle;
    }
    libm::exp(good_end)
}

/// Mean, and standard error of the mean.
fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
    (mean, (variance / count).sqrt())
}

/// Negative log probability of each label, log probabilities times a power.
fn losses(power: f64, logs: &[f64], classes: usize, labels: &[usize]) -> Vec<f64> {
    let rows = logs.chunks_exact(classes).zip(labels);
    rows.map(|(row, &label)| log_sum_exp(row.iter().map(|l| power * l)) - power * row[label]).collect()
}

/// Where a function of one number with one valley is least, by golden sections.
fn minimum(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut left, mut right) = (high - golden * (high - low), low + golden * (high - low));
    let (mut at_left, mut at_right) = (f(left), f(right));
    for _ in 0..ITERATIONS {
        if at_left < at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - golden * (high - low);
            at_left = f(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + golden * (high - low);
            at_right = f(right);
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valleys_are_found() {
        assert!((minimum(|x| (x - 0.3).powi(2), -1.0, 2.0) - 0.3).abs() < 1e-5);
        assert!((minimum(|x| x, -1.0, 2.0) + 1.0).abs() < 1e-4, "at the border if that is where it is");
    }

    /// Answers of two classes that are so sure, and right in nine of ten cases.
    fn answers(sure: f64, images: usize) -> (Vec<f64>, Vec<usize>) {
        let logs = (0..images).flat_map(|_| [sure.ln(), (1.0 - sure).ln()]).collect();
        (logs, (0..images).map(|n| usize::from(n % 10 == 0)).collect())
    }

    /// `0.9 / 0.1 = (0.7 / 0.3)^power`.
    fn best_for_sure_of_07() -> f64 {
        9f64.ln() / (0.7f64 / 0.3).ln()
    }

    #[test]
    fn a_power_makes_up_for_answers_that_are_too_unsure() {
        let (logs, labels) = answers(0.7, 10);
        let loss = |x| mean_and_error(&losses(x, &logs, 2, &labels)).0;
        assert!((minimum(loss, 0.1, 20.0) - best_for_sure_of_07()).abs() < 1e-3);
    }

    #[test]
    fn few_images_change_less_than_many_and_right_answers_are_left_alone() {
        let power = |sure, images| {
            let (logs, labels) = answers(sure, images);
            cautious_power(&logs, 2, &labels)
        };
        let (few, many) = (power(0.7, 10), power(0.7, 10_000));
        assert!(1.0 <= few && few < 0.9 * many && many < best_for_sure_of_07(), "{few}, {many}");
        assert_eq!(power(0.9, 10_000), 1.0);
    }
}
