//! How sure a trained model may be.

use crate::Result;
use crate::cov::Engine;
use crate::data::{Dataset, Targets};
use crate::likelihood::{LikelihoodSpec, Predictive};
use crate::model::Model;

/// Training images looked at; more change the answer by less than the answer matters.
const MOST_IMAGES: usize = 2000;
/// Powers tried lie between this and its inverse.
const LARGEST: f64 = 4.0;
/// Halvings, or nearly, of the interval.
const ITERATIONS: usize = 30;

/// The power of predicted probabilities under which training images, each left out in its turn, are most probable;
/// `None` for likelihoods other than softmax.
///
/// The bound prefers posteriors that are too broad, the more so the fewer images there are, and answers that are right come
/// out less sure than they deserve. Images left out ([`Model::leave_one_out`]) show by how much.
pub fn sharpness<E: Engine>(
    model: &Model,
    engine: &E,
    values: &[f64],
    data: &Dataset,
) -> Result<Option<f64>> {
    let LikelihoodSpec::Softmax { sharpness: now, .. } = model.spec().likelihood else { return Ok(None) };
    let count = data.len().min(MOST_IMAGES);
    let indices: Vec<usize> = (0..count).map(|i| i * data.len() / count).collect();
    let marginals = model.leave_one_out(engine, values, data, &indices)?;
    let theta = model.likelihood_theta(values);
    let (Predictive::Classes { probabilities, classes }, Targets::Classes { labels, .. }) =
        (model.likelihood().predict(theta, &marginals), data.targets())
    else {
        return Ok(None);
    };
    let labels: Vec<usize> = indices.iter().map(|&i| labels[i] as usize).collect();
    let logs: Vec<f64> = probabilities.iter().map(|p| libm::log(p.max(f64::MIN_POSITIVE))).collect();
    let loss = |log_power: f64| mean_loss(libm::exp(log_power), &logs, classes, &labels);
    let bounds = libm::log(LARGEST);
    Ok(Some(now * libm::exp(minimum(loss, -bounds, bounds))))
}

/// Mean negative log probability of the labels, log probabilities times a power.
fn mean_loss(power: f64, logs: &[f64], classes: usize, labels: &[usize]) -> f64 {
    let rows = logs.chunks_exact(classes).zip(labels);
    let loss = |(row, &label): (&[f64], &usize)| {
        let top = row.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        let total: f64 = row.iter().map(|l| libm::exp(power * (l - top))).sum();
        libm::log(total) - power * (row[label] - top)
    };
    rows.map(loss).sum::<f64>() / labels.len() as f64
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

    #[test]
    fn a_power_makes_up_for_answers_that_are_too_unsure() {
        // Right in nine of ten cases, but sure of 0.6 only: (0.9 / 0.1) = (0.6 / 0.4)^power.
        let logs: Vec<f64> = (0..10).flat_map(|_| [0.6f64.ln(), 0.4f64.ln()]).collect();
        let labels: Vec<usize> = (0..10).map(|n| usize::from(n == 0)).collect();
        let best = minimum(|x| mean_loss(x, &logs, 2, &labels), 0.1, 20.0);
        assert!((best - 9f64.ln() / 1.5f64.ln()).abs() < 1e-3, "{best}");
    }
}
