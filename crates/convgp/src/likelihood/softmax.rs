//! Softmax: class probabilities proportional to the exponentials of `K` latents.

use super::draws::{generator, write_stratified_normals};
use super::rows::{fill_rows, map_rows};
use super::samples::Scratch;
use super::special::log_sum_exp;
use super::{
    Expectations, Integrand, Likelihood, LikelihoodError, Marginals, Predictive, Temperature, label,
};
use crate::data::Targets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the derivative in the variances is estimated. Both estimate the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VarianceDerivative {
    /// `-E[p (1 - p)] / 2`, half the expected second derivative: less noise and never positive, which natural gradients
    /// need. Not the derivative of the sampled value. For power expectations `E[l'' + alpha l'^2] / 2` under the weights of
    /// the power.
    #[default]
    Curvature,
    /// The exact derivative of the sampled value, `E[(1{k = y} - p_k) eps_k] / (2 sd_k)`.
    Pathwise,
}

/// `p(y | f) = exp(f_y) / Σ_k exp(f_k)`, by quasi-Monte-Carlo: `f_s = mean + sd eps_s`.
///
/// Draws are antithetic and stratified in every latent (see the `draws` module). For expectations they depend on
/// `(seed, draw, image's place in the batch)`; for prediction they are the same for every image, so that a row's answer does
/// not depend on the rows around it.
///
/// ```
/// use convgp::likelihood::{Likelihood, Marginals, Predictive, Softmax};
///
/// let q = Marginals { mean: vec![0.0, 0.0], var: vec![0.0, 0.0] };
/// let Predictive::Classes { probabilities, .. } = Softmax::new(2)?.predict(&[], &q) else { panic!() };
/// assert!((probabilities[0] - 0.5).abs() < 1e-12);
/// # Ok::<(), convgp::likelihood::LikelihoodError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Softmax {
    classes: usize,
    samples: usize,
    predict_samples: usize,
    seed: u64,
    derivative: VarianceDerivative,
    /// Of predicted probabilities; expectations do not know it.
    temperature: Temperature,
}

/// Marks the draws of predictions among the streams of a seed.
const PREDICTION: u64 = u64::MAX;

impl Softmax {
    /// 32 draws for expectations, 256 for prediction, seed 0, [`VarianceDerivative::Curvature`].
    pub fn new(classes: usize) -> Result<Self, LikelihoodError> {
        if classes < 2 {
            return Err(LikelihoodError::Classes { classes });
        }
        Ok(Self {
            classes,
            samples: 32,
            predict_samples: 256,
            seed: 0,
            derivative: VarianceDerivative::default(),
            temperature: Temperature::ONE,
        })
    }

    /// Numbers of draws; each even and at least 2, because draws come in antithetic pairs.
    pub fn with_samples(mut self, samples: usize, predict_samples: usize) -> Result<Self, LikelihoodError> {
        if let Some(&samples) = [samples, predict_samples].iter().find(|&&s| s < 2 || s % 2 != 0) {
            return Err(LikelihoodError::Samples { samples });
        }
        (self.samples, self.predict_samples) = (samples, predict_samples);
        Ok(self)
    }

    /// Replaces the seed of the draws.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Chooses the estimate of the derivative in the variances.
    pub fn with_derivative(mut self, derivative: VarianceDerivative) -> Self {
        self.derivative = derivative;
        self
    }

    /// [`Likelihood::expect`] with the caller's draws, `S x B x K` row-major.
    pub fn expect_with(&self, eps: &[f64], of: &Integrand, out: &mut Expectations) {
        let (k, images) = (self.classes, of.targets.len());
        let draws_of = |n: usize, draws: &mut Vec<f64>| gather(eps, images, k, n, draws);
        self.expect_by(draws_of, of, out);
    }

    /// [`Likelihood::predict`] with the caller's draws, `S x B x K` row-major.
    pub fn predict_with(&self, eps: &[f64], q: &Marginals) -> Predictive {
        let (k, images) = (self.classes, q.mean.len() / self.classes);
        let fill = |n: usize, row: &mut [f64], s: &mut Scratch| {
            gather(eps, images, k, n, &mut s.draws);
            s.evaluate(image(q, k, n));
            self.write_probabilities(image(q, k, n), s, row);
        };
        Predictive::Classes { probabilities: map_rows(images, k, Scratch::default, fill), classes: k }
    }

