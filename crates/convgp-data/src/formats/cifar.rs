//! CIFAR-10 and CIFAR-100 binary batches: label bytes, then red, green and blue planes of 32x32.

use std::io::Read;
use std::path::Path;

use convgp::data::{ImageShape, Pixels};

use crate::error::{Error, Place, Result};
use crate::formats::archive::each_tar_entry;
use crate::formats::{files_in, name_lines};
use crate::loaded::{Format, Labels, Raw, RawSplit, SplitKind};
use crate::options::OpenOptions;
use crate::provenance::hash_files;
use crate::source::{Budget, Input, name_of, plain_name};

const SIDE: usize = 32;
const PLANE: usize = SIDE * SIDE;
const IMAGE: usize = 3 * PLANE;

/// Class names of CIFAR-10, label 0 to 9.
pub const CIFAR10_CLASSES: [&str; 10] =
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

/// One batch file.
struct Batch {
    name: String,
    file: String,
    kind: SplitKind,
    pixels: Vec<u8>,
    labels: Vec<i64>,
}

/// Split and format that a file name stands for.
fn role(name: &str) -> Option<(SplitKind, Format)> {
    let lower = name.to_lowercase();
    let plain = lower.strip_suffix(".gz").unwrap_or(&lower);
    let stem = plain.strip_suffix(".bin")?;
    match stem {
        "test_batch" => Some((SplitKind::Test, Format::Cifar10)),
        "train" => Some((SplitKind::Train, Format::Cifar100)),
        "test" => Some((SplitKind::Test, Format::Cifar100)),
        _ if stem.starts_with("data_batch") => Some((SplitKind::Train, Format::Cifar10)),
        _ => None,
    }
}

/// Whether a file name looks like a CIFAR batch.
pub(crate) fn is_batch_name(path: &Path) -> bool {
    role(&name_of(path)).is_some()
}

/// Whether a file is a tar archive by its name.
pub(crate) fn is_tar_name(path: &Path) -> bool {
    let name = plain_name(path);
    name.ends_with(".tar") || name.ends_with(".tgz")
}

/// Reads a folder of batches, a single batch, or a tar archive of batches.
pub(crate) fn read(path: &Path, options: &OpenOptions, budget: &Budget) -> Result<Raw> {
    if path.is_dir() {
        return read_folder(path, options, budget);
    }
    if is_tar_name(path) {
        return read_tar(path, options, budget);
    }
    let name = name_of(path);
    let fallback = (SplitKind::Train, options.format.unwrap_or(Format::Cifar10));
    let (kind, format) = role(&name).unwrap_or(fallback);
    let batch = read_batch(&mut Input::open(path)?, name, kind, format, budget)?;
    finish(path, format, vec![batch], names_beside(path.parent(), format)?, &[path])
}

fn read_folder(dir: &Path, options: &OpenOptions, budget: &Budget) -> Result<Raw> {
    let mut batches = Vec::new();
    let mut used = Vec::new();
    let mut format = None;
    for path in files_in(dir)? {
        let name = name_of(&path);
        let Some((kind, found)) = role(&name).filter(|(kind, _)| options.wants(*kind)) else { continue };
        let format = *format.get_or_insert(found);
        batches.push(read_batch(&mut Input::open(&path)?, name, kind, format, budget)?);
        used.push(path);
    }
    let format = format.unwrap_or(Format::Cifar10);
    finish(dir, format, batches, names_beside(Some(dir), format)?, &used)
}

