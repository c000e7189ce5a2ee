//! Functions of the normal and logistic distributions that stay accurate in the tails.
//!
//! Everything about `Φ` follows from one rational function, the Mills ratio `m(x) = Φ(-x) / φ(x)` for `x >= 0`. It is
//! smooth, falls like `1/x`, and neither over- nor underflows, so tails cost no accuracy.

/// `1 / sqrt(2π)`.
pub(super) const INV_SQRT_2PI: f64 = 0.398_942_280_401_432_7;
/// `log sqrt(2π)`.
pub(super) const LOG_SQRT_2PI: f64 = 0.918_938_533_204_672_8;

/// Numerator and denominator of the Mills ratio, constant term first.
///
/// Interpolation of type (10, 11) at the 22 Chebyshev points of `s = (x - 3.5) / (x + 3.5)`, solved with 60 digits; its
/// relative error on `[0, ∞)` is 2.5e-17. All coefficients are positive, so Horner's rule loses nothing to cancellation.
const MILLS_P: [f64; 11] = [
    1675837.2177786652,
    2852007.3331225426,
    2399079.3456846476,
    1291919.970395686,
    489083.26568290376,
    135471.23983543526,
    27781.554845577502,
    4172.391112431086,
    441.1726490542372,
    29.895733591751544,
    1.0,
];
const MILLS_Q: [f64; 12] = [
    1337124.6424844263,
    3342443.7265024064,
    3912510.293549258,
    2836936.39482835,
    1419345.4238710387,
    515992.4739094477,
    139583.83951269247,
    28220.727494118706,
    4202.286846027774,
    442.17264905421274,
    29.89573359175159,
    1.0,
];

/// `m(x) = Φ(-x) / φ(x)` for `0 <= x <= 1e25`, to about 1e-15 relative.
#[inline(always)]
pub(super) fn mills(x: f64) -> f64 {
    horner(&MILLS_P, x) / horner(&MILLS_Q, x)
}

/// `Σ_i c_i x^i`.
#[inline(always)]
pub(super) fn horner<const N: usize>(c: &[f64; N], x: f64) -> f64 {
    let mut sum = c[N - 1];
    for i in (0..N - 1).rev() {
        sum = sum * x + c[i];
    }
    sum
}

/// The Mills ratio for every `x >= 0`; beyond 1e8 it equals `1/x` in double precision.
fn mills_everywhere(x: f64) -> f64 {
    if x > 1e8 { 1.0 / x } else { mills(x) }
}

/// Normal density `φ(z)`, to about 1e-15 relative wherever it is a normal number.
///
/// `z²` is split so that its rounding is not magnified by the exponential: at `z = 30` the plain form has lost 2 digits.
pub fn normal_pdf(z: f64) -> f64 {
    if z.abs() > 40.0 {
        return 0.0;
    }
    let coarse = (z * 16.0).trunc() / 16.0;
    INV_SQRT_2PI * libm::exp(-0.5 * coarse * coarse) * libm::exp(-0.5 * (z - coarse) * (z + coarse))
}

/// Normal distribution function `Φ(z)`, relative accuracy about 1e-15 in the left tail too.
pub fn normal_cdf(z: f64) -> f64 {
    let tail = normal_pdf(z) * mills_everywhere(z.abs());
    if z < 0.0 { tail } else { 1.0 - tail }
}

/// `log Φ(z)`, finite for every `|z| <= 1e150`.
pub fn log_ndtr(z: f64) -> f64 {
    if z < 0.0 {
        libm::log(mills_everywhere(-z)) - LOG_SQRT_2PI - 0.5 * z * z
    } else {
        libm::log1p(-normal_pdf(z) * mills_everywhere(z))
    }
}

/// `d log Φ(z) / dz = φ(z) / Φ(z)`: about `-z` far to the left, `φ(z)` far to the right.
pub fn log_ndtr_slope(z: f64) -> f64 {
    if z < 0.0 { 1.0 / mills_everywhere(-z) } else { normal_pdf(z) / normal_cdf(z) }
}

/// `log(1 + e^x)` without overflow.
pub fn softplus(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}

