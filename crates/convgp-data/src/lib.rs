//! Image data sets for convgp: readers for the usual formats, generators, and the small tools around them.
//!
//! [`open()`] reads whatever a path holds into a [`Loaded`]; [`generate`] makes data, [`out_of_distribution`] images of
//! no data set; [`sample`] has a few hundred real digits built in; [`registry`] knows data sets by name and, with the
//! feature `download`, `download::get` fetches them.
//!
//! Nothing is ever unpacked to disk, memory is capped ([`OpenOptions::memory_cap`]), and every [`Error`] names the file
//! and the place.

mod assemble;
mod detect;
#[cfg(feature = "download")]
pub mod download;
mod error;
mod formats;
pub mod generate;
pub mod inspect;
mod loaded;
mod open;
mod options;
pub mod out_of_distribution;
pub mod provenance;
pub mod registry;
pub mod sample;
mod source;
mod subset;
mod transform;
pub mod write;

pub use detect::detect;
pub use error::{Error, Place, Result};
pub use loaded::{FileHash, Format, Loaded, Skipped, Split, SplitKind};
pub use open::{ImageFiles, Opened, Unlabelled, open, open_any, read_images};
pub use options::{Colour, Fit, OpenOptions, Size, TargetKind};
pub use subset::{class_indices, limit_balanced, split, subset_classes};
