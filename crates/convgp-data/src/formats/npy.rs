//! NumPy arrays: `x`/`y` or `images`/`labels`, with the split in the name, in NPY files or an NPZ archive.

use std::path::{Path, PathBuf};

use convgp::data::ImageShape;

use crate::error::{Error, Place, Result};
use crate::formats::archive::Zip;
use crate::formats::numbers::{Numbers, flat_shape, settle};
use crate::formats::{class_name_file, files_in, npy_array};
use crate::loaded::{Format, Labels, Raw, RawSplit, Skipped, SplitKind};
use crate::options::OpenOptions;
use crate::provenance::hash_files;
use crate::source::{Budget, Input, name_of, plain_name};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Role {
    Images,
    Labels,
}

/// An array in a file or in an archive.
#[derive(Debug)]
struct Member {
    path: PathBuf,
    entry: Option<String>,
    kind: SplitKind,
    role: Role,
}

impl Member {
    fn name(&self) -> String {
        let path = self.path.display();
        self.entry.as_ref().map_or(path.to_string(), |entry| format!("{path}!{entry}"))
    }

    fn read<T>(&self, read: impl FnOnce(Input) -> Result<T>) -> Result<T> {
        match &self.entry {
            Some(entry) => Zip::open(&self.path)?.read(entry, read),
            None => read(Input::open(&self.path)?),
        }
    }
}

/// Whether a file name ends in `.npy` or `.npz`.
pub(crate) fn is_npy_name(path: &Path) -> bool {
    let name = plain_name(path);
    name.ends_with(".npy") || name.ends_with(".npz")
}

/// Reads an NPZ file, an NPY file with its partner beside it, or a folder of such files.
pub(crate) fn read(path: &Path, options: &OpenOptions, budget: &Budget) -> Result<Raw> {
    let zipped = |p: &Path| plain_name(p).ends_with(".npz");
    let dir = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    let only = (!path.is_dir()).then(|| SplitKind::from_name(&name_of(path)).unwrap_or(SplitKind::Train));
    let files = match (path.is_file() && zipped(path), dir.as_os_str().is_empty()) {
        (true, _) => vec![path.to_path_buf()],
        (false, true) => files_in(Path::new("."))?,
        (false, false) => files_in(dir)?,
    };
    let (mut members, mut skipped) = (Vec::new(), Vec::new());
    for file in files.into_iter().filter(|f| is_npy_name(f)) {
        if zipped(&file) {
            for entry in Zip::open(&file)?.names() {
                sort_in(&file, Some(entry.clone()), &mut members, &mut skipped);
            }
        } else {
            sort_in(&file, None, &mut members, &mut skipped);
        }
    }
    members.retain(|m| options.wants(m.kind) && only.is_none_or(|kind| m.entry.is_some() || m.kind == kind));
    let format = if members.iter().any(|m| m.entry.is_some()) { Format::Npz } else { Format::Npy };
    let splits = read_splits(path, &members, options, budget)?;
    let mut used: Vec<PathBuf> = members.into_iter().map(|m| m.path).collect();
    used.sort();
    used.dedup();
    let mut raw = Raw::new(format, splits, hash_files(&used)?);
    raw.skipped = skipped;
    raw.class_names = class_name_file(Some(dir))?;
    Ok(raw)
}

/// Finds out from its name what an array is; arrays of unknown role are noted and left out.
fn sort_in(file: &Path, entry: Option<String>, members: &mut Vec<Member>, skipped: &mut Vec<Skipped>) {
    let file_name = plain_name(file);
    let key = entry.as_deref().unwrap_or(&file_name);
    let kind =
        SplitKind::from_name(key).or_else(|| SplitKind::from_name(&file_name)).unwrap_or(SplitKind::Train);
    match role(key).or_else(|| role(&file_name)) {
        Some(role) => members.push(Member { path: file.to_path_buf(), entry, kind, role }),
        None => skipped.push(Skipped {
            path: entry.map_or(file.display().to_string(), |e| format!("{}!{e}", file.display())),
            reason: "its name says neither images (x, images) nor labels (y, labels)".into(),
        }),
    }
}

