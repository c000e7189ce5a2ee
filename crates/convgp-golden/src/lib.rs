//! Golden values: files that hold a small model with its covariances, bound, gradients and predictions as an
//! independent implementation computed them. The schemas are described in `fixtures/README.md` and
//! `fixtures/closed_form/README.md`.
//!
//! [`check_file`] parses a file, builds the same [`convgp::Model`] and compares it, with any engine. `cargo xtask fixtures`
//! and the library's `golden` test are its callers.
//!
//! | module | what lives there |
//! |---|---|
//! | `node` | a JSON value that knows its path, so that every complaint names a field |
//! | `kernel`, `views`, `likelihood` | these parts of a file as parts of a model |
//! | `posterior` | `q` between dense and packed triangles |
//! | `fixture`, `check` | a file with a posterior as a model; its evaluation |
//! | `closed_form` | a file of one component without a posterior as a model |
//! | `covariance`, `labels`, `energy`, `power` | the evaluation of each kind of those files |
//! | `compare` | comparison |
//! | `report` | worst errors, tolerances, the verdict |

mod check;
mod closed_form;
mod compare;
mod covariance;
mod energy;
mod error;
mod fixture;
mod kernel;
mod labels;
mod likelihood;
mod node;
mod posterior;
mod power;
mod report;
mod views;

pub use error::GoldenError;
pub use report::{Precision, Quantity, Report};

use convgp::cov::Engine;
use fixture::Fixture;
use node::Node;
use std::path::{Path, PathBuf};

/// Compares every array of a file with what the library computes.
pub fn check_file<E: Engine>(path: &Path, engine: &E, precision: Precision) -> Result<Report, GoldenError> {
    check_text(&std::fs::read_to_string(path)?, engine, precision)
}

/// The same from the text of a file.
pub fn check_text<E: Engine>(text: &str, engine: &E, precision: Precision) -> Result<Report, GoldenError> {
    let file = serde_json::from_str(text)?;
    let root = &Node::root(&file);
    let schema = root.get("schema")?;
    if schema.whole()? != 1 {
        return Err(schema.refuse(format!("is {}; only 1 is known", schema.whole()?)));
    }
    let Some(kind) = root.find("kind") else {
        return Fixture::new(root)?.check(root, engine, precision);
    };
    match kind.text()? {
        "covariance" => covariance::check(root, engine, precision),
        "labels" => labels::check(root, engine, precision),
        "energy" => energy::check(root, engine, precision),
        "power_expectation" => power::check(root, precision),
        other => Err(kind.refuse(format!(
            "is `{other}`; expected `covariance`, `labels`, `energy` or `power_expectation`"
        ))),
    }
}

/// The golden files named: each path itself, or every `.json` under it (sorted by name) if it is a directory.
pub fn golden_files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let file = entry?.path();
        if file.is_dir() {
            files.extend(golden_files(&file)?);
        } else if file.extension().is_some_and(|e| e == "json") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}
