//! A folder of image files: `class/file` or `split/class/file`.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::formats::decode::{Encoded, decode_all};
use crate::formats::{files_in, folders_in};
use crate::loaded::{Format, Labels, Raw, RawSplit, Skipped, SplitKind};
use crate::options::OpenOptions;
use crate::provenance::hash_folder;
use crate::source::{Budget, name_of};

/// File endings that are taken for images.
pub(crate) const IMAGE_ENDINGS: [&str; 7] = ["png", "jpg", "jpeg", "bmp", "webp", "tif", "tiff"];

/// Whether a file name looks like an image.
pub(crate) fn is_image_name(path: &Path) -> bool {
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    ending.is_some_and(|e| IMAGE_ENDINGS.contains(&e.as_str()))
}

/// Images of one split: file and class name.
pub(crate) struct Listing {
    pub kind: SplitKind,
    pub files: Vec<(PathBuf, String)>,
}

/// Reads a folder by class, with or without splits above the classes.
pub(crate) fn read(root: &Path, options: &OpenOptions, budget: &Budget) -> Result<Raw> {
    let mut skipped = Vec::new();
    let mut listings = Vec::new();
    for (kind, dir) in split_folders(root)? {
        let mut files = Vec::new();
        if options.wants(kind) {
            list_classes(&dir, &mut files, &mut skipped)?;
        }
        // By file name first: files numbered through keep that order whatever their class.
        files.sort_by(|(a, _), (b, _)| (name_of(a), a).cmp(&(name_of(b), b)));
        if !files.is_empty() {
            listings.push(Listing { kind, files });
        }
    }
    let names = class_names(&listings);
    let labels = |listing: &Listing, kept: &[usize]| {
        let index =
            |&i: &usize| names.iter().position(|n| *n == listing.files[i].1).unwrap_or_default() as i64;
        Labels::Index(kept.iter().map(index).collect())
    };
    let mut raw = read_listings(root, Format::Folder, listings, labels, options, budget)?;
    raw.skipped.splice(0..0, skipped);
    raw.class_names = Some(names);
    Ok(raw)
}

/// The classes a folder has, from the names of its folders.
pub(crate) fn classes(root: &Path) -> Result<Vec<String>> {
    let (mut files, mut skipped) = (Vec::new(), Vec::new());
    for (_, dir) in split_folders(root)? {
        list_classes(&dir, &mut files, &mut skipped)?;
    }
    Ok(class_names(&[Listing { kind: SplitKind::Train, files }]))
}

/// The folders that hold classes. A folder named like a split counts as one only if it has folders in it: `train` may
/// also be a class, beside `car` and `ship`.
fn split_folders(root: &Path) -> Result<Vec<(SplitKind, PathBuf)>> {
    let mut found = Vec::new();
    for dir in folders_in(root)? {
        if let Some(kind) = SplitKind::from_name(&name_of(&dir))
            && !folders_in(&dir)?.is_empty()
        {
            found.push((kind, dir));
        }
    }
    if found.is_empty() {
        found.push((SplitKind::Train, root.to_path_buf()));
    }
    found.sort();
    for pair in found.windows(2) {
        if pair[0].0 == pair[1].0 {
            let (first, second) = (pair[0].1.display().to_string(), pair[1].1.display().to_string());
            return Err(Error::Ambiguous { first, second, split: pair[0].0.to_string() });
        }
    }
    Ok(found)
}

fn list_classes(dir: &Path, files: &mut Vec<(PathBuf, String)>, skipped: &mut Vec<Skipped>) -> Result<()> {
    let skip =
        |path: &Path, reason: &str| Skipped { path: path.display().to_string(), reason: reason.into() };
    skipped.extend(files_in(dir)?.iter().map(|f| skip(f, "not in the folder of a class")));
    for class in folders_in(dir)? {
        for file in files_in(&class)? {
            match is_image_name(&file) {
                true => files.push((file, name_of(&class))),
                false => skipped.push(skip(&file, "its name does not end like an image's")),
            }
        }
        skipped.extend(folders_in(&class)?.iter().map(|f| skip(f, "folder inside the folder of a class")));
    }
    Ok(())
}

/// Distinct classes of all splits; numbers in numerical order, else alphabetical.
fn class_names(listings: &[Listing]) -> Vec<String> {
    let mut names: Vec<String> = listings.iter().flat_map(|l| l.files.iter().map(|f| f.1.clone())).collect();
    names.sort();
    names.dedup();
    if names.iter().all(|n| n.parse::<u64>().is_ok()) {
        names.sort_by_key(|n| n.parse::<u64>().unwrap_or_default());
    }
    names
}

/// Decodes listed files and hashes those that could be read.
pub(crate) fn read_listings(
    root: &Path,
    format: Format,
    listings: Vec<Listing>,
    labels: impl Fn(&Listing, &[usize]) -> Labels,
    options: &OpenOptions,
    budget: &Budget,
) -> Result<Raw> {
    let encode = |l: &Listing| l.files.iter().map(|f| Encoded::File(f.0.clone())).collect();
    let groups: Vec<Vec<Encoded>> = listings.iter().map(encode).collect();
    let decoded = decode_all(root, &groups, options, budget)?;
    let (mut splits, mut provenance) = (Vec::new(), Vec::new());
    for ((listing, pixels), kept) in listings.iter().zip(decoded.pixels).zip(&decoded.kept) {
        if kept.is_empty() {
            continue;
        }
        let paths: Vec<PathBuf> = kept.iter().map(|&i| listing.files[i].0.clone()).collect();
        provenance.push(hash_folder(format!("{} ({} files)", listing.kind, paths.len()), root, &paths)?);
        splits.push(RawSplit {
            kind: listing.kind,
            shape: decoded.shape,
            pixels,
            labels: labels(listing, kept),
            names: Some(paths),
            file: root.display().to_string(),
        });
    }
    let mut raw = Raw::new(format, splits, provenance);
    raw.skipped = decoded.skipped;
    raw.notes = decoded.notes;
    Ok(raw)
}
