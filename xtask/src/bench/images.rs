//! Images to measure on: real ones, and made-up ones without a repeated patch.

use super::configs::{Config, Sizes};
use anyhow::{Context, Result};
use convgp::data::{Dataset, Images, Pixels, Targets};
use convgp::rng::Rng;
use convgp_data::{OpenOptions, SplitKind, open};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Which images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The data set the configuration is named for: blank patches merge.
    Real,
    /// Random bytes: no two patches are equal, so merging cannot help.
    Random,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Real => "real",
            Kind::Random => "random",
        }
    }
}

/// The folder of a configuration's real images below `root`, if it is there.
pub fn folder(config: &Config, root: Option<&Path>) -> Option<PathBuf> {
    root.map(|r| r.join(config.source.name())).filter(|p| p.is_dir())
}

/// The images a configuration is trained on.
pub fn load(config: &Config, kind: Kind, root: Option<&Path>, sizes: Sizes) -> Result<Dataset> {
    if kind == Kind::Random {
        return random(config, sizes, 2000, 7);
    }
    let name = config.source.name();
    let folder = folder(config, root).with_context(|| format!("no folder `{name}` with real images"))?;
    let options = OpenOptions { splits: vec![SplitKind::Train], ..OpenOptions::default() };
    let mut loaded = open(&folder, &options)?;
    Ok(loaded.splits.pop().with_context(|| format!("{name} has no training images"))?.data)
}

/// Random bytes with random labels.
pub fn random(config: &Config, sizes: Sizes, count: usize, seed: u64) -> Result<Dataset> {
    let (shape, classes) = config.images(sizes)?;
    let mut rng = Rng::new(seed);
    let words = (count * shape.len()).div_ceil(8);
    let mut pixels: Vec<u8> = (0..words).flat_map(|_| rng.bits().to_le_bytes()).collect();
    pixels.truncate(count * shape.len());
    let labels = (0..count).map(|_| rng.below(classes) as u32).collect();
    Ok(Dataset::new(Images::new(shape, Pixels::U8(pixels))?, Targets::classes(labels, classes)?)?)
}
