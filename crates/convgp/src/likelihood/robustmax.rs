//! Robust-max: the label is the largest of `K` latents, except with probability `ε`.

use super::batch::{write_normal_cdf, write_normal_cdf_and_pdf};
use super::power::power_mean;
use super::quadrature::{GaussHermite, POINTS};
use super::rows::{Row, fill_rows, map_rows};
use super::{Expectations, Integrand, Likelihood, LikelihoodError, Marginals, Predictive, label};
use crate::data::Targets;
use crate::params::{ParamInit, Transform};

/// `p(y | f) = 1 - ε` if `y = argmax f`, else `ε / (K - 1)`.
///
/// The probability that latent `y` is the largest, by the 20-point rule with nodes `t_i = mean_y + sd_y x_i`:
///
/// ```text
/// Q_y      = Σ_i w_i Π_{j≠y} c_j(t_i),   c_j(t) = (1 - 2s) Φ((t - mean_j) / sd_j) + s
/// E[log p] = Q_y log(1 - ε) + (1 - Q_y) log(ε / (K - 1))
/// E[p^α]   = Q_y (1 - ε)^α + (1 - Q_y) (ε / (K - 1))^α
/// p(y)     = Q_y (1 - ε) + (1 - Q_y) ε / (K - 1)
/// ```
///
/// `s` is the squash (1e-6, as GPflow has it; 0 is allowed). Because the rule of each class is separate, predictive
/// probabilities add up to one only as well as the rule integrates, and are **not** renormalised.
///
/// Everything is linear in `Q`, so a product that underflows is an honest zero; derivatives use products that leave one
/// factor out, never a quotient, so that zero factors are harmless. Work: `20 (K - 1)` values of `Φ` per image and label.
#[derive(Debug, Clone, PartialEq)]
pub struct RobustMax {
    classes: usize,
    epsilon: f64,
    learn_epsilon: bool,
    squash: f64,
}

/// Smaller variances are taken for this one: a spike and a much narrower spike rank alike, and nothing overflows.
const VAR_FLOOR: f64 = 1e-12;

/// One number per node of the rule.
type Nodes = [f64; POINTS];

impl RobustMax {
    /// `classes >= 2`, `0 < epsilon < 1`, fixed; squash 1e-6.
    pub fn new(classes: usize, epsilon: f64) -> Result<Self, LikelihoodError> {
        if classes < 2 {
            return Err(LikelihoodError::Classes { classes });
        }
        if !(epsilon > 0.0 && epsilon < 1.0) {
            return Err(LikelihoodError::Epsilon { value: epsilon });
        }
        Ok(Self { classes, epsilon, learn_epsilon: false, squash: 1e-6 })
    }

    /// Makes `ε` a trainable parameter, `epsilon`, or a constant.
    pub fn learn_epsilon(mut self, learn: bool) -> Self {
        self.learn_epsilon = learn;
        self
    }

    /// Replaces the squash, `0 <= s < 1/2`.
    pub fn with_squash(mut self, squash: f64) -> Result<Self, LikelihoodError> {
        if !(0.0..0.5).contains(&squash) {
            return Err(LikelihoodError::Squash { value: squash });
        }
        self.squash = squash;
        Ok(self)
    }

    fn epsilon(&self, theta: &[f64]) -> f64 {
        if self.learn_epsilon { theta[0] } else { self.epsilon }
    }

    /// `p(y)` from `Q_y`.
    fn probability(&self, epsilon: f64, largest: f64) -> f64 {
        largest * (1.0 - epsilon) + (1.0 - largest) * epsilon / (self.classes - 1) as f64
    }

    /// `Q_y` of one image.
    fn largest(&self, mean: &[f64], var: &[f64], y: usize) -> f64 {
        let rule = GaussHermite::standard();
        let t = nodes(rule, mean[y], sd(var[y]));
        let (mut product, mut z, mut c) = ([1.0; POINTS], [0.0; POINTS], [0.0; POINTS]);
        for j in (0..self.classes).filter(|&j| j != y) {
            let inv_sd = 1.0 / sd(var[j]);
            (0..POINTS).for_each(|i| z[i] = (t[i] - mean[j]) * inv_sd);
            write_normal_cdf(&z, &mut c);
            (0..POINTS).for_each(|i| product[i] *= (1.0 - 2.0 * self.squash) * c[i] + self.squash);
        }
        dot(&rule.weights, &product)
    }

