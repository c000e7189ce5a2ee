//! The same functions over slices, written so that the compiler turns the loops into vector instructions.
//!
//! No branch, no call and no fused multiply-add inside a loop: the bits are the same on every machine and at every vector
//! width. Accuracy is about 1e-16 absolute for `Φ` and a few 1e-16 relative for the exponential, all that products and
//! averages of probabilities can use; the scalar functions of [`super::special`] are also right to the last digits of a tail.

use super::special::{INV_SQRT_2PI, horner, mills};

/// Replaces every `x <= 0` by `e^x`; anything below -708 becomes zero.
pub(super) fn exp_in_place(x: &mut [f64]) {
    x.iter_mut().for_each(|v| *v = exp_nonpositive(*v));
}

/// `cdf[i] = Φ(z[i])`.
pub(super) fn write_normal_cdf(z: &[f64], cdf: &mut [f64]) {
    for (&z, c) in z.iter().zip(cdf) {
        *c = cdf_and_pdf(z).0;
    }
}

/// `cdf[i] = Φ(z[i])`, `pdf[i] = φ(z[i])`; one exponential serves both.
pub(super) fn write_normal_cdf_and_pdf(z: &[f64], cdf: &mut [f64], pdf: &mut [f64]) {
    for ((&z, c), p) in z.iter().zip(cdf).zip(pdf) {
        (*c, *p) = cdf_and_pdf(z);
    }
}

#[inline(always)]
fn cdf_and_pdf(z: f64) -> (f64, f64) {
    // Comparisons, not `min`: a NaN has to come out as a NaN.
    let x = if z.abs() > 39.0 { 39.0 } else { z.abs() };
    let pdf = INV_SQRT_2PI * exp_nonpositive(-0.5 * x * x);
    let tail = pdf * mills(x);
    (if z < 0.0 { tail } else { 1.0 - tail }, pdf)
}

/// `e^x = 2^k e^r`, `k` the nearest integer to `x / log 2`, `|r| <= log(2) / 2`.
#[inline(always)]
fn exp_nonpositive(x: f64) -> f64 {
    /// Adding 1.5 * 2^52 rounds to an integer and leaves it in the low bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    /// `log 2` in two parts; the first has enough trailing zeros for `k * LN2_HIGH` to be exact.
    const LN2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const LN2_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
    let clamped = if x < -708.0 { -708.0 } else { x };
    let shifted = clamped * std::f64::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (clamped - k * LN2_HIGH) - k * LN2_LOW;
    let scale = f64::from_bits((shifted.to_bits() << 52).wrapping_add(1023 << 52));
    let value = horner(&INVERSE_FACTORIALS, r) * scale;
    if x < -708.0 { 0.0 } else { value }
}

/// `1 / i!`; the first term left out is below 4e-18.
const INVERSE_FACTORIALS: [f64; 14] = {
    let mut c = [1.0; 14];
    let mut i = 1;
    while i < 14 {
        c[i] = c[i - 1] / i as f64;
        i += 1;
    }
    c
};

#[cfg(test)]
mod tests {
    use super::super::special::{normal_cdf, normal_pdf};
    use super::*;

    #[test]
    fn slices_agree_with_the_scalar_functions() {
        let z: Vec<f64> = (-4000..4000).map(|i| f64::from(i) * 0.01 + 0.0013).collect();
        let (mut cdf, mut pdf, mut cdf_only) = (vec![0.0; z.len()], vec![0.0; z.len()], vec![0.0; z.len()]);
        write_normal_cdf_and_pdf(&z, &mut cdf, &mut pdf);
        write_normal_cdf(&z, &mut cdf_only);
        assert_eq!(cdf, cdf_only);
        for (i, &z) in z.iter().enumerate() {
            // Rounding of z² is magnified in the tail; below 1e-300 only absolute size matters.
            let relative = 4e-16 * (4.0 + z * z);
            assert!((cdf[i] - normal_cdf(z)).abs() <= relative * normal_cdf(z) + 1e-300, "cdf({z})");
            assert!((pdf[i] - normal_pdf(z)).abs() <= relative * normal_pdf(z) + 1e-300, "pdf({z})");
            assert!((cdf[i] - normal_cdf(z)).abs() <= 2.3e-16, "cdf({z}), absolute");
        }
    }

    #[test]
    fn exponentials_are_right_to_the_last_digits() {
        let x: Vec<f64> = (0..7000).map(|i| -0.1013 * f64::from(i) * 0.99).collect();
        let mut e = x.clone();
        exp_in_place(&mut e);
        for (x, e) in x.iter().zip(e) {
            assert!((e - libm::exp(*x)).abs() <= 4e-16 * e, "exp({x}) = {e:e}");
        }
        let mut ends = [0.0, -0.0, -708.5, -1e300, f64::NEG_INFINITY];
        exp_in_place(&mut ends);
        assert_eq!(ends, [1.0, 1.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn far_arguments_saturate_and_nan_stays() {
        let (mut cdf, mut pdf) = ([0.0; 3], [0.0; 3]);
        write_normal_cdf_and_pdf(&[-1e200, f64::INFINITY, f64::NAN], &mut cdf, &mut pdf);
        assert_eq!((cdf[0], cdf[1], pdf[0], pdf[1]), (0.0, 1.0, 0.0, 0.0));
        assert!(cdf[2].is_nan() && pdf[2].is_nan());
    }
}
