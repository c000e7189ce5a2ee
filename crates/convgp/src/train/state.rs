//! Everything a trainer remembers.

use super::Sampler;
use crate::optim::AdamState;
use serde::{Deserialize, Serialize};

/// A trainer as plain data. With the model's structure, the data and the spec it continues to the same bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainerState {
    /// Steps taken.
    pub step: u64,
    /// Steps planned.
    pub total_steps: u64,
    /// Parameters; `q` in the form its steps need.
    pub values: Vec<f64>,
    /// Moments.
    pub adam: AdamState,
    /// Generator and position in the epoch.
    pub sampler: Sampler,
    /// Where a failed step goes back to.
    pub good: Good,
    /// Halvings of the step sizes in force.
    pub halvings: u32,
    /// Good steps since the last halving or its recovery.
    pub calm: u64,
    /// The best bound reported so far.
    pub best: Option<f64>,
    /// What went wrong so far.
    pub counts: Counts,
}

/// Parameters that were evaluated without trouble.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Good {
    /// The parameters.
    pub values: Vec<f64>,
    /// Steps taken when they were copied.
    pub step: u64,
    /// Good steps since then.
    pub age: u64,
    /// The last finite bound, or expectation term where the divergence was not computed.
    pub bound: Option<f64>,
}

/// Numerical trouble, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Steps that were rolled back.
    pub roll_backs: u64,
    /// Steps at which jitter had to be raised.
    pub jitter_raises: u64,
    /// Images whose conditional variance rounding made negative.
    pub clamped_variances: u64,
}
