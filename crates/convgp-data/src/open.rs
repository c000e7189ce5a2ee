//! Opening whatever a path holds.

use std::path::{Path, PathBuf};

use convgp::data::{Images, Pixels};

use crate::assemble::assemble;
use crate::detect::detect;
use crate::error::{Error, Result};
use crate::formats::decode::{Encoded, decode_all};
use crate::formats::{cifar, files_in, folder, idx, metadata, npy, table};
use crate::loaded::{Format, Loaded, Raw, Skipped};
use crate::options::OpenOptions;
use crate::registry;
use crate::sample;
use crate::source::Budget;

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
    let budget = Budget::new(options.memory_cap);
    match format {
        Format::Idx => idx::read(&path, options, &budget),
        Format::Cifar10 | Format::Cifar100 => cifar::read(&path, options, &budget),
        Format::Npy | Format::Npz => npy::read(&path, options, &budget),
        Format::Table => table::read(&path, options, &budget),
        Format::Folder => folder::read(&path, options, &budget),
        Format::Metadata => metadata::read(&path, options, &budget),
        #[cfg(feature = "parquet")]
        Format::Parquet => crate::formats::parquet::read(&path, options, &budget),
        #[cfg(not(feature = "parquet"))]
        Format::Parquet => Err(Error::Unsupported {
            file: path.display().to_string(),
            what: "Parquet in this build".into(),
            hint: "Build convgp-data with the feature `parquet`",
        }),
        Format::Generated => Err(Error::Unsupported {
            file: path.display().to_string(),
            what: "reading generated data".into(),
            hint: "Call the generator",
        }),
    }
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

/// Reads image files in the order given; a folder stands for the images directly in it.
pub fn read_images(paths: &[PathBuf], options: &OpenOptions) -> Result<ImageFiles> {
    let mut files = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => files.extend(files_in(path)?.into_iter().filter(|f| folder::is_image_name(f))),
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
