//! Images for a model to look at: files, folders of files, data sets, and images that belong to none.

use crate::args::data::DataArgs;
use crate::args::model::SplitName;
use crate::support::exit::usage;
use crate::support::images::{geometry_of, options};
use crate::support::models::{data_for, images_for};
use anyhow::{Context, Result};
use convgp::FittedModel;
use convgp::data::{Images, Pixels, Targets};
use convgp::prepare::Scaling;
use convgp_data::out_of_distribution;
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
        let data = data_for(saved, source, data, split)?;
        let labels = match data.targets() {
            Targets::Classes { labels, .. } => {
                labels.iter().map(|&l| data.class_names()[l as usize].clone()).collect()
            }
            Targets::Real(values) => values.iter().map(f64::to_string).collect(),
        };
        let names = (0..data.len()).map(|i| i.to_string()).collect();
        Ok(Self { names, images: data.images().clone(), labels: Some(labels) })
    }

    fn read_files(saved: &FittedModel, paths: &[PathBuf], data: &DataArgs) -> Result<Self> {
        let geometry = geometry_of(saved.model.spec().image, saved.preparation.fit);
        let read = convgp_data::read_images(paths, &options(data, &geometry)?)?;
        for skipped in &read.skipped {
            writeln!(std::io::stderr(), "skipped {}: {}", skipped.path, skipped.reason)?;
        }
        let names: Vec<String> = read.paths.iter().map(|p| p.display().to_string()).collect();
        let scaling = saved.preparation.scaling;
        // Image files of eight bits reach to 255 by definition, however dark they are.
        let images = match (scaling, read.images.pixels()) {
            (Scaling::Bytes, Pixels::U8(_)) => read.images,
            _ => saved
                .preparation
                .prepare(read.images)
                .map_err(convgp::Error::from)
                .context(names[0].clone())?,
        };
        Ok(Self { names, images, labels: None })
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
