//! Opening whatever a path holds.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use convgp::data::{Images, Pixels};

use crate::assemble::{assemble, relative};
use crate::detect::detect;
use crate::error::{Error, Result};
use crate::formats::decode::{Encoded, decode_all};
use crate::formats::{files_in, folder, folders_in};
use crate::loaded::{Format, Labels, Loaded, Raw, RawSplit, Skipped};
use crate::options::{Colour, OpenOptions};
use crate::registry;
use crate::sample;
use crate::source::Budget;
use crate::transform;

/// Reads a data set: a file, a folder, the name of a registered set such as `mnist`, or `sample`, which is built in.
///
/// The format is recognised from names and first bytes. All splits have the same image shape and classes.
///
/// ```no_run
/// use convgp_data::{OpenOptions, Size, open};
/// let options = OpenOptions { size: Some(Size::new(32, 32)), limit: Some(1000), ..Default::default() };
/// let loaded = open("photos", &options)?;
/// println!("{} images of {} classes", loaded.train().map_or(0, |d| d.len()), loaded.class_names.len());
/// # Ok::<(), convgp_data::Error>(())
/// ```
pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Loaded> {
    let path = path.as_ref();
    if !path.exists() && registry::find(&path.to_string_lossy()).is_some() {
        return registry::open_named(&path.to_string_lossy(), None, options);
    }
    if !path.exists() && path.as_os_str() == sample::NAME {
        return assemble(path, sample::raw(options), options);
    }
    if !path.exists() {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(Error::io(path, "open", missing));
    }
    assemble(path, open_raw(path, options)?, options)
}

/// Reads with the right reader.
pub(crate) fn open_raw(path: &Path, options: &OpenOptions) -> Result<Raw> {
    let (format, path) = match options.format {
        Some(format) => (format, path.to_path_buf()),
        None => detect(path)?,
    };
    (format.reader().read)(&path, options, &Budget::new(options.memory_cap))
}

/// What a path holds, for a model that needs no labels.
#[derive(Debug)]
pub enum Opened {
    /// A data set like any other.
    Labelled(Loaded),
    /// Images alone.
    Unlabelled(Unlabelled),
}

/// Images without labels.
#[derive(Debug)]
pub struct Unlabelled {
    /// The images, all of one shape.
    pub images: Images,
    /// The file of every image as seen from the path that was opened, where each has its own.
    pub names: Option<Vec<String>>,
    /// Files that could not be used.
    pub skipped: Vec<Skipped>,
    /// Choices made on the way that a user should know of.
    pub notes: Vec<String>,
}

