//! A model as data: the same in TOML, in the model file and in Python.

use crate::component::{ImageNorm, Pooling, Weights};
use crate::data::ImageShape;
use crate::error::SpecError;
use crate::kernel::KernelSpec;
use crate::likelihood::LikelihoodSpec;
use crate::variational::PosteriorSpec;
use crate::views::{Augmentation, ViewSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A complete model.
///
/// ```
/// let spec: convgp::ModelSpec = toml::from_str(r#"
///     image = { height = 28, width = 28 }
///     likelihood = { type = "probit" }
///     [[components]]
///     views = { type = "patches", patch = [3, 3] }
///     weights = "learned"
///     kernel = { type = "rbf" }
///     inducing = { count = 16, init = "uniform" }
/// "#)?;
/// let (model, values) = convgp::Model::new(&spec, None, &mut convgp::rng::Rng::new(0))?;
/// assert_eq!(model.components()[0].responses()[0].views().count(), 26 * 26);
/// assert_eq!(values.len(), model.layout().len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// Shape of the images.
    pub image: ImageShape,
    /// What is observed given the latents.
    pub likelihood: LikelihoodSpec,
    /// Structure of the approximate posterior.
    #[serde(default)]
    pub posterior: PosteriorSpec,
    /// Jitter added to the diagonal of every `Kuu`.
    #[serde(default)]
    pub jitter: Jitter,
    /// Copies of training images under small random maps, for the closed-form solver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub augmentation: Option<Augmentation>,
    /// Independent components whose responses add up.
    pub components: Vec<ComponentSpec>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What is added to the diagonal of `Kuu` before it is factorised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Jitter {
    /// This times the mean of the diagonal.
    Relative(f64),
    /// This itself.
    Absolute(f64),
}

impl Default for Jitter {
    /// Single-precision tiles want 1e-4 or more: see docs/numerics.md.
    fn default() -> Self {
        Jitter::Relative(1e-4)
    }
}

/// One component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ComponentSpec {
    /// Prefix of its parameters' names; `component-0` and so on when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A component with fixed numbers whose responses are what the views are of, instead of pixels: a pixel for every
    /// window, a channel for every inducing input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_stage: Option<Box<ComponentSpec>>,
    /// What the response function sees.
    pub views: ViewSpec,
    /// Weights of the views.
    #[serde(default)]
    pub weights: Weights,
    /// Windows over the places, each with its own response function and fixed weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooling: Option<Pooling>,
    /// What images are divided by; anything but nothing needs the closed-form solver.
    #[serde(default, skip_serializing_if = "is_default")]
    pub image_norm: ImageNorm,
    /// Divide by the number of views, as the published code does and the paper's text does not.
    #[serde(default)]
    pub normalise: bool,
    /// Initial variance of a trainable white-noise term, in `Kuu`'s diagonal and `kff`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub white: Option<f64>,
    /// Base kernel.
    pub kernel: KernelSpec,
    /// Kernel over the coordinates of location-aware views, a factor of the base kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<KernelSpec>,
    /// Inducing inputs.
    pub inducing: InducingSpec,
}

impl ComponentSpec {
    /// The sum of a function over views, all alike and as they are.
    pub fn new(views: ViewSpec, kernel: KernelSpec, inducing: InducingSpec) -> Self {
        Self {
            name: None,
            first_stage: None,
            views,
            weights: Weights::Ones,
            pooling: None,
            image_norm: ImageNorm::None,
            normalise: false,
            white: None,
            kernel,
            location: None,
            inducing,
        }
    }
}

/// How many inducing inputs, and where they start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InducingSpec {
    /// `M`.
    pub count: usize,
    /// Initial places.
    #[serde(default)]
    pub init: InducingInit,
}

/// Initial inducing inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InducingInit {
    /// Random distinct views of random training images.
    #[default]
    Views,
    /// Uniform noise in `[0, 1]` (places uniform over the image).
    Uniform,
    /// Centres of k-means clusters of sampled views.
    KMeans,
}

impl ModelSpec {
    /// Reads a spec from TOML.
    pub fn from_toml(text: &str) -> crate::Result<Self> {
        Ok(toml::from_str(text)?)
    }

    /// Name of component `i`.
    pub fn component_name(&self, i: usize) -> String {
        self.components[i].name.clone().unwrap_or_else(|| format!("component-{i}"))
    }

    /// What can be checked without building.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if self.components.is_empty() {
            return Err(SpecError::NoComponents);
        }
        for (i, c) in self.components.iter().enumerate() {
            let name = self.component_name(i);
            if (0..i).any(|j| self.component_name(j) == name) {
                return Err(SpecError::DuplicateComponent { name });
            }
            if std::iter::successors(Some(c), |c| c.first_stage.as_deref()).any(|c| c.inducing.count == 0) {
                return Err(SpecError::NoInducing { name });
            }
        }
        self.check_jitter()
    }

    pub(super) fn check_jitter(&self) -> Result<(), SpecError> {
        let (Jitter::Relative(value) | Jitter::Absolute(value)) = self.jitter;
        if value > 0.0 && value < 1.0 { Ok(()) } else { Err(SpecError::Jitter { value }) }
    }
}
