//! Functions of the squared scaled distance `s = |(a - b) / lengthscale|^2`.

use crate::real::{Fma, Real};

/// A radial function. Implement this for a new stationary kernel; the rest follows.
///
/// ```
/// use convgp::{kernel::Radial, real::Real};
///
/// /// Rational quadratic with alpha = 1: `1 / (1 + s / 2)`.
/// #[derive(Debug, Clone, Copy)]
/// struct RationalQuadratic;
/// impl Radial for RationalQuadratic {
///     fn value_and_slope<T: Real>(s: T) -> (T, T) {
///         let v = T::from_f64(1.0) / (T::from_f64(1.0) + s * T::from_f64(0.5));
///         (v, v * v * T::from_f64(-0.5))
///     }
/// }
/// assert_eq!(RationalQuadratic::value_and_slope(0.0_f64), (1.0, -0.5));
/// assert_eq!(RationalQuadratic::value_and_slope(2.0_f64), (0.5, -0.125));
/// ```
pub trait Radial: std::fmt::Debug + Send + Sync + 'static {
    /// Whether the slope is bounded at zero distance, so that the distance may be expanded as
    /// `|a|^2 - 2 a.b + |b|^2`, which may round to just below zero. Rougher functions get their distances by
    /// differences.
    const SMOOTH: bool = false;

    /// Whether single precision is enough for tiles of it. Slopes that grow without bound near zero distance need more.
    const SINGLE: bool = true;

    /// The number `c` for which `phi'(s) = c phi(s)` everywhere, if there is one: slopes then need not be computed.
    const SLOPE_PER_VALUE: Option<f64> = None;

    /// `phi(s)` and `phi'(s)`; `phi(0) = 1`, and both must be finite at `s = 0`.
    fn value_and_slope<T: Real>(s: T) -> (T, T);
}

/// A [`Radial`] behind a pointer, over whole tiles at a time. Implemented for every `Radial`.
pub trait RadialFn: std::fmt::Debug + Send + Sync {
    /// `phi(s)` and `phi'(s)` in double precision.
    fn at(&self, s: f64) -> (f64, f64);
    /// Writes the values at equally many distances and, when asked, the slopes.
    fn tile_f32(&self, s: &[f32], value: &mut [f32], slope: Option<&mut [f32]>, fma: bool);
    /// The same in double precision.
    fn tile_f64(&self, s: &[f64], value: &mut [f64], slope: Option<&mut [f64]>, fma: bool);
    /// See [`Radial::SMOOTH`].
    fn smooth(&self) -> bool;
    /// See [`Radial::SINGLE`].
    fn single(&self) -> bool;
    /// See [`Radial::SLOPE_PER_VALUE`].
    fn slope_per_value(&self) -> Option<f64>;
}

impl<R: Radial> RadialFn for R {
    fn at(&self, s: f64) -> (f64, f64) {
        R::value_and_slope(s)
    }
    fn tile_f32(&self, s: &[f32], value: &mut [f32], slope: Option<&mut [f32]>, fma: bool) {
        run::<R, f32>(s, value, slope, fma);
    }
    fn tile_f64(&self, s: &[f64], value: &mut [f64], slope: Option<&mut [f64]>, fma: bool) {
        run::<R, f64>(s, value, slope, fma);
    }
    fn smooth(&self) -> bool {
        R::SMOOTH
    }
    fn single(&self) -> bool {
        R::SINGLE
    }
    fn slope_per_value(&self) -> Option<f64> {
        R::SLOPE_PER_VALUE
    }
}

fn run<R: Radial, T: Real>(s: &[T], value: &mut [T], slope: Option<&mut [T]>, fma: bool)
where
    Fma<T>: Real,
{
    #[cfg(target_arch = "x86_64")]
    if fma {
        // SAFETY: `fma` is only set where avx2 and fma were detected; `Fma<T>` is a transparent wrapper of `T`.
        unsafe {
            let s = std::slice::from_raw_parts(s.as_ptr().cast::<Fma<T>>(), s.len());
            let fast = |v: &mut [T]| std::slice::from_raw_parts_mut(v.as_mut_ptr().cast(), v.len());
            return run_fma::<R, Fma<T>>(s, fast(value), slope.map(fast));
        }
    }
    let _ = fma;
    body::<R, T>(s, value, slope);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_fma<R: Radial, T: Real>(s: &[T], value: &mut [T], slope: Option<&mut [T]>) {
    body::<R, T>(s, value, slope);
}

#[inline(always)]
fn body<R: Radial, T: Real>(s: &[T], value: &mut [T], slope: Option<&mut [T]>) {
    let pairs = s.iter().zip(value);
    match slope {
        None => pairs.for_each(|(s, v)| *v = R::value_and_slope(*s).0),
        Some(slope) => pairs.zip(slope).for_each(|((s, v), d)| (*v, *d) = R::value_and_slope(*s)),
    }
}

#[cfg(test)]
mod tests {
    use crate::kernel::Family;

    #[test]
    fn what_is_said_of_slopes_holds() {
        for family in Family::ALL {
            let (name, radial) = (family.name(), family.radial());
            let Some(c) = radial.slope_per_value() else { continue };
            for s in [0.0, 0.3, 2.0, 9.0] {
                let (value, slope) = radial.at(s);
                assert!((slope - c * value).abs() < 1e-15, "{name} at {s}");
            }
        }
        assert!(Family::ALL.iter().any(|f| f.radial().slope_per_value().is_some()));
    }
}
