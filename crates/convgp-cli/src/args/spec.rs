//! Options that choose model and training.

use crate::args::data::{Extent, parse_count};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use convgp::preset::Named;
use convgp_paper::Recipe;
use std::path::PathBuf;

/// Model and training.
#[derive(Debug, Clone, Args)]
pub struct SpecArgs {
    /// Spec file (TOML), or the name of an experiment, such as mnist-weighted.
    #[arg(long, value_name = "FILE", conflicts_with = "model", help_heading = "Model")]
    pub spec: Option<PathBuf>,
    /// Name of the model (default: chosen from the data).
    #[arg(long, value_parser = model_names(), help_heading = "Model")]
    pub model: Option<Named>,
    /// Likelihood and training settings of a named model or experiment (default: fast, where there is such a recipe).
    #[arg(long, value_parser = recipe_names(), help_heading = "Model")]
    pub recipe: Option<Recipe>,
    /// Number of inducing inputs of each component.
    #[arg(short = 'm', long, value_name = "M", value_parser = parse_count, help_heading = "Model")]
    pub inducing: Option<usize>,
    /// Patch size, such as 5x5.
    #[arg(long, value_name = "HxW", help_heading = "Model")]
    pub patch: Option<Extent>,
    /// Images per step.
    #[arg(long, value_name = "B", value_parser = parse_count, help_heading = "Training")]
    pub batch: Option<usize>,
    /// Number of training steps.
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