/// `1 / (1 + e^{-x})`, accurate for large `-x`.
pub fn sigmoid(x: f64) -> f64 {
    let e = libm::exp(-x.abs());
    if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

/// `log σ(x) = -log(1 + e^{-x})`.
pub fn log_sigmoid(x: f64) -> f64 {
    -softplus(-x)
}

/// `log Σ_i e^{x_i}`; minus infinity when there is nothing to add.
pub fn log_sum_exp(x: impl Iterator<Item = f64> + Clone) -> f64 {
    let top = x.clone().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return top;
    }
    top + libm::log(x.map(|v| libm::exp(v - top)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `z, Φ, log Φ, φ/Φ` computed with 50 digits.
    const REFERENCE: [(f64, f64, f64, f64); 12] = [
        (-1000000.0, 0.0, -500000000014.73444, 1000000.000001),
        (-200.25, 0.0, -20056.249780055216, 200.25499350876896),
        (-37.7, 2.4834853102776e-311, -715.1943009805279, 37.726488004041784),
        (-12.3, 4.5287069561587846e-35, -79.08004179618399, 12.38025992977776),
        (-5.5, 1.8989562465887718e-08, -17.77937635262526, 5.671410313897305),
        (-1.0, 0.15865525393145705, -1.8410216450092636, 1.525135276160981),
        (-0.3, 0.3820885778110474, -0.9621028181688507, 0.9981659688584833),
        (0.0, 0.5, -std::f64::consts::LN_2, 0.7978845608028654),
        (0.7, 0.758036347776927, -0.2770239422771313, 0.41192475041929066),
        (3.1, 0.9990323967867817, -0.0009680716434015497, 0.00326998310235693),
        (8.4, 1.0, -2.2323931972880437e-17, 1.9010815379079602e-16),
        (20.0, 1.0, -2.7536241186062337e-89, 5.520948362159764e-88),
    ];

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 2e-15 * b.abs()
    }

    #[test]
    fn normal_functions_match_fifty_digit_values() {
        for (z, cdf, log_cdf, slope) in REFERENCE {
            let denormal = cdf > 0.0 && cdf < f64::MIN_POSITIVE;
            assert!(close(normal_cdf(z), cdf) || denormal, "cdf({z}) = {:e}", normal_cdf(z));
            assert!(close(log_ndtr(z), log_cdf), "log cdf({z}) = {:e}", log_ndtr(z));
            assert!(close(log_ndtr_slope(z), slope), "slope({z}) = {:e}", log_ndtr_slope(z));
        }
    }

    #[test]
    fn cdf_agrees_with_erfc() {
        for i in -3000..3000 {
            let z = f64::from(i) * 0.01 + 0.0037;
            let erfc = 0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2);
            // erfc's own argument is rounded, which costs z² ulps in the tail.
            let slack = 4e-16 * (4.0 + z * z) * erfc;
            assert!((normal_cdf(z) - erfc).abs() <= slack, "{z}: {:e} against {erfc:e}", normal_cdf(z));
        }
    }

    #[test]
    fn nothing_breaks_far_out_and_nan_is_not_hidden() {
        for z in [-1e150, -1e9, 1e9, 1e150] {
            assert!(log_ndtr(z).is_finite() && log_ndtr_slope(z).is_finite(), "{z}");
            assert_eq!(normal_cdf(z), if z < 0.0 { 0.0 } else { 1.0 });
        }
        for f in [normal_cdf, log_ndtr, log_ndtr_slope, softplus, sigmoid, log_sigmoid] {
            assert!(f(f64::NAN).is_nan());
        }
    }

    #[test]
    fn logistic_functions_hold_in_both_tails() {
        assert!(close(softplus(0.3), libm::log(1.0 + libm::exp(0.3))));
        assert_eq!((softplus(800.0), log_sigmoid(-800.0), log_sigmoid(800.0)), (800.0, -800.0, 0.0));
        assert!(close(sigmoid(-700.0), libm::exp(-700.0)));
        assert!(close(sigmoid(1.2) + sigmoid(-1.2), 1.0));
        assert!(close(log_sum_exp([1000.0, 1000.0].into_iter()), 1000.0 + std::f64::consts::LN_2));
    }
}
