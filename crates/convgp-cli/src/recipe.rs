//! From options and data to a complete spec: a file or a named model, then shortcuts, then `--set`.

mod set;

use crate::exit::{input, usage};
use crate::source::Extent;
use anyhow::{Context, Result};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use convgp::Error;
use convgp::data::Dataset;
use convgp::preset::{self, Chosen, Named, PresetError, Recipe, Settled, write_out_defaults};
use convgp::train::ExperimentSpec;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What to train, and how.
#[derive(Debug, Clone, Args)]
pub struct RecipeArgs {
    /// Spec file (TOML), or the name of one of the paper's, such as mnist-weighted.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "recipe"], help_heading = "Model")]
    pub spec: Option<PathBuf>,
    /// Model by name (default: chosen from the data).
    #[arg(long, value_parser = model_names(), help_heading = "Model")]
    pub model: Option<Named>,
    /// Whose likelihood and training settings a named model gets.
    #[arg(long, value_parser = recipe_names(), default_value = "fast", help_heading = "Model")]
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

fn model_names() -> impl TypedValueParser<Value = Named> {
    PossibleValuesParser::new(Named::ALL.map(|n| PossibleValue::new(n.name()).help(n.about())))
        .try_map(|name| name.parse::<Named>())
}

/// Parses the name of a recipe.
pub fn recipe_names() -> impl TypedValueParser<Value = Recipe> {
    PossibleValuesParser::new(Recipe::ALL.map(|r| PossibleValue::new(r.name()).help(r.about())))
        .try_map(|name| name.parse::<Recipe>())
}

/// A name that does not fit the data is a mistake in the command.
fn name_option(error: Error) -> anyhow::Error {
    match error {
        Error::Preset(PresetError::OneChannel) => {
            usage("--model multi-channel: the images have one channel; try --model located")
        }
        Error::Preset(PresetError::NoPatches) => usage("--patch: this model has no patches"),
        other => other.into(),
    }
}

impl RecipeArgs {
    /// The spec for these data, to be trained for so long.
    pub fn choose(&self, data: &Dataset, time: Option<Duration>) -> Result<Chosen> {
        let mut chosen = match &self.spec {
            Some(path) => read_spec(path)?,
            None => preset::choose(self.model, self.recipe, data, time).map_err(name_option)?,
        };
        chosen.settle(&self.settled(), data).map_err(|e| name_option(e.into()))?;
        let given = given(&chosen.name, &chosen.experiment, &self.set)?;
        Ok(Chosen { experiment: given.experiment, ..chosen })
    }

    fn settled(&self) -> Settled {
        Settled {
            inducing: self.inducing,
            patch: self.patch.map(|p| [p.height, p.width]),
            batch_size: self.batch,
            steps: self.steps,
            seed: self.seed,
        }
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
    Ok(Chosen { experiment, name, reasons, free_inducing: false, free_steps: false })
}

/// A spec as it is but for single settings. More inducing inputs than the data have distinct views stand for all.
pub fn given(name: &str, experiment: &ExperimentSpec, settings: &[String]) -> Result<Chosen> {
    let mut experiment = set::apply(experiment, settings)?;
    write_out_defaults(&mut experiment);
    experiment.train.check().map_err(Error::from)?;
    Ok(Chosen { experiment, name: name.into(), reasons: Vec::new(), free_inducing: true, free_steps: false })
}
