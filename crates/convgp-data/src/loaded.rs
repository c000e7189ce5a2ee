//! What reading a data set gives.

use std::fmt;
use std::path::PathBuf;

use convgp::data::{Dataset, ImageShape, Pixels};
use serde::{Deserialize, Serialize};

pub use crate::formats::Format;

/// Which part of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SplitKind {
    /// For training. Data without any split are all of this kind.
    Train,
    /// For choosing between models.
    Validation,
    /// For the final figure.
    Test,
}

impl SplitKind {
    /// Guesses the split from a file or folder name, such as `t10k-images-idx3-ubyte.gz` or `val`.
    pub fn from_name(name: &str) -> Option<Self> {
        let lower = name.to_lowercase();
        let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
        words.find_map(|word| match word {
            "train" | "training" => Some(SplitKind::Train),
            "test" | "testing" | "t10k" => Some(SplitKind::Test),
            "val" | "valid" | "validation" | "dev" => Some(SplitKind::Validation),
            _ => None,
        })
    }

    /// `train`, `validation` or `test`.
    pub fn name(self) -> &'static str {
        match self {
            SplitKind::Train => "train",
            SplitKind::Validation => "validation",
            SplitKind::Test => "test",
        }
    }
}

impl fmt::Display for SplitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A file that was passed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Path or entry.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// Where data came from. A folder of images is one entry per split, see [`crate::provenance`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHash {
    /// File name without its folder.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 in lower-case hexadecimal digits.
    pub sha256: String,
}

/// One split.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Which part it is.
    pub kind: SplitKind,
    /// Its images and targets.
    pub data: Dataset,
}

/// A data set as read: its splits share image shape and classes.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// The splits, train first.
    pub splits: Vec<Split>,
    /// One name per class; empty for regression.
    pub class_names: Vec<String>,
    /// Files that could not be used.
    pub skipped: Vec<Skipped>,
    /// Every file that was used.
    pub provenance: Vec<FileHash>,
    /// The format that was read.
    pub format: Format,
    /// Choices made on the way that a user should know of.
    pub notes: Vec<String>,
}

impl Loaded {
    /// The split of a kind, if there is one.
    pub fn get(&self, kind: SplitKind) -> Option<&Dataset> {
        self.splits.iter().find(|s| s.kind == kind).map(|s| &s.data)
    }
    /// The training split.
    pub fn train(&self) -> Option<&Dataset> {
        self.get(SplitKind::Train)
    }
    /// The test split.
    pub fn test(&self) -> Option<&Dataset> {
        self.get(SplitKind::Test)
    }
    /// The validation split.
    pub fn validation(&self) -> Option<&Dataset> {
        self.get(SplitKind::Validation)
    }
}

/// Labels before it is known how many classes there are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Labels {
    /// Whole numbers.
    Index(Vec<i64>),
    /// Words or numbers as written.
    Text(Vec<String>),
    /// Real numbers.
    Real(Vec<f64>),
    /// So many images have none.
    Absent(usize),
}

impl Labels {
    pub(crate) fn len(&self) -> usize {
        match self {
            Labels::Absent(count) => *count,
            Labels::Index(v) => v.len(),
            Labels::Text(v) => v.len(),
            Labels::Real(v) => v.len(),
        }
    }
}

/// One split as a reader delivers it.
#[derive(Debug)]
pub(crate) struct RawSplit {
    pub kind: SplitKind,
    pub shape: ImageShape,
    pub pixels: Pixels,
    pub labels: Labels,
    /// The file of every image, where each has its own.
    pub names: Option<Vec<PathBuf>>,
    /// File with the labels, for messages.
    pub file: String,
}

/// What a reader delivers; [`crate::assemble`] makes a [`Loaded`] of it.
#[derive(Debug)]
pub(crate) struct Raw {
    pub format: Format,
    pub splits: Vec<RawSplit>,
    pub class_names: Option<Vec<String>>,
    pub skipped: Vec<Skipped>,
    pub provenance: Vec<FileHash>,
    pub notes: Vec<String>,
}

impl Raw {
    pub(crate) fn new(format: Format, splits: Vec<RawSplit>, provenance: Vec<FileHash>) -> Self {
        Self { format, splits, class_names: None, skipped: Vec::new(), provenance, notes: Vec::new() }
    }
}
