//! The experiments: one TOML file each, and one line in the list.

use crate::duration;
use crate::exit::usage;
use anyhow::Result;
use convgp::model::ModelSpec;
use convgp::optim::Lbfgs;
use convgp::preset::Recipe;
use convgp::train::{ExperimentSpec, TrainSpec};
use serde::Deserialize;
use std::time::Duration;

macro_rules! experiments {
    ($($name:literal),* $(,)?) => {
        /// Names and files, in the order of the table.
        pub const EXPERIMENTS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../experiments/", $name, ".toml")))),*];
    };
}

experiments![
    "rectangles-rbf",
    "rectangles-invariant",
    "rectangles-weighted",
    "mnist01",
    "mnist-rbf",
    "mnist-invariant",
    "mnist-weighted",
    "mnist-weighted-rbf",
    "mnist-located",
    "mnist-located-rbf",
    "mnist-small",
    "mnist-ablation-weights",
    "mnist-ablation-patches",
    "mnist-ablation-both",
    "cifar-rbf",
    "cifar-weighted",
    "cifar-colour-patch",
    "cifar-additive",
    "cifar-multichannel",
    "cifar-located",
    "cifar-best",
];

/// One experiment.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What it is, in a few words.
    pub title: String,
    /// The registered data set.
    pub data: String,
    /// The classes it is about; all when empty.
    #[serde(default)]
    pub classes: Vec<String>,
    /// Test images at the front that the published figures are of; all when absent.
    pub first: Option<usize>,
    /// What others reached.
    pub published: Option<Published>,
    /// The figure its curves are drawn in; the data set's if absent.
    figure: Option<String>,
    /// Our settings.
    fast: Settings,
    /// The published settings.
    paper: Option<Settings>,
}

/// Published figures, as they are printed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Test error.
    pub error: String,
    /// Negative log predictive probability, where it was given.
    #[serde(default)]
    pub nlpp: String,
    /// Not in the paper but by others, about the same model.
    #[serde(default)]
    pub elsewhere: bool,
}

/// A recipe for one experiment.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How long to train; for `train.steps` when absent.
    #[serde(default, deserialize_with = "duration::deserialize")]
    pub time: Option<Duration>,
    /// L-BFGS on all images at once instead of minibatches; it takes at most `train.steps` steps.
    pub full_batch: Option<Lbfgs>,
    model: ModelSpec,
    #[serde(default)]
    train: TrainSpec,
}

impl Settings {
    /// Model and training.
    pub fn spec(&self) -> ExperimentSpec {
        ExperimentSpec { model: self.model.clone(), train: self.train.clone() }
    }

    /// How long it trains, for people.
    pub fn budget(&self) -> String {
        self.time
            .map_or_else(|| format!("{} steps", self.train.steps), |time| duration::text(time.as_secs_f64()))
    }
}

impl Experiment {
    /// The figure its curves are drawn in.
    pub fn figure(&self) -> &str {
        self.figure.as_deref().unwrap_or(&self.data)
    }

    /// By name.
    pub fn find(name: &str) -> Result<Self> {
        all().find(|(known, _)| *known == name).map(|(_, experiment)| experiment).ok_or_else(|| {
            let names: Vec<&str> = EXPERIMENTS.iter().map(|(name, _)| *name).collect();
            usage(format!("no experiment is called {name}; there are {}", names.join(", ")))
        })
    }

    /// The settings of a recipe. What the paper does not have has no published ones.
    pub fn settings(&self, recipe: Recipe) -> Option<&Settings> {
        match recipe {
            Recipe::Fast => Some(&self.fast),
            Recipe::Paper => self.paper.as_ref(),
        }
    }
}

/// All experiments by name.
pub fn all() -> impl Iterator<Item = (&'static str, Experiment)> {
    let read = |text| toml::from_str(text).expect("a test reads every experiment");
    EXPERIMENTS.iter().map(move |(name, text)| (*name, read(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use convgp::Model;
    use convgp::data::{Images, Pixels};
    use convgp::rng::Rng;

    #[test]
    fn every_experiment_builds_by_every_recipe() {
        for (name, experiment) in all() {
            for settings in [Recipe::Fast, Recipe::Paper].iter().filter_map(|r| experiment.settings(*r)) {
                let ExperimentSpec { model: mut spec, train } = settings.spec();
                train.check().unwrap_or_else(|e| panic!("{name}: {e}"));
                spec.components.iter_mut().for_each(|c| c.inducing.count = 20);
                let rng = &mut Rng::new(1);
                let pixels = (0..30 * spec.image.len()).map(|_| rng.bits() as u8).collect();
                let images = Images::new(spec.image, Pixels::U8(pixels)).unwrap();
                Model::new(&spec, Some(&images), rng).unwrap_or_else(|e| panic!("{name}: {e}"));
            }
            let paper = experiment.published.as_ref().is_some_and(|p| !p.elsewhere);
            assert!(!paper || experiment.settings(Recipe::Paper).is_some(), "{name}: published settings");
        }
    }

    #[test]
    fn every_file_is_in_the_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments");
        let files = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
        for file in files {
            let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(EXPERIMENTS.iter().any(|(name, _)| *name == stem), "{stem}");
        }
    }
}
