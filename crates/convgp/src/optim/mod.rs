//! Optimisers. They know parameters as a flat vector with constraints, and nothing of models.
//!
//! | | |
//! |---|---|
//! | [`Schedule`] | step sizes as a function of progress |
//! | [`Adam`] | stochastic gradient steps, single-precision moments |
//! | [`Lbfgs`] | full-batch steps for small, deterministic problems |
//! | [`FreeSpace`] | all trainable numbers as one unconstrained vector |
//!
//! Natural-gradient steps belong to the posterior: [`Variational::natural_step`](crate::variational::Variational::natural_step).

mod adam;
mod free;
mod lbfgs;
mod line_search;
mod schedule;

pub use adam::{Adam, AdamSpec, AdamState, Positives};
pub use free::FreeSpace;
pub use lbfgs::{Lbfgs, Outcome, StopReason};
pub use schedule::Schedule;
