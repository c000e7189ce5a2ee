//! Temperature of predicted class probabilities.

use super::LikelihoodError;
use serde::{Deserialize, Serialize};

/// A temperature `T > 0`: probabilities are raised to the power `1 / T` and scaled to sum to one again. Below 1 they
/// become surer, above 1 less sure; the order of classes stays.
///
/// Kept as its inverse, which is what files hold.
///
/// ```
/// use convgp::likelihood::Temperature;
///
/// assert_eq!(Temperature::from_inverse(2.0)?.value(), 0.5);
/// assert_eq!(Temperature::default(), Temperature::ONE);
/// assert!(Temperature::from_inverse(0.0).is_err());
/// # Ok::<(), convgp::likelihood::LikelihoodError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Temperature {
    inverse: f64,
}

impl Temperature {
    /// Leaves probabilities as they are.
    pub const ONE: Self = Self { inverse: 1.0 };

    /// From the power `1 / T`.
    pub fn from_inverse(inverse: f64) -> Result<Self, LikelihoodError> {
        match inverse > 0.0 && inverse.is_finite() {
            true => Ok(Self { inverse }),
            false => Err(LikelihoodError::InverseTemperature { value: inverse }),
        }
    }

    /// `T`.
    pub fn value(self) -> f64 {
        1.0 / self.inverse
    }
    /// `1 / T`.
    pub fn inverse(self) -> f64 {
        self.inverse
    }
    /// Whether it leaves probabilities as they are.
    pub fn is_one(&self) -> bool {
        *self == Self::ONE
    }
}

impl Default for Temperature {
    fn default() -> Self {
        Self::ONE
    }
}

impl TryFrom<f64> for Temperature {
    type Error = LikelihoodError;
    fn try_from(inverse: f64) -> Result<Self, LikelihoodError> {
        Self::from_inverse(inverse)
    }
}

impl From<Temperature> for f64 {
    fn from(temperature: Temperature) -> f64 {
        temperature.inverse
    }
}
