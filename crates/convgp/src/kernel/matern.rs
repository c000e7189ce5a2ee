//! Matern functions of half-integer smoothness, with `r = sqrt(c s)`.

use super::Radial;
use crate::real::Real;

/// Matern-1/2, `exp(-r)` with `r = sqrt(s)`.
///
/// Its slope is infinite at zero distance; there it is cut off at `r = 1e-6`, which only matters for exactly
/// coinciding views, whose distance has derivative zero in everything anyway.
#[derive(Debug, Clone, Copy)]
pub struct Matern12;

impl Radial for Matern12 {
    const SINGLE: bool = false;

    #[inline(always)]
    fn value_and_slope<T: Real>(s: T) -> (T, T) {
        let r = s.sqrt();
        let v = (-r).exp();
        (v, v * T::from_f64(-0.5) / r.max(T::from_f64(1e-6)))
    }
}

/// Matern-3/2, `(1 + r) exp(-r)` with `r = sqrt(3 s)`.
#[derive(Debug, Clone, Copy)]
pub struct Matern32;

impl Radial for Matern32 {
    #[inline(always)]
    fn value_and_slope<T: Real>(s: T) -> (T, T) {
        let r = (s * T::from_f64(3.0)).sqrt();
        let e = (-r).exp();
        (e.mul_add(r, e), e * T::from_f64(-1.5)) // finite at s = 0: no special case
    }
}

/// Matern-5/2, `(1 + r + r^2 / 3) exp(-r)` with `r = sqrt(5 s)`.
#[derive(Debug, Clone, Copy)]
pub struct Matern52;

impl Radial for Matern52 {
    #[inline(always)]
    fn value_and_slope<T: Real>(s: T) -> (T, T) {
        let r = (s * T::from_f64(5.0)).sqrt();
        let e = (-r).exp();
        let one_r = e.mul_add(r, e);
        (e.mul_add(s * T::from_f64(5.0 / 3.0), one_r), one_r * T::from_f64(-5.0 / 6.0))
    }
}
