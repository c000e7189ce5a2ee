//! A model as data: the same in TOML, in the model file and in Python.

use crate::data::ImageShape;
use crate::error::SpecError;
use crate::kernel::KernelSpec;
use crate::likelihood::LikelihoodSpec;
use crate::variational::Structure;
use crate::views::{ViewSpec, Views};
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Independent components whose responses add up.
    pub components: Vec<ComponentSpec>,
}

/// The approximate posterior.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PosteriorSpec {
    /// Dense, or block diagonal between components.
    pub structure: Structure,
    /// Whether `q` is over whitened inducing outputs.
    pub whiten: bool,
}

impl Default for PosteriorSpec {
    fn default() -> Self {
        Self { structure: Structure::Full, whiten: true }
    }
}

/// What is added to the diagonal of `Kuu` before it is factorised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
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

/// Which weights of views are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// All ones: the invariant kernel.
    #[default]
    Ones,
    /// One weight per plane of views, shared by its places: per transformation of an orbit, so that the bound chooses
    /// how far it reaches, and per channel.
    PerPlane,
    /// One weight per view, starting at one.
    Learned,
}

impl Weights {
    /// How many are learned for these views.
    pub fn count(self, views: &dyn Views) -> usize {
        match self {
            Weights::Ones => 0,
            Weights::PerPlane => views.layout().planes.len(),
            Weights::Learned => views.count(),
        }
    }
}

/// One component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentSpec {
    /// Prefix of its parameters' names; `component-0` and so on when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the response function sees.
    pub views: ViewSpec,
    /// Weights of the views.
    #[serde(default)]
    pub weights: Weights,
    /// Divide by the number of views, as the published code does and the paper's text does not.
    #[serde(default)]
    pub normalise: bool,
    /// Initial variance of a trainable white-noise term, in `Kuu`'s diagonal and `kff`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub white: Option<f64>,
    /// Base kernel.
    pub kernel: KernelSpec,
    /// Kernel over the coordinates of located views, a factor of the base kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub location: Option<KernelSpec>,
    /// Inducing inputs.
    pub inducing: InducingSpec,
}

/// How many inducing inputs, and where they start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InducingSpec {
    /// `M`.
    pub count: usize,
    /// Initial places.
    #[serde(default)]
    pub init: InducingInit,
}

/// Initial inducing inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
            if c.inducing.count == 0 {
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
