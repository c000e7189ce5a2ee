//! Squared exponential, `phi(s) = exp(-s / 2)`.

use super::Radial;
use crate::real::Real;

/// The RBF (squared exponential) function.
#[derive(Debug, Clone, Copy)]
pub struct Rbf;

impl Radial for Rbf {
    const SMOOTH: bool = true;
    const SLOPE_PER_VALUE: Option<f64> = Some(-0.5);

    #[inline(always)]
    fn value_and_slope<T: Real>(s: T) -> (T, T) {
        let minus_half = T::from_f64(-0.5);
        let v = (s * minus_half).exp();
        (v, v * minus_half)
    }
}
