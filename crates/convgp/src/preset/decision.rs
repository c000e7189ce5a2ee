//! What was decided for a user, and why.

use std::fmt;

/// What a decision is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)] // each is named by `Aspect::name`
pub enum Aspect {
    Spec,
    Model,
    Solver,
    Patches,
    Stride,
    Contrast,
    Mirror,
    Copies,
    Lengthscale,
    Windows,
    Stages,
    Weights,
    Inducing,
    Likelihood,
    Training,
}

impl Aspect {
    /// Its name, as tables and messages show it.
    pub fn name(self) -> &'static str {
        match self {
            Aspect::Spec => "model and training",
            Aspect::Model => "model",
            Aspect::Solver => "solver",
            Aspect::Patches => "patches",
            Aspect::Stride => "pixels between patches",
            Aspect::Contrast => "contrast of patches",
            Aspect::Mirror => "mirror images alike",
            Aspect::Copies => "copies of training images",
            Aspect::Lengthscale => "lengthscale",
            Aspect::Windows => "windows",
            Aspect::Stages => "stages",
            Aspect::Weights => "weights",
            Aspect::Inducing => "inducing inputs",
            Aspect::Likelihood => "likelihood",
            Aspect::Training => "training",
        }
    }
}

/// Something decided for the user.
///
/// ```
/// use convgp::preset::{Aspect, Decision};
///
/// let decision = Decision::new(Aspect::Weights, "none", "100 training images");
/// assert_eq!(decision.to_string(), "weights: none (100 training images)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What it is about.
    pub what: Aspect,
    /// What was decided.
    pub value: String,
    /// Why; empty where the value says it.
    pub why: String,
}

impl Decision {
    /// A decision with its reason, which may be empty.
    pub fn new(what: Aspect, value: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what, value: value.into(), why: why.into() }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what.name(), self.value)?;
        if self.why.is_empty() { Ok(()) } else { write!(f, " ({})", self.why) }
    }
}
