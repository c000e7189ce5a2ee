//! Fitting a model: [`run()`] drives a [`Solver`] for as long as a [`Budget`] says and tells a [`Sink`] what happens.
//!
//! | solver | how |
//! |---|---|
//! | [`Stochastic`] | steps on minibatches: one evaluation of the bound each, feeding a natural-gradient step for `q` and an Adam step for everything else |
//! | [`FullBatch`] | L-BFGS on all images at once |
//! | [`ClosedForm`] | one pass over the images |
//!
//! A [`Trainer`] is a deterministic machine: its [`TrainerState`] and the data decide every later bit, for any number of
//! threads. Clocks enter only through [`run()`] and [`Trainer::run`], which calls observers and may be told to stop.

mod clock;
mod full_batch;
mod observe;
pub mod planner;
mod recovery;
mod run;
mod running;
mod sampler;
mod solver;
mod spec;
mod state;
mod temperature;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod trainer;

pub use full_batch::{FullBatchReport, maximise_bound, maximise_collapsed};
pub use observe::{Control, Observer, StepContext, Trigger};
pub use planner::Budget;
pub use run::{Ended, Ending, Problem, Request, RunOptions, Sink, Status, run};
pub use running::{Row, RunningMetrics};
pub use sampler::Sampler;
pub use solver::{ClosedForm, FullBatch, Solver, StatisticsFile, Stochastic};
pub use spec::{ExperimentSpec, NaturalSpec, QStep, RecoverySpec, TrainError, TrainSpec};
pub use state::{Counts, RollbackSnapshot, TrainerState};
pub use temperature::fit_temperature;
pub use trainer::{Event, StepReport, Trainer, new_adam};