/// The same as [`open()`] for data that may lack labels: arrays of images alone, tables without a label column, and
/// folders of images whose names are no [known classes](OpenOptions::known_classes), however deep they are. Of several
/// splits without labels the test images are taken, else the validation images.
///
/// ```
/// use convgp_data::{Opened, OpenOptions, generate, open_any, write};
/// # let dir = tempfile::tempdir().unwrap();
/// let table = dir.path().join("new.csv");
/// std::fs::write(&table, "0,9,0,7\n1,0,3,0\n").unwrap();
/// let Opened::Unlabelled(new) = open_any(&table, &OpenOptions::default())? else { panic!() };
/// assert_eq!(new.images.count(), 2);
/// # Ok::<(), convgp_data::Error>(())
/// ```
pub fn open_any(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Opened> {
    let path = path.as_ref();
    let options = &OpenOptions { unlabelled: true, ..options.clone() };
    if !path.exists() {
        return open(path, options).map(Opened::Labelled);
    }
    if path.is_dir() && options.format.is_none() && !has_known_classes(path, options)? {
        let ImageFiles { images, paths, skipped, notes } = read_images(&[path.to_path_buf()], options)?;
        let names = Some(paths.iter().map(|file| relative(path, file)).collect());
        return unlabelled(path, Unlabelled { images, names, skipped, notes }, options);
    }
    let mut raw = open_raw(path, options)?;
    raw.splits.sort_by_key(|split| split.kind);
    if !matches!(raw.splits.last(), Some(RawSplit { labels: Labels::Absent(_), .. })) {
        raw.splits.retain(|split| !matches!(split.labels, Labels::Absent(_)));
        return assemble(path, raw, options).map(Opened::Labelled);
    }
    raw.splits.drain(..raw.splits.len() - 1);
    if options.colour != Colour::Rgb {
        transform::drop_idle_channels(&mut raw.splits);
    }
    let split = transform::apply(raw.splits.remove(0), options)?;
    let names = split.names.map(|files| files.iter().map(|file| relative(path, file)).collect());
    let images = Images::new(split.shape, split.pixels).map_err(Error::data(&split.file))?;
    let (skipped, notes) = (raw.skipped, raw.notes);
    unlabelled(path, Unlabelled { images, names, skipped, notes }, options)
}

/// Whether a folder is a data set, and one whose classes are known if these are folders of images.
fn has_known_classes(path: &Path, options: &OpenOptions) -> Result<bool> {
    match detect(path) {
        Ok((Format::Folder, root)) => {
            let known = |class: &String| options.known_classes.contains(class);
            Ok(options.known_classes.is_empty() || folder::classes(&root)?.iter().all(known))
        }
        Err(error @ Error::UnknownFormat { .. }) => {
            if image_files_below(path)?.is_empty() {
                Err(error)
            } else {
                Ok(false)
            }
        }
        other => other.map(|_| true),
    }
}

/// Of these as many as were asked for.
fn unlabelled(path: &Path, all: Unlabelled, options: &OpenOptions) -> Result<Opened> {
    if !options.classes.is_empty() {
        let what = "the labels, to choose classes by".into();
        let hint = "Leave the classes out";
        return Err(Error::Missing { path: path.display().to_string(), what, hint });
    }
    let count = options.limit.unwrap_or(usize::MAX).min(all.images.count());
    let first: Vec<usize> = (0..count).collect();
    let images = all.images.select(&first).map_err(Error::data(&path.display().to_string()))?;
    let names = all.names.map(|mut names| {
        names.truncate(count);
        names
    });
    Ok(Opened::Unlabelled(Unlabelled { images, names, ..all }))
}

/// The image files of a folder and of all folders in it, each folder once.
fn image_files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut seen, mut left) = (Vec::new(), HashSet::new(), vec![dir.to_path_buf()]);
    while let Some(dir) = left.pop() {
        if !seen.insert(std::fs::canonicalize(&dir).map_err(|e| Error::io(&dir, "list", e))?) {
            continue;
        }
        found.extend(files_in(&dir)?.into_iter().filter(|file| folder::is_image_name(file)));
        left.extend(folders_in(&dir)?.into_iter().rev());
    }
    Ok(found)
}

/// Image files without labels, for prediction.
#[derive(Debug)]
pub struct ImageFiles {
    /// The images, all of one shape.
    pub images: Images,
    /// The file of each image.
    pub paths: Vec<PathBuf>,
    /// Files that could not be read.
    pub skipped: Vec<Skipped>,
    /// Choices made on the way that a user should know of.
    pub notes: Vec<String>,
}

/// Reads image files in the order given; a folder stands for the images in it and in its folders.
pub fn read_images(paths: &[PathBuf], options: &OpenOptions) -> Result<ImageFiles> {
    let mut files = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => files.extend(image_files_below(path)?),
            false => files.push(path.clone()),
        }
    }
    let group = vec![files.iter().cloned().map(Encoded::File).collect()];
    let place = paths.first().map_or(Path::new("."), |p| p.as_path());
    let mut decoded = decode_all(place, &group, options, &Budget::new(options.memory_cap))?;
    let pixels = decoded.pixels.pop().unwrap_or(Pixels::U8(Vec::new()));
    let images = Images::new(decoded.shape, pixels).map_err(Error::data(&place.display().to_string()))?;
    let paths = decoded.kept.iter().flatten().map(|&i| files[i].clone()).collect();
    Ok(ImageFiles { images, paths, skipped: decoded.skipped, notes: decoded.notes })
}
