//! Gaussian noise around one latent: regression.

use super::scalar::real_target;
use super::special::LOG_SQRT_2PI;
use super::{Expectations, Likelihood, LikelihoodError, Marginals, Predictive, check_real};
use crate::data::{DataError, Targets};
use crate::params::ParamInit;

/// `p(y | f) = N(y; f, s2)` with a learned noise variance `s2`, parameter `variance`.
///
/// Everything is closed form:
///
/// ```text
/// E[log p] = -1/2 log(2π s2) - ((y - mean)² + var) / (2 s2)
/// y ~ N(mean, var + s2)
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Gaussian {
    variance: f64,
}

impl Gaussian {
    /// Starts at this noise variance, which must be positive.
    pub fn new(variance: f64) -> Result<Self, LikelihoodError> {
        if !(variance > 0.0 && variance.is_finite()) {
            return Err(LikelihoodError::Variance { value: variance });
        }
        Ok(Self { variance })
    }
}

/// `log N(y; mean, var)`.
fn log_normal_density(y: f64, mean: f64, var: f64) -> f64 {
    -LOG_SQRT_2PI - 0.5 * libm::log(var) - 0.5 * (y - mean) * (y - mean) / var
}

impl Likelihood for Gaussian {
    fn latents(&self) -> usize {
        1
    }
    fn parameters(&self) -> Vec<ParamInit> {
        vec![ParamInit::positive("variance", self.variance)]
    }
    fn check_targets(&self, targets: &Targets) -> Result<(), DataError> {
        check_real(targets)
    }

    fn expect(&self, theta: &[f64], q: &Marginals, targets: &Targets, _draw: u64, out: &mut Expectations) {
        let s2 = theta[0];
        for n in 0..q.mean.len() {
            let (y, mean, var) = (real_target(targets, n), q.mean[n], q.var[n]);
            let residual = y - mean;
            out.value[n] = log_normal_density(y, mean, s2) - 0.5 * var / s2;
            out.mean_bar[n] = residual / s2;
            out.var_bar[n] = -0.5 / s2;
            out.theta_bar[0] += 0.5 * ((residual * residual + var) / s2 - 1.0) / s2;
        }
    }

    fn predict(&self, theta: &[f64], q: &Marginals) -> Predictive {
        Predictive::Real { mean: q.mean.clone(), var: q.var.iter().map(|v| v + theta[0]).collect() }
    }

    fn log_predictive(&self, theta: &[f64], q: &Marginals, targets: &Targets) -> Vec<f64> {
        let row = |n: usize| log_normal_density(real_target(targets, n), q.mean[n], q.var[n] + theta[0]);
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
    }

    #[test]
    fn closed_form_agrees_with_quadrature() {
        let q = Marginals { mean: vec![0.2, -1.3, 4.0], var: vec![0.4, 1e-14, 2.5] };
        let targets = Targets::real(vec![0.5, 1.0, -0.7]).unwrap();
        let (theta, closed, rule) = ([0.6], Gaussian::new(0.6).unwrap(), Real(ByRule));
        let (mut a, mut b) = (Expectations::default(), Expectations::default());
        a.reset(3, 1, 1);
        b.reset(3, 1, 1);
        closed.expect(&theta, &q, &targets, 0, &mut a);
        rule.expect(&theta, &q, &targets, 0, &mut b);
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
