//! Convolutional Gaussian processes: image models that know what they do not know.
//!
//! The library in dependency order; a module uses only those above it.
//!
//! | module | what lives there |
//! |---|---|
//! | [`error`], [`rng`], [`real`] | errors; seeded randomness; numbers of the tile loops |
//! | [`params`] | one flat vector of numbers with named, constrained slots |
//! | [`linalg`] | the few dense operations used |
//! | [`data`], [`prepare`] | images, targets, minibatches; what was done to images before |
//! | [`views`] | patches, orbits, location-aware patches: what `g` sees of an image |
//! | [`kernel`] | base kernels on views |
//! | [`component`] | kernel + inducing inputs + responses |
//! | [`cov`] | seam 1: covariances and their pullbacks, two engines |
//! | [`likelihood`] | seam 2: expected log densities and their derivatives |
//! | [`variational`] | the posterior over inducing outputs |
//! | [`model`] | spec, bound, prediction |
//! | [`metrics`] | error, calibration, outlier scores |
//! | [`closed_form`] | the closed-form solver: statistics, leave-one-out, noise and temperature |
//! | [`fitted`] | what is saved, what predicts, and what images are added to |
//! | [`exact`], [`objective`], [`collapsed`] | exact inference for Gaussian noise; what is maximised; the collapsed bound |
//! | [`optim`], [`train`] | Adam, schedules, L-BFGS; solvers and the training loop |
//! | [`preset`] | models by name, fitted to data |
//! | [`memory`] | what training will take, before it begins |
//! | [`inspect`] | evidence, shares, prior draws |
//! | [`io`] | model files and checkpoints |

#![warn(missing_docs)]

pub mod closed_form;
pub mod collapsed;
pub mod component;
pub mod cov;
pub mod data;
pub mod error;
pub mod exact;
pub mod fitted;
pub mod inspect;
pub mod io;
pub mod kernel;
pub mod likelihood;
pub mod linalg;
pub mod memory;
pub mod metrics;
pub mod model;
pub mod objective;
pub mod optim;
pub mod params;
pub mod prepare;
pub mod preset;
pub mod real;
pub mod rng;
pub mod train;
pub mod variational;
pub mod views;

pub use error::Error;
pub use fitted::FittedModel;
pub use model::{Model, ModelSpec};

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
