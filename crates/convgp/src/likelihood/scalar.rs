//! Likelihoods with one latent: give a log density and its slope, get everything else.
//!
//! With `l(f) = log p(y | f)` and a Gauss-Hermite rule `(x_i, w_i)`, `f_i = mean + sd x_i`:
//!
//! ```text
//! E[l]       = Σ_i w_i l(f_i)
//! d/d mean   = Σ_i w_i l'(f_i)
//! d/d var    = Σ_i w_i l'(f_i) x_i / (2 sd)      (tends to l''(mean) / 2 as sd goes to 0)
//! d/d theta  = Σ_i w_i ∂l(f_i)/∂theta
//! ```
//!
//! These are the exact derivatives of the rule, so they agree with differences of the value to rounding. For power
//! expectations the weights are others, see the `power` module.

use super::power::power_mean;
use super::quadrature::{GaussHermite, POINTS};
use super::softmax::VarianceDerivative::{self, Curvature, Pathwise};
use super::special::log_sum_exp;
use super::{Expectations, Integrand, Likelihood, Marginals, Predictive};
use crate::data::Targets;
use crate::params::ParamInit;
use std::fmt::Debug;

/// `log p(y | f)` of one latent value and its slope.
///
/// `Target` is `bool` for two classes (`true` is label 1) or `f64` for a real target. Wrap the density in [`Binary`] or
/// [`Real`] to make it a [`Likelihood`].
///
/// ```
/// use convgp::data::Targets;
/// use convgp::likelihood::{Binary, ScalarLogDensity, check_likelihood};
///
/// /// `p(y = 1 | f) = 1 - exp(-exp(f))`, the complementary log-log link.
/// #[derive(Debug)]
/// struct CLogLog;
///
/// impl ScalarLogDensity for CLogLog {
///     type Target = bool;
///     fn log_density_and_slope(&self, _theta: &[f64], f: f64, y: bool) -> (f64, f64) {
///         let rate = f.min(700.0).exp();
///         let odds = if rate > 0.0 { rate / rate.exp_m1() } else { 1.0 };
///         // log(1 - exp(-rate)) is about f when the rate is tiny.
///         let log_one = if f < -36.0 { f } else { (-(-rate).exp_m1()).ln() };
///         if y { (log_one, odds) } else { (-rate, -rate) }
///     }
/// }
///
/// let targets = Targets::classes(vec![0, 1, 1, 0], 2)?;
/// check_likelihood(&Binary(CLogLog), &[], &targets, 1e-12)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ScalarLogDensity: Debug + Send + Sync {
    /// `bool` or `f64`.
    type Target: Copy + Send + Sync;

    /// What reports call it.
    fn name(&self) -> &'static str {
        "custom"
    }

    /// `log p(y | f)` and its derivative in `f`; finite for every finite `f`.
    fn log_density_and_slope(&self, theta: &[f64], f: f64, y: Self::Target) -> (f64, f64);

    /// The second derivative in `f`; by differences of the slope unless it is written out.
    fn curvature(&self, theta: &[f64], f: f64, y: Self::Target) -> f64 {
        let step = 1e-5 * (1.0 + f.abs());
        let slope_at = |f| self.log_density_and_slope(theta, f, y).1;
        (slope_at(f + step) - slope_at(f - step)) / (2.0 * step)
    }

    /// The density's own parameters, if it has any.
    fn parameters(&self) -> Vec<ParamInit> {
        Vec::new()
    }

    /// `theta_bar[i] += scale * ∂ log p(y | f) / ∂ theta[i]`; needed only by densities with parameters.
    fn add_theta_slope(
        &self,
        _theta: &[f64],
        _f: f64,
        _y: Self::Target,
        _scale: f64,
        _theta_bar: &mut [f64],
    ) {
    }
}

/// Moments of `y` given `f`, which a real-valued likelihood needs for prediction.
pub trait ConditionalMoments {
    /// `E[y | f]` and `Var[y | f]`.
    fn mean_and_var(&self, theta: &[f64], f: f64) -> (f64, f64);
}

/// A likelihood of two classes from a density of a `bool`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Binary<D>(pub D);

/// A likelihood of a real target from a density of an `f64`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Real<D>(pub D);

