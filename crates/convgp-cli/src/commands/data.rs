//! `convgp data`: inspect, download and list data sets.

use crate::args::data::{DataArgs, Geometry};
use crate::support::exit::Exit;
use crate::support::images::load;
use anyhow::Result;
use clap::{Args, Subcommand};
use convgp::io::write_atomically;
use convgp_data::download::{self, GetOptions};
use convgp_data::inspect::{contact_sheet, summary};
use convgp_data::registry::{self, REGISTRY};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::path::PathBuf;

/// Rows and columns of a contact sheet.
const SHEET: (usize, usize) = (10, 12);

/// Inspect, download and list data sets.
#[derive(Debug, Args)]
pub struct Data {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what a path holds: counts, shapes, classes, pixel ranges, skipped files.
    Inspect(Box<Look>),
    /// Download a registered data set and verify its checksums. An interrupted download is continued.
    Get(Get),
    /// List the registered data sets and their folders.
    List(List),
}

#[derive(Debug, Args)]
struct Look {
    /// A file, a folder, or a name such as mnist.
    source: String,
    /// PNG file for a contact sheet of training images.
    #[arg(long, value_name = "FILE")]
    sheet: Option<PathBuf>,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    geometry: Geometry,
    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Get {
    /// Name of the data set; `convgp data list` shows all.
    name: String,
    /// Folder in which a folder of that name is made (default: $CONVGP_DATA, then the user's cache).
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// URL to download from instead of the registered ones. May be repeated.
    #[arg(long, value_name = "URL")]
    mirror: Vec<String>,
}

#[derive(Debug, Args)]
struct List {
    /// Folder with registered data sets (default: $CONVGP_DATA, then the user's cache).
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Does it.
pub fn run(args: &Data) -> Result<Exit> {
    match &args.command {
        Command::Inspect(args) => inspect(args)?,
        Command::Get(args) => get(args)?,
        Command::List(args) => list(args)?,
    }
    Ok(Exit::Done)
}

fn inspect(args: &Look) -> Result<()> {
    let loaded = load(&args.source, &args.data, &args.geometry)?;
    let summary = summary(&loaded);
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&summary)?)?,
        false => write!(out, "{summary}")?,
    }
    if let (Some(path), Some(first)) = (&args.sheet, loaded.splits.first()) {
        write_atomically(path, &contact_sheet(&first.data, SHEET.0, SHEET.1))?;
    }
    Ok(())
}

fn get(args: &Get) -> Result<()> {
    let style =
        ProgressStyle::with_template("{msg} {bar:24} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left");
    let bar = ProgressBar::new(0).with_style(style.expect("the template is well formed"));
    let show = |p: download::Progress| {
        bar.set_message(p.file.to_string());
        bar.set_length(p.total);
        bar.set_position(p.done);
    };
    let options =
        GetOptions { dir: args.data_dir.clone(), mirrors: args.mirror.clone(), progress: Some(&show) };
    let folder = download::get(&args.name, &options);
    bar.finish_and_clear();
    writeln!(std::io::stdout(), "{}", folder?.display())?;
    Ok(())
}

fn list(args: &List) -> Result<()> {
    let mut out = std::io::stdout().lock();
    for info in REGISTRY {
        let place = registry::locate(info.name, args.data_dir.as_deref());
        let place = place.map_or_else(|_| "not here".into(), |p| p.display().to_string());
        writeln!(out, "{:14} {} ({place})", info.name, info.about)?;
    }
    writeln!(out, "{:14} handwritten digits, 300 + 100, 28x28 grey (built in)", "sample")?;
    Ok(())
}
