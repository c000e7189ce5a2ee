//! Gauss-Hermite quadrature against a normal density.

use std::sync::OnceLock;

/// Points of the rule every likelihood uses unless it says otherwise.
pub const POINTS: usize = 20;

/// `E f(x) = Σ_i weights[i] f(mean + sd nodes[i])` for `x ~ N(mean, sd²)`.
///
/// Exact for polynomials up to degree `2n - 1`. Nodes ascend, are exactly symmetric about zero, and weights sum to one.
///
/// ```
/// # use convgp::likelihood::GaussHermite;
/// let rule = GaussHermite::standard();
/// let second_moment = rule.expect(1.0, 2.0, |x| x * x);
/// assert!((second_moment - 5.0).abs() < 1e-13);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GaussHermite {
    /// Standardised nodes: `sqrt(2)` times the physicists' ones.
    pub nodes: Vec<f64>,
    /// Weights divided by `sqrt(π)`.
    pub weights: Vec<f64>,
}

impl GaussHermite {
    /// The rule with `points` nodes (at least one; meant for up to about a hundred).
    ///
    /// Newton's iteration on the orthonormal Hermite functions, from the largest root inwards. Weights are accurate to
    /// about 1e-13 for a hundred nodes, nodes to a few ulps.
    pub fn new(points: usize) -> Self {
        let n = points.max(1);
        let (mut nodes, mut weights) = (vec![0.0; n], vec![0.0; n]);
        let mut roots: Vec<f64> = Vec::with_capacity(n.div_ceil(2));
        for i in 0..n.div_ceil(2) {
            let middle = n % 2 == 1 && i == n / 2;
            let x = if middle { 0.0 } else { polish(n, first_guess(n, &roots)) };
            roots.push(x);
            let slope = hermite_and_slope(n, x).1;
            let weight = 2.0 / (slope * slope);
            (nodes[i], nodes[n - 1 - i]) = (-x, x);
            (weights[i], weights[n - 1 - i]) = (weight, weight);
        }
        let total: f64 = weights.iter().sum();
        nodes.iter_mut().for_each(|x| *x *= std::f64::consts::SQRT_2);
        weights.iter_mut().for_each(|w| *w /= total);
        Self { nodes, weights }
    }

    /// The shared rule of [`POINTS`] nodes.
    pub fn standard() -> &'static Self {
        static RULE: OnceLock<GaussHermite> = OnceLock::new();
        RULE.get_or_init(|| Self::new(POINTS))
    }

    /// `E f(x)`, `x ~ N(mean, sd²)`.
    pub fn expect(&self, mean: f64, sd: f64, f: impl Fn(f64) -> f64) -> f64 {
        self.nodes.iter().zip(&self.weights).map(|(x, w)| w * f(mean + sd * x)).sum()
    }
}

/// Orthonormal Hermite function (without `e^{-x²/2}`) of degree `n` and its derivative:
/// `h_{j+1} = x sqrt(2/(j+1)) h_j - sqrt(j/(j+1)) h_{j-1}`, `h_n' = sqrt(2n) h_{n-1}`.
fn hermite_and_slope(n: usize, x: f64) -> (f64, f64) {
    let (mut before, mut h) = (0.0, libm::pow(std::f64::consts::PI, -0.25));
    for j in 0..n {
        let next = 1.0 / (j + 1) as f64;
        (before, h) = (h, x * (2.0 * next).sqrt() * h - (j as f64 * next).sqrt() * before);
    }
    (h, (2.0 * n as f64).sqrt() * before)
}

/// Newton's iteration until it stops moving by more than rounding.
fn polish(n: usize, mut x: f64) -> f64 {
    for _ in 0..50 {
        let (h, slope) = hermite_and_slope(n, x);
        let step = h / slope;
        x -= step;
        if step.abs() <= 1e-15 * x.abs() {
            break;
        }
    }
    x
}

/// Starting point for the next root inwards, given the ones found so far (largest first).
///
/// Asymptotic formulas for the outermost two, then extrapolation (Press et al., Numerical Recipes, `gauher`).
fn first_guess(n: usize, roots: &[f64]) -> f64 {
    let m = (2 * n + 1) as f64;
    match *roots {
        [] => m.sqrt() - 1.85575 * libm::pow(m, -0.16667),
        [a] => a - 1.14 * libm::pow(n as f64, 0.426) / a,
        [a, b] => 1.86 * b - 0.86 * a,
        [_, b, c] => 1.91 * c - 0.91 * b,
        [.., a, b] => 2.0 * b - a,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_the_normal_are_exact() {
        for n in [1, 2, 3, 7, 20, 33, 64, 100] {
            let rule = GaussHermite::new(n);
            assert!(rule.nodes.windows(2).all(|w| w[0] < w[1]), "{n} nodes ascend");
            let mut moment = 1.0; // (2k - 1)!!
            for k in 0..n.min(30) {
                let got = rule.expect(0.0, 1.0, |x| x.powi(2 * k as i32));
                assert!((got - moment).abs() <= 2e-13 * moment, "{n} points, moment {}: {got}", 2 * k);
                moment *= (2 * k + 1) as f64;
            }
        }
    }

    #[test]
    fn twenty_points_match_the_tables() {
        // Abramowitz and Stegun, table 25.10: physicists' nodes and weights.
        let rule = GaussHermite::standard();
        let physicists = |i: usize| rule.nodes[i] / std::f64::consts::SQRT_2;
        let weight = |i: usize| rule.weights[i] * std::f64::consts::PI.sqrt();
        assert!((physicists(10) - 0.245_340_708_300_901_25).abs() < 1e-15);
        assert!((physicists(19) - 5.387_480_890_011_233).abs() < 2e-15);
        assert!((weight(10) - 0.462_243_669_600_610_1).abs() < 1e-15);
        assert!((weight(19) / 2.229_393_645_534_151_3e-13 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn rule_is_symmetric_to_the_bit() {
        let rule = GaussHermite::new(21);
        for i in 0..21 {
            assert_eq!(rule.nodes[i], -rule.nodes[20 - i]);
            assert_eq!(rule.weights[i], rule.weights[20 - i]);
        }
    }
}
