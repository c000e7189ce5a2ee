//! How images are normalised; `cov` has the arithmetic.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a component's images are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ImageNorm {
    /// Nothing.
    #[default]
    None,
    /// `sqrt(kff)`: every image has prior variance one.
    Kff,
    /// `|A|`, the part of `sqrt(kff)` that the inducing inputs explain: cheaper, no `kff` needed.
    Nystrom,
}
