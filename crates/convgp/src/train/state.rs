//! Everything a trainer remembers.

use super::Sampler;
use crate::optim::AdamState;
use serde::{Deserialize, Serialize};

/// What a trainer remembers beside the parameters, as plain data. With both, the model, the data and the spec it continues
/// to the same bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainerState {
    /// Steps taken.
    pub step: u64,
    /// Steps planned.
    pub total_steps: u64,
    /// Moments.
    pub adam: AdamState,
    /// Generator and position in the epoch.
    pub sampler: Sampler,
    /// Where a failed step goes back to.
    #[serde(alias = "good")]
    pub snapshot: RollbackSnapshot,
    /// Back-offs in force: each halves both step sizes.
    #[serde(alias = "halvings")]
    pub backoffs: u32,
    /// Successful steps since the last back-off or its recovery.
    #[serde(alias = "calm")]
    pub stable_steps: u64,
    /// The best bound reported so far.
    pub best: Option<f64>,
    /// What went wrong so far.
    pub counts: Counts,
}

/// Parameters that were evaluated without trouble.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RollbackSnapshot {
    /// The parameters.
    pub values: Vec<f64>,
    /// Steps taken when they were copied.
    pub step: u64,
    /// Successful steps since then.
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
