//! The training loop: one evaluation of the bound per step, feeding a natural-gradient step for `q` and an Adam step for
//! everything else.
//!
//! A [`Trainer`] is a deterministic machine: its [`TrainerState`] and the data decide every later bit, for any number of
//! threads. Clocks enter only through [`Trainer::run`], which calls observers and may be told to stop.

mod full_batch;
mod latest;
mod observe;
pub mod pace;
mod recover;
mod sampler;
mod sharpen;
mod spec;
mod state;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod trainer;

pub use full_batch::{FullBatchReport, maximise_bound, maximise_collapsed};
pub use latest::{Latest, Row};
pub use observe::{Control, Moment, Observer, Trigger};
pub use pace::Budget;
pub use sampler::Sampler;
pub use sharpen::sharpness;
pub use spec::{ExperimentSpec, NaturalSpec, QStep, RecoverySpec, TrainError, TrainSpec};
pub use state::{Counts, Good, TrainerState};
pub use trainer::{Event, StepReport, Trainer, new_adam};
