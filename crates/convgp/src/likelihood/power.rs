//! Power means: where `alpha` enters.
//!
//! Power EP asks a likelihood for `(1 / alpha) log E_q[p(y | f)^alpha]` in place of `E_q[log p(y | f)]`, its limit as `alpha`
//! goes to 0. With log densities `l_i` at the points of a rule and weights `w_i`, every derivative of the one is that of
//! the other with weights proportional to `w_i exp(alpha l_i)`.

/// `(1 / alpha) log (Σ_i w_i exp(alpha l_i) / total)`, `total` the sum of the weights, which become
/// `w_i exp(alpha (l_i - value))`: their sum stays. At `alpha = 0` the mean of `l`, and the weights stay as they are.
pub(super) fn power_mean(alpha: f64, logs: &[f64], weights: &mut [f64], total: f64) -> f64 {
    let mean = weights.iter().zip(logs).fold(0.0, |sum, (w, l)| sum + w * l) / total;
    if alpha == 0.0 {
        return mean;
    }
    let ends = (f64::INFINITY, f64::NEG_INFINITY);
    let (low, top) = logs.iter().fold(ends, |(low, top), &l| (low.min(l), top.max(l)));
    // About the mean, terms of first order cancel before they are divided by a small alpha. Rounding must not put it
    // beside huge numbers that are all the same.
    let centre = if alpha * (top - low) < 1.0 { mean.clamp(low, top) } else { top };
    let excess = weights.iter().zip(logs).map(|(w, l)| w * libm::expm1(alpha * (l - centre))).sum::<f64>();
    let value = centre + libm::log1p(excess / total) / alpha;
    weights.iter_mut().zip(logs).for_each(|(w, l)| *w *= libm::exp(alpha * (l - value)));
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_powers_approach_the_mean_and_large_spreads_do_not_overflow() {
        let (logs, weights) = ([-3.0, -0.2, -1.0], [0.2, 0.5, 0.3]);
        let at = |alpha| power_mean(alpha, &logs, &mut weights.clone(), 1.0);
        let mean: f64 = logs.iter().zip(weights).map(|(l, w)| l * w).sum();
        let spread: f64 = logs.iter().zip(weights).map(|(l, w)| w * (l - mean) * (l - mean)).sum();
        assert!((at(0.0) - mean).abs() < 1e-15);
        // The next term of the series, half the variance times alpha, to all digits that are left.
        for alpha in [1e-10, 1e-7, 1e-5] {
            assert!((at(alpha) - mean - 0.5 * alpha * spread).abs() < 1e-15 + alpha * alpha, "{alpha}");
        }
        let plain: f64 = logs.iter().zip(weights).map(|(l, w)| w * l.exp()).sum();
        assert!((at(1.0) - plain.ln()).abs() < 1e-15);
        assert_eq!(power_mean(0.4, &[-5e21; 3], &mut [0.2, 0.7, 0.1], 1.0), -5e21);
        let mut far = [0.5, 0.5];
        let value = power_mean(1.0, &[-5000.0, -2.0], &mut far, 1.0);
        assert!((value - (-2.0 - 2f64.ln())).abs() < 1e-14 && (far[1] - 1.0).abs() < 1e-14 && far[0] == 0.0);
    }
}
