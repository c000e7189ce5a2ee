//! What training looks like from outside, row by row.

use super::{StepContext, StepReport};
use crate::metrics::Metrics;
use serde::Serialize;

/// Weight of the newest minibatch in the running training error.
const NEWEST: f64 = 0.05;

/// One evaluation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Row {
    /// Steps taken.
    pub step: u64,
    /// Time in training.
    pub seconds: f64,
    /// The last bound that was computed, on a minibatch.
    pub bound: Option<f64>,
    /// Expected log density per training image, on a minibatch.
    pub train_log_density: Option<f64>,
    /// Divergence of the posterior, when it was computed.
    pub kl: Option<f64>,
    /// Running error on minibatches.
    pub train_error: Option<f64>,
    /// Error on held-out images, or their root mean square error.
    pub held_out_error: Option<f64>,
    /// Negative log predictive probability on held-out images.
    pub held_out_nlpp: Option<f64>,
    /// Adam's step size.
    pub rate: f64,
    /// Natural step size.
    pub gamma: f64,
    /// Steps rolled back so far.
    pub roll_backs: u64,
    /// Steps with raised jitter so far.
    pub jitter_raises: u64,
}

/// What the last steps looked like.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunningMetrics {
    /// The last bound that was computed.
    pub bound: Option<f64>,
    /// Expected log density per training image.
    pub log_density: Option<f64>,
    /// Divergence of the posterior, the last that was computed.
    pub kl: Option<f64>,
    /// Running error on minibatches.
    pub error: Option<f64>,
    /// Adam's step size.
    pub rate: f64,
    /// Natural step size.
    pub gamma: f64,
    /// Steps rolled back so far.
    pub roll_backs: u64,
    /// Steps with raised jitter so far.
    pub jitter_raises: u64,
}

impl RunningMetrics {
    /// Takes note of a step of training on so many images.
    pub fn look(&mut self, m: &StepContext<'_>, images: usize) {
        let StepReport { bound, rate, gamma, .. } = m.report;
        self.bound = bound.and_then(|b| b.elbo()).or(self.bound);
        self.kl = bound.and_then(|b| b.kl).or(self.kl);
        self.log_density = bound.map(|b| b.expectation / images as f64).or(self.log_density);
        if let Some(e) = m.batch_error() {
            self.error = Some(self.error.map_or(e, |old| old + NEWEST * (e - old)));
        }
        (self.rate, self.gamma) = (*rate, *gamma);
        (self.roll_backs, self.jitter_raises) = (m.state.counts.roll_backs, m.state.counts.jitter_raises);
    }

    /// An evaluation after so many steps and seconds.
    pub fn row(&self, step: u64, seconds: f64, held_out: Option<Metrics>) -> Row {
        Row {
            step,
            seconds,
            bound: self.bound,
            train_log_density: self.log_density,
            kl: self.kl,
            train_error: self.error,
            held_out_error: held_out.and_then(|f| f.error.or(f.rmse)),
            held_out_nlpp: held_out.map(|f| f.nlpp),
            rate: self.rate,
            gamma: self.gamma,
            roll_backs: self.roll_backs,
            jitter_raises: self.jitter_raises,
        }
    }
}
