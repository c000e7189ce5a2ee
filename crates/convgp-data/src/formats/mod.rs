//! One reader per format. Each delivers a [`Raw`](crate::loaded::Raw) data set.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

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
