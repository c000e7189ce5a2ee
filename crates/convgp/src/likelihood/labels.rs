//! Regression on labels: what the closed-form solver fits.

use super::gaussian::expect_noise;
use super::{
    Expectations, Integrand, Likelihood, LikelihoodError, Marginals, Predictive, TargetUnits, label,
};
use crate::data::Targets;
use crate::params::ParamInit;

/// Gaussian noise on label vectors, `y_n = e_c - 1 / C` for class `c` of `C`: everything is closed form. Classes need not
/// be equally frequent; the targets stay the same.
///
/// Probabilities are `softmax(mean / temperature)`. Parameters: `noise`, relative to the kernel's own variance, and
/// `temperature`; the solver sets both from leave-one-out predictions.
///
/// ```
/// use convgp::likelihood::Labels;
///
/// let labels = Labels::new(4)?;
/// assert_eq!([labels.target(1, 1), labels.target(1, 2)], [0.75, -0.25]);
/// # Ok::<(), convgp::likelihood::LikelihoodError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    classes: usize,
}

impl Labels {
    /// For so many classes, at least two.
    pub fn new(classes: usize) -> Result<Self, LikelihoodError> {
        if classes < 2 {
            return Err(LikelihoodError::Classes { classes });
        }
        Ok(Self { classes })
    }

    /// The target of class `class` in latent `latent`.
    pub fn target(&self, class: usize, latent: usize) -> f64 {
        f64::from(u8::from(class == latent)) - 1.0 / self.classes as f64
    }
}

/// `log softmax(mean / temperature)` of one image.
pub(crate) fn log_softmax(mean: &[f64], temperature: f64) -> impl Iterator<Item = f64> + '_ {
    let top = mean.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = mean.iter().map(|m| libm::exp((m - top) / temperature)).sum();
    let log_total = libm::log(total);
    mean.iter().map(move |m| (m - top) / temperature - log_total)
}

impl Likelihood for Labels {
    fn name(&self) -> &'static str {
        "label regression"
    }
    fn latents(&self) -> usize {
        self.classes
    }
    fn parameters(&self) -> Vec<ParamInit> {
        vec![ParamInit::positive("noise", 0.1), ParamInit::positive("temperature", 0.2)]
    }
    fn classes(&self) -> Option<usize> {
        Some(self.classes)
    }
    fn gaussian_noise(&self) -> Option<TargetUnits> {
        Some(TargetUnits::default())
    }

    fn expect(&self, of: &Integrand, out: &mut Expectations) {
        let Integrand { alpha, theta, q, targets, .. } = *of;
        for n in 0..out.value.len() {
            let class = label(targets, n);
            for l in 0..self.classes {
                let i = n * self.classes + l;
                let e = expect_noise(alpha, theta[0], self.target(class, l) - q.mean[i], q.var[i]);
                out.value[n] += e.value;
                (out.mean_bar[i], out.var_bar[i]) = (e.mean_bar, e.var_bar);
                out.theta_bar[0] += e.noise_bar;
            }
        }
    }

    fn predict(&self, theta: &[f64], q: &Marginals) -> Predictive {
        let rows = q.mean.chunks_exact(self.classes);
        let probabilities =
            rows.flat_map(|mean| log_softmax(mean, theta[1]).map(libm::exp).collect::<Vec<_>>());
        Predictive::Classes { probabilities: probabilities.collect(), classes: self.classes }
    }

    fn log_predictive(&self, theta: &[f64], q: &Marginals, targets: &Targets) -> Vec<f64> {
        let rows = q.mean.chunks_exact(self.classes).enumerate();
        rows.map(|(n, mean)| log_softmax(mean, theta[1]).nth(label(targets, n)).unwrap_or(f64::NAN)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_sum_to_zero_and_probabilities_to_one() {
        let labels = Labels::new(3).unwrap();
        assert!((0..3).map(|l| labels.target(1, l)).sum::<f64>().abs() < 1e-15);
        let q = Marginals { mean: vec![0.6, -0.2, -0.4, -0.3, 0.3, 0.0], var: vec![0.1; 6] };
        let Predictive::Classes { probabilities, .. } = labels.predict(&[0.1, 0.2], &q) else { panic!() };
        assert!(probabilities.chunks_exact(3).all(|p| (p.iter().sum::<f64>() - 1.0).abs() < 1e-14));
        let targets = Targets::classes(vec![0, 1], 3).unwrap();
        let log = labels.log_predictive(&[0.1, 0.2], &q, &targets);
        assert!(
            (log[0].exp() - probabilities[0]).abs() < 1e-14
                && (log[1].exp() - probabilities[4]).abs() < 1e-14
        );
        assert!(Labels::new(1).is_err());
    }

    #[test]
    fn derivatives_are_those_of_the_expectation() {
        let labels = Labels::new(2).unwrap();
        let targets = Targets::classes(vec![1], 2).unwrap();
        let value = |theta: f64, mean: f64, var: f64| {
            let mut out = Expectations::default();
            out.reset(1, 2, 2);
            let q = Marginals { mean: vec![mean, 0.1], var: vec![var, 0.3] };
            labels.expect(&Integrand::new(&[theta, 1.0], &q, &targets), &mut out);
            out
        };
        let (h, at) = (1e-5, value(0.4, 0.2, 0.5));
        let slope = |a: Expectations, b: Expectations| (a.value[0] - b.value[0]) / (2.0 * h);
        assert!((slope(value(0.4 + h, 0.2, 0.5), value(0.4 - h, 0.2, 0.5)) - at.theta_bar[0]).abs() < 1e-6);
        assert!((slope(value(0.4, 0.2 + h, 0.5), value(0.4, 0.2 - h, 0.5)) - at.mean_bar[0]).abs() < 1e-6);
        assert!((slope(value(0.4, 0.2, 0.5 + h), value(0.4, 0.2, 0.5 - h)) - at.var_bar[0]).abs() < 1e-6);
    }
}
