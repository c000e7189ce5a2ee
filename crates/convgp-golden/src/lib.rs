//! Golden values: files that hold a small model with its covariances, bound, gradients and predictions as an
//! independent implementation computed them. The schema is described in `fixtures/README.md`.
//!
//! [`Fixture::read`] parses a file, builds the same [`convgp::Model`] and [`Fixture::check`] compares it, with any
//! engine. `cargo xtask fixtures` and the library's `golden` test are two callers of these two.
//!
//! | module | what lives there |
//! |---|---|
//! | `node` | a JSON value that knows its path, so that every complaint names a field |
//! | `kernel`, `views`, `likelihood` | these parts of a file as parts of a model |
//! | `posterior` | `q` between dense and packed triangles |
//! | `fixture` | the whole file as a model |
//! | `check`, `compare` | evaluation and comparison |
//! | `report` | worst errors, tolerances, the verdict |

mod check;
mod compare;
mod error;
mod fixture;
mod kernel;
mod likelihood;
mod node;
mod posterior;
mod report;
mod views;

pub use error::GoldenError;
pub use fixture::Fixture;
pub use report::{Precision, Quantity, Report};

use std::path::{Path, PathBuf};

/// The golden files named: each path itself, or every `.json` in it (sorted by name) if it is a directory.
pub fn golden_files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let file = entry?.path();
        if file.extension().is_some_and(|e| e == "json") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}