    fn expect_by(
        &self,
        draws_of: impl Fn(usize, &mut Vec<f64>) + Sync,
        of: &Integrand,
        out: &mut Expectations,
    ) {
        let (k, q) = (self.classes, of.q);
        fill_rows(out, k, Scratch::default, |n, row, s| {
            draws_of(n, &mut s.draws);
            s.evaluate(image(q, k, n));
            s.expectation(of.alpha, image(q, k, n), label(of.targets, n), self.derivative, row);
        });
    }

    /// Probabilities of an image whose samples were evaluated.
    fn write_probabilities(&self, q: (&[f64], &[f64]), s: &Scratch, row: &mut [f64]) {
        if self.temperature.is_one() {
            return s.mean_probabilities(row);
        }
        let power = self.temperature.inverse();
        let powers = |class| power * s.log_mean_probability(q, class);
        let total = log_sum_exp((0..row.len()).map(powers));
        row.iter_mut().enumerate().for_each(|(class, p)| *p = libm::exp(powers(class) - total));
    }

    /// The draws that serve every prediction, `S x K`.
    fn prediction_draws(&self) -> Vec<f64> {
        let mut draws = vec![0.0; self.predict_samples * self.classes];
        let mut rng = generator(self.seed, PREDICTION, 0);
        write_stratified_normals(&mut rng, self.predict_samples, self.classes, &mut draws);
        draws
    }

    /// A scratch that starts with the draws of predictions.
    fn prediction_scratch(&self) -> impl Fn() -> Scratch + Sync {
        let draws = self.prediction_draws();
        move || Scratch::with_draws(draws.clone())
    }
}

/// Means and variances of image `n`.
fn image(q: &Marginals, k: usize, n: usize) -> (&[f64], &[f64]) {
    (&q.mean[n * k..(n + 1) * k], &q.var[n * k..(n + 1) * k])
}

/// Image `n`'s part of `S x B x K` draws.
fn gather(eps: &[f64], images: usize, k: usize, n: usize, draws: &mut Vec<f64>) {
    draws.clear();
    eps.chunks_exact(images * k).for_each(|sample| draws.extend_from_slice(&sample[n * k..(n + 1) * k]));
}

impl Likelihood for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }
    fn latents(&self) -> usize {
        self.classes
    }

    fn is_shift_invariant(&self) -> bool {
        true
    }

    fn at_temperature(&self, temperature: Temperature) -> Option<Box<dyn Likelihood>> {
        Some(Box::new(Self { temperature, ..self.clone() }))
    }

    fn classes(&self) -> Option<usize> {
        Some(self.classes)
    }

    fn expect(&self, of: &Integrand, out: &mut Expectations) {
        let draws_of = |n: usize, draws: &mut Vec<f64>| {
            draws.resize(self.samples * self.classes, 0.0);
            write_stratified_normals(
                &mut generator(self.seed, of.draw, n),
                self.samples,
                self.classes,
                draws,
            );
        };
        self.expect_by(draws_of, of, out);
    }

    fn predict(&self, _theta: &[f64], q: &Marginals) -> Predictive {
        let k = self.classes;
        let fill = |n: usize, row: &mut [f64], s: &mut Scratch| {
            s.evaluate(image(q, k, n));
            self.write_probabilities(image(q, k, n), s, row);
        };
        let probabilities = map_rows(q.mean.len() / k, k, self.prediction_scratch(), fill);
        Predictive::Classes { probabilities, classes: k }
    }

    fn log_predictive(&self, _theta: &[f64], q: &Marginals, targets: &Targets) -> Vec<f64> {
        let k = self.classes;
        let fill = |n: usize, row: &mut [f64], s: &mut Scratch| {
            let (q, y) = (image(q, k, n), label(targets, n));
            s.evaluate(q);
            row[0] = s.log_mean_probability(q, y);
            if !self.temperature.is_one() {
                let power = self.temperature.inverse();
                let powers = (0..k).map(|class| power * s.log_mean_probability(q, class));
                row[0] = power * row[0] - log_sum_exp(powers);
            }
        };
        map_rows(q.mean.len() / k, 1, self.prediction_scratch(), fill)
    }
}

