//! The experiments: one TOML file each, and one line in the list.

use crate::{Error, Result};
use convgp::data::{Dataset, ImageShape, Targets};
use convgp::kernel::Lengthscale;
use convgp::likelihood::LikelihoodSpec;
use convgp::model::{ComponentSpec, InducingInit, Jitter, ModelSpec, PosteriorSpec};
use convgp::optim::Lbfgs;
use convgp::preset::{self, Aspect, Decision, Named, PresetError, ResolvedConfig};
use convgp::train::{ExperimentSpec, TrainSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

macro_rules! experiments {
    ($($name:literal),* $(,)?) => {
        /// Names and files, in the order of the table.
        const EXPERIMENTS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../experiments/", $name, ".toml")))),*];
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
    "cifar-contrast-weighted",
    "cifar-contrast-colour-patch",
    "cifar-contrast-additive",
    "cifar-contrast-multichannel",
    "cifar-contrast-located",
    "cifar-best",
];

/// Likelihood and training settings of an experiment: whose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recipe {
    /// Ours.
    #[default]
    Fast,
    /// The published ones.
    Paper,
}

impl Recipe {
    /// Both.
    pub const ALL: [Self; 2] = [Recipe::Fast, Recipe::Paper];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Recipe::Fast => "fast",
            Recipe::Paper => "paper",
        }
    }

    /// What it is, in one line.
    pub fn about(self) -> &'static str {
        match self {
            Recipe::Fast => "Softmax or probit with natural-gradient steps: minutes instead of hours",
            Recipe::Paper => "As published: robust-max and Adam",
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Recipe {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|recipe| recipe.name() == name);
        found.ok_or_else(|| Error::UnknownRecipe { name: name.into() })
    }
}

/// One experiment: data, a model, what others reached with it, and how it is trained.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name.
    #[serde(skip)]
    pub name: &'static str,
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
    /// The published experiment that it is a variant of.
    pub compare: Option<String>,
    /// The named model whose published settings these are.
    family: Option<Named>,
    /// The figure its curves are drawn in; the data set's if absent.
    figure: Option<String>,
    model: PublishedModel,
    recipe: Recipes,
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
    /// Not in the paper but by others.
    #[serde(default)]
    pub elsewhere: bool,
    /// What they are of, if not of this very model.
    pub of: Option<String>,
}

/// What no recipe changes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedModel {
    image: ImageShape,
    components: Vec<ComponentSpec>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipes {
    fast: Option<Settings>,
    paper: Option<Settings>,
}

/// A recipe for one experiment: likelihood, approximate posterior and training. Views, weights, kernel and number of
/// inducing inputs are the model's.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How long to train; for `train.steps` when absent.
    minutes: Option<u64>,
    /// L-BFGS on all images at once instead of minibatches; it takes at most `train.steps` steps.
    pub full_batch: Option<Lbfgs>,
    likelihood: LikelihoodSpec,
    #[serde(default)]
    posterior: PosteriorSpec,
    #[serde(default)]
    jitter: Jitter,
    /// Where parameters of a component start.
    #[serde(default)]
    start: BTreeMap<String, Start>,
    #[serde(default)]
    train: TrainSpec,
}

/// Where parameters of a component start; where the model says when absent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Start {
    variance: Option<f64>,
    lengthscale: Option<Lengthscale>,
    inducing: Option<InducingInit>,
}

impl Start {
    fn apply(&self, component: &mut ComponentSpec) {
        if let Some(variance) = self.variance {
            component.kernel.set_variance(variance);
        }
        if let Some(lengthscale) = &self.lengthscale {
            component.kernel.set_lengthscale(lengthscale.clone());
        }
        component.inducing.init = self.inducing.unwrap_or(component.inducing.init);
    }
}

impl Settings {
    /// How long to train, if not for a number of steps.
    pub fn time(&self) -> Option<Duration> {
        self.minutes.map(|minutes| Duration::from_secs(60 * minutes))
    }

