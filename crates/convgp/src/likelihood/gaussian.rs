//! Gaussian noise around one latent: regression.

use super::scalar::real_target;
use super::special::LOG_SQRT_2PI;
use super::{Expectations, Integrand, Likelihood, LikelihoodError, Marginals, Predictive};
use crate::data::Targets;
use crate::params::ParamInit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where zero lies among targets and how large one is: latents and noise are about `(y - offset) / scale`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetUnits {
    /// The target that is zero to the model.
    pub offset: f64,
    /// The difference of targets that is one to the model; positive.
    pub scale: f64,
}

impl Default for TargetUnits {
    fn default() -> Self {
        Self { offset: 0.0, scale: 1.0 }
    }
}

impl TargetUnits {
    /// Mean and standard deviation of targets, so that they have mean 0 and variance 1 to the model.
    pub fn of(y: &[f64]) -> Self {
        let n = y.len().max(1) as f64;
        // The largest is taken off first: sums of it and squares of it do not overflow.
        let size = y.iter().fold(0.0, |size: f64, y| size.max(y.abs())).max(f64::MIN_POSITIVE);
        let offset = y.iter().map(|y| y / size).sum::<f64>() / n;
        let spread = y.iter().map(|y| (y / size - offset).powi(2)).sum::<f64>() / n;
        let scale = size * spread.sqrt();
        let offset = size * offset;
        // Targets that differ by rounding only have no spread.
        if scale > 1e-12 * size { Self { offset, scale } } else { Self { offset, scale: 1.0 } }
    }

    /// Whether targets are taken as they are.
    pub fn is_identity(&self) -> bool {
        *self == Self::default()
    }

    /// A target as the model sees it.
    pub fn standardise(&self, y: f64) -> f64 {
        (y - self.offset) / self.scale
    }
}

/// `p(y | f) = N(y; f, s2)` with a learned noise variance `s2`, parameter `variance`, for targets `y` in units of their
/// own, [`TargetUnits`].
///
/// Everything is closed form; for units as they are:
///
/// ```text
/// E[log p] = -1/2 log(2π s2) - ((y - mean)² + var) / (2 s2)
/// (1/alpha) log E[p^alpha] = -1/2 log(2π s2) - log(1 + alpha var / s2) / (2 alpha) - (y - mean)² / (2 (s2 + alpha var))
/// y ~ N(mean, var + s2)
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Gaussian {
    variance: f64,
    units: TargetUnits,
}

impl Gaussian {
    /// Starts at this noise variance, which must be positive.
    pub fn new(variance: f64) -> Result<Self, LikelihoodError> {
        if !(variance > 0.0 && variance.is_finite()) {
            return Err(LikelihoodError::Variance { value: variance });
        }
        Ok(Self { variance, units: TargetUnits::default() })
    }

    /// For targets in these units; the scale must be positive and both finite.
    pub fn with_units(self, units: TargetUnits) -> Result<Self, LikelihoodError> {
        let TargetUnits { offset, scale } = units;
        match scale > 0.0 && scale.is_finite() && offset.is_finite() {
            true => Ok(Self { units, ..self }),
            false => Err(LikelihoodError::Units { offset, scale }),
        }
    }

    fn target(&self, targets: &Targets, n: usize) -> f64 {
        self.units.standardise(real_target(targets, n))
    }

    /// The logarithm of a density per unit of the user's.
    fn log_scale(&self) -> f64 {
        libm::log(self.units.scale)
    }
}

/// `log N(y; mean, var)`.
fn log_normal_density(y: f64, mean: f64, var: f64) -> f64 {
    -LOG_SQRT_2PI - 0.5 * libm::log(var) - 0.5 * (y - mean) * (y - mean) / var
}

/// The expectation of one target and its derivatives.
pub(super) struct NoiseExpectation {
    pub value: f64,
    pub mean_bar: f64,
    pub var_bar: f64,
    pub noise_bar: f64,
}

