//! One reader per format. Each delivers a [`Raw`](crate::loaded::Raw) data set.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::loaded::Raw;
use crate::options::OpenOptions;
use crate::source::Budget;

pub(crate) mod archive;
pub(crate) mod cifar;
pub(crate) mod decode;
pub(crate) mod folder;
pub(crate) mod idx;
pub(crate) mod metadata;
pub(crate) mod npy;
pub(crate) mod npy_array;
pub(crate) mod npy_header;
pub(crate) mod numbers;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
#[cfg(feature = "parquet")]
pub(crate) mod parquet_columns;
pub(crate) mod table;
pub(crate) mod table_columns;
pub(crate) mod table_rows;

/// How a format is named and read.
pub(crate) struct FormatReader {
    pub name: &'static str,
    pub read: fn(&Path, &OpenOptions, &Budget) -> Result<Raw>,
}

/// The formats: a variant each, what it is, its name, its reader.
macro_rules! formats {
    ($($Variant:ident, $about:literal, $name:literal, $read:path;)*) => {
        /// A file format.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[non_exhaustive]
        pub enum Format {
            $(#[doc = $about] $Variant,)*
        }

        impl Format {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$Variant),*];

            pub(crate) fn reader(self) -> FormatReader {
                match self { $(Self::$Variant => FormatReader { name: $name, read: $read },)* }
            }
        }
    };
}

formats! {
    Idx, "IDX files of the MNIST family.", "IDX files", idx::read;
    Cifar10, "CIFAR-10 binary batches.", "CIFAR-10 binary", cifar::read;
    Cifar100, "CIFAR-100 binary batches.", "CIFAR-100 binary", cifar::read;
    Npy, "NumPy arrays, one per file.", "NPY arrays", npy::read;
    Npz, "NumPy arrays in one archive.", "NPZ arrays", npy::read;
    Table, "Tables of numbers, a row an image: CSV, TSV or white space (amat), perhaps in a zip.", "table of numbers", table::read;
    Folder, "A folder of image files by class.", "folder of images", folder::read;
    Metadata, "Image files listed in a `metadata.csv`.", "images listed in metadata.csv", metadata::read;
    Parquet, "Parquet with an image column.", "Parquet", read_parquet;
    Generated, "Made by a generator, not read.", "generated", read_generated;
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.reader().name)
    }
}

#[cfg(feature = "parquet")]
use parquet::read as read_parquet;

#[cfg(not(feature = "parquet"))]
fn read_parquet(path: &Path, _: &OpenOptions, _: &Budget) -> Result<Raw> {
    unsupported(path, "Parquet in this build", "Build convgp-data with the feature `parquet`")
}

fn read_generated(path: &Path, _: &OpenOptions, _: &Budget) -> Result<Raw> {
    unsupported(path, "reading generated data", "Call the generator")
}

fn unsupported(path: &Path, what: &str, hint: &'static str) -> Result<Raw> {
    Err(Error::Unsupported { file: path.display().to_string(), what: what.into(), hint })
}

/// Files of a folder (not of its subfolders), sorted by name; hidden ones left out.
pub(crate) fn files_in(dir: &Path) -> Result<Vec<PathBuf>> {
    Ok(entries(dir)?.into_iter().filter(|p| p.is_file()).collect())
}

/// Subfolders, sorted by name; hidden ones left out.
pub(crate) fn folders_in(dir: &Path) -> Result<Vec<PathBuf>> {
    Ok(entries(dir)?.into_iter().filter(|p| p.is_dir()).collect())
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let listing = std::fs::read_dir(dir).map_err(|e| Error::io(dir, "list", e))?;
    let mut paths = Vec::new();
    for entry in listing {
        let entry = entry.map_err(|e| Error::io(dir, "list", e))?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}

/// Class names from `classes.txt` or `class_names.txt`, one a line, if there is such a file.
pub(crate) fn class_name_file(dir: Option<&Path>) -> Result<Option<Vec<String>>> {
    let Some(dir) = dir else { return Ok(None) };
    for name in ["classes.txt", "class_names.txt"] {
        let path = dir.join(name);
        if path.is_file() {
            let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, "read", e))?;
            return Ok(Some(name_lines(&text)));
        }
    }
    Ok(None)
}

/// Non-empty lines.
pub(crate) fn name_lines(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned).collect()
}