    /// How long it trains, for people.
    pub fn budget(&self) -> String {
        match self.minutes {
            Some(minutes) => format!("{minutes} min"),
            None => format!("{} steps", self.train.steps),
        }
    }
}

impl Experiment {
    /// By name.
    pub fn find(name: &str) -> Result<Self> {
        all().find(|e| e.name == name).ok_or_else(|| Error::UnknownExperiment {
            name: name.into(),
            known: EXPERIMENTS.iter().map(|(name, _)| *name).collect(),
        })
    }

    /// The figure its curves are drawn in.
    pub fn figure(&self) -> &str {
        self.figure.as_deref().unwrap_or(&self.data)
    }

    /// The recipes it has, the first by default.
    pub fn recipes(&self) -> impl Iterator<Item = Recipe> {
        Recipe::ALL.into_iter().filter(|recipe| self.settings(*recipe).is_ok())
    }

    /// The recipe asked for, or the first it has.
    pub fn recipe(&self, asked: Option<Recipe>) -> Recipe {
        asked.or_else(|| self.recipes().next()).unwrap_or_default()
    }

    /// The settings of a recipe. What the paper does not have has no published ones.
    pub fn settings(&self, recipe: Recipe) -> Result<&Settings> {
        let Recipes { fast, paper } = &self.recipe;
        let (found, other) = match recipe {
            Recipe::Fast => (fast, Recipe::Paper),
            Recipe::Paper => (paper, Recipe::Fast),
        };
        found.as_ref().ok_or(Error::NoRecipe { experiment: self.name, recipe, other })
    }

    /// Model and training by a recipe.
    pub fn spec(&self, recipe: Recipe) -> Result<ExperimentSpec> {
        let settings = self.settings(recipe)?;
        let PublishedModel { image, mut components } = self.model.clone();
        for component in &mut components {
            let start = component.name.as_ref().and_then(|name| settings.start.get(name));
            start.into_iter().for_each(|start| start.apply(component));
        }
        let Settings { likelihood, posterior, jitter, train, .. } = settings.clone();
        let augmentation = None;
        let model = ModelSpec { image, likelihood, posterior, jitter, augmentation, components };
        Ok(ExperimentSpec { model, train })
    }

    /// The same for training by minibatches; refused where the recipe is L-BFGS on all images.
    pub fn minibatch_spec(&self, recipe: Recipe) -> Result<ExperimentSpec> {
        match self.settings(recipe)?.full_batch {
            Some(_) => Err(Error::FullBatch { experiment: self.name, recipe }),
            None => self.spec(recipe),
        }
    }
}

/// All experiments, in the order of the table.
pub fn all() -> impl Iterator<Item = Experiment> {
    let read = |text| toml::from_str(text).expect("a test reads every experiment");
    EXPERIMENTS.iter().map(move |(name, text)| Experiment { name, ..read(text) })
}

/// A named model for these data, to be trained for so long, by a recipe. By the paper's it keeps the settings of the
/// published experiment, its number of inducing inputs included; only shape and likelihood follow the data.
pub fn choose(
    model: Option<Named>,
    recipe: Recipe,
    data: &Dataset,
    time: Option<Duration>,
) -> Result<ResolvedConfig> {
    match recipe {
        Recipe::Fast => Ok(preset::choose(model, data, time)?),
        Recipe::Paper => published(model, data),
    }
}

/// What the published probit keeps from 0 and 1.
const SQUASH: f64 = 1e-3;

/// Whether the paper has settings of this experiment for images of so many channels.
fn fits(experiment: &Experiment, channels: usize) -> bool {
    experiment.model.image.channels() <= channels
}

