//! The contract every likelihood keeps, as one call.

use super::{Expectations, Integrand, Likelihood, Marginals, Predictive, label};
use crate::data::Targets;
use crate::rng::Rng;

/// Largest difference between derivatives and differences, relative to the largest derivative of the same kind.
const DERIVATIVE: f64 = 1e-7;
/// Powers that are checked.
const ALPHAS: [f64; 3] = [0.0, 0.4, 1.0];

/// Checks what inference relies on, at random ordinary marginals and at extreme ones:
///
/// 1. derivatives in means, variances and parameters agree with central differences to 1e-7, for every power;
/// 2. class probabilities are in `[0, 1]` and sum to one within `sum_tolerance` (use about 1e-12 unless the likelihood says
///    that its own rule is coarser); predictive variances are positive;
/// 3. the log predictive density is the logarithm of the predicted probability;
/// 4. everything stays finite for means of ±50 and variances 0, 1e-12 and 1e4;
/// 5. predictions of an image do not depend on the others, and its expectations not on those after it;
/// 6. it ignores a level common to all latents, if it says so;
/// 7. power expectations never fall as `alpha` rises and start at expected log densities.
///
/// `targets` are any that the likelihood accepts, at least two of them; the message of an error says what broke and where.
/// A likelihood that samples must differentiate its own average exactly (`Softmax`: the pathwise option).
///
/// ```
/// use convgp::{data::Targets, likelihood::{Gaussian, check_likelihood}};
/// let targets = Targets::real(vec![0.3, -1.2])?;
/// check_likelihood(&Gaussian::new(1.0)?, &[0.5], &targets, 1e-12)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check_likelihood(
    lik: &dyn Likelihood,
    theta: &[f64],
    targets: &Targets,
    sum_tolerance: f64,
) -> Result<(), String> {
    let case = Case { lik, alpha: 0.0, theta, targets };
    case.check_shapes()?;
    let q = case.ordinary_marginals();
    case.check_predictive(&q, sum_tolerance).map_err(|e| format!("at ordinary marginals: {e}"))?;
    for alpha in ALPHAS {
        let case = Case { alpha, ..case };
        let check = || {
            case.check_derivatives(&q)?;
            case.check_rows(&q)?;
            case.check_level(&q)?;
            case.check_extremes()
        };
        check().map_err(|e| if alpha == 0.0 { e } else { format!("with alpha {alpha}: {e}") })?;
    }
    case.check_powers(&q)
}

#[derive(Clone, Copy)]
struct Case<'a> {
    lik: &'a dyn Likelihood,
    alpha: f64,
    theta: &'a [f64],
    targets: &'a Targets,
}

