//! Images for a model to look at: files, folders of files, data sets, and images that belong to none.

use crate::args::data::DataArgs;
use crate::args::model::SplitName;
use crate::support::exit::usage;
use crate::support::images::{align_classes, geometry_of, options};
use crate::support::models::{data_for, images_for, kind_of, ready, scale_for};
use anyhow::Result;
use convgp::FittedModel;
use convgp::data::{Dataset, Images, PixelScale, Pixels, Targets};
use convgp::prepare::Scaling;
use convgp_data::{Opened, Skipped, open_any, out_of_distribution};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Seed of generated noise.
const NOISE_SEED: u64 = 0;

/// Images with a name each, and their labels where known.
#[derive(Debug)]
pub struct Inputs {
    /// File, or number in the data set.
    pub names: Vec<String>,
    /// The images, ready for the model.
    pub images: Images,
    /// Names of classes, or numbers.
    pub labels: Option<Vec<String>>,
}

impl Inputs {
    /// Reads image files, folders of image files, or one data set.
    pub fn read(
        saved: &FittedModel,
        inputs: &[String],
        data: &DataArgs,
        split: Option<SplitName>,
    ) -> Result<Self> {
        let paths: Vec<PathBuf> = inputs.iter().map(PathBuf::from).collect();
        if paths.iter().all(|p| holds_images(p)) {
            return Self::read_files(saved, &paths, data);
        }
        let [source] = inputs else {
            let odd =
                paths.iter().find(|p| !is_image_file(p)).map_or(String::new(), |p| p.display().to_string());
            return Err(usage(format!("{odd}: not an image file; give image files, or one data set")));
        };
        let data = match Self::open(saved, source, data, split)? {
            Found::Unlabelled(inputs) => return Ok(inputs),
            Found::Labelled(data) => data,
        };
        let labels = match data.targets() {
            Targets::Classes { labels, .. } => {
                labels.iter().map(|&l| data.class_names()[l as usize].clone()).collect()
            }
            Targets::Real(values) => values.iter().map(f64::to_string).collect(),
        };
        let names = names_below(source, data.image_names(), data.len());
        Ok(Self { names, images: data.images().clone(), labels: Some(labels) })
    }

    /// Reads one data set, which may lack labels.
    fn open(saved: &FittedModel, source: &str, data: &DataArgs, split: Option<SplitName>) -> Result<Found> {
        if !Path::new(source).exists() {
            return Ok(Found::Labelled(data_for(saved, source, data, split)?));
        }
        let geometry = geometry_of(saved.model.spec().image, saved.preparation.fit);
        let mut options = options(data, &geometry)?;
        options.known_classes.clone_from(&saved.class_names);
        options.splits = split.map_or(options.splits, |split| vec![kind_of(split)]);
        let found = match open_any(source, &options)? {
            Opened::Labelled(loaded) => {
                let data = ready(saved, loaded, source, split)?;
                return Ok(Found::Labelled(align_classes(&data, &saved.class_names, source)?));
            }
            Opened::Unlabelled(found) => found,
        };
        tell_skipped(&found.skipped)?;
        saved.model.check_images(found.images.shape())?;
        let scale = scale_of(saved.preparation.scaling, &found.images, source)?;
        let names = names_below(source, found.names.as_deref(), found.images.count());
        Ok(Found::Unlabelled(Self { names, images: found.images.with_scale(scale), labels: None }))
    }

    fn read_files(saved: &FittedModel, paths: &[PathBuf], data: &DataArgs) -> Result<Self> {
        let geometry = geometry_of(saved.model.spec().image, saved.preparation.fit);
        let read = convgp_data::read_images(paths, &options(data, &geometry)?)?;
        tell_skipped(&read.skipped)?;
        let names: Vec<String> = read.paths.iter().map(|p| p.display().to_string()).collect();
        let scale = scale_of(saved.preparation.scaling, &read.images, &names[0])?;
        Ok(Self { names, images: read.images.with_scale(scale), labels: None })
    }
}

/// What a source holds.
enum Found {
    Labelled(Dataset),
    Unlabelled(Inputs),
}

/// The scale of images; those of eight bits reach to 255 by definition, however dark they are.
fn scale_of(scaling: Scaling, images: &Images, source: &str) -> Result<PixelScale> {
    match (scaling, images.pixels()) {
        (Scaling::Bytes, Pixels::U8(_)) => Ok(scaling.scale()),
        _ => scale_for(scaling, images, source),
    }
}

fn tell_skipped(skipped: &[Skipped]) -> Result<()> {
    for Skipped { path, reason } in skipped {
        writeln!(std::io::stderr(), "skipped {path}: {reason}")?;
    }
    Ok(())
}

/// Where the images can be found again: their files, else their numbers.
fn names_below(source: &str, files: Option<&[String]>, count: usize) -> Vec<String> {
    let root = Some(Path::new(source)).filter(|path| path.is_dir()).unwrap_or(Path::new(""));
    match files {
        Some(files) => files.iter().map(|file| root.join(file).display().to_string()).collect(),
        None => (0..count).map(|i| i.to_string()).collect(),
    }
}

/// Images that need not be of the model's classes: those of a source, whatever their labels, or `count` generated ones
/// called `noise` or `blank`.
pub fn out_of_distribution_images(
    saved: &FittedModel,
    source: &str,
    data: &DataArgs,
    count: usize,
) -> Result<Images> {
    let path = Path::new(source);
    let (shape, range) = (saved.model.spec().image, saved.preparation.scaling.seen_range());
    let generated = match source {
        _ if path.exists() => None,
        "noise" => Some(out_of_distribution::noise(shape, range, count, NOISE_SEED)),
        "blank" => Some(out_of_distribution::blank(shape, range, count)),
        _ => None,
    };
    match generated {
        Some(images) => Ok(images.map_err(convgp::Error::from)?),
        None if holds_images(path) => Ok(Inputs::read_files(saved, &[path.into()], data)?.images),
        None => Ok(images_for(saved, source, data, None)?.images().clone()),
    }
}

/// Whether a path is an image file, or a folder that holds some directly.
fn holds_images(path: &Path) -> bool {
    let in_folder = || {
        std::fs::read_dir(path)
            .is_ok_and(|mut entries| entries.any(|e| e.is_ok_and(|e| is_image_file(&e.path()))))
    };
    is_image_file(path) || in_folder()
}

/// Whether a path is a file that the image readers take.
fn is_image_file(path: &Path) -> bool {
    let endings = ["png", "jpg", "jpeg", "bmp", "webp", "tif", "tiff"];
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    path.is_file() && ending.is_some_and(|e| endings.contains(&e.as_str()))
}
