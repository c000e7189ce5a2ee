//! Model files as arguments: a file, or the folder of a run.

use crate::exit::{input, usage};
use crate::run::RunFolder;
use crate::source::{DataArgs, Geometry, align_classes};
use anyhow::Result;
use clap::{Args, ValueEnum};
use convgp::data::Dataset;
use convgp::io::{SavedModel, load_model};
use convgp_data::{Loaded, SplitKind};
use std::path::{Path, PathBuf};

/// Which model.
#[derive(Debug, Clone, Args)]
pub struct ModelArg {
    /// A model file, or the folder of a run.
    #[arg(value_name = "MODEL")]
    pub path: PathBuf,
    /// Of a run folder, take the best model on held-out images instead of the last.
    #[arg(long)]
    pub best: bool,
}

impl ModelArg {
    /// Reads it.
    pub fn load(&self) -> Result<SavedModel> {
        Ok(load_model(&self.file()?)?)
    }

    /// The model file.
    pub fn file(&self) -> Result<PathBuf> {
        if !self.path.is_dir() {
            return match self.best {
                true => Err(usage("--best: name the folder of a run, not a model file")),
                false => Ok(self.path.clone()),
            };
        }
        let run = RunFolder::open(&self.path)?;
        match self.best {
            true if !run.best().is_file() => {
                let run = self.path.display();
                Err(input(format!("{run}: no best model; the run held nothing out (train --validation)")))
            }
            true => Ok(run.best()),
            false => Ok(run.model()),
        }
    }
}

/// Which split of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SplitName {
    /// Training images.
    Train,
    /// Validation images.
    Validation,
    /// Test images.
    Test,
}

/// Reads data for a model: images as they were for its training, one split, classes numbered as the model's.
pub fn data_for(
    saved: &SavedModel,
    source: &str,
    args: &DataArgs,
    split: Option<SplitName>,
) -> Result<Dataset> {
    align_classes(&images_for(saved, source, args, split)?, &saved.class_names, source)
}

/// The same with whatever classes the data have.
pub fn images_for(
    saved: &SavedModel,
    source: &str,
    args: &DataArgs,
    split: Option<SplitName>,
) -> Result<Dataset> {
    let geometry = Geometry::of_model(saved.model.spec().image, saved.preparation.fit);
    let loaded = args.load(source, &geometry)?;
    let data = choose_split(loaded, split, source)?;
    saved.model.check_images(data.images().shape())?;
    saved.preparation.scaling.check(data.images()).map_err(convgp::Error::from)?;
    Ok(data)
}

/// The split asked for, or else test, validation, train, whichever is there.
fn choose_split(loaded: Loaded, asked: Option<SplitName>, source: &str) -> Result<Dataset> {
    let order = match asked {
        Some(SplitName::Train) => &[SplitKind::Train][..],
        Some(SplitName::Validation) => &[SplitKind::Validation],
        Some(SplitName::Test) => &[SplitKind::Test],
        None => &[SplitKind::Test, SplitKind::Validation, SplitKind::Train],
    };
    let have: Vec<&str> = loaded.splits.iter().map(|s| s.kind.name()).collect();
    let found = order.iter().find_map(|&kind| loaded.get(kind).cloned());
    found.ok_or_else(|| input(format!("{source} has no such split; it has {}", have.join(", "))))
}

/// Whether a path is a file that the image readers take.
pub fn is_image_file(path: &Path) -> bool {
    let endings = ["png", "jpg", "jpeg", "bmp", "webp", "tif", "tiff"];
    let ending = path.extension().map(|e| e.to_string_lossy().to_lowercase());
    path.is_file() && ending.is_some_and(|e| endings.contains(&e.as_str()))
}