#[cfg(test)]
mod tests {
    use super::super::check_likelihood;
    use super::*;

    fn targets(images: u32, classes: u32) -> Targets {
        Targets::classes((0..images).map(|n| n % classes).collect(), classes as usize).unwrap()
    }

    #[test]
    fn keeps_the_contract() {
        // Only the pathwise estimate is the derivative of the value itself.
        for k in [2, 3, 10] {
            let lik = Softmax::new(k).unwrap().with_derivative(VarianceDerivative::Pathwise).with_seed(7);
            check_likelihood(&lik, &[], &targets(6, k as u32), 1e-13).unwrap();
        }
    }

    #[test]
    fn both_variance_derivatives_estimate_the_same_number() {
        let q = Marginals { mean: vec![0.5, -0.2, 1.0], var: vec![0.7, 1.1, 0.3] };
        let average = |derivative| {
            let lik = Softmax::new(3).unwrap().with_derivative(derivative);
            let (mut out, mut sum) = (Expectations::default(), [0.0; 3]);
            for draw in 0..2000 {
                out.reset(1, 3, 0);
                lik.expect(&Integrand { draw, ..Integrand::new(&[], &q, &targets(1, 3)) }, &mut out);
                sum.iter_mut().zip(&out.var_bar).for_each(|(s, v)| *s += v / 2000.0);
            }
            sum
        };
        let (a, b) = (average(VarianceDerivative::Curvature), average(VarianceDerivative::Pathwise));
        for (a, b) in a.iter().zip(b) {
            assert!(*a < 0.0 && (a - b).abs() < 1e-3, "{a} against {b}");
        }
    }

    #[test]
    fn draws_change_with_the_evaluation_and_not_otherwise() {
        let q = Marginals { mean: vec![0.1; 40], var: vec![0.8; 40] };
        let lik = Softmax::new(4).unwrap();
        let value = |draw| {
            let mut out = Expectations::default();
            out.reset(10, 4, 0);
            lik.expect(&Integrand { draw, ..Integrand::new(&[], &q, &targets(10, 4)) }, &mut out);
            out
        };
        assert_eq!(value(3), value(3));
        assert_ne!(value(3), value(4));
    }

    #[test]
    fn tempered_answers_are_powers_of_plain_ones_and_change_nothing_else() {
        let q = Marginals {
            mean: vec![0.5, -0.2, 1.0, 90.0, -800.0, 3.0],
            var: vec![0.7, 1.1, 0.3, 2.0, 4.0, 1.0],
        };
        let plain = Softmax::new(3).unwrap();
        let sharp = plain.at_temperature(Temperature::from_inverse(1.7).unwrap()).unwrap();
        let rows = |lik: &dyn Likelihood| {
            let Predictive::Classes { probabilities, .. } = lik.predict(&[], &q) else { unreachable!() };
            probabilities
        };
        let (before, after) = (rows(&plain), rows(sharp.as_ref()));
        let total: f64 = before[..3].iter().map(|p| p.powf(1.7)).sum();
        for (p, s) in before[..3].iter().zip(&after) {
            assert!((p.powf(1.7) / total - s).abs() < 1e-12, "{p} became {s}");
        }
        for y in 0..3 {
            let targets = Targets::classes(vec![y, y], 3).unwrap();
            let log_p = sharp.log_predictive(&[], &q, &targets);
            assert!((log_p[0] - after[y as usize].ln()).abs() < 1e-12);
            assert!(log_p[1].is_finite(), "a probability too small for a number keeps its logarithm");
            let expectation = |lik: &dyn Likelihood| {
                let mut out = Expectations::default();
                out.reset(2, 3, 0);
                lik.expect(&Integrand { draw: 4, ..Integrand::new(&[], &q, &targets) }, &mut out);
                out
            };
            assert_eq!(expectation(&plain), expectation(sharp.as_ref()));
        }
        for power in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Temperature::from_inverse(power).is_err());
        }
    }

    #[test]
    fn odd_sample_counts_are_refused() {
        let lik = Softmax::new(3).unwrap();
        for (train, predict) in [(0, 2), (3, 2), (2, 1)] {
            assert!(lik.clone().with_samples(train, predict).is_err());
        }
        assert!(lik.with_samples(2, 64).is_ok() && Softmax::new(1).is_err());
    }
}
