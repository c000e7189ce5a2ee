//! `cargo xtask`: the project's own commands. Run without arguments for a list.

mod bench;
mod book;
mod browser;
mod checks;
mod fixtures;
mod python;
mod python_spec;
mod readme;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Commands for working on convgp")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Format, lints and documentation, warnings denied
    Check,
    /// Everything CI runs: `check`, all tests and doc-tests, then the book, reports in a browser and the Python package where there are those
    Test,
    /// Check links and names in README and docs, and build the book where mdBook is there or can be installed
    Book,
    /// Write the tables of README and docs that come from committed records
    Readme,
    /// Write python/convgp/_spec_types.py, the specs of models as Python classes, from the Rust ones
    PythonSpec,
    /// Write python/convgp/_convgp.pyi, the types of the native half of the Python package, from the code
    Stub,
    /// Compare with golden files (schema: fixtures/README.md); fails past the tolerances stated there
    Fixtures {
        /// Files, or directories of `.json` files
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// What computes the covariances
        #[arg(long, value_enum, default_value_t = fixtures::EngineName::Reference)]
        engine: fixtures::EngineName,
    },
    /// Measure: the machine's limits, kernels, training steps, growth, prediction (bench/peers compares with others)
    Bench(bench::Options),
    /// One configuration, for `bench` to run in a process of its own
    #[command(hide = true)]
    BenchChild {
        /// What to measure, in JSON
        job: String,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Check => checks::check()?,
        Command::Test => checks::test()?,
        Command::Book => book::check().and_then(|()| book::build())?,
        Command::Readme => readme::write()?,
        Command::PythonSpec => python_spec::write()?,
        Command::Stub => python::write_stub()?,
        Command::Fixtures { paths, engine } => return fixtures::run(&paths, engine),
        Command::Bench(options) => bench::run(&options)?,
        Command::BenchChild { job } => bench::child::run(&job)?,
    }
    Ok(ExitCode::SUCCESS)
}
