//! Two classes, one latent: the probit and logit links.

use super::scalar::{ScalarLogDensity, expect_scalar, is_one};
use super::special::{log_ndtr, log_ndtr_slope, log_sigmoid, normal_cdf, normal_pdf, sigmoid};
use super::{
    Expectations, Integrand, Likelihood, LikelihoodError, Marginals, Predictive, VarianceDerivative,
};
use crate::data::Targets;

/// `p(y = 1 | f) = (1 - 2j) Φ(f) + j`, `j` the link jitter (0 for the plain probit, 1e-3 in the paper's code).
///
/// The jitter bounds the loss of a wrong label by `-log j`. Expectations by the 20-point rule; the predictive
/// probability is exact, `(1 - 2j) Φ(mean / sqrt(1 + var)) + j`.
///
/// ```
/// use convgp::likelihood::{Likelihood, Marginals, Predictive, Probit};
///
/// let q = Marginals { mean: vec![0.0, 3.0], var: vec![1.0, 0.0] };
/// let Predictive::Classes { probabilities, .. } = Probit::new(0.0)?.predict(&[], &q) else { panic!() };
/// assert!((probabilities[1] - 0.5).abs() < 1e-12 && probabilities[3] > 0.99);
/// # Ok::<(), convgp::likelihood::LikelihoodError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Probit {
    link_jitter: f64,
}

impl Probit {
    /// With this link jitter, `0 <= j < 1/2`.
    pub fn new(link_jitter: f64) -> Result<Self, LikelihoodError> {
        if !(0.0..0.5).contains(&link_jitter) {
            return Err(LikelihoodError::LinkJitter { value: link_jitter });
        }
        Ok(Self { link_jitter })
    }

    /// `p(y | f)` at `s = ±f`: the link is symmetric, `p(y = 0 | f) = p(y = 1 | -f)`.
    fn probability(&self, s: f64) -> f64 {
        (1.0 - 2.0 * self.link_jitter) * normal_cdf(s) + self.link_jitter
    }
}

/// `f` for label 1, `-f` for label 0, and that sign.
fn signed(f: f64, y: bool) -> (f64, f64) {
    if y { (f, 1.0) } else { (-f, -1.0) }
}

impl ScalarLogDensity for Probit {
    type Target = bool;
    fn log_density_and_slope(&self, _theta: &[f64], f: f64, y: bool) -> (f64, f64) {
        let (s, sign) = signed(f, y);
        if self.link_jitter == 0.0 {
            return (log_ndtr(s), sign * log_ndtr_slope(s));
        }
        let p = self.probability(s);
        (libm::log(p), sign * (1.0 - 2.0 * self.link_jitter) * normal_pdf(s) / p)
    }
    /// `-l' (l' + s)` with `l'` the slope in `s`: the density's slope is `-s` times itself.
    fn curvature(&self, theta: &[f64], f: f64, y: bool) -> f64 {
        let ((s, sign), slope) = (signed(f, y), self.log_density_and_slope(theta, f, y).1);
        -sign * slope * (sign * slope + s)
    }
}

impl Likelihood for Probit {
    fn name(&self) -> &'static str {
        "probit"
    }
    fn latents(&self) -> usize {
        1
    }
    fn classes(&self) -> Option<usize> {
        Some(2)
    }
    fn expect(&self, of: &Integrand, out: &mut Expectations) {
        expect_scalar(self, VarianceDerivative::Pathwise, of, is_one, out);
    }
    fn predict(&self, _theta: &[f64], q: &Marginals) -> Predictive {
        let standardised = q.mean.iter().zip(&q.var).map(|(m, v)| m / (1.0 + v).sqrt());
        let probabilities = standardised.flat_map(|s| [self.probability(-s), self.probability(s)]).collect();
        Predictive::Classes { probabilities, classes: 2 }
    }
    fn log_predictive(&self, _theta: &[f64], q: &Marginals, targets: &Targets) -> Vec<f64> {
        let row = |n: usize| {
            let (s, _) = signed(q.mean[n] / (1.0 + q.var[n]).sqrt(), is_one(targets, n));
            if self.link_jitter == 0.0 { log_ndtr(s) } else { libm::log(self.probability(s)) }
        };
        (0..q.mean.len()).map(row).collect()
    }
}

/// `p(y = 1 | f) = 1 / (1 + e^{-f})`. Use as `Binary(Logit)`; everything is by the 20-point rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Logit;

impl ScalarLogDensity for Logit {
    type Target = bool;
    fn name(&self) -> &'static str {
        "logit"
    }
    fn log_density_and_slope(&self, _theta: &[f64], f: f64, y: bool) -> (f64, f64) {
        let (s, sign) = signed(f, y);
        (log_sigmoid(s), sign * sigmoid(-s))
    }
    fn curvature(&self, _theta: &[f64], f: f64, _y: bool) -> f64 {
        -sigmoid(f) * sigmoid(-f)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Binary, GaussHermite, check_likelihood};
    use super::*;

    fn targets() -> Targets {
        Targets::classes(vec![0, 1, 1, 0, 1], 2).unwrap()
    }

    #[test]
    fn keep_the_contract() {
        check_likelihood(&Probit::new(0.0).unwrap(), &[], &targets(), 1e-14).unwrap();
        check_likelihood(&Probit::new(1e-3).unwrap(), &[], &targets(), 1e-14).unwrap();
        check_likelihood(&Binary(Logit), &[], &targets(), 1e-13).unwrap();
        check_likelihood(&Binary(Probit::new(0.2).unwrap()), &[], &targets(), 1e-13).unwrap();
    }

    #[test]
    fn exact_predictive_is_what_quadrature_approaches() {
        let (probit, fine) = (Probit::new(0.01).unwrap(), GaussHermite::new(90));
        for (mean, var) in [(0.7, 0.3), (-1.2, 2.0), (0.1, 1e-9)] {
            let q = Marginals { mean: vec![mean], var: vec![var] };
            let Predictive::Classes { probabilities, .. } = probit.predict(&[], &q) else {
                panic!("classes are predicted")
            };
            let by_rule = fine.expect(mean, f64::sqrt(var), |f| probit.probability(f));
            assert!((probabilities[1] - by_rule).abs() < 1e-10, "{mean}, {var}");
        }
    }

    #[test]
    fn jitter_bounds_the_loss_and_its_absence_does_not() {
        let loss = |j| Probit::new(j).unwrap().log_density_and_slope(&[], -60.0, true);
        assert!((loss(1e-3).0 - libm::log(1e-3)).abs() < 1e-12);
        assert!(loss(0.0).0 < -1800.0 && (loss(0.0).1 - 60.0).abs() < 0.02);
        assert!(Probit::new(0.5).is_err() && Probit::new(-1e-9).is_err());
    }

    #[test]
    fn only_two_classes_are_accepted() {
        let three = Targets::classes(vec![0, 1], 3).unwrap();
        let real = Targets::real(vec![0.0, 1.0]).unwrap();
        for lik in [&Probit::new(0.0).unwrap() as &dyn Likelihood, &Binary(Logit)] {
            assert!(lik.check_targets(&targets()).is_ok());
            assert!(lik.check_targets(&three).is_err() && lik.check_targets(&real).is_err());
        }
    }
}
