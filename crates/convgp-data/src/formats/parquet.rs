//! Parquet as data sets lie on the hub: an image column `{bytes, path}` or plain bytes, and a label column.

use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use ::parquet::basic::Type as Physical;
use ::parquet::file::reader::{FileReader, SerializedFileReader};

use crate::detect::parquet_files;
use crate::error::{Error, Place, Result};
use crate::formats::decode::{Encoded, decode_all};
use crate::formats::parquet_columns::{Cell, Leaf, failure, leaves, read_column};
use crate::formats::table_rows::LABEL_NAMES;
use crate::loaded::{Format, Labels, Raw, RawSplit, SplitKind};
use crate::options::OpenOptions;
use crate::provenance::hash_files;
use crate::source::{Budget, name_of, read_failure};

/// One file, or all files of one split.
struct Part {
    kind: SplitKind,
    file: String,
    images: Vec<Encoded>,
    labels: Option<Vec<Cell>>,
    class_names: Option<Vec<String>>,
}

/// Reads a Parquet file or a folder of them.
pub(crate) fn read(path: &Path, options: &OpenOptions, budget: &Budget) -> Result<Raw> {
    let mut files = if path.is_dir() { parquet_files(path)? } else { vec![path.to_path_buf()] };
    files.retain(|f| options.wants(split_of(f)));
    let mut parts: Vec<Part> = Vec::new();
    for file in &files {
        let part = guarded(file, options, budget)?;
        match parts.iter_mut().find(|p| p.kind == part.kind) {
            Some(existing) => {
                existing.images.extend(part.images);
                existing.labels = existing.labels.take().zip(part.labels).map(|(mut all, more)| {
                    all.extend(more);
                    all
                });
            }
            None => parts.push(part),
        }
    }
    finish(path, parts, &files, options, budget)
}

/// The file name tells the split, else its folder.
fn split_of(file: &Path) -> SplitKind {
    let folder = file.parent().map(name_of).unwrap_or_default();
    SplitKind::from_name(&name_of(file)).or_else(|| SplitKind::from_name(&folder)).unwrap_or(SplitKind::Train)
}

/// Damaged pages can make the `parquet` crate panic; that is then an error like any other.
fn guarded(path: &Path, options: &OpenOptions, budget: &Budget) -> Result<Part> {
    catch_unwind(AssertUnwindSafe(|| read_file(path, options, budget))).unwrap_or_else(|_| {
        let reason = "the decoder gave up on it".into();
        Err(Error::Damaged { file: path.display().to_string(), place: Place::Header, reason })
    })
}

fn read_file(path: &Path, options: &OpenOptions, budget: &Budget) -> Result<Part> {
    let file = path.display().to_string();
    let mut opened = File::open(path).map_err(|e| Error::io(path, "open", e))?;
    check_magic(&mut opened, &file)?;
    let reader = SerializedFileReader::new(opened).map_err(|e| failure(&file, 0, e))?;
    let all = leaves(&reader);
    let image = image_leaf(&all).ok_or_else(|| missing(&file, "image", &all))?;
    let features = features(&reader);
    let label = label_leaf(&all, image, &features, options);
    if label.is_none() && !options.unlabelled {
        return Err(missing(&file, "label", &all));
    }
    let labels = label.map(|label| read_column(&reader, label, &file, budget)).transpose()?;
    let cells = read_column(&reader, image, &file, budget)?;
    let encode = |(row, cell)| Encoded::Memory {
        name: format!("{file}, row {row}"),
        bytes: if let Cell::Bytes(bytes) = cell { bytes } else { Vec::new() },
    };
    let images = cells.into_iter().enumerate().map(encode).collect();
    let class_names = label.and_then(|label| class_names(&features, &label.path[0]));
    Ok(Part { kind: split_of(path), file, images, labels, class_names })
}

/// The crate looks at the end of the file only.
fn check_magic(file: &mut File, name: &str) -> Result<()> {
    let mut found = Vec::new();
    file.take(4).read_to_end(&mut found).map_err(|e| read_failure(name, 0, "the first bytes", e))?;
    match found == b"PAR1" {
        true => Ok(()),
        false => Err(Error::BadMagic { file: name.into(), found, expected: "a Parquet file: 50 41 52 31" }),
    }
}

