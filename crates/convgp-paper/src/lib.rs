//! The experiments of "Convolutional Gaussian Processes" (van der Wilk, Rasmussen, Hensman, NIPS 2017) and some beyond it:
//! settings, published figures, and the records of our runs.
//!
//! ```
//! use convgp_paper::{Experiment, Recipe};
//!
//! let experiment = Experiment::find("mnist-weighted")?;
//! let published = experiment.spec(Recipe::Paper)?;
//! assert_eq!(published.train.batch_size, 200);
//! assert_eq!(published.model.components[0].inducing.count, 750);
//! assert_eq!(experiment.published.unwrap().error, "1.22 %");
//! # Ok::<(), convgp_paper::Error>(())
//! ```
//!
//! | module | what lives there |
//! |---|---|
//! | [`catalog`] | the experiments: one file each in `experiments/`, with one model and a recipe or two |
//! | [`record`] | what a finished run leaves behind, and the committed records in `results/` |
//! | [`curve`] | how a run came to where it ended, as a table and as figures |
//! | [`table`] | results beside the published ones |

#![warn(missing_docs)]

pub mod catalog;
pub mod curve;
mod error;
mod machine;
pub mod record;
pub mod table;

pub use catalog::{Experiment, Recipe, choose};
pub use error::Error;
pub use record::{Record, committed};

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