/// Power expectations of a scalar density by the standard rule; `target` picks the target of an image.
///
/// With [`VarianceDerivative::Curvature`] the derivative in the variance is `E[l'' + alpha l'^2] / 2` under the weights of
/// the power, which is that of the rule as far as the rule has converged.
pub fn expect_scalar<D: ScalarLogDensity>(
    density: &D,
    derivative: VarianceDerivative,
    of: &Integrand,
    target: impl Fn(&Targets, usize) -> D::Target,
    out: &mut Expectations,
) {
    let Integrand { alpha, theta, q, targets, .. } = *of;
    let rule = GaussHermite::standard();
    let (mut weights, mut logs, mut slopes) = ([0.0; POINTS], [0.0; POINTS], [0.0; POINTS]);
    for n in 0..q.mean.len() {
        let (mean, sd, y) = (q.mean[n], q.var[n].sqrt(), target(targets, n));
        weights.copy_from_slice(&rule.weights);
        for (i, &x) in rule.nodes.iter().enumerate() {
            (logs[i], slopes[i]) = density.log_density_and_slope(theta, mean + sd * x, y);
        }
        out.value[n] = power_mean(alpha, &logs, &mut weights, 1.0);
        let (mut slope, mut slope_x, mut curvature) = (0.0, 0.0, 0.0);
        for ((&x, &w), &dl) in rule.nodes.iter().zip(&weights).zip(&slopes) {
            let f = mean + sd * x;
            slope += w * dl;
            slope_x += w * x * dl;
            if derivative == Curvature {
                curvature += w * (density.curvature(theta, f, y) + alpha * dl * dl);
            }
            density.add_theta_slope(theta, f, y, w, &mut out.theta_bar);
        }
        out.mean_bar[n] = slope;
        // Below this the nodes are too close together for the slope to differ by more than its rounding.
        let step = 1e-5 * (1.0 + mean.abs());
        out.var_bar[n] = if derivative == Curvature {
            0.5 * curvature
        } else if sd > step {
            slope_x / (2.0 * sd)
        } else {
            let slope_at = |f| density.log_density_and_slope(theta, f, y).1;
            (slope_at(mean + step) - slope_at(mean - step)) / (4.0 * step) + 0.5 * alpha * slope * slope
        };
    }
}

/// `log E[p(y | f)]` by the standard rule, summed in log space so that a tiny probability keeps its logarithm.
fn log_expected_density<D: ScalarLogDensity>(d: &D, theta: &[f64], mean: f64, var: f64, y: D::Target) -> f64 {
    let (rule, sd) = (GaussHermite::standard(), var.sqrt());
    let terms = rule.nodes.iter().zip(&rule.weights);
    log_sum_exp(terms.map(|(x, w)| libm::log(*w) + d.log_density_and_slope(theta, mean + sd * x, y).0))
}

fn each<T>(q: &Marginals, f: impl Fn(usize, f64, f64) -> T) -> Vec<T> {
    (0..q.mean.len()).map(|n| f(n, q.mean[n], q.var[n])).collect()
}

/// Whether image `n` has label 1.
pub(super) fn is_one(targets: &Targets, n: usize) -> bool {
    match targets {
        Targets::Classes { labels, .. } => labels[n] == 1,
        Targets::Real(_) => unreachable!("check_targets admits only labels"),
    }
}

/// The real target of image `n`.
pub(super) fn real_target(targets: &Targets, n: usize) -> f64 {
    match targets {
        Targets::Classes { .. } => unreachable!("check_targets admits only real numbers"),
        Targets::Real(v) => v[n],
    }
}

impl<D: ScalarLogDensity<Target = bool>> Likelihood for Binary<D> {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn latents(&self) -> usize {
        1
    }
    fn parameters(&self) -> Vec<ParamInit> {
        self.0.parameters()
    }
    fn classes(&self) -> Option<usize> {
        Some(2)
    }
    fn expect(&self, of: &Integrand, out: &mut Expectations) {
        expect_scalar(&self.0, Pathwise, of, is_one, out);
    }
    /// `E[p(y | f)]` of both labels by the same rule.
    fn predict(&self, theta: &[f64], q: &Marginals) -> Predictive {
        let both = |_, mean, var| {
            [false, true].map(|y| libm::exp(log_expected_density(&self.0, theta, mean, var, y)))
        };
        Predictive::Classes { probabilities: each(q, both).concat(), classes: 2 }
    }
    fn log_predictive(&self, theta: &[f64], q: &Marginals, targets: &Targets) -> Vec<f64> {
        each(q, |n, mean, var| log_expected_density(&self.0, theta, mean, var, is_one(targets, n)))
    }
}

impl<D: ScalarLogDensity<Target = f64> + ConditionalMoments> Likelihood for Real<D> {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn latents(&self) -> usize {
        1
    }
    fn parameters(&self) -> Vec<ParamInit> {
        self.0.parameters()
    }
    fn classes(&self) -> Option<usize> {
        None
    }
    fn expect(&self, of: &Integrand, out: &mut Expectations) {
        expect_scalar(&self.0, Pathwise, of, real_target, out);
    }
    /// `E[y] = E[m(f)]`, `Var[y] = E[v(f)] + Var[m(f)]` by the same rule.
    fn predict(&self, theta: &[f64], q: &Marginals) -> Predictive {
        let rule = GaussHermite::standard();
        let moments = |f| self.0.mean_and_var(theta, f);
        let mean = each(q, |_, m, v| rule.expect(m, v.sqrt(), |f| moments(f).0));
        let spread = |f, centre: f64| moments(f).1 + (moments(f).0 - centre) * (moments(f).0 - centre);
        let var = each(q, |n, m, v| rule.expect(m, v.sqrt(), |f| spread(f, mean[n])));
        Predictive::Real { mean, var }
    }
    fn log_predictive(&self, theta: &[f64], q: &Marginals, targets: &Targets) -> Vec<f64> {
        each(q, |n, mean, var| log_expected_density(&self.0, theta, mean, var, real_target(targets, n)))
    }
}
