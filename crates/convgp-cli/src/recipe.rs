//! From options and data to a complete spec: a file or a named model, then shortcuts, then `--set`.

mod preset;
mod set;

use crate::exit::{input, usage};
use crate::source::Extent;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use convgp::data::Dataset;
use convgp::error::InitError;
use convgp::kernel::{KernelSpec, Lengthscale};
use convgp::likelihood::LikelihoodSpec;
use convgp::rng::Rng;
use convgp::train::ExperimentSpec;
use convgp::views::{Pair, ViewSpec};
use convgp::{Error, Model};
use preset::Named;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Stream of the generator that draws initial parameters, apart from every other use of the seed.
const INITIAL_STREAM: u64 = 2;

/// What to train, and how.
#[derive(Debug, Clone, Args)]
pub struct RecipeArgs {
    /// Spec file (TOML), or the name of one of the paper's, such as mnist-weighted.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "recipe"], help_heading = "Model")]
    pub spec: Option<PathBuf>,
    /// Model by name (default: chosen from the data).
    #[arg(long, value_enum, help_heading = "Model")]
    pub model: Option<Named>,
    /// Whose likelihood and training settings a named model gets.
    #[arg(long, value_enum, default_value_t, help_heading = "Model")]
    pub recipe: Recipe,
    /// Inducing inputs of every component.
    #[arg(short = 'm', long, value_name = "M", help_heading = "Model")]
    pub inducing: Option<usize>,
    /// Patch size, such as 5x5.
    #[arg(long, value_name = "HxW", help_heading = "Model")]
    pub patch: Option<Extent>,
    /// Images per step.
    #[arg(long, value_name = "B", help_heading = "Training")]
    pub batch: Option<usize>,
    /// Steps to take.
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub steps: Option<u64>,
    /// Seed of initial parameters and minibatches.
    #[arg(long, help_heading = "Training")]
    pub seed: Option<u64>,
    /// Set any field of the spec, such as model.components.0.kernel.lengthscale=2. May be repeated.
    #[arg(long, value_name = "FIELD=VALUE", help_heading = "Model")]
    pub set: Vec<String>,
}

/// Where settings come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recipe {
    /// Softmax or probit with natural-gradient steps: minutes instead of hours.
    #[default]
    Fast,
    /// As published: robust-max and Adam.
    Paper,
}

/// A complete spec with its name and how it came about.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Model and training.
    pub experiment: ExperimentSpec,
    /// Short name, for the run folder.
    pub name: String,
    /// What was chosen, and why.
    pub reasons: Vec<String>,
    /// Whether the number of inducing inputs was ours to choose.
    free_inducing: bool,
}

impl RecipeArgs {
    /// The spec for these data, to be trained for so long.
    pub fn choose(&self, data: &Dataset, time: Option<Duration>) -> Result<Chosen> {
        let mut chosen = match &self.spec {
            Some(path) => read_spec(path)?,
            None => preset::choose(self.model, self.recipe, data, time)?,
        };
        let settled = |r: &String| {
            r.starts_with("inducing") && self.inducing.is_some()
                || r.starts_with("patches") && self.patch.is_some()
        };
        chosen.reasons.retain(|reason| !settled(reason));
        self.apply_shortcuts(&mut chosen.experiment)?;
        let given = Chosen::given(&chosen.name, &chosen.experiment, &self.set)?;
        let free_inducing = self.spec.is_none() && self.inducing.is_none();
        Ok(Chosen { reasons: chosen.reasons, free_inducing, ..given })
    }

    fn apply_shortcuts(&self, experiment: &mut ExperimentSpec) -> Result<()> {
        for component in &mut experiment.model.components {
            if let Some(m) = self.inducing {
                component.inducing.count = m;
            }
            if let (Some(p), ViewSpec::Patches { patch, .. }) = (self.patch, &mut component.views) {
                *patch = Pair::Each([p.height, p.width]);
            }
        }
        let has_patches =
            experiment.model.components.iter().any(|c| matches!(c.views, ViewSpec::Patches { .. }));
        if self.patch.is_some() && !has_patches {
            return Err(usage("--patch: this model has no patches"));
        }
        let train = &mut experiment.train;
        train.batch_size = self.batch.unwrap_or(train.batch_size);
        train.steps = self.steps.unwrap_or(train.steps);
        train.seed = self.seed.unwrap_or(train.seed);
        Ok(())
    }
}

