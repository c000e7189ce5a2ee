//! Floating-point numbers the tile loops are generic over, with an exponential that vectorises.
//!
//! `f32` and `f64` are the portable instantiations. [`Fma`] wraps either for machines with fused multiply-add: the
//! same source, compiled inside a function that enables the instruction, becomes the fast path.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// A number of the tile loops. Sealed by need rather than by trick: only the types of this module make sense.
pub trait Real:
    Copy
    + Default
    + Send
    + Sync
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + 'static
{
    /// Nearest value.
    fn from_f64(x: f64) -> Self;
    /// Exact widening.
    fn to_f64(self) -> f64;
    /// `self * a + b`, fused where the type says so.
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// `e^self` to about one unit in the last place, for inputs below 88 (kernels never exceed zero by more than
    /// rounding). Inputs far below zero give a number that is as good as zero.
    fn exp(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// The larger one.
    fn max(self, other: Self) -> Self;
}

/// `x = n ln 2 + r`, `|r| <= ln 2 / 2`; `e^r = 1 + r (1 + r q(r))` with a minimax `q`, so that `e^0` is exactly 1; `2^n`
/// by writing the exponent field. Adding the magic number rounds to an integer and leaves it in the low bits.
macro_rules! exp_body {
    ($x:expr, $fma:expr, $t:ident, $lo:expr, $magic:expr, $ln2_hi:expr, $ln2_lo:expr, $one_bits:expr, $mantissa:expr,
     [$first:expr, $($c:expr),+]) => {{
        let fma = $fma;
        let x = if $x > $lo { $x } else { $lo };
        let t = fma(x, std::$t::consts::LOG2_E, $magic);
        let n = t - $magic;
        let r = fma(n, -$ln2_lo, fma(n, -$ln2_hi, x));
        let q = $first;
        $( let q = fma(q, r, $c); )+
        let p = fma(fma(q, r, 1.0), r, 1.0);
        p * $t::from_bits((t.to_bits() << $mantissa).wrapping_add($one_bits))
    }};
}

macro_rules! real {
    ($name:ident, $lo:expr, $magic:expr, $ln2_hi:expr, $ln2_lo:expr, $one_bits:expr, $mantissa:expr,
     [$first:expr, $($c:expr),+]) => {
        impl Real for $name {
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $name
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                self * a + b
            }
            #[inline(always)]
            fn exp(self) -> Self {
                exp_body!(self, |x: $name, a: $name, b: $name| x * a + b, $name, $lo, $magic, $ln2_hi, $ln2_lo,
                    $one_bits, $mantissa, [$first, $($c),+])
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $name::sqrt(self)
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                if self > other { self } else { other }
            }
        }
        impl Real for Fma<$name> {
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                Fma(x as $name)
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self.0)
            }
            #[inline(always)]
            fn mul_add(self, a: Self, b: Self) -> Self {
                Fma($name::mul_add(self.0, a.0, b.0))
            }
            #[inline(always)]
            fn exp(self) -> Self {
                Fma(exp_body!(self.0, |x: $name, a: $name, b: $name| $name::mul_add(x, a, b), $name, $lo, $magic,
                    $ln2_hi, $ln2_lo, $one_bits, $mantissa, [$first, $($c),+]))
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                Fma(self.0.sqrt())
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                if self.0 > other.0 { self } else { other }
            }
        }
    };
}

/// A number whose `mul_add` is one instruction. Use only inside functions compiled with that instruction enabled.
#[derive(Debug, Clone, Copy, Default, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Fma<T>(pub T);

macro_rules! forward {
    ($trait:ident, $method:ident) => {
        impl<T: $trait<Output = T>> $trait for Fma<T> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Fma(self.0.$method(other.0))
            }
        }
    };
}
forward!(Add, add);
forward!(Sub, sub);
forward!(Mul, mul);
forward!(Div, div);

impl<T: Neg<Output = T>> Neg for Fma<T> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Fma(-self.0)
    }
}

impl<T: AddAssign> AddAssign for Fma<T> {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

real!(
    f32,
    -87.0,
    12_582_912.0, // 1.5 * 2^23
    0.693_359_4,
    -2.121_944_4e-4,
    0x3f80_0000_u32,
    23,
    [1.381_447e-3, 8.368_779e-3, 4.166_839_4e-2, 1.666_652e-1, 4.999_999_3e-1]
);
real!(
    f64,
    -708.0,
    6_755_399_441_055_744.0, // 1.5 * 2^52
    0.693_147_180_369_123_8,
    1.908_214_929_270_587_7e-10,
    0x3ff0_0000_0000_0000_u64,
    52,
    [
        2.499_996_786_783_784e-8,
        2.763_037_523_210_197_2e-7,
        2.755_758_731_691_205e-6,
        2.480_149_277_154_585_7e-5,
        1.984_126_950_481_271e-4,
        1.388_888_894_391_502e-3,
        8.333_333_333_495_593e-3,
        4.166_666_666_652_921e-2,
        1.666_666_666_666_641e-1,
        5.000_000_000_000_011e-1
    ]
);

#[cfg(test)]
mod tests {
    use super::*;

    fn worst<T: Real>(lo: f64, hi: f64) -> f64 {
        let steps = 200_000;
        (0..=steps)
            .map(|i| {
                let x = T::from_f64(lo + (hi - lo) * f64::from(i) / f64::from(steps));
                let exact = libm::exp(x.to_f64());
                ((x.exp().to_f64() - exact) / exact).abs()
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn exponential_is_accurate_in_both_precisions() {
        assert!(worst::<f32>(-86.0, 5.0) < 1.6e-7, "{}", worst::<f32>(-86.0, 5.0));
        assert!(worst::<Fma<f32>>(-86.0, 5.0) < 1.2e-7, "{}", worst::<Fma<f32>>(-86.0, 5.0));
        assert!(worst::<f64>(-700.0, 5.0) < 4e-16, "{}", worst::<f64>(-700.0, 5.0));
        assert!(worst::<Fma<f64>>(-700.0, 5.0) < 3e-16, "{}", worst::<Fma<f64>>(-700.0, 5.0));
    }

    #[test]
    fn exponential_at_its_ends() {
        assert_eq!(Real::exp(0.0_f32), 1.0);
        assert_eq!(Real::exp(0.0_f64), 1.0);
        assert!(Real::exp(-1e30_f32) < 1e-37);
        assert!(Real::exp(f64::NEG_INFINITY) < 1e-300);
    }
}