fn read_tar(path: &Path, options: &OpenOptions, budget: &Budget) -> Result<Raw> {
    let archive = path.display().to_string();
    let (mut batches, mut names, mut format) = (Vec::new(), None, None);
    each_tar_entry(path, budget, |entry, stream| {
        let name = entry.rsplit('/').next().unwrap_or(entry).to_owned();
        if ["batches.meta.txt", "fine_label_names.txt"].contains(&name.as_str()) {
            let mut text = String::new();
            let limited = &mut stream.take(1 << 20);
            limited
                .read_to_string(&mut text)
                .map_err(|e| crate::source::read_failure(&archive, 0, entry, e))?;
            names = Some(name_lines(&text));
        } else if let Some((kind, found)) = role(&name).filter(|(kind, _)| options.wants(*kind)) {
            let format = *format.get_or_insert(found);
            let mut input = Input::from_reader(format!("{archive}: {entry}"), stream)?;
            batches.push(read_batch(&mut input, name, kind, format, budget)?);
        }
        Ok(())
    })?;
    finish(path, format.unwrap_or(Format::Cifar10), batches, names, &[path])
}

/// Reads records to the end of the stream.
fn read_batch(
    input: &mut Input,
    name: String,
    kind: SplitKind,
    format: Format,
    budget: &Budget,
) -> Result<Batch> {
    // CIFAR-100 has a coarse label byte first; the fine one is the class.
    let (label_bytes, classes) = if format == Format::Cifar100 { (2, 100) } else { (1, 10) };
    let mut record = vec![0; label_bytes + IMAGE];
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    while input.fill_or_end(&mut record, "a record")? {
        let label = record[label_bytes - 1];
        if label >= classes {
            let place = Place::Byte(input.offset() - (IMAGE + 1) as u64);
            let (file, label) = (input.file().to_owned(), label.to_string());
            return Err(Error::LabelOutOfRange { file, place, label, classes: classes.into() });
        }
        budget.take(IMAGE as u128, input.file(), "CIFAR images")?;
        labels.push(i64::from(label));
        let planes = &record[label_bytes..];
        pixels.extend((0..IMAGE).map(|i| planes[(i % 3) * PLANE + i / 3]));
    }
    if labels.is_empty() {
        return Err(input.truncated("the first record"));
    }
    Ok(Batch { name, file: input.file().to_owned(), kind, pixels, labels })
}

/// Joins batches of one split in the order of their names.
fn finish<P: AsRef<Path>>(
    path: &Path,
    format: Format,
    mut batches: Vec<Batch>,
    names: Option<Vec<String>>,
    used: &[P],
) -> Result<Raw> {
    if batches.is_empty() {
        let hint =
            "Expected data_batch_1.bin to data_batch_5.bin and test_batch.bin, or train.bin and test.bin";
        return Err(Error::Missing { path: path.display().to_string(), what: "a CIFAR batch".into(), hint });
    }
    batches.sort_by(|a, b| a.name.cmp(&b.name));
    let shape = ImageShape::new(SIDE, SIDE, 3).expect("32x32x3 has no empty side");
    let mut splits: Vec<RawSplit> = Vec::new();
    for batch in batches {
        match splits.iter_mut().find(|s| s.kind == batch.kind) {
            Some(RawSplit { pixels: Pixels::U8(pixels), labels: Labels::Index(labels), .. }) => {
                pixels.extend(batch.pixels);
                labels.extend(batch.labels);
            }
            _ => splits.push(RawSplit {
                kind: batch.kind,
                shape,
                pixels: Pixels::U8(batch.pixels),
                labels: Labels::Index(batch.labels),
                names: None,
                file: batch.file,
            }),
        }
    }
    let mut raw = Raw::new(format, splits, hash_files(used)?);
    raw.class_names = Some(names.unwrap_or_else(|| default_names(format)));
    Ok(raw)
}

fn default_names(format: Format) -> Vec<String> {
    match format {
        Format::Cifar100 => (0..100).map(|c| c.to_string()).collect(),
        _ => CIFAR10_CLASSES.map(String::from).to_vec(),
    }
}

/// The name file that comes with the batches, if it is there.
fn names_beside(dir: Option<&Path>, format: Format) -> Result<Option<Vec<String>>> {
    let name = if format == Format::Cifar100 { "fine_label_names.txt" } else { "batches.meta.txt" };
    match dir.map(|d| d.join(name)).filter(|p| p.is_file()) {
        Some(path) => {
            let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, "read", e))?;
            Ok(Some(name_lines(&text)))
        }
        None => Ok(None),
    }
}