/// A spec file, or one of the paper's by name.
fn read_spec(path: &Path) -> Result<Chosen> {
    let text = match preset::paper_spec(&path.to_string_lossy()) {
        Some(text) if !path.exists() => text.to_string(),
        _ => std::fs::read_to_string(path).map_err(|e| {
            let names: Vec<&str> = preset::PAPER.iter().map(|(name, _)| *name).collect();
            input(format!("{}: {e}. Name a TOML file or one of {}", path.display(), names.join(", ")))
        })?,
    };
    let experiment = ExperimentSpec::from_toml(&text).with_context(|| path.display().to_string())?;
    let name = path.file_stem().map_or_else(|| "spec".into(), |s| s.to_string_lossy().into_owned());
    let reasons = vec![format!("model and training: {}", path.display())];
    Ok(Chosen { experiment, name, reasons, free_inducing: false })
}

impl Chosen {
    /// A spec as it is but for single settings. More inducing inputs than the data have distinct views stand for all.
    pub fn given(name: &str, experiment: &ExperimentSpec, settings: &[String]) -> Result<Self> {
        let mut experiment = set::apply(experiment, settings)?;
        write_out_defaults(&mut experiment);
        experiment.train.check().map_err(Error::from)?;
        Ok(Self { experiment, name: name.into(), reasons: Vec::new(), free_inducing: true })
    }

    /// The model with its initial parameters. Where the number of inducing inputs was ours to choose and the data have
    /// fewer distinct views, all of them are taken.
    pub fn build(&mut self, data: &Dataset) -> Result<(Model, Vec<f64>)> {
        loop {
            match initial_model(&self.experiment, data) {
                Err(Error::Init(InitError::TooFewViews { component, found, .. }))
                    if self.free_inducing && found > 0 =>
                {
                    let spec = &mut self.experiment.model;
                    let index = (0..spec.components.len()).find(|&i| spec.component_name(i) == component);
                    let index = index.context("the error names a component")?;
                    spec.components[index].inducing.count = found;
                    self.reasons.push(format!("{component}: M = {found}, all distinct views the data have"));
                }
                other => return Ok(other?),
            }
        }
    }
}

/// The model of a spec with its initial parameters, a function of spec, data and seed.
pub fn initial_model(experiment: &ExperimentSpec, data: &Dataset) -> convgp::Result<(Model, Vec<f64>)> {
    let rng = &mut Rng::stream(experiment.train.seed, INITIAL_STREAM);
    let (model, values) = Model::new(&experiment.model, Some(data.images()), rng)?;
    model.likelihood().check_targets(data.targets())?;
    Ok((model, values))
}

/// Gives optional fields the values they stand for, so that a saved spec says everything.
fn write_out_defaults(experiment: &mut ExperimentSpec) {
    let names: Vec<String> =
        (0..experiment.model.components.len()).map(|i| experiment.model.component_name(i)).collect();
    for (component, name) in experiment.model.components.iter_mut().zip(names) {
        component.name = Some(name);
        write_out_kernel(&mut component.kernel);
    }
}

fn write_out_kernel(kernel: &mut KernelSpec) {
    if !kernel.terms.is_empty() {
        return kernel.terms.iter_mut().for_each(write_out_kernel);
    }
    kernel.variance.get_or_insert(1.0);
    kernel.lengthscale.get_or_insert(Lengthscale::default());
    if ["additive", "channels"].contains(&kernel.kind.as_str()) {
        kernel.of.get_or_insert_with(|| "rbf".into());
    }
}

/// One line about a model: its views, sizes and likelihood.
pub fn describe(model: &Model) -> String {
    let component = |c: &convgp::component::Component| {
        let views = c.responses()[0].views();
        let channels = match c.responses().len() {
            1 => String::new(),
            n => format!("{n} x "),
        };
        let weights = if c.responses()[0].weights_slot().is_some() { ", weighted" } else { "" };
        format!(
            "{} ({channels}{} views of {} numbers{weights}, M = {})",
            c.name(),
            views.count(),
            views.len(),
            c.inducing()
        )
    };
    let parts: Vec<String> = model.components().iter().map(component).collect();
    let likelihood = match model.spec().likelihood {
        LikelihoodSpec::Gaussian { .. } => "Gaussian",
        LikelihoodSpec::Probit { .. } => "probit",
        LikelihoodSpec::Logit {} => "logit",
        LikelihoodSpec::RobustMax { .. } => "robust-max",
        LikelihoodSpec::Softmax { .. } => "softmax",
    };
    format!("{}; {likelihood} likelihood; {} parameters", parts.join(" + "), model.layout().len())
}
