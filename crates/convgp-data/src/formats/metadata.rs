//! Image files listed in `metadata.csv` with the columns `file_name`, `label` and perhaps `split`.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::error::{Error, Place, Result};
use crate::formats::archive::check_entry;
use crate::formats::folder::{Listing, read_listings};
use crate::formats::folders_in;
use crate::formats::table::csv_failure;
use crate::formats::table_rows::LABEL_NAMES;
use crate::loaded::{Format, Labels, Raw, SplitKind};
use crate::options::OpenOptions;
use crate::provenance::hash_files;
use crate::source::{Budget, name_of};

const FILE_NAMES: [&str; 5] = ["file_name", "filename", "file", "image", "path"];
const NAME: &str = "metadata.csv";

/// The metadata files of a folder: its own, or those of its split folders.
pub(crate) fn metadata_files(dir: &Path) -> Result<Vec<PathBuf>> {
    let own = dir.join(NAME);
    if own.is_file() {
        return Ok(vec![own]);
    }
    Ok(folders_in(dir)?.into_iter().map(|d| d.join(NAME)).filter(|p| p.is_file()).collect())
}

/// Reads a folder with metadata, or the metadata file itself.
pub(crate) fn read(path: &Path, options: &OpenOptions, budget: &Budget) -> Result<Raw> {
    let tables = if path.is_dir() { metadata_files(path)? } else { vec![path.to_path_buf()] };
    let root = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    let mut by_split: BTreeMap<SplitKind, Vec<(PathBuf, String)>> = BTreeMap::new();
    let mut labelled = true;
    for table in &tables {
        labelled &= read_table(table, options, &mut by_split)?;
    }
    let listings: Vec<Listing> = by_split.into_iter().map(|(kind, files)| Listing { kind, files }).collect();
    let labels = |listing: &Listing, kept: &[usize]| match labelled {
        true => Labels::Text(kept.iter().map(|&i| listing.files[i].1.clone()).collect()),
        false => Labels::Absent(kept.len()),
    };
    let mut raw = read_listings(root, Format::Metadata, listings, labels, options, budget)?;
    raw.provenance.splice(0..0, hash_files(&tables)?);
    Ok(raw)
}

/// Takes the rows of a table; says whether they have labels.
fn read_table(
    table: &Path,
    options: &OpenOptions,
    by_split: &mut BTreeMap<SplitKind, Vec<(PathBuf, String)>>,
) -> Result<bool> {
    let file = table.display().to_string();
    let dir = table.parent().unwrap_or(Path::new(""));
    let folder_split = SplitKind::from_name(&name_of(dir)).unwrap_or(SplitKind::Train);
    let opened = File::open(table).map_err(|e| Error::io(table, "open", e))?;
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(opened);
    let start = csv::Position::new();
    let header = reader.headers().map_err(|e| csv_failure(&file, &start, e))?.clone();
    let columns: Vec<String> = header.iter().map(str::to_owned).collect();
    let find =
        |names: &[&str]| names.iter().find_map(|n| columns.iter().position(|c| c.eq_ignore_ascii_case(n)));
    let missing = |role| Error::MissingColumn { file: file.clone(), role, columns: columns.clone() };
    let file_at = find(&FILE_NAMES).ok_or_else(|| missing("file name (file_name)"))?;
    let label_at = match &options.label_column {
        Some(name) => find(&[name]),
        None => find(&LABEL_NAMES),
    };
    if label_at.is_none() && !options.unlabelled {
        return Err(missing("label"));
    }
    let split_at = find(&["split"]);
    let mut record = csv::StringRecord::new();
    loop {
        let position = reader.position().clone();
        if !reader.read_record(&mut record).map_err(|e| csv_failure(&file, &position, e))? {
            return Ok(label_at.is_some());
        }
        let row = record.position().map_or(0, csv::Position::line);
        let kind = match split_at.map(|i| &record[i]).filter(|s| !s.is_empty()) {
            None => folder_split,
            Some(word) => SplitKind::from_name(word).ok_or_else(|| {
                let place = Place::Field { row, field: split_at.unwrap_or_default() + 1 };
                Error::unexpected(&file, place, format!("split {word:?}"), "train, validation or test")
            })?,
        };
        if options.wants(kind) {
            check_entry(&file, &record[file_at])?;
            let label = label_at.map_or(String::new(), |i| record[i].to_owned());
            by_split.entry(kind).or_default().push((dir.join(&record[file_at]), label));
        }
    }
}