fn role(name: &str) -> Option<Role> {
    let lower = name.to_lowercase();
    let stem = lower.strip_suffix(".npy").or(lower.strip_suffix(".npz")).unwrap_or(&lower);
    stem.split(|c: char| !c.is_ascii_alphanumeric()).find_map(|word| match word {
        "x" | "images" | "image" | "imgs" | "data" | "pixels" => Some(Role::Images),
        "y" | "labels" | "label" | "targets" | "target" | "classes" => Some(Role::Labels),
        _ => None,
    })
}

fn read_splits(
    path: &Path,
    members: &[Member],
    options: &OpenOptions,
    budget: &Budget,
) -> Result<Vec<RawSplit>> {
    let (mut all_numbers, mut rest) = (Vec::new(), Vec::new());
    for kind in [SplitKind::Train, SplitKind::Validation, SplitKind::Test] {
        let images = single(members, kind, Role::Images)?;
        let labels = single(members, kind, Role::Labels)?;
        let (images, labels) = match (images, labels) {
            (None, None) => continue,
            (Some(images), Some(labels)) => (images, labels),
            (images, _) => {
                let (has, lacks) =
                    if images.is_some() { ("images", "labels (y)") } else { ("labels", "images (x)") };
                let what = format!("the array of {lacks} that belongs to the {has} of the {kind} split");
                let hint = "Name arrays x_train, y_train, x_test, y_test or images, labels";
                return Err(Error::Missing { path: path.display().to_string(), what, hint });
            }
        };
        let (count, shape, numbers) = images.read(|mut input| read_images(&mut input, options, budget))?;
        let values = labels.read(|mut input| npy_array::labels(&mut input, budget))?;
        if count != values.len() {
            let (images_file, labels_file) = (images.name(), labels.name());
            return Err(Error::CountMismatch {
                images_file,
                images: count,
                labels_file,
                labels: values.len(),
            });
        }
        all_numbers.push(numbers);
        rest.push((kind, shape, values, labels.name()));
    }
    if rest.is_empty() {
        let hint = "Name arrays x_train, y_train, x_test, y_test or images, labels";
        return Err(Error::Missing { path: path.display().to_string(), what: "an image array".into(), hint });
    }
    let join = |(pixels, (kind, shape, labels, file)): (_, (_, _, Labels, _))| RawSplit {
        kind,
        shape,
        pixels,
        labels,
        file,
    };
    Ok(settle(all_numbers).into_iter().zip(rest).map(join).collect())
}

fn single(members: &[Member], kind: SplitKind, role: Role) -> Result<Option<&Member>> {
    let mut found = members.iter().filter(|m| m.kind == kind && m.role == role);
    match (found.next(), found.next()) {
        (Some(first), Some(second)) => {
            Err(Error::Ambiguous { first: first.name(), second: second.name(), split: kind.to_string() })
        }
        (first, _) => Ok(first),
    }
}

/// Count, shape and values of an image array, with the channel made the last dimension.
fn read_images(
    input: &mut Input,
    options: &OpenOptions,
    budget: &Budget,
) -> Result<(usize, ImageShape, Numbers)> {
    let (dims, numbers) = npy_array::numbers(input, budget)?;
    if dims.contains(&0) {
        return Err(Error::unexpected(
            input.file(),
            Place::Header,
            format!("shape {dims:?}"),
            "no dimension of 0",
        ));
    }
    let shape = |h, w, c| ImageShape::new(h, w, c).map_err(Error::data(input.file()));
    let colour = |c: usize| c == 1 || c == 3 || c == 4;
    match dims[..] {
        [n, d] => Ok((n, flat_shape(d, options, input.file())?, numbers)),
        [n, h, w] => Ok((n, shape(h, w, 1)?, numbers)),
        [n, c, h, w] if colour(c) && !colour(w) => {
            let plane = h * w;
            let last = |i: usize| (i / (c * plane)) * c * plane + (i % c) * plane + (i / c) % plane;
            Ok((n, shape(h, w, c)?, numbers.reorder(last)))
        }
        [n, h, w, c] => Ok((n, shape(h, w, c)?, numbers)),
        _ => {
            let expected = "(count, pixels), (count, rows, columns) or (count, rows, columns, channels)";
            Err(Error::unexpected(input.file(), Place::Header, format!("shape {dims:?}"), expected))
        }
    }
}
