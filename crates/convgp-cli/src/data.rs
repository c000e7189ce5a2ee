//! `convgp data`: look into a data set, fetch one, list them.

use crate::exit::Exit;
use crate::source::{DataArgs, Geometry};
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

/// Data sets.
#[derive(Debug, Args)]
pub struct Data {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// What a path holds: counts, shapes, classes, ranges, skipped files.
    Inspect(Box<Look>),
    /// Fetch a registered data set, with checksums; an interrupted transfer goes on.
    Get(Get),
    /// Registered data sets, and where they lie.
    List(List),
}

#[derive(Debug, Args)]
struct Look {
    /// A file, a folder, or a name such as mnist.
    source: String,
    /// Write a contact sheet of training images to this PNG.
    #[arg(long, value_name = "FILE")]
    sheet: Option<PathBuf>,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    geometry: Geometry,
    /// One JSON object instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Get {
    /// Which one; see `convgp data list`.
    name: String,
    /// Folder that gets a folder of that name (default: $CONVGP_DATA, then the user's cache).
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Address to fetch from instead of the registered ones. May be repeated.
    #[arg(long, value_name = "URL")]
    mirror: Vec<String>,
}

#[derive(Debug, Args)]
struct List {
    /// Folder with registered data sets (default: $CONVGP_DATA, then the user's cache).
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Data {
    /// Does it.
    pub fn run(&self) -> Result<Exit> {
        match &self.command {
            Command::Inspect(look) => look.run()?,
            Command::Get(get) => get.run()?,
            Command::List(list) => list.run()?,
        }
        Ok(Exit::Done)
    }
}

impl Look {
    fn run(&self) -> Result<()> {
        let loaded = self.data.load(&self.source, &self.geometry)?;
        let summary = summary(&loaded);
        let mut out = std::io::stdout().lock();
        match self.json {
            true => writeln!(out, "{}", serde_json::to_string_pretty(&summary)?)?,
            false => write!(out, "{summary}")?,
        }
        if let (Some(path), Some(first)) = (&self.sheet, loaded.splits.first()) {
            write_atomically(path, &contact_sheet(&first.data, SHEET.0, SHEET.1))?;
        }
        Ok(())
    }
}

impl Get {
    fn run(&self) -> Result<()> {
        let style =
            ProgressStyle::with_template("{msg} {bar:24} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left");
        let bar = ProgressBar::new(0).with_style(style.expect("the template is well formed"));
        let show = |p: download::Progress| {
            bar.set_message(p.file.to_string());
            bar.set_length(p.total);
            bar.set_position(p.done);
        };
        let options =
            GetOptions { dir: self.data_dir.clone(), mirrors: self.mirror.clone(), progress: Some(&show) };
        let folder = download::get(&self.name, &options);
        bar.finish_and_clear();
        writeln!(std::io::stdout(), "{}", folder?.display())?;
        Ok(())
    }
}

impl List {
    fn run(&self) -> Result<()> {
        let mut out = std::io::stdout().lock();
        for info in REGISTRY {
            let place = registry::locate(info.name, self.data_dir.as_deref());
            let place = place.map_or_else(|_| "not here".into(), |p| p.display().to_string());
            writeln!(out, "{:14} {} ({place})", info.name, info.about)?;
        }
        writeln!(out, "{:14} handwritten digits, 300 + 100, 28x28 grey (built in)", "sample")?;
        Ok(())
    }
}
