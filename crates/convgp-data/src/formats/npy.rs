//! NumPy arrays: `x`/`y` or `images`/`labels`, with the split in the name, in NPY files or an NPZ archive.

use std::path::{Path, PathBuf};

use convgp::data::ImageShape;

use crate::error::{Error, Place, Result};
use crate::formats::archive::{Zip, entry_name};
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
        self.entry.as_ref().map_or(path.to_string(), |entry| format!("{path}: {}", entry_name(entry)))
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
    let (mut members, mut skipped) = (Vec::new(), Vec::new());
    let dir = if path.is_dir() { path } else { folder_of(path) };
    if path.is_dir() {
        for file in files_in(path)?.into_iter().filter(|f| is_npy_name(f)) {
            sort_in_file(&file, &mut members, &mut skipped)?;
        }
    } else if is_zipped(path) {
        sort_in_file(path, &mut members, &mut skipped)?;
    } else {
        members = pair(path, options)?;
    }
    members.retain(|m| options.wants(m.kind));
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

fn is_zipped(path: &Path) -> bool {
    plain_name(path).ends_with(".npz")
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The file that was named, images unless its name says labels, and the NPY file beside it that differs in the word for
/// that only; else the only one of the other role.
fn pair(path: &Path, options: &OpenOptions) -> Result<Vec<Member>> {
    let kind = |p: &Path| SplitKind::from_name(&name_of(p)).unwrap_or(SplitKind::Train);
    let kind_here = kind(path);
    let own = role(&name_of(path)).unwrap_or(Role::Images);
    let other = if own == Role::Images { Role::Labels } else { Role::Images };
    let mut partners: Vec<PathBuf> = files_in(folder_of(path))?;
    partners.retain(|p| is_npy_name(p) && !is_zipped(p) && role(&name_of(p)) == Some(other));
    let alike: Vec<PathBuf> =
        partners.iter().filter(|p| rest_of_name(p) == rest_of_name(path)).cloned().collect();
    if !alike.is_empty() {
        partners = alike;
    } else {
        partners.retain(|p| kind(p) == kind_here);
    }
    if options.unlabelled && own == Role::Images && partners.len() > 1 {
        partners.clear();
    }
    if let [first, second, ..] = partners.as_slice() {
        let (first, second) = (first.display().to_string(), second.display().to_string());
        return Err(Error::Partners { file: path.display().to_string(), first, second });
    }
    let member = |path: PathBuf, role| Member { path, entry: None, kind: kind_here, role };
    let partner = partners.pop().map(|p| member(p, other));
    Ok([Some(member(path.to_path_buf(), own)), partner].into_iter().flatten().collect())
}

fn sort_in_file(file: &Path, members: &mut Vec<Member>, skipped: &mut Vec<Skipped>) -> Result<()> {
    if !is_zipped(file) {
        sort_in(file, None, members, skipped);
        return Ok(());
    }
    for entry in Zip::open(file)?.names() {
        sort_in(file, Some(entry.clone()), members, skipped);
    }
    Ok(())
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
            path: entry
                .map_or(file.display().to_string(), |e| format!("{}: {}", file.display(), entry_name(&e))),
            reason: "its name says neither images (x, images) nor labels (y, labels)".into(),
        }),
    }
}

fn role(name: &str) -> Option<Role> {
    words(name).iter().find_map(|word| word_role(word))
}

fn word_role(word: &str) -> Option<Role> {
    match word {
        "x" | "images" | "image" | "imgs" | "img" | "data" | "pixels" | "features" | "inputs" => {
            Some(Role::Images)
        }
        "y" | "labels" | "label" | "targets" | "target" | "classes" | "class" => Some(Role::Labels),
        _ => None,
    }
}

/// Words of a file name without its ending; `Xtrain` and `trainX` are two words each.
fn words(name: &str) -> Vec<String> {
    let stem = name.strip_suffix(".gz").unwrap_or(name);
    let stem = [".npy", ".npz", ".NPY", ".NPZ"].iter().find_map(|e| stem.strip_suffix(e)).unwrap_or(stem);
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in stem.chars() {
        let humped = before.is_ascii_lowercase() && c.is_ascii_uppercase()
            || ['X', 'Y'].contains(&before) && c.is_ascii_lowercase();
        if !c.is_ascii_alphanumeric() || humped || words.is_empty() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The name without the word for its role.
fn rest_of_name(path: &Path) -> Vec<String> {
    let mut all = words(&name_of(path));
    if let Some(at) = all.iter().position(|w| word_role(w).is_some()) {
        all.remove(at);
    }
    all
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
            (Some(images), labels) if labels.is_some() || options.unlabelled => (images, labels),
            (images, _) => {
                let (has, lacks) =
                    if images.is_some() { ("images", "labels (y)") } else { ("labels", "images (x)") };
                let what = format!("the array of {lacks} that belongs to the {has} of the {kind} split");
                let hint = "Name arrays x_train, y_train, x_test, y_test or images, labels";
                return Err(Error::Missing { path: path.display().to_string(), what, hint });
            }
        };
        let (count, shape, numbers) = images.read(|mut input| read_images(&mut input, options, budget))?;
        let (labels_file, values) = match labels {
            Some(labels) => (labels.name(), labels.read(|mut input| npy_array::labels(&mut input, budget))?),
            None => (images.name(), Labels::Absent(count)),
        };
        // A file of labels that only lies beside the images may belong to others.
        let by_chance =
            |l: &Member| l.path != images.path && rest_of_name(&l.path) != rest_of_name(&images.path);
        let values = match count == values.len() {
            true => values,
            false if options.unlabelled && labels.is_some_and(by_chance) => Labels::Absent(count),
            false => {
                let (images_file, labels) = (images.name(), values.len());
                return Err(Error::CountMismatch { images_file, images: count, labels_file, labels });
            }
        };
        all_numbers.push(numbers);
        rest.push((kind, shape, values, labels_file));
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
        names: None,
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
