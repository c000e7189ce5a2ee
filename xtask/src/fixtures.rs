//! `cargo xtask fixtures`: golden files against an engine.

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use convgp::cov::{Fused, Reference};
use convgp_golden::{GoldenError, Precision, Report, check_file, golden_files};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The engines, by name. A new one is a variant and a line in [`EngineName::check`].
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum EngineName {
    /// Naive loops in double precision
    Reference,
    /// The fast engine with double-precision tiles
    FusedF64,
    /// The fast engine as it is used, with single-precision tiles
    Fused,
}

impl EngineName {
    fn check(self, file: &Path) -> Result<Report, GoldenError> {
        match self {
            EngineName::Reference => check_file(file, &Reference, Precision::Double),
            EngineName::FusedF64 => check_file(file, &Fused::<f64>::default(), Precision::Double),
            EngineName::Fused => check_file(file, &Fused::<f32>::default(), Precision::Single),
        }
    }
}

/// Checks every file and prints a line and a table for each; the exit code says whether all passed.
#[allow(clippy::print_stdout)] // the output of the command
pub fn run(paths: &[PathBuf], engine: EngineName) -> Result<ExitCode> {
    let (mut passed, mut failed) = (0, 0);
    for path in paths {
        let files = golden_files(path).with_context(|| format!("{} cannot be listed", path.display()))?;
        ensure!(!files.is_empty(), "{} holds no .json file", path.display());
        for file in files {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let outcome = engine.check(&file);
            let ok = outcome.as_ref().is_ok_and(Report::passed);
            *(if ok { &mut passed } else { &mut failed }) += 1;
            match outcome {
                Ok(report) => println!("{} {name:<42} {report}", if ok { "ok  " } else { "FAIL" }),
                Err(error) => println!("FAIL {}: {error}", file.display()),
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
