//! The crate's error: small enums from near their cause, gathered.

use crate::closed_form::StatisticsError;
use crate::data::DataError;
use crate::inspect::InspectError;
use crate::io::FileError;
use crate::kernel::KernelError;
use crate::likelihood::LikelihoodError;
use crate::memory::MemoryError;
use crate::metrics::MetricsError;
use crate::params::ParamError;
use crate::preset::PresetError;
use crate::train::TrainError;
use crate::views::GeometryError;

/// Everything that can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum Error {
    #[error(transparent)]
    Data(#[from] DataError),
    #[error(transparent)]
    Geometry(#[from] GeometryError),
    #[error(transparent)]
    Kernel(#[from] KernelError),
    #[error(transparent)]
    Likelihood(#[from] LikelihoodError),
    #[error(transparent)]
    Param(#[from] ParamError),
    #[error(transparent)]
    Numerical(#[from] NumericalError),
    #[error(transparent)]
    Init(#[from] InitError),
    #[error("model spec: {0}")]
    Spec(#[from] SpecError),
    #[error(transparent)]
    Statistics(#[from] StatisticsError),
    #[error(transparent)]
    Memory(#[from] MemoryError),
    #[error(transparent)]
    Metrics(#[from] MetricsError),
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error(transparent)]
    Preset(#[from] PresetError),
    #[error("training: {0}")]
    Train(#[from] TrainError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error("reading a spec: {0}")]
    Toml(#[from] toml::de::Error),
}

/// A model spec that does not describe a model.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum SpecError {
    #[error("`components` is empty; a model needs at least one")]
    NoComponents,
    #[error("two components are called `{name}`; give each its own `name`")]
    DuplicateComponent { name: String },
    #[error("component `{name}` has no views; a component needs at least one response")]
    NoViews { name: String },
    #[error(
        "component `{name}`: responses share inducing inputs, so their views must be equally long; found {first} and {other} numbers"
    )]
    UnequalViews { name: String, first: usize, other: usize },
    #[error(
        "component `{name}`: a first stage has nothing to learn and no `kff`; remove `weights` and `white`, and use `image_norm` \"nystrom\" or \"none\""
    )]
    FirstStage { name: String },
    #[error("the array `{name}` of the model is missing or of another size")]
    MissingConstant { name: String },
    #[error("component `{name}`: `inducing.count` is 0; at least one inducing input is needed")]
    NoInducing { name: String },
    #[error(
        "component `{name}` has `location`, but its views carry no coordinates; set `views.location_aware = true`"
    )]
    LocationWithoutCoordinates { name: String },
    #[error(
        "component `{name}` has location-aware views but no `location` kernel; add one, for example {{ type = \"matern32\", lengthscale = 3.0 }}"
    )]
    CoordinatesWithoutLocation { name: String },
    #[error(
        "this model (a shared posterior, or normalised images) is for the closed-form solver; it cannot be trained in steps"
    )]
    ClosedFormOnly,
    #[error("`objective.alpha` is {value}; it must be {must}")]
    Alpha { value: f64, must: &'static str },
    #[error(
        "the model's {what} was made in code; a model file holds a spec, which cannot say it. Save its parameters instead"
    )]
    MadeByHand { what: &'static str },
    #[error(
        "the closed-form solver needs `posterior.structure = \"shared\"` and a likelihood of type `labels` or `gaussian`"
    )]
    NotClosedForm,
    #[error("`jitter` is {value}; it must be positive and below 1")]
    Jitter { value: f64 },
    #[error(
        "natural-gradient steps need a whitened posterior; remove `posterior.whiten = false` or use Adam for q"
    )]
    NaturalUnwhitened,
    #[error("the collapsed bound needs a Gaussian likelihood")]
    CollapsedLikelihood,
    #[error("the collapsed bound needs a dense posterior; remove `posterior.structure = \"mean-field\"`")]
    CollapsedStructure,
}

/// Initial values that could not be found.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum InitError {
    #[error(
        "component `{component}` asks for {wanted} inducing inputs, but the training data have only {found} distinct views; lower `inducing.count` to {found} or use init = \"uniform\""
    )]
    TooFewViews { component: String, wanted: usize, found: usize },
    #[error(
        "component `{component}`: {found} numbers for inducing inputs; expected a multiple of {view_len}"
    )]
    InducingLength { component: String, found: usize, view_len: usize },
    #[error("inducing inputs are to be taken from training images, but none were given")]
    NoImages,
}

/// Numerical trouble that was not mended by the stated number of tries.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum NumericalError {
    #[error(
        "{component}: Kuu is not positive definite at row {row} of {size} (jitter raised to {jitter:e} in {tries} tries); inducing inputs {first} and {second} are {gap:.2e} apart. Raise `jitter` or drop duplicates"
    )]
    NotPositiveDefinite {
        component: String,
        row: usize,
        size: usize,
        jitter: f64,
        tries: usize,
        first: usize,
        second: usize,
        gap: f64,
    },
    #[error("parameter `{name}` became {value}; every parameter must be finite")]
    ParameterNotFinite { name: String, value: f64 },
    #[error("the posterior precision of latent {latent} is not positive definite; use smaller natural steps")]
    IndefinitePosterior { latent: usize },
    #[error("the {matrix} is not positive definite at row {row} of {size}; {remedy}")]
    IndefiniteMatrix { matrix: &'static str, row: usize, size: usize, remedy: &'static str },
    #[error("the bound is {value}; the largest gradient is in `{parameter}`")]
    NonFinite { value: f64, parameter: String },
    #[error(
        "training stopped at step {step} after {tries} roll-backs; last good bound {}; component `{component}` has the closest inducing inputs, {first} and {second}, {gap:.2e} apart; last cause: {cause}. Lower the step sizes or raise `jitter`",
        last_bound.map_or_else(|| "none".into(), |bound: f64| bound.to_string())
    )]
    Diverged {
        step: u64,
        tries: usize,
        last_bound: Option<f64>,
        component: String,
        first: usize,
        second: usize,
        gap: f64,
        cause: Box<NumericalError>,
    },
}
