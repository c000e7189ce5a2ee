//! The convgp command line. Results go to standard output, progress and errors to standard error.

mod demo;
mod progress;

use clap::{Parser, Subcommand};

/// Convolutional Gaussian processes: image models that know what they do not know.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Generate the paper's rectangles data, train on it, and compare with the published figures.
    Demo(demo::Demo),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Demo(demo) => demo.run(),
    }
}
