//! `cargo xtask bench`: the machine's limits, the kernels against them, whole steps, growth, what each optimization buys,
//! prediction. Measures and reports; never judges.

mod box_filter;
pub mod child;
mod clock;
mod configs;
mod growth;
mod images;
mod kernels;
mod limits;
mod loops;
mod machine;
mod optimizations;
mod plot;
mod posterior;
mod report;
mod steps;

use anyhow::Result;
use child::Mode;
use clap::{Args, ValueEnum};
use configs::{CONFIGS, Config};
use images::Kind;
use limits::Limits;
use report::Report;
use std::path::{Path, PathBuf};
use steps::Choice;

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Section {
    /// What the machine can do at best
    Limits,
    /// kuf, kff and pullbacks, by sizes
    Kernels,
    /// Radial functions over tiles
    Exp,
    /// Marginals, their pullback, natural steps
    Posterior,
    /// Whole training steps of every configuration
    Steps,
    /// Step time against B, M, P, L and threads
    Growth,
    /// Steps with one optimization switched off
    #[value(alias = "tricks")]
    Optimizations,
    /// Images per second
    Predict,
}

/// Options of `cargo xtask bench`.
#[derive(Debug, Args)]
pub struct Options {
    /// One JSON line per measurement instead of Markdown tables
    #[arg(long)]
    json: bool,
    /// Only steps of this configuration
    #[arg(long)]
    config: Option<String>,
    /// Few repeats and sizes: to see whether everything runs
    #[arg(long)]
    quick: bool,
    /// Folder with mnist/, cifar10/ and rectangles/ in their original formats; the default is what CONVGP_DATA says
    #[arg(long)]
    data: Option<PathBuf>,
    /// Only these sections
    #[arg(long, value_enum, value_delimiter = ',')]
    sections: Vec<Section>,
    /// Only this optimiser
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Only these images
    #[arg(long, value_enum)]
    images: Option<Kind>,
    /// Timed steps per configuration
    #[arg(long)]
    steps: Option<usize>,
    /// Threads for steps
    #[arg(long)]
    threads: Option<usize>,
    /// Show the seconds of every step
    #[arg(long)]
    each: bool,
    /// Where the plot of the growth section goes
    #[arg(long)]
    plot: Option<PathBuf>,
}

/// Runs the chosen sections.
pub fn run(options: &Options) -> Result<()> {
    let report = Report { json: options.json };
    let quick = options.quick;
    let data = options.data.clone().or_else(|| std::env::var_os("CONVGP_DATA").map(PathBuf::from));
    let chosen = |section| match (&options.config, options.sections.is_empty()) {
        (Some(_), true) => section == Section::Steps,
        (None, true) => true,
        (_, false) => options.sections.contains(&section),
    };
    let choice = Choice {
        configs: match &options.config {
            Some(name) => vec![Config::find(name)?],
            None => CONFIGS.iter().collect(),
        },
        modes: options.mode.map_or(vec![Mode::Adam, Mode::Natural], |m| vec![m]),
        images: options.images.map_or(vec![Kind::Real, Kind::Random], |k| vec![k]),
        data: data.as_deref(),
        threads: options.threads.unwrap_or_else(machine::cores),
        steps: options.steps.unwrap_or(if quick { 2 } else { 15 }),
        each: options.each,
    };
    report.note(&machine::describe());
    if [Section::Limits, Section::Kernels, Section::Posterior].into_iter().any(chosen) {
        let limits = Limits::new(quick);
        if chosen(Section::Limits) {
            limits.show(report);
        }
        if chosen(Section::Kernels) {
            kernels::run(report, &limits, quick)?;
        }
        if chosen(Section::Posterior) {
            posterior::run(report, &limits, quick)?;
        }
    }
    if chosen(Section::Exp) {
        kernels::radials(report, quick);
    }
    if chosen(Section::Steps) {
        choice.run(report)?;
    }
    if chosen(Section::Growth) {
        let plot = options.plot.clone().unwrap_or_else(|| results().join("scaling.svg"));
        growth::run(report, quick, options.steps.unwrap_or(if quick { 1 } else { 5 }), &plot)?;
    }
    if chosen(Section::Optimizations) {
        let names: &[&str] = if quick { &["R"] } else { &["R", "M1", "C1", "C1cp"] };
        let one = options.config.as_deref().map(|c| [c]);
        let rounds = options.steps.unwrap_or(if quick { 2 } else { 7 });
        optimizations::run(report, data.as_deref(), rounds, one.as_ref().map_or(names, |c| &c[..]))?;
    }
    if chosen(Section::Predict) {
        choice.predict(report, if quick { 200 } else { 2000 })?;
    }
    Ok(())
}

fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/results")
}