impl Case<'_> {
    fn check_shapes(&self) -> Result<(), String> {
        self.lik.check_targets(self.targets).map_err(|e| e.to_string())?;
        let parameters: usize = self.lik.parameters().iter().map(|p| p.values.len()).sum();
        require(self.theta.len() == parameters, || {
            format!("{} parameter values given, {parameters} declared", self.theta.len())
        })?;
        require(self.targets.len() >= 2, || "at least two targets are needed".into())
    }

    fn ordinary_marginals(&self) -> Marginals {
        let (mut rng, len) = (Rng::new(20_170_901), self.targets.len() * self.lik.latents());
        let mean = (0..len).map(|_| 1.3 * rng.normal()).collect();
        Marginals { mean, var: (0..len).map(|_| 0.3 + 1.5 * rng.uniform()).collect() }
    }

    fn expect(&self, theta: &[f64], q: &Marginals, targets: &Targets) -> Expectations {
        let mut out = Expectations::default();
        out.reset(targets.len(), self.lik.latents(), theta.len());
        self.lik.expect(&Integrand { alpha: self.alpha, theta, q, targets, draw: 3 }, &mut out);
        out
    }

    /// Rows are independent, so one latent of all images is moved at once.
    fn check_derivatives(&self, q: &Marginals) -> Result<(), String> {
        let (images, latents) = (self.targets.len(), self.lik.latents());
        let out = self.expect(self.theta, q, self.targets);
        let (mut mean_diff, mut var_diff) = (vec![0.0; images * latents], vec![0.0; images * latents]);
        for l in 0..latents {
            let moved = |pick: fn(&mut Marginals) -> &mut Vec<f64>, h: f64| {
                let mut q = q.clone();
                pick(&mut q).iter_mut().skip(l).step_by(latents).for_each(|v| *v += h);
                self.expect(self.theta, &q, self.targets).value
            };
            let mean = difference(2e-3, |h| moved(|q| &mut q.mean, h));
            let var = difference(2e-4, |h| moved(|q| &mut q.var, h));
            for n in 0..images {
                (mean_diff[n * latents + l], var_diff[n * latents + l]) = (mean[n], var[n]);
            }
        }
        compare("means", &out.mean_bar, &mean_diff)?;
        compare("variances", &out.var_bar, &var_diff)?;
        let theta_diff: Vec<f64> = (0..self.theta.len()).map(|i| self.theta_difference(i, q)).collect();
        compare("parameters", &out.theta_bar, &theta_diff)
    }

    fn theta_difference(&self, i: usize, q: &Marginals) -> f64 {
        let step = 1e-3 * self.theta[i].abs().max(1e-9);
        difference(step, |h| {
            let mut theta = self.theta.to_vec();
            theta[i] += h;
            vec![self.expect(&theta, q, self.targets).value.iter().sum()]
        })[0]
    }

    fn check_predictive(&self, q: &Marginals, sum_tolerance: f64) -> Result<(), String> {
        let log_p = self.lik.log_predictive(self.theta, q, self.targets);
        let images = self.targets.len();
        require(log_p.len() == images, || format!("{} log densities for {images} images", log_p.len()))?;
        require(log_p.iter().all(|l| l.is_finite()), || format!("log predictive densities {log_p:?}"))?;
        match self.lik.predict(self.theta, q) {
            Predictive::Real { mean, var } => require(
                mean.len() == images
                    && var.len() == images
                    && mean.iter().all(|m| m.is_finite())
                    && positive(&var),
                || format!("predictive means {mean:?} and variances {var:?} for {images} images"),
            ),
            Predictive::Classes { probabilities, classes } => {
                require(probabilities.len() == images * classes, || {
                    format!("{} probabilities, {images} x {classes} expected", probabilities.len())
                })?;
                for (n, p) in probabilities.chunks_exact(classes).enumerate() {
                    check_probabilities(p, sum_tolerance).map_err(|e| format!("image {n}: {e}"))?;
                    let (p, l) = (p[label(self.targets, n)], log_p[n]);
                    require((libm::exp(l) - p).abs() <= 1e-12, || {
                        format!("image {n}: log predictive density {l}, but the predicted probability is {p}")
                    })?;
                }
                Ok(())
            }
        }
    }

    fn check_rows(&self, q: &Marginals) -> Result<(), String> {
        let (latents, whole) = (self.lik.latents(), self.lik.predict(self.theta, q));
        let row = |n: usize| {
            let part = |v: &[f64]| v[n * latents..(n + 1) * latents].to_vec();
            (Marginals { mean: part(&q.mean), var: part(&q.var) }, self.targets.select(&[n]))
        };
        for n in 0..self.targets.len() {
            let alone = self.lik.predict(self.theta, &row(n).0);
            require(alone == predictive_row(&whole, n), || {
                format!("the prediction of image {n} changes when it is alone in its batch")
            })?;
        }
        let (q0, target0) = row(0);
        let (first, all) = (self.expect(self.theta, &q0, &target0), self.expect(self.theta, q, self.targets));
        let same = first.value[0] == all.value[0]
            && first.mean_bar[..] == all.mean_bar[..latents]
            && first.var_bar[..] == all.var_bar[..latents];
        require(same, || "the expectations of the first image depend on the images after it".into())
    }

    fn check_level(&self, q: &Marginals) -> Result<(), String> {
        let raised = Marginals { mean: q.mean.iter().map(|m| m + 3.7).collect(), var: q.var.clone() };
        let [at, above] = [q, &raised].map(|q| self.expect(self.theta, q, self.targets).value);
        let same = at.iter().zip(&above).all(|(a, b)| (a - b).abs() <= 1e-9 * (1.0 + a.abs()));
        require(same || !self.lik.is_shift_invariant(), || {
            format!("expected log densities {at:?} become {above:?} when all latents rise by 3.7")
        })
    }

    fn check_powers(&self, q: &Marginals) -> Result<(), String> {
        let value = |alpha| Case { alpha, ..*self }.expect(self.theta, q, self.targets).value;
        let powers = [0.0, 1e-7, 0.3, 1.0];
        for (low, high) in powers.iter().zip(&powers[1..]) {
            for (n, (a, b)) in value(*low).iter().zip(value(*high)).enumerate() {
                let close = *high > 1e-3 || (a - b).abs() <= 1e-5 * (1.0 + a.abs());
                require(*a <= b + 1e-12 * (1.0 + b.abs()) && close, || {
                    format!("image {n}: the power expectation is {a} with alpha {low} and {b} with {high}")
                })?;
            }
        }
        Ok(())
    }

    fn check_extremes(&self) -> Result<(), String> {
        let len = self.targets.len() * self.lik.latents();
        // Level, alternating, and one latent far above the others; variances all alike or alternating with one.
        let patterns: [fn(usize) -> f64; 4] =
            [|_| 0.0, |_| -50.0, |i| [50.0, -50.0][i % 2], |i| if i % 5 == 3 { 50.0 } else { -50.0 }];
        for (pattern, var) in patterns.iter().flat_map(|p| [0.0, 1e-12, 1e-3, 1e4].map(|v| (p, v))) {
            for other in [var, 1.0] {
                let q = Marginals {
                    mean: (0..len).map(pattern).collect(),
                    var: (0..len).map(|i| if i % 2 == 0 { var } else { other }).collect(),
                };
                let place =
                    || format!("at means {:?}... with variances {var:e}, {other:e}", &q.mean[..len.min(5)]);
                self.check_finite(&q).map_err(|e| format!("{}: {e}", place()))?;
                // A rule of few points need not normalise here; it must still give probabilities.
                self.check_predictive(&q, f64::INFINITY).map_err(|e| format!("{}: {e}", place()))?;
            }
        }
        Ok(())
    }

    fn check_finite(&self, q: &Marginals) -> Result<(), String> {
        let e = self.expect(self.theta, q, self.targets);
        let named = [
            ("expected log densities", &e.value),
            ("derivatives in the means", &e.mean_bar),
            ("derivatives in the variances", &e.var_bar),
            ("derivatives in the parameters", &e.theta_bar),
        ];
        named
            .iter()
            .try_for_each(|(name, v)| require(v.iter().all(|x| x.is_finite()), || format!("{name} {v:?}")))
    }
}

