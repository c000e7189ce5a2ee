//! Options of all commands that read images.

use clap::{Args, ValueEnum};
use convgp_data::{Fit, Format, SplitKind};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;

/// Selection and reading of data.
#[derive(Debug, Clone, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct DataArgs {
    /// Folder with registered data sets (default: $CONVGP_DATA, then the user's cache).
    #[arg(long, value_name = "DIR", help_heading = "Data")]
    pub data_dir: Option<PathBuf>,
    /// Keep only these classes, by name or number.
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', help_heading = "Data")]
    pub classes: Vec<String>,
    /// Keep at most this many images of each split, classes balanced.
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = "Data")]
    pub limit: Option<usize>,
    /// Type of the labels: classes or real numbers.
    #[arg(long, value_enum, default_value_t, help_heading = "Data")]
    pub targets: Kind,
    /// Label column of a table or Parquet file: a name, or a number from 0.
    #[arg(long, value_name = "NAME", help_heading = "Data")]
    pub label_column: Option<String>,
    /// Shape of the images in tables and arrays, such as 32x32x3 (default: square and grey).
    #[arg(long, value_name = "HxWxC", help_heading = "Data")]
    pub shape: Option<Extent>,
    /// Format of the data (default: detected).
    #[arg(long, value_parser = parse_format, help_heading = "Data")]
    pub format: Option<Format>,
    /// Fail on an unreadable image instead of skipping it.
    #[arg(long, help_heading = "Data")]
    pub strict: bool,
    /// The only splits to open; all when empty.
    #[arg(skip)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub splits: Vec<SplitKind>,
}

/// A number of things, of which there must be some.
pub fn parse_count(text: &str) -> Result<usize, String> {
    let count = text.parse::<usize>().map_err(|_| format!("`{text}` is no whole number"))?;
    if count > 0 { Ok(count) } else { Err("it must be at least 1".into()) }
}

/// A fraction of the images to set apart.
pub fn parse_fraction(text: &str) -> Result<f64, String> {
    let fraction: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if fraction > 0.0 && fraction < 1.0 {
        Ok(fraction)
    } else {
        Err("it must lie between 0 and 1, such as 0.1".into())
    }
}

/// Size and colour of the images.
#[derive(Debug, Clone, Copy, Default, PartialEq, Args, Serialize, Deserialize)]
#[serde(default)]
pub struct Geometry {
    /// Resize all images to this size (default: as stored; images of several sizes become 32x32).
    #[arg(long, value_name = "HxW", help_heading = "Data")]
    pub size: Option<Extent>,
    /// How images are resized.
    #[arg(long, value_enum, default_value_t, help_heading = "Data")]
    pub fit: FitKind,
    /// Convert all images to grey or RGB.
    #[arg(long, value_enum, default_value_t, help_heading = "Data")]
    pub colour: ColourKind,
}

/// Classes or regression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Classes when all labels are whole numbers or words.
    #[default]
    Auto,
    /// Classes.
    Classes,
    /// Real numbers.
    Real,
}

/// Ways to another size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FitKind {
    /// Crop the largest centred part with the right aspect ratio, then scale.
    #[default]
    Crop,
    /// Scale height and width separately.
    Stretch,
    /// Crop the centre, or add a black border.
    Centre,
}

/// Colour of the images.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColourKind {
    /// As stored.
    #[default]
    AsFound,
    /// One channel.
    Grey,
    /// Three channels.
    Rgb,
}

impl FitKind {
    /// The library's word for it.
    pub fn fit(self) -> Fit {
        match self {
            FitKind::Crop => Fit::Crop,
            FitKind::Stretch => Fit::Stretch,
            FitKind::Centre => Fit::Centre,
        }
    }
}

/// `HxW` or `HxWxC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Extent {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Channels, if given.
    pub channels: Option<usize>,
}

impl FromStr for Extent {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not of the form 28x28 or 32x32x3");
        let sides: Vec<usize> =
            text.split('x').map(|s| s.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
        match (sides.as_slice(), sides.contains(&0)) {
            (&[height, width], false) => Ok(Self { height, width, channels: None }),
            (&[height, width, c], false) => Ok(Self { height, width, channels: Some(c) }),
            _ => Err(wrong()),
        }
    }
}

impl TryFrom<String> for Extent {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Extent> for String {
    fn from(e: Extent) -> Self {
        e.channels
            .map_or_else(|| format!("{}x{}", e.height, e.width), |c| format!("{}x{}x{c}", e.height, e.width))
    }
}

fn parse_format(text: &str) -> Result<Format, String> {
    serde_json::from_value(text.into()).map_err(|_| {
        let name = |format| serde_json::to_value(format).ok()?.as_str().map(String::from);
        let read = Format::ALL.into_iter().filter(|format| *format != Format::Generated);
        let known: Vec<String> = read.filter_map(name).collect();
        format!("unknown format; there are {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_read_and_written() {
        for text in ["28x28", "5x3", "32x32x3"] {
            assert_eq!(String::from(text.parse::<Extent>().unwrap()), text);
        }
        for text in ["28", "28x", "0x3", "axb", "1x2x3x4", ""] {
            assert!(text.parse::<Extent>().is_err(), "{text}");
        }
    }
}
