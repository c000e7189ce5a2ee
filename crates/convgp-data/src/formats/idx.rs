//! IDX, the format of the MNIST family: a magic number, big-endian sizes, then bytes.

use std::path::{Path, PathBuf};

use convgp::data::{ImageShape, Pixels};

use crate::error::{Error, Place, Result};
use crate::formats::{class_name_file, files_in};
use crate::loaded::{Format, Labels, Raw, RawSplit, SplitKind};
use crate::options::OpenOptions;
use crate::provenance::hash_files;
use crate::source::{Budget, Input, name_of, plain_name};

/// Whether a file name looks like an IDX file.
pub(crate) fn is_idx_name(path: &Path) -> bool {
    let name = plain_name(path);
    name.ends_with("ubyte") || name.ends_with(".idx") || name.contains("-idx") || name.contains(".idx")
}

/// Reads a folder of IDX files, or one image file with its label file beside it.
pub(crate) fn read(path: &Path, options: &OpenOptions, budget: &Budget) -> Result<Raw> {
    let pairs = if path.is_dir() { pairs_in(path, options)? } else { vec![pair_of(path, options)?] };
    let mut used = Vec::new();
    let mut splits = Vec::new();
    for (kind, images, labels) in pairs {
        splits.push(read_pair(kind, &images, labels.as_deref(), budget)?);
        used.extend([Some(images), labels].into_iter().flatten());
    }
    let mut raw = Raw::new(Format::Idx, splits, hash_files(&used)?);
    raw.class_names = class_name_file(if path.is_dir() { Some(path) } else { path.parent() })?;
    Ok(raw)
}

/// An image file and its label file, if it has one.
type Pair = (SplitKind, PathBuf, Option<PathBuf>);

/// One split from an image and a label file.
fn read_pair(kind: SplitKind, images: &Path, labels: Option<&Path>, budget: &Budget) -> Result<RawSplit> {
    let (dims, pixels) = array(&mut Input::open(images)?, budget)?;
    let file = images.display().to_string();
    let shape = match dims[..] {
        [_, h, w] => ImageShape::new(h, w, 1),
        [_, h, w, c] => ImageShape::new(h, w, c),
        _ => {
            let found = format!("{} dimensions", dims.len());
            return Err(Error::unexpected(
                &file,
                Place::Byte(3),
                found,
                "3 (count, rows, columns) or 4 with channels",
            ));
        }
    }
    .map_err(Error::data(&file))?;
    let Some(labels) = labels else {
        let (pixels, labels) = (Pixels::U8(pixels), Labels::Absent(dims[0]));
        return Ok(RawSplit { kind, shape, pixels, labels, names: None, file });
    };
    let (label_dims, values) = array(&mut Input::open(labels)?, budget)?;
    let labels_file = labels.display().to_string();
    if label_dims.len() != 1 {
        let found = format!("{} dimensions", label_dims.len());
        return Err(Error::unexpected(&labels_file, Place::Byte(3), found, "1: a list of labels"));
    }
    if dims[0] != values.len() {
        return Err(Error::CountMismatch {
            images_file: file,
            images: dims[0],
            labels_file,
            labels: values.len(),
        });
    }
    let labels = Labels::Index(values.into_iter().map(i64::from).collect());
    Ok(RawSplit { kind, shape, pixels: Pixels::U8(pixels), labels, names: None, file: labels_file })
}

/// Dimensions and bytes of one IDX stream.
pub(crate) fn array(input: &mut Input, budget: &Budget) -> Result<(Vec<usize>, Vec<u8>)> {
    let mut magic = [0; 4];
    input.fill(&mut magic, "the magic number")?;
    if magic[..2] != [0, 0] || !(1..=4).contains(&magic[3]) {
        let expected = "an IDX header: 00 00, element type, number of dimensions (1 to 4)";
        return Err(Error::BadMagic { file: input.file().into(), found: magic.to_vec(), expected });
    }
    if magic[2] != 8 {
        let hint = "Write the values as unsigned bytes (type 08)";
        let what = format!("IDX element type {:02x} at byte 2", magic[2]);
        return Err(Error::Unsupported { file: input.file().into(), what, hint });
    }
    let mut dims = Vec::with_capacity(4);
    for _ in 0..magic[3] {
        let mut size = [0; 4];
        input.fill(&mut size, "a dimension")?;
        let size = u32::from_be_bytes(size);
        if size == 0 {
            let place = Place::Byte(input.offset() - 4);
            return Err(Error::unexpected(input.file(), place, "a dimension of 0", "at least 1"));
        }
        dims.push(size as usize);
    }
    // Four 32-bit factors fit into 128 bits.
    let count: u128 = dims.iter().map(|&d| d as u128).product();
    let bytes = input.bytes(count, &format!("{count} bytes of a {dims:?} array"), budget)?;
    input.expect_end()?;
    Ok((dims, bytes))
}

/// Image and label files of a folder by split.
fn pairs_in(dir: &Path, options: &OpenOptions) -> Result<Vec<Pair>> {
    let mut pairs: Vec<Pair> = Vec::new();
    for path in files_in(dir)?.into_iter().filter(|p| is_idx_name(p) && plain_name(p).contains("images")) {
        let (kind, images, labels) = pair_of(&path, options)?;
        if !options.wants(kind) {
            continue;
        }
        if let Some((_, other, _)) =
            pairs.iter().find(|(k, other, _)| *k == kind && !same_file(other, &images))
        {
            let (first, second) = (other.display().to_string(), images.display().to_string());
            return Err(Error::Ambiguous { first, second, split: kind.to_string() });
        }
        if !pairs.iter().any(|(k, ..)| *k == kind) {
            pairs.push((kind, images, labels));
        }
    }
    if pairs.is_empty() {
        let hint = "Expected train-images-idx3-ubyte and train-labels-idx1-ubyte, perhaps with .gz";
        return Err(Error::Missing {
            path: dir.display().to_string(),
            what: "an IDX image file".into(),
            hint,
        });
    }
    Ok(pairs)
}

/// Whether two names are the same file, one of them compressed.
fn same_file(a: &Path, b: &Path) -> bool {
    plain_name(a) == plain_name(b)
}

/// The label file that belongs to an image file.
fn pair_of(images: &Path, options: &OpenOptions) -> Result<Pair> {
    let name = name_of(images);
    let kind = SplitKind::from_name(&name).unwrap_or(SplitKind::Train);
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    let wanted = plain.replace("images", "labels").replace("idx3", "idx1").replace("idx4", "idx1");
    let dir = images.parent().unwrap_or(Path::new(""));
    let candidates = [dir.join(&wanted), dir.join(format!("{wanted}.gz"))];
    match candidates.into_iter().find(|c| wanted != plain && c.is_file()) {
        Some(labels) => Ok((kind, images.to_path_buf(), Some(labels))),
        None if options.unlabelled => Ok((kind, images.to_path_buf(), None)),
        None => Err(Error::Missing {
            path: images.display().to_string(),
            what: format!("its label file {wanted} (or {wanted}.gz)"),
            hint: "Name the image file, and keep the labels beside it",
        }),
    }
}