fn missing(file: &str, role: &'static str, all: &[Leaf]) -> Error {
    let columns = all.iter().map(|l| l.path.join(".")).collect();
    Error::MissingColumn { file: file.into(), role, columns }
}

/// A `bytes` field inside a group, else a top-level byte column with a telling name.
fn image_leaf(all: &[Leaf]) -> Option<&Leaf> {
    let bytes = |l: &&Leaf| l.physical == Physical::BYTE_ARRAY;
    let nested = |l: &&Leaf| l.path.len() == 2 && l.path[1] == "bytes";
    let named =
        |l: &&Leaf| l.path.len() == 1 && ["image", "img", "picture", "png", "jpg"].contains(&&*l.path[0]);
    all.iter().filter(bytes).find(nested).or_else(|| all.iter().filter(bytes).find(named))
}

/// The column asked for, else the one with class names, else one with a telling name, else the only other one.
fn label_leaf<'a>(
    all: &'a [Leaf],
    image: &Leaf,
    features: &serde_json::Value,
    options: &OpenOptions,
) -> Option<&'a Leaf> {
    let others: Vec<&Leaf> = all.iter().filter(|l| l.path.len() == 1 && l.index != image.index).collect();
    let named = |name: &str| others.iter().find(|l| l.path[0].eq_ignore_ascii_case(name)).copied();
    if let Some(asked) = &options.label_column {
        return named(asked);
    }
    let with_names = others.iter().find(|l| class_names(features, &l.path[0]).is_some()).copied();
    let only = if let [only] = others[..] { Some(only) } else { None };
    with_names.or_else(|| LABEL_NAMES.into_iter().chain(["fine_label"]).find_map(named)).or(only)
}

/// The `features` that the hub's tools store in the file; null if there are none.
fn features(reader: &dyn FileReader) -> serde_json::Value {
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let entry =
        metadata.and_then(|kv| kv.iter().find(|e| e.key == "huggingface")).and_then(|e| e.value.as_ref());
    let json =
        entry.and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok()).unwrap_or_default();
    json["info"]["features"].clone()
}

fn class_names(features: &serde_json::Value, column: &str) -> Option<Vec<String>> {
    let names = features[column]["names"].as_array()?;
    names.iter().map(|n| n.as_str().map(str::to_owned)).collect()
}

fn finish(
    path: &Path,
    parts: Vec<Part>,
    files: &[PathBuf],
    options: &OpenOptions,
    budget: &Budget,
) -> Result<Raw> {
    let class_names = parts.iter().find_map(|p| p.class_names.clone());
    let (mut groups, mut rest) = (Vec::new(), Vec::new());
    for part in parts {
        groups.push(part.images);
        rest.push((part.kind, part.file, part.labels));
    }
    let decoded = decode_all(path, &groups, options, budget)?;
    let mut splits = Vec::new();
    for (((kind, file, cells), pixels), kept) in rest.into_iter().zip(decoded.pixels).zip(&decoded.kept) {
        if !kept.is_empty() {
            let labels = match &cells {
                Some(cells) => labels(&file, cells, kept)?,
                None => Labels::Absent(kept.len()),
            };
            splits.push(RawSplit { kind, shape: decoded.shape, pixels, labels, names: None, file });
        }
    }
    let mut raw = Raw::new(Format::Parquet, splits, hash_files(files)?);
    raw.class_names = class_names;
    raw.skipped = decoded.skipped;
    raw.notes = decoded.notes;
    Ok(raw)
}

/// Labels of the rows that have an image.
fn labels(file: &str, cells: &[Cell], kept: &[usize]) -> Result<Labels> {
    let text = |i: usize| match cells.get(i) {
        Some(Cell::Bytes(bytes)) => Ok(String::from_utf8_lossy(bytes).into_owned()),
        Some(Cell::Whole(n)) => Ok(n.to_string()),
        Some(Cell::Real(x)) => Ok(x.to_string()),
        Some(Cell::Null) | None => {
            Err(Error::unexpected(file, Place::Row(i as u64), "no label", "one in every row"))
        }
    };
    Ok(Labels::Text(kept.iter().map(|&i| text(i)).collect::<Result<_>>()?))
}