fn published(model: Option<Named>, data: &Dataset) -> Result<ResolvedConfig> {
    let shape = data.images().shape();
    let channels = shape.channels();
    let best = if channels > 1 { Named::MultiChannel } else { Named::WeightedRbf };
    let named = model.unwrap_or(best);
    if named == Named::MultiChannel && channels == 1 {
        return Err(convgp::Error::from(PresetError::OneChannel).into());
    }
    let families = || all().filter(|e| e.family.is_some() && fits(e, channels));
    // Of two that fit, the one with colours is for images with colours.
    let found = families().filter(|e| e.family == Some(named)).max_by_key(|e| e.model.image.channels());
    let experiment = found.ok_or_else(|| {
        let mut known: Vec<String> =
            families().filter_map(|e| e.family).map(|f| f.name().to_string()).collect();
        known.sort();
        known.dedup();
        Error::NotPublished { model: named.name(), known }
    })?;
    let mut spec = experiment.spec(Recipe::Paper)?;
    spec.model.image = shape;
    let likelihood = match data.targets() {
        Targets::Classes { classes: 2, .. } => LikelihoodSpec::Probit { link_jitter: SQUASH },
        Targets::Classes { classes, .. } => LikelihoodSpec::robust_max(*classes),
        Targets::Real(_) => preset::likelihood(data.targets()),
    };
    spec.model.likelihood = likelihood;
    let mut decisions = vec![Decision::new(Aspect::Training, "as published", experiment.name)];
    if model.is_none() {
        decisions.insert(0, Decision::new(Aspect::Model, named.name(), "the paper's best for such images"));
    }
    Ok(ResolvedConfig {
        experiment: spec,
        name: named.name().replace('+', "-"),
        decisions,
        free_inducing: true,
        free_steps: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use convgp::Model;
    use convgp::data::{Images, Pixels};
    use convgp::kernel::KernelSpec;
    use convgp::rng::Rng;

    fn images(shape: ImageShape, count: usize) -> Images {
        let rng = &mut Rng::new(1);
        Images::new(shape, Pixels::U8((0..count * shape.len()).map(|_| rng.bits() as u8).collect())).unwrap()
    }

    #[test]
    fn every_experiment_builds_by_every_recipe() {
        for experiment in all() {
            let name = experiment.name;
            for recipe in experiment.recipes() {
                let ExperimentSpec { model: mut spec, train } = experiment.spec(recipe).unwrap();
                train.check().unwrap_or_else(|e| panic!("{name}: {e}"));
                spec.components.iter_mut().for_each(|c| c.inducing.count = 20);
                let images = images(spec.image, 30);
                let built = Model::new(&spec, Some(&images), &mut Rng::new(1));
                built.unwrap_or_else(|e| panic!("{name}: {e}"));
                let known = |part: &String| spec.components.iter().any(|c| c.name.as_ref() == Some(part));
                let starts = &experiment.settings(recipe).unwrap().start;
                assert!(starts.keys().all(known), "{name}: {recipe}: starts of components it does not have");
                let rates = [train.adam.z, train.adam.kernel, train.adam.weights, train.adam.rate];
                assert!(rates.iter().all(|rate| *rate > 0.0), "{name}: {recipe}: freeze by `frozen`");
            }
            let paper = experiment.published.as_ref().is_some_and(|p| !p.elsewhere);
            assert!(!paper || experiment.settings(Recipe::Paper).is_ok(), "{name}: published settings");
            experiment.compare.iter().for_each(|other| drop(Experiment::find(other).unwrap()));
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

    /// A component without the values its parameters start from.
    fn structure(mut component: ComponentSpec) -> ComponentSpec {
        component.kernel.set_variance(1.0);
        component.kernel.set_lengthscale(Lengthscale::One(1.0));
        component.inducing.init = InducingInit::Views;
        component
    }

    #[test]
    fn a_recipe_changes_no_views_weights_kernel_or_inducing_count() {
        for experiment in all() {
            let parts = |recipe| -> Vec<ComponentSpec> {
                let spec = experiment.spec(recipe).unwrap();
                spec.model.components.into_iter().map(structure).collect()
            };
            let mut all = experiment.recipes().map(parts);
            let first = all.next().expect("an experiment has a recipe");
            assert!(all.all(|other| other == first), "{}", experiment.name);
        }
        let text = EXPERIMENTS.iter().find(|(name, _)| *name == "mnist-weighted").unwrap().1;
        for setting in ["views = { type = 'image' }", "model.components = []", "start.conv.count = 3"] {
            let text = text.replace("[recipe.fast.train]", &format!("{setting}\n[recipe.fast.train]"));
            let text = text.replace("start.conv = { variance = 500.0 }\n", "");
            let message = toml::from_str::<Experiment>(&text).unwrap_err().to_string();
            assert!(message.contains("unknown field"), "{setting}: {message}");
        }
    }

    /// Targets such as an experiment's, by its likelihood.
    fn dataset(shape: ImageShape, classes: usize) -> Dataset {
        let labels = (0..60).map(|i| i % classes as u32).collect();
        Dataset::new(images(shape, 60), Targets::classes(labels, classes).unwrap()).unwrap()
    }

    #[test]
    fn the_papers_recipe_is_the_same_for_a_named_model_and_its_experiment() {
        let families: Vec<Experiment> = all().filter(|e| e.family.is_some()).collect();
        assert!(families.len() >= 9);
        for experiment in families {
            let data = dataset(experiment.model.image, 10);
            let chosen = choose(experiment.family, Recipe::Paper, &data, None).unwrap();
            let published = experiment.spec(Recipe::Paper).unwrap();
            assert_eq!(chosen.experiment, published, "{}", experiment.name);
        }
    }

    #[test]
    fn families_are_built_as_their_experiments_are() {
        for experiment in all() {
            let Some(family) = experiment.family else { continue };
            let shape = experiment.model.image;
            let ours = choose(Some(family), Recipe::Fast, &dataset(shape, 10), None).unwrap();
            let ours = ours.experiment.model.components.into_iter().map(structure);
            for (mut ours, theirs) in ours.zip(experiment.model.components.clone().into_iter().map(structure))
            {
                ours.inducing = theirs.inducing;
                assert_eq!(ours, theirs, "{}", experiment.name);
            }
        }
    }

    #[test]
    fn published_settings_follow_shape_and_classes_only() {
        let shape = |channels| ImageShape::new(9, 9, channels).unwrap();
        let two = choose(Some(Named::Weighted), Recipe::Paper, &dataset(shape(1), 2), None).unwrap();
        assert_eq!(two.experiment.model.likelihood, LikelihoodSpec::Probit { link_jitter: SQUASH });
        let mnist = Experiment::find("mnist-weighted").unwrap().spec(Recipe::Paper).unwrap();
        assert_eq!(two.experiment.train, mnist.train);
        let best = choose(None, Recipe::Paper, &dataset(shape(3), 4), None).unwrap();
        assert_eq!(best.name, "multi-channel");
        assert_eq!(best.experiment.model.likelihood, LikelihoodSpec::robust_max(4));
        let beyond = choose(Some(Named::Located), Recipe::Paper, &dataset(shape(1), 4), None).unwrap_err();
        let message = beyond.to_string();
        assert!(
            beyond.is_usage() && message.contains("located") && message.contains("weighted+rbf"),
            "{message}"
        );
        assert!(!message.contains("multi-channel"), "not for grey images: {message}");
        assert!(matches!(mnist.model.components[0].kernel, KernelSpec::Rbf(_)));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let message = Experiment::find("mnist").unwrap_err().to_string();
        assert!(message.contains("called mnist") && message.contains("cifar-best"), "{message}");
        let located = Experiment::find("mnist-located").unwrap();
        let message = located.spec(Recipe::Paper).unwrap_err().to_string();
        assert_eq!(message, "mnist-located has no recipe `paper`; it has `fast`");
        assert_eq!(Experiment::find("cifar-weighted").unwrap().recipe(None), Recipe::Paper);
        assert!("slow".parse::<Recipe>().unwrap_err().to_string().contains("fast, paper"));
    }
}
