//! Which format a path holds, from names first and contents second.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::formats::archive::Zip;
use crate::formats::folder::is_image_name;
use crate::formats::{cifar, files_in, folders_in, idx, metadata, npy, table};
use crate::loaded::Format;
use crate::source::{name_of, plain_name};

/// The format, and the file or folder inside `path` that holds the data.
pub fn detect(path: &Path) -> Result<(Format, PathBuf)> {
    if path.is_dir() {
        detect_folder(path, 0)?.ok_or_else(|| unknown(path, describe(path)))
    } else {
        detect_file(path).map(|format| (format, path.to_path_buf()))
    }
}

fn unknown(path: &Path, reason: String) -> Error {
    Error::UnknownFormat { path: path.display().to_string(), reason }
}

/// Why nobody recognised a folder, in a few words.
fn describe(dir: &Path) -> String {
    let (files, folders) = (files_in(dir).unwrap_or_default(), folders_in(dir).unwrap_or_default());
    let images = files.iter().filter(|f| is_image_name(f)).count();
    if images > 0 && folders.is_empty() {
        return format!(
            "its {images} images lie in one folder, and nothing says their classes; put them into one folder per class, or \
             list them in metadata.csv (file_name,label)"
        );
    }
    let inner: Vec<PathBuf> = folders.iter().flat_map(|f| files_in(f).unwrap_or_default()).collect();
    if inner.is_empty() && !folders.is_empty() {
        let some: Vec<String> = folders.iter().take(4).map(|f| name_of(f)).collect();
        return format!("its folders ({}) hold no files", some.join(", "));
    }
    if let Some(odd) = inner.first().filter(|_| !inner.iter().any(|f| is_image_name(f))) {
        let endings = crate::formats::folder::IMAGE_ENDINGS.join(", ");
        return format!("no file in its folders ends like an image ({endings}); there is {}", odd.display());
    }
    let names: Vec<String> = std::fs::read_dir(dir)
        .map(|entries| {
            entries.flatten().take(6).map(|e| e.file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    if names.is_empty() {
        "the folder is empty".into()
    } else {
        format!("it holds {}, ...", names.join(", "))
    }
}

fn detect_file(path: &Path) -> Result<Format> {
    let name = plain_name(path);
    let ends = |ending: &str| name.ends_with(ending);
    if name == "metadata.csv" {
        Ok(Format::Metadata)
    } else if ends(".parquet") {
        Ok(Format::Parquet)
    } else if ends(".npz") {
        Ok(Format::Npz)
    } else if ends(".npy") {
        Ok(Format::Npy)
    } else if table::is_table_name(path) {
        Ok(Format::Table)
    } else if cifar::is_tar_name(path) || cifar::is_batch_name(path) {
        Ok(Format::Cifar10)
    } else if idx::is_idx_name(path) {
        Ok(Format::Idx)
    } else if is_image_name(path) {
        Err(unknown(path, "it is a single image; a data set is a folder of them by class".into()))
    } else {
        detect_content(path)
    }
}

/// Looks at the first bytes.
fn detect_content(path: &Path) -> Result<Format> {
    let mut file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
    let mut start = Vec::new();
    (&mut file).take(8).read_to_end(&mut start).map_err(|e| Error::io(path, "read", e))?;
    match start.as_slice() {
        [b'P', b'A', b'R', b'1', ..] => Ok(Format::Parquet),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Ok(Format::Npy),
        [0, 0, 8, 1..=4, ..] => Ok(Format::Idx),
        [b'P', b'K', 3, 4, ..] => detect_zip(path),
        _ => Err(unknown(path, format!("its name tells nothing and it starts with {start:02x?}"))),
    }
}

fn detect_zip(path: &Path) -> Result<Format> {
    let arrays = Zip::open(path)?.names().iter().any(|n| n.ends_with(".npy"));
    Ok(if arrays { Format::Npz } else { Format::Table })
}

/// Rules in order of how telling they are. One folder in a folder is looked into (`MNIST/raw`, `cifar-10-batches-bin`).
fn detect_folder(dir: &Path, depth: usize) -> Result<Option<(Format, PathBuf)>> {
    let (files, folders) = (files_in(dir)?, folders_in(dir)?);
    let any = |test: &dyn Fn(&Path) -> bool| files.iter().any(|f| test(f));
    let here = |format| Ok(Some((format, dir.to_path_buf())));
    if !parquet_files(dir)?.is_empty() {
        return here(Format::Parquet);
    }
    if any(&|f| idx::is_idx_name(f) && plain_name(f).contains("images")) {
        return here(Format::Idx);
    }
    if any(&cifar::is_batch_name) {
        return here(Format::Cifar10);
    }
    if let Some(tar) = files.iter().find(|f| cifar::is_tar_name(f)) {
        return Ok(Some((Format::Cifar10, tar.clone())));
    }
    if any(&npy::is_npy_name) {
        return here(Format::Npy);
    }
    if !metadata::metadata_files(dir)?.is_empty() {
        return here(Format::Metadata);
    }
    if any(&table::is_table_name) {
        return here(Format::Table);
    }
    if let Some(zip) = files.iter().find(|f| plain_name(f).ends_with(".zip")) {
        return Ok(Some((detect_zip(zip)?, zip.clone())));
    }
    if let ([only], true) = (folders.as_slice(), depth < 3)
        && let Some(found) = detect_folder(only, depth + 1)?
    {
        return Ok(Some(found));
    }
    if has_images(&folders)? { here(Format::Folder) } else { Ok(None) }
}

/// Whether there are images one or two folders down.
fn has_images(folders: &[PathBuf]) -> Result<bool> {
    for folder in folders {
        if files_in(folder)?.iter().any(|f| is_image_name(f)) {
            return Ok(true);
        }
        for inner in folders_in(folder)? {
            if files_in(&inner)?.iter().any(|f| is_image_name(f)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Parquet files of a folder and of its subfolders, as data sets on the hub lie there.
pub(crate) fn parquet_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut found = files_in(dir)?;
    for folder in folders_in(dir)? {
        found.extend(files_in(&folder)?);
    }
    found.retain(|f| name_of(f).to_lowercase().ends_with(".parquet"));
    Ok(found)
}