/// Noise of variance `s2` around a latent of variance `var`, at this distance of the target from the latent's mean.
pub(super) fn expect_noise(alpha: f64, s2: f64, residual: f64, var: f64) -> NoiseExpectation {
    let square = residual * residual;
    if alpha == 0.0 {
        return NoiseExpectation {
            value: log_normal_density(residual, 0.0, s2) - 0.5 * var / s2,
            mean_bar: residual / s2,
            var_bar: -0.5 / s2,
            noise_bar: 0.5 * ((square + var) / s2 - 1.0) / s2,
        };
    }
    let sum = s2 + alpha * var;
    let spread = libm::log1p(alpha * var / s2) / alpha;
    NoiseExpectation {
        value: -LOG_SQRT_2PI - 0.5 * (libm::log(s2) + spread + square / sum),
        mean_bar: residual / sum,
        var_bar: 0.5 * (alpha * square / sum - 1.0) / sum,
        noise_bar: 0.5 * ((var / s2 + square / sum) / sum - 1.0 / s2),
    }
}

impl Likelihood for Gaussian {
    fn name(&self) -> &'static str {
        "Gaussian"
    }
    fn latents(&self) -> usize {
        1
    }
    fn parameters(&self) -> Vec<ParamInit> {
        vec![ParamInit::positive("variance", self.variance)]
    }
    fn classes(&self) -> Option<usize> {
        None
    }
    fn gaussian_noise(&self) -> Option<TargetUnits> {
        Some(self.units)
    }

    fn expect(&self, of: &Integrand, out: &mut Expectations) {
        let Integrand { alpha, theta, q, targets, .. } = *of;
        for n in 0..q.mean.len() {
            let e = expect_noise(alpha, theta[0], self.target(targets, n) - q.mean[n], q.var[n]);
            (out.value[n], out.mean_bar[n], out.var_bar[n]) =
                (e.value - self.log_scale(), e.mean_bar, e.var_bar);
            out.theta_bar[0] += e.noise_bar;
        }
    }

    fn predict(&self, theta: &[f64], q: &Marginals) -> Predictive {
        let TargetUnits { offset, scale } = self.units;
        Predictive::Real {
            mean: q.mean.iter().map(|m| offset + scale * m).collect(),
            var: q.var.iter().map(|v| scale * scale * (v + theta[0])).collect(),
        }
    }

    fn log_predictive(&self, theta: &[f64], q: &Marginals, targets: &Targets) -> Vec<f64> {
        let row = |n: usize| {
            log_normal_density(self.target(targets, n), q.mean[n], q.var[n] + theta[0]) - self.log_scale()
        };
        (0..q.mean.len()).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Real, ScalarLogDensity, check_likelihood, scalar::ConditionalMoments};
    use super::*;

    /// The same likelihood by quadrature, which is exact for a quadratic.
    #[derive(Debug)]
    struct ByRule;
    impl ScalarLogDensity for ByRule {
        type Target = f64;
        fn log_density_and_slope(&self, theta: &[f64], f: f64, y: f64) -> (f64, f64) {
            (log_normal_density(y, f, theta[0]), (y - f) / theta[0])
        }
        fn parameters(&self) -> Vec<ParamInit> {
            vec![ParamInit::positive("variance", 1.0)]
        }
        fn add_theta_slope(&self, theta: &[f64], f: f64, y: f64, scale: f64, theta_bar: &mut [f64]) {
            theta_bar[0] += scale * 0.5 * ((y - f) * (y - f) / theta[0] - 1.0) / theta[0];
        }
    }
    impl ConditionalMoments for ByRule {
        fn mean_and_var(&self, theta: &[f64], f: f64) -> (f64, f64) {
            (f, theta[0])
        }
    }

    #[test]
    fn keeps_the_contract() {
        let targets = Targets::real(vec![0.3, -2.0, 1.7, 0.0]).unwrap();
        check_likelihood(&Gaussian::new(1.0).unwrap(), &[0.37], &targets, 0.0).unwrap();
        check_likelihood(&Real(ByRule), &[0.37], &targets, 0.0).unwrap();
        let units = TargetUnits { offset: 7.0, scale: 3.0 };
        check_likelihood(&Gaussian::new(1.0).unwrap().with_units(units).unwrap(), &[0.37], &targets, 0.0)
            .unwrap();
    }

    #[test]
    fn units_of_targets_are_taken_off_and_put_back() {
        let y = [105.0, 95.0, 110.0, 90.0];
        let units = TargetUnits::of(&y);
        assert!((units.offset - 100.0).abs() < 1e-12 && (units.scale - 62.5f64.sqrt()).abs() < 1e-12);
        assert_eq!(TargetUnits::of(&[4.0; 3]), TargetUnits { offset: 4.0, scale: 1.0 });
        assert!(TargetUnits::of(&[1e300, -1e300]).scale.is_finite());
        let (plain, scaled) =
            (Gaussian::new(1.0).unwrap(), Gaussian::new(1.0).unwrap().with_units(units).unwrap());
        let q = Marginals { mean: vec![0.25, -1.0], var: vec![0.5, 0.125] };
        let Predictive::Real { mean, var } = scaled.predict(&[0.3], &q) else { panic!() };
        assert!((mean[0] - (100.0 + 0.25 * units.scale)).abs() < 1e-12);
        assert!((var[1] - 62.5 * 0.425).abs() < 1e-12);
        let targets = Targets::real(vec![108.0, 91.0]).unwrap();
        let standard = Targets::real([108.0, 91.0].map(|y| units.standardise(y)).to_vec()).unwrap();
        let (a, b) =
            (scaled.log_predictive(&[0.3], &q, &targets), plain.log_predictive(&[0.3], &q, &standard));
        assert!(a.iter().zip(&b).all(|(a, b)| (a + units.scale.ln() - b).abs() < 1e-12));
        assert!(Gaussian::new(1.0).unwrap().with_units(TargetUnits { offset: 0.0, scale: 0.0 }).is_err());
    }

    #[test]
    fn closed_form_agrees_with_quadrature() {
        let q = Marginals { mean: vec![0.2, -1.3, 4.0], var: vec![0.4, 1e-14, 2.5] };
        let targets = Targets::real(vec![0.5, 1.0, -0.7]).unwrap();
        let (theta, closed, rule) = ([0.6], Gaussian::new(0.6).unwrap(), Real(ByRule));
        let (mut a, mut b) = (Expectations::default(), Expectations::default());
        a.reset(3, 1, 1);
        b.reset(3, 1, 1);
        closed.expect(&Integrand::new(&theta, &q, &targets), &mut a);
        rule.expect(&Integrand::new(&theta, &q, &targets), &mut b);
        let flat = |e: &Expectations| [&e.value[..], &e.mean_bar, &e.var_bar, &e.theta_bar].concat();
        for (x, y) in flat(&a).iter().zip(flat(&b)) {
            assert!((x - y).abs() <= 1e-9 * (1.0 + y.abs()), "{x} against {y}");
        }
        let (Predictive::Real { mean, var }, Predictive::Real { mean: m, var: v }) =
            (closed.predict(&theta, &q), rule.predict(&theta, &q))
        else {
            panic!("both predict real numbers");
        };
        for (x, y) in mean.iter().chain(&var).zip(m.iter().chain(&v)) {
            assert!((x - y).abs() <= 1e-13 * y.abs());
        }
    }

    #[test]
    fn bad_variances_and_targets_are_refused() {
        assert!(Gaussian::new(0.0).is_err() && Gaussian::new(f64::NAN).is_err());
        let labels = Targets::classes(vec![0, 1], 2).unwrap();
        assert!(Gaussian::new(1.0).unwrap().check_targets(&labels).is_err());
    }
}
