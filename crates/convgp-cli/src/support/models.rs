//! Saved models, and data read as their models need them.

use crate::args::data::DataArgs;
use crate::args::model::{ModelArg, SplitName};
use crate::run::folder::RunFolder;
use crate::support::exit::{input, usage};
use crate::support::images::{align_classes, geometry_of, load_known};
use anyhow::{Context, Result};
use convgp::FittedModel;
use convgp::data::{Dataset, Images, PixelScale};
use convgp::prepare::Scaling;
use convgp_data::{Loaded, SplitKind};
use std::io::Write;
use std::path::PathBuf;

/// Reads the model a user named.
pub fn read_model(arg: &ModelArg) -> Result<FittedModel> {
    Ok(FittedModel::load(&model_file(arg)?)?)
}

/// The file of the model a user named.
pub fn model_file(arg: &ModelArg) -> Result<PathBuf> {
    if !arg.path.is_dir() {
        return match arg.best {
            true => Err(usage("--best: name the folder of a run, not a model file")),
            false => Ok(arg.path.clone()),
        };
    }
    let run = RunFolder::open(&arg.path)?;
    match arg.best {
        true if !run.best().is_file() => {
            let run = arg.path.display();
            Err(input(format!("{run}: no best model; the run held nothing out (train --validation)")))
        }
        true => Ok(run.best()),
        false => Ok(run.model()),
    }
}

/// Reads data for a model: images as they were for its training, one split, classes numbered as the model's.
pub fn data_for(
    saved: &FittedModel,
    source: &str,
    args: &DataArgs,
    split: Option<SplitName>,
) -> Result<Dataset> {
    align_classes(&images_for(saved, source, args, split)?, &saved.class_names, source)
}

/// The same with whatever classes the data have.
pub fn images_for(
    saved: &FittedModel,
    source: &str,
    args: &DataArgs,
    split: Option<SplitName>,
) -> Result<Dataset> {
    let geometry = geometry_of(saved.model.spec().image, saved.preparation.fit);
    ready(saved, load_known(source, args, &geometry, &saved.class_names)?, source, split)
}

/// A split of what was read, ready for the model.
pub fn ready(saved: &FittedModel, loaded: Loaded, source: &str, split: Option<SplitName>) -> Result<Dataset> {
    let data = choose_split(loaded, split, source)?;
    saved.model.check_images(data.images().shape())?;
    let scale = scale_for(saved.preparation.scaling, data.images(), source)?;
    Ok(data.with_scale(scale))
}

/// The scale of images for a model; a conversion is told.
pub fn scale_for(scaling: Scaling, images: &Images, source: &str) -> Result<PixelScale> {
    let scale = scaling.scale_for(images).map_err(convgp::Error::from).with_context(|| source.to_string())?;
    if let Some(conversion) = scaling.conversion(scale) {
        writeln!(std::io::stderr(), "note: {source}: {conversion}")?;
    }
    Ok(scale)
}

/// The kind of a split.
pub fn kind_of(split: SplitName) -> SplitKind {
    match split {
        SplitName::Train => SplitKind::Train,
        SplitName::Validation => SplitKind::Validation,
        SplitName::Test => SplitKind::Test,
    }
}

/// The split asked for, or else test, validation, train, whichever is there.
fn choose_split(loaded: Loaded, asked: Option<SplitName>, source: &str) -> Result<Dataset> {
    let order = match asked {
        Some(split) => &[kind_of(split)][..],
        None => &[SplitKind::Test, SplitKind::Validation, SplitKind::Train],
    };
    let have: Vec<&str> = loaded.splits.iter().map(|s| s.kind.name()).collect();
    let found = order.iter().find_map(|&kind| loaded.get(kind).cloned());
    found.ok_or_else(|| input(format!("{source} has no such split; it has {}", have.join(", "))))
}
