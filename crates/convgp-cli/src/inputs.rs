//! Images for a model to look at: files, folders of files, data sets, and images that belong to none.

use crate::exit::usage;
use crate::saved::{SplitName, data_for, images_for, is_image_file};
use crate::source::{DataArgs, Geometry};
use anyhow::Result;
use convgp::data::{Images, Targets};
use convgp::io::SavedModel;
use convgp_data::strange;
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
        saved: &SavedModel,
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

    fn read_files(saved: &SavedModel, paths: &[PathBuf], data: &DataArgs) -> Result<Self> {
        let geometry = Geometry::of_model(saved.model.spec().image, saved.preparation.fit);
        let read = convgp_data::read_images(paths, &data.options(&geometry)?)?;
        for skipped in &read.skipped {
            writeln!(std::io::stderr(), "skipped {}: {}", skipped.path, skipped.reason)?;
        }
        saved.preparation.scaling.check(&read.images).map_err(convgp::Error::from)?;
        let names = read.paths.iter().map(|p| p.display().to_string()).collect();
        Ok(Self { names, images: read.images, labels: None })
    }
}

/// Images that need not be of the model's classes: those of a source, whatever their labels, or `count` generated ones
/// called `noise` or `blank`.
pub fn strange_images(saved: &SavedModel, source: &str, data: &DataArgs, count: usize) -> Result<Images> {
    let path = Path::new(source);
    let (shape, range) = (saved.model.spec().image, saved.preparation.scaling.range());
    let generated = match source {
        _ if path.exists() => None,
        "noise" => Some(strange::noise(shape, range, count, NOISE_SEED)),
        "blank" => Some(strange::blank(shape, range, count)),
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