fn require(ok: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if ok { Ok(()) } else { Err(message()) }
}

fn positive(v: &[f64]) -> bool {
    v.iter().all(|x| x.is_finite() && *x > 0.0)
}

fn check_probabilities(p: &[f64], sum_tolerance: f64) -> Result<(), String> {
    require(p.iter().all(|p| (0.0..=1.0 + 1e-12).contains(p)), || format!("probabilities {p:?}"))?;
    let sum: f64 = p.iter().sum();
    require((sum - 1.0).abs() <= sum_tolerance, || format!("probabilities {p:?} sum to {sum}"))
}

fn predictive_row(p: &Predictive, n: usize) -> Predictive {
    match p {
        Predictive::Real { mean, var } => Predictive::Real { mean: vec![mean[n]], var: vec![var[n]] },
        Predictive::Classes { probabilities, classes } => Predictive::Classes {
            probabilities: probabilities[n * classes..(n + 1) * classes].to_vec(),
            classes: *classes,
        },
    }
}

/// Fourth-order central difference of a vector function at 0.
fn difference(h: f64, f: impl Fn(f64) -> Vec<f64>) -> Vec<f64> {
    let (near_up, near_down, far_up, far_down) = (f(h), f(-h), f(2.0 * h), f(-2.0 * h));
    let at = |i: usize| (8.0 * (near_up[i] - near_down[i]) - (far_up[i] - far_down[i])) / (12.0 * h);
    (0..near_up.len()).map(at).collect()
}

fn compare(what: &str, given: &[f64], differences: &[f64]) -> Result<(), String> {
    let scale = differences.iter().fold(0.0, |a: f64, d| a.max(d.abs()));
    for (i, (g, d)) in given.iter().zip(differences).enumerate() {
        // Written so that a NaN fails.
        let close = (g - d).abs() <= DERIVATIVE * scale + 1e-12;
        require(close, || format!("derivative {i} in the {what} is {g:e}, differences give {d:e}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Binary, Logit, ScalarLogDensity};
    use super::*;

    /// A logit with its value and slope off by the given factors.
    #[derive(Debug)]
    struct Broken(f64, f64);
    impl ScalarLogDensity for Broken {
        type Target = bool;
        fn log_density_and_slope(&self, theta: &[f64], f: f64, y: bool) -> (f64, f64) {
            let (value, slope) = Logit.log_density_and_slope(theta, f, y);
            (self.0 * value, self.1 * slope)
        }
    }

    #[test]
    fn a_wrong_slope_and_a_wrong_sum_are_found() {
        let targets = Targets::classes(vec![1, 0, 1], 2).unwrap();
        let verdict = |value, slope| check_likelihood(&Binary(Broken(value, slope)), &[], &targets, 1e-12);
        assert_eq!(verdict(1.0, 1.0), Ok(()));
        assert!(verdict(1.0, 1.0 + 3e-7).unwrap_err().contains("in the means"));
        assert!(verdict(1.1, 1.1).unwrap_err().contains("sum to"));
        assert!(verdict(f64::NAN, 1.0).is_err());
    }

    #[test]
    fn wrong_arguments_are_messages() {
        let (one, real) = (Targets::classes(vec![1], 2).unwrap(), Targets::real(vec![0.0; 3]).unwrap());
        let verdict =
            |theta: &[f64], targets| check_likelihood(&Binary(Logit), theta, targets, 1e-12).unwrap_err();
        assert!(verdict(&[], &one).contains("two targets"));
        assert!(verdict(&[], &real).contains("labels of 2 classes"));
        assert!(verdict(&[1.0], &one).contains("1 parameter values given, 0 declared"));
    }
}
