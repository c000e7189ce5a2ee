//! From options and data to a complete spec: a file or a named model, then shortcuts, then `--set`.

use super::set;
use crate::args::data::Extent;
use crate::args::spec::SpecArgs;
use crate::support::exit::{input, usage};
use anyhow::{Context, Result};
use convgp::Error;
use convgp::data::Dataset;
use convgp::preset::{
    self, Aspect, Decision, Named, Overrides, PresetError, ResolvedConfig, write_out_defaults,
};
use convgp::train::ExperimentSpec;
use convgp::views::GeometryError;
use convgp_paper::catalog::all;
use convgp_paper::{Experiment, Recipe};
use std::path::Path;
use std::time::Duration;

/// A name that does not fit the data is a mistake in the command.
fn name_option(error: convgp_paper::Error) -> anyhow::Error {
    match error {
        convgp_paper::Error::Library(Error::Preset(PresetError::OneChannel)) => {
            usage("--model multi-channel: the images have one channel; try --model located")
        }
        convgp_paper::Error::Library(Error::Preset(PresetError::NoPatches)) => {
            usage("--patch: this model has no patches")
        }
        other => other.into(),
    }
}

/// The spec for these data, to be trained for so long.
pub fn choose(args: &SpecArgs, data: &Dataset, time: Option<Duration>) -> Result<ResolvedConfig> {
    let shape = data.images().shape();
    let too_large = |p: &Extent| p.height > shape.height() || p.width > shape.width();
    if let Some(Extent { height, width, .. }) = args.patch.filter(too_large) {
        return Err(usage(format!("--patch: {}", GeometryError::PatchTooLarge { height, width, shape })));
    }
    let mut chosen = match &args.spec {
        Some(path) => read_spec(path, args.recipe)?,
        None => {
            let recipe = args.recipe.unwrap_or_default();
            convgp_paper::choose(model(args, data), recipe, data, time).map_err(name_option)?
        }
    };
    chosen.apply(&overrides(args), data).map_err(|e| name_option(Error::from(e).into()))?;
    let given = given(&chosen.name, &chosen.experiment, &args.set)?;
    Ok(ResolvedConfig { experiment: given.experiment, ..chosen })
}

/// The model asked for, or the default.
fn model(args: &SpecArgs, data: &Dataset) -> Option<Named> {
    let in_steps = args.steps.is_some() || args.batch.is_some() || args.recipe == Some(Recipe::Paper);
    args.model.or_else(|| preset::default_model(data, in_steps))
}

fn overrides(args: &SpecArgs) -> Overrides {
    Overrides {
        inducing: args.inducing,
        patch: args.patch.map(|p| [p.height, p.width]),
        batch_size: args.batch,
        steps: args.steps,
        seed: args.seed,
    }
}

/// A spec file, or an experiment by name.
fn read_spec(path: &Path, recipe: Option<Recipe>) -> Result<ResolvedConfig> {
    let name = path.to_string_lossy();
    let (experiment, source) = match std::fs::read_to_string(path) {
        Ok(_) if recipe.is_some() => return Err(usage("--recipe: a spec file says all settings itself")),
        Ok(text) => (ExperimentSpec::from_toml(&text).with_context(|| name.to_string())?, name.to_string()),
        Err(unread) => {
            let experiment = Experiment::find(&name).map_err(|_| {
                let known: Vec<&str> = all().map(|experiment| experiment.name).collect();
                let is_file = path.exists() || path.extension().is_some() || path.components().count() > 1;
                let refuse = if is_file { input } else { usage };
                refuse(format!("--spec {name}: {unread}. Name a TOML file or one of {}", known.join(", ")))
            })?;
            let recipe = experiment.recipe(recipe);
            (experiment.minibatch_spec(recipe)?, format!("{name}, recipe {recipe}"))
        }
    };
    let name = path.file_stem().map_or_else(|| "spec".into(), |s| s.to_string_lossy().into_owned());
    let decisions = vec![Decision::new(Aspect::Spec, source, "")];
    Ok(ResolvedConfig { experiment, name, decisions, free_inducing: false, free_steps: false })
}

/// A spec as it is but for single settings. More inducing inputs than the data have distinct views stand for all.
pub fn given(name: &str, experiment: &ExperimentSpec, settings: &[String]) -> Result<ResolvedConfig> {
    let mut experiment = set::apply(experiment, settings)?;
    write_out_defaults(&mut experiment);
    experiment.train.check().map_err(Error::from)?;
    Ok(ResolvedConfig {
        experiment,
        name: name.into(),
        decisions: Vec::new(),
        free_inducing: true,
        free_steps: false,
    })
}