    /// `Q_y` of one image and its derivatives, written over `row`.
    ///
    /// With `g_j = Π_{k≠y,j} c_k · c_j'(t)`: `dQ/dmean_j = -Σ_i w_i g_ji`, `dQ/dvar_j = -Σ_i w_i g_ji z_ji / (2 sd_j)`,
    /// `dQ/dmean_y = Σ_j Σ_i w_i g_ji`, `dQ/dvar_y = Σ_i w_i x_i Σ_j g_ji / (2 sd_y)`.
    fn largest_with_slopes(&self, mean: &[f64], var: &[f64], y: usize, row: Row, scratch: &mut Scratch) {
        let rule = GaussHermite::standard();
        let t = nodes(rule, mean[y], sd(var[y]));
        let mut prefix = [1.0; POINTS];
        for j in (0..self.classes).filter(|&j| j != y) {
            let (f, inv_sd) = (&mut scratch.factors[j], 1.0 / sd(var[j]));
            (0..POINTS).for_each(|i| f.z[i] = (t[i] - mean[j]) * inv_sd);
            write_normal_cdf_and_pdf(&f.z, &mut f.value, &mut f.slope);
            for i in 0..POINTS {
                f.value[i] = (1.0 - 2.0 * self.squash) * f.value[i] + self.squash;
                f.slope[i] *= (1.0 - 2.0 * self.squash) * inv_sd;
                f.prefix[i] = prefix[i];
                prefix[i] *= f.value[i];
            }
        }
        *row.value = dot(&rule.weights, &prefix);

        let (mut suffix, mut along_t) = ([1.0; POINTS], [0.0; POINTS]);
        for j in (0..self.classes).rev().filter(|&j| j != y) {
            let f = &scratch.factors[j];
            let (mut slope, mut slope_z) = (0.0, 0.0);
            for i in 0..POINTS {
                let g = f.prefix[i] * suffix[i] * f.slope[i];
                suffix[i] *= f.value[i];
                along_t[i] += g;
                slope += rule.weights[i] * g;
                slope_z += rule.weights[i] * g * f.z[i];
            }
            row.mean_bar[j] = -slope;
            row.var_bar[j] = -0.5 * slope_z / sd(var[j]);
        }
        row.mean_bar[y] = dot(&rule.weights, &along_t);
        row.var_bar[y] = 0.5 * odd_part(rule, &along_t) / sd(var[y]);
    }
}

/// What the two passes over the classes share, per class.
#[derive(Clone)]
struct Factor {
    z: Nodes,
    value: Nodes,
    slope: Nodes,
    prefix: Nodes,
}

struct Scratch {
    factors: Vec<Factor>,
}

impl Scratch {
    fn new(classes: usize) -> Self {
        let zero = [0.0; POINTS];
        Self { factors: vec![Factor { z: zero, value: zero, slope: zero, prefix: zero }; classes] }
    }
}

/// Standard deviation, not below the square root of [`VAR_FLOOR`]; a NaN stays one.
fn sd(var: f64) -> f64 {
    if var < VAR_FLOOR { VAR_FLOOR.sqrt() } else { var.sqrt() }
}

/// `t_i = mean + sd x_i`.
fn nodes(rule: &GaussHermite, mean: f64, sd: f64) -> Nodes {
    std::array::from_fn(|i| mean + sd * rule.nodes[i])
}

fn dot(weights: &[f64], values: &Nodes) -> f64 {
    weights.iter().zip(values).map(|(w, v)| w * v).sum()
}

/// `Σ_i w_i x_i v_i` over mirrored pairs of nodes, so that a constant `v` gives exactly zero.
fn odd_part(rule: &GaussHermite, v: &Nodes) -> f64 {
    let pair = |i: usize| rule.weights[i] * rule.nodes[i] * (v[i] - v[POINTS - 1 - i]);
    (0..POINTS / 2).map(pair).sum()
}

