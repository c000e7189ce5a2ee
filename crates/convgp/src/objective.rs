//! What training maximises.

use serde::{Deserialize, Serialize};

/// The bound, or an energy in its place.
///
/// ```
/// use convgp::objective::Objective;
///
/// let objective: Objective = toml::from_str("type = 'power-ep'\nalpha = 0.5")?;
/// assert_eq!((objective.alpha(), objective.word()), (0.5, "energy"));
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Objective {
    /// The variational bound.
    Bound {},
    /// The collapsed bound with `sum_n log(1 + d_n / s2)` in place of `sum_n d_n / s2`: still a bound, never lower.
    /// Collapsed training only.
    TightenedBound {},
    /// Power EP. Expected log densities become `(1 / alpha) log E_q[p^alpha]`. Collapsed, `alpha = 1` is FITC. The
    /// bound is the limit as `alpha` goes to 0. An energy is not a bound: it can exceed the evidence.
    PowerEp {
        /// Above 0 and at most 1.
        alpha: f64,
    },
}

impl Default for Objective {
    fn default() -> Self {
        Self::Bound {}
    }
}

/// What `alpha` must be.
pub(crate) const ALPHA: &str = "above 0 and at most 1; without `objective` training maximises the bound";

impl Objective {
    /// The power; 0 for bounds.
    pub fn alpha(self) -> f64 {
        if let Self::PowerEp { alpha } = self { alpha } else { 0.0 }
    }

    /// What the number is called.
    pub fn word(self) -> &'static str {
        if let Self::PowerEp { .. } = self { "energy" } else { "bound" }
    }

    /// Whether it is the bound, the default.
    pub(crate) fn is_bound(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the power is in range.
    pub(crate) fn has_valid_alpha(self) -> bool {
        !matches!(self, Self::PowerEp { alpha } if !(alpha > 0.0 && alpha <= 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_outside_the_range_and_unknown_fields_are_refused() {
        let valid = |alpha| Objective::PowerEp { alpha }.has_valid_alpha();
        assert!(valid(1e-6) && valid(1.0));
        for alpha in [0.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
            assert!(!valid(alpha), "{alpha}");
        }
        for text in ["type = 'bound'\nalpha = 0.5", "type = 'power-ep'", "type = 'power-ep'\npower = 1.0"] {
            assert!(toml::from_str::<Objective>(text).is_err(), "{text}");
        }
    }
}
