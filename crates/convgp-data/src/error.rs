//! What can go wrong when data are read: each error names the file, the place, what was expected and what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use convgp::data::{DataError, ImageShape};

/// A place inside a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// Offset in bytes, counted after decompression.
    Byte(u64),
    /// Row of a table, counted from 1 with a header line included.
    Row(u64),
    /// Field of a row, both counted from 1.
    Field {
        /// Row.
        row: u64,
        /// Column.
        field: usize,
    },
    /// Image, counted from 0.
    Image(usize),
    /// The header.
    Header,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Byte(offset) => write!(f, "byte {offset}"),
            Place::Row(row) => write!(f, "row {row}"),
            Place::Field { row, field } => write!(f, "row {row}, field {field}"),
            Place::Image(image) => write!(f, "image {image}"),
            Place::Header => f.write_str("header"),
        }
    }
}

/// Why data could not be read. Files inside archives are written `archive!entry`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum Error {
    #[error("{file}: cannot {action}: {source}")]
    Io { file: String, action: &'static str, source: io::Error },

    #[error(
        "{path}: not recognised as a data set: {reason}. Known: IDX files (MNIST family), CIFAR binary batches, NPY/NPZ, \
         CSV/amat tables (also in a zip), folders of images by class, metadata.csv, Parquet; \
         or a name such as `mnist` (see `convgp data get`)"
    )]
    UnknownFormat { path: String, reason: String },

    #[error("{file}: ends at byte {at} while reading {what}. The file is cut short; fetch or write it again")]
    Truncated { file: String, at: u64, what: String },

    #[error(
        "{file}: more data than the header announces, starting at byte {at}. Check that the file is what its name says"
    )]
    TrailingData { file: String, at: u64 },

    #[error("{file}: damaged at {place}: {reason}. Fetch or write the file again")]
    Damaged { file: String, place: Place, reason: String },

    #[error(
        "{file}: starts with bytes {found:02x?}, expected {expected}. Check that the file is what its name says"
    )]
    BadMagic { file: String, found: Vec<u8>, expected: &'static str },

    #[error("{file}: {place}: found {found}, expected {expected}")]
    Unexpected { file: String, place: Place, found: String, expected: String },

    #[error(
        "{images_file} holds {images} images, but {labels_file} holds {labels} labels. The two files do not belong together"
    )]
    CountMismatch { images_file: String, images: usize, labels_file: String, labels: usize },

    #[error(
        "{file}: {place}: label {label} is out of range, expected whole numbers 0..={}. \
         Correct the labels, or ask for real-valued targets", classes.saturating_sub(1)
    )]
    LabelOutOfRange { file: String, place: Place, label: String, classes: usize },

    #[error(
        "{file}: row {row} has {found} fields, the rows before have {expected}. Correct or drop that row"
    )]
    RowWidth { file: String, row: u64, found: usize, expected: usize },

    #[error(
        "{file}: {pixels} pixels per image are not a square grey image. Give the image shape, for example 32x32x3"
    )]
    NotSquare { file: String, pixels: usize },

    #[error(
        "{file}: {what} would need {bytes} bytes, more than the {left} that are left of the memory cap. \
         If the file is right, raise the memory cap or ask for fewer classes or smaller images"
    )]
    TooLarge { file: String, what: String, bytes: u128, left: u64 },

    #[error(
        "{file}: images are {found}, elsewhere in the data set {expected}. Ask for one size, for example 32x32"
    )]
    MixedShapes { file: String, found: ImageShape, expected: ImageShape },

    #[error("{file}: no column for the {role}; columns are {columns:?}. Name one of them")]
    MissingColumn { file: String, role: &'static str, columns: Vec<String> },

    #[error("{path}: {what} is missing. {hint}")]
    Missing { path: String, what: String, hint: &'static str },

    #[error("both {first} and {second} would be the {split} split. Name one file instead of the folder")]
    Ambiguous { first: String, second: String, split: String },

    #[error(
        "{file}: both {first} and {second} may belong to it. Move one away, or name them alike (x_train.npy, y_train.npy)"
    )]
    Partners { file: String, first: String, second: String },

    #[error("{file}: {what} is not supported. {hint}")]
    Unsupported { file: String, what: String, hint: &'static str },

    #[error(
        "{file}: entry {entry:?} points outside its folder; nothing was read from it. Do not use this file"
    )]
    UnsafeEntry { file: String, entry: String },

    #[error("{path}: none of the {} files could be read as an image; the first: {}: {}", skipped.len(), skipped[0].0, skipped[0].1)]
    NothingReadable { path: String, skipped: Vec<(String, String)> },

    #[error(
        "{path}: all images have the label {class:?}; classification needs at least 2. If another column is the label, name it \
         (--label-column); for real-valued targets ask for them (--targets real)"
    )]
    OneClass { path: String, class: String },

    #[error(
        "{file}: {classes} different labels for {images} images are no classes. For real-valued targets ask for them \
         (--targets real); if another column is the label, name it (--label-column)"
    )]
    TooManyClasses { file: String, classes: usize, images: usize },

    #[error("class {asked:?} is not in the data; there are {available:?}")]
    UnknownClass { asked: String, available: Vec<String> },

    #[error("classes were asked for, but the targets are real numbers. Leave the classes out")]
    NoClasses,

    #[error(
        "split fractions {fractions:?} must be positive and sum to at most 1, and leave at least one image in each of the parts"
    )]
    Fractions { fractions: Vec<f64> },

    #[error("no data set is called {name:?}; known names: {known}")]
    UnknownDataset { name: String, known: String },

    #[error(
        "{name} is not on this machine; {}. Fetch it with `convgp data get {name}`, or set CONVGP_DATA to a \
         folder that has it",
        looked_in_text(looked_in)
    )]
    NotInstalled { name: String, looked_in: Vec<PathBuf> },

    #[error("{file} could not be fetched; {}. Check the connection, or name a mirror with CONVGP_MIRROR", tried.join("; "))]
    Download { file: String, tried: Vec<String> },

    #[error("{file}: {source}")]
    Data { file: String, source: DataError },
}

fn looked_in_text(folders: &[PathBuf]) -> String {
    match folders {
        [] => "there is no folder to look in, as neither CONVGP_DATA nor the home folder is set".into(),
        _ => format!(
            "looked in {}",
            folders.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
        ),
    }
}

impl Error {
    /// An input/output error on a path.
    pub(crate) fn io(path: &Path, action: &'static str, source: io::Error) -> Self {
        Error::Io { file: path.display().to_string(), action, source }
    }

    /// Wraps what the library says about finished arrays.
    pub(crate) fn data(file: &str) -> impl FnOnce(DataError) -> Self {
        let file = file.to_owned();
        move |source| Error::Data { file, source }
    }

    pub(crate) fn unexpected(
        file: &str,
        place: Place,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Error::Unexpected {
            file: file.into(),
            place,
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }
}

/// Result of reading data.
pub type Result<T> = std::result::Result<T, Error>;