impl Likelihood for RobustMax {
    fn name(&self) -> &'static str {
        "robust-max"
    }
    fn latents(&self) -> usize {
        self.classes
    }

    fn parameters(&self) -> Vec<ParamInit> {
        let epsilon = ParamInit::array("epsilon", Transform::Unit, vec![self.epsilon]);
        if self.learn_epsilon { vec![epsilon] } else { Vec::new() }
    }

    fn is_shift_invariant(&self) -> bool {
        true
    }

    fn classes(&self) -> Option<usize> {
        Some(self.classes)
    }

    fn expect(&self, of: &Integrand, out: &mut Expectations) {
        let Integrand { alpha, theta, q, targets, .. } = *of;
        let (k, epsilon) = (self.classes, self.epsilon(theta));
        let hit = libm::log1p(-epsilon);
        let miss = libm::log(epsilon / (k - 1) as f64);
        let scratch = || Scratch::new(k);
        fill_rows(out, k, scratch, |n, row, scratch| {
            let image = n * k..(n + 1) * k;
            self.largest_with_slopes(&q.mean[image.clone()], &q.var[image], label(targets, n), row, scratch);
        });
        let gap = if alpha == 0.0 { hit - miss } else { libm::expm1(alpha * (hit - miss)) / alpha };
        for (n, value) in out.value.iter_mut().enumerate() {
            let mut weights = [*value, 1.0 - *value];
            *value = power_mean(alpha, &[hit, miss], &mut weights, 1.0);
            let slope = gap * libm::exp(alpha * (miss - *value));
            for bar in [&mut out.mean_bar, &mut out.var_bar] {
                bar[n * k..(n + 1) * k].iter_mut().for_each(|d| *d *= slope);
            }
            if self.learn_epsilon {
                out.theta_bar[0] += weights[1] / epsilon - weights[0] / (1.0 - epsilon);
            }
        }
    }

    fn predict(&self, theta: &[f64], q: &Marginals) -> Predictive {
        let (k, epsilon) = (self.classes, self.epsilon(theta));
        let fill = |n: usize, row: &mut [f64], (): &mut ()| {
            let (mean, var) = (&q.mean[n * k..(n + 1) * k], &q.var[n * k..(n + 1) * k]);
            for (y, p) in row.iter_mut().enumerate() {
                *p = self.probability(epsilon, self.largest(mean, var, y));
            }
        };
        Predictive::Classes { probabilities: map_rows(q.mean.len() / k, k, || (), fill), classes: k }
    }

    fn log_predictive(&self, theta: &[f64], q: &Marginals, targets: &Targets) -> Vec<f64> {
        let (k, epsilon) = (self.classes, self.epsilon(theta));
        let fill = |n: usize, row: &mut [f64], (): &mut ()| {
            let image = n * k..(n + 1) * k;
            let largest = self.largest(&q.mean[image.clone()], &q.var[image], label(targets, n));
            row[0] = libm::log(self.probability(epsilon, largest));
        };
        map_rows(q.mean.len() / k, 1, || (), fill)
    }
}

#[cfg(test)]
mod tests {
    use super::super::check_likelihood;
    use super::super::special::normal_cdf;
    use super::*;

    /// The rule misses a unit sum by this much at the checked marginals.
    const SUM: f64 = 5e-3;

    #[test]
    fn keeps_the_contract() {
        let targets = |k: u32| Targets::classes((0..7).map(|n| n % k).collect(), k as usize).unwrap();
        let plain = RobustMax::new(10, 1e-3).unwrap();
        check_likelihood(&plain, &[], &targets(10), SUM).unwrap();
        check_likelihood(&plain.with_squash(0.0).unwrap(), &[], &targets(10), SUM).unwrap();
        let learned = RobustMax::new(3, 0.1).unwrap().learn_epsilon(true);
        check_likelihood(&learned, &[0.07], &targets(3), SUM).unwrap();
        check_likelihood(&RobustMax::new(2, 0.01).unwrap(), &[], &targets(2), SUM).unwrap();
    }

    #[test]
    fn two_classes_are_a_normal_probability() {
        // P(f_0 > f_1) = Φ((m_0 - m_1) / sqrt(v_0 + v_1)).
        let lik = RobustMax::new(2, 0.01).unwrap().with_squash(0.0).unwrap();
        let (mean, var) = ([0.4, -0.3], [0.3, 0.9]);
        let exact = normal_cdf(0.7 / f64::sqrt(1.2));
        // The rule is better along the narrower of the two: the integrand is smoother there.
        assert!((lik.largest(&mean, &var, 0) - exact).abs() < 1e-9);
        assert!((lik.largest(&mean, &var, 1) - (1.0 - exact)).abs() < 1e-4);
    }

    #[test]
    fn hopeless_labels_lose_a_bounded_amount() {
        let lik = RobustMax::new(3, 1e-3).unwrap().with_squash(0.0).unwrap();
        let q = Marginals { mean: vec![-300.0, 300.0, 300.0], var: vec![1.0, 0.0, 1e-3] };
        let log_p = lik.log_predictive(&[], &q, &Targets::classes(vec![0], 3).unwrap())[0];
        assert!((log_p - libm::log(5e-4)).abs() < 1e-12);
    }

    #[test]
    fn thread_count_does_not_change_a_bit() {
        let mut rng = crate::rng::Rng::new(5);
        let q = Marginals {
            mean: (0..370).map(|_| rng.normal()).collect(),
            var: (0..370).map(|_| rng.uniform()).collect(),
        };
        let targets = Targets::classes((0..37).map(|n| n % 10).collect(), 10).unwrap();
        let lik = RobustMax::new(10, 1e-3).unwrap().learn_epsilon(true);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut out = Expectations::default();
            out.reset(37, 10, 1);
            pool.install(|| lik.expect(&Integrand::new(&[0.02], &q, &targets), &mut out));
            (out, pool.install(|| lik.predict(&[0.02], &q)))
        };
        assert_eq!(run(1), run(3));
    }

    #[test]
    fn nan_marginals_are_not_hidden() {
        let lik = RobustMax::new(3, 1e-3).unwrap();
        for bad in 0..3 {
            let mut mean = [0.1, 0.2, 0.3];
            mean[bad] = f64::NAN;
            assert!(lik.largest(&mean, &[1.0; 3], 1).is_nan());
        }
    }
}
