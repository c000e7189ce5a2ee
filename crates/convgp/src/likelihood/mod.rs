//! Likelihoods: what inference asks of `p(y | f)`.
//!
//! Seam 2 of the design. A likelihood sees the marginals of the latents, `q(f_nl) = N(mean, var)`, and gives back the
//! expected log density of each image with its derivatives in mean and variance. Arrays are row-major `B x L`.
//!
//! A new likelihood of one latent is a [`ScalarLogDensity`]; any other implements [`Likelihood`]. `check_likelihood`
//! (feature `testing`) tests either. To be named in a model file it also takes a variant of [`LikelihoodSpec`].

mod batch;
mod bernoulli;
#[cfg(any(test, feature = "testing"))]
mod contract;
mod draws;
mod gaussian;
mod labels;
mod power;
mod quadrature;
mod quantile;
mod robustmax;
mod rows;
mod samples;
mod scalar;
mod softmax;
mod spec;
pub mod special;
mod temperature;

pub use bernoulli::{Logit, Probit};
#[cfg(any(test, feature = "testing"))]
pub use contract::check_likelihood;
pub use gaussian::{Gaussian, TargetUnits};
pub use labels::Labels;
pub(crate) use labels::log_softmax;
pub use quadrature::{GaussHermite, POINTS};
pub use quantile::normal_quantile;
pub use robustmax::RobustMax;
pub use scalar::{Binary, ConditionalMoments, Real, ScalarLogDensity, expect_scalar};
pub use softmax::{Softmax, VarianceDerivative};
pub use spec::{LikelihoodError, LikelihoodSpec};
pub use temperature::Temperature;

use crate::data::{DataError, Targets};
use crate::params::ParamInit;

/// Marginals of `B` images and `L` latents, row-major `B x L`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Marginals {
    /// Means.
    pub mean: Vec<f64>,
    /// Variances, never negative.
    pub var: Vec<f64>,
}

/// What an expectation is taken of: `(1 / alpha) log E_q[p(y | f)^alpha]`, `0 <= alpha <= 1`. At `alpha = 0` it is the
/// expected log density, the limit.
#[derive(Debug, Clone, Copy)]
pub struct Integrand<'a> {
    /// The power.
    pub alpha: f64,
    /// Values of [`Likelihood::parameters`].
    pub theta: &'a [f64],
    /// Marginals of the latents.
    pub q: &'a Marginals,
    /// One target per image.
    pub targets: &'a Targets,
    /// Number of the evaluation. Likelihoods that sample choose their points by it, others ignore it.
    pub draw: u64,
}

impl<'a> Integrand<'a> {
    /// Log densities at evaluation 0.
    pub fn new(theta: &'a [f64], q: &'a Marginals, targets: &'a Targets) -> Self {
        Self { alpha: 0.0, theta, q, targets, draw: 0 }
    }
}

/// `E_q[log p(y_n | f_n)]`, or its power form, and derivatives; not scaled by `N / B`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expectations {
    /// One value per image.
    pub value: Vec<f64>,
    /// Derivatives in the means, `B x L`.
    pub mean_bar: Vec<f64>,
    /// Derivatives in the variances, `B x L`.
    pub var_bar: Vec<f64>,
    /// Derivatives of the sum over images in the likelihood's own parameters.
    pub theta_bar: Vec<f64>,
}

impl Expectations {
    /// Makes room for `images x latents` results and zeroes them, without allocating when the size is unchanged.
    pub fn reset(&mut self, images: usize, latents: usize, parameters: usize) {
        for (v, n) in [
            (&mut self.value, images),
            (&mut self.mean_bar, images * latents),
            (&mut self.var_bar, images * latents),
            (&mut self.theta_bar, parameters),
        ] {
            v.clear();
            v.resize(n, 0.0);
        }
    }
}

/// What a model says about `y` at new images.
#[derive(Debug, Clone, PartialEq)]
pub enum Predictive {
    /// Class probabilities, row-major `B x K`, rows summing to one up to the likelihood's own rounding.
    Classes {
        /// Probabilities.
        probabilities: Vec<f64>,
        /// Number of classes `K`.
        classes: usize,
    },
    /// Mean and variance of a real target.
    Real {
        /// `E[y]`, one per image.
        mean: Vec<f64>,
        /// `Var[y]`, one per image.
        var: Vec<f64>,
    },
}

/// A conditional density of targets given latent values.
///
/// `theta` are the current values of [`Likelihood::parameters`], in order. Implementations must not panic for any
/// finite marginals; `var` may be zero.
///
/// ```
/// use convgp::{data::Targets, likelihood::LikelihoodSpec};
///
/// let likelihood = LikelihoodSpec::softmax(3).build()?;
/// assert_eq!((likelihood.name(), likelihood.latents(), likelihood.classes()), ("softmax", 3, Some(3)));
/// assert!(likelihood.check_targets(&Targets::real(vec![0.5])?).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Likelihood: std::fmt::Debug + Send + Sync {
    /// What reports call it.
    fn name(&self) -> &'static str {
        "custom"
    }

    /// Number of latent functions `L`.
    fn latents(&self) -> usize;

    /// Number of classes of its targets; none where targets are real numbers.
    fn classes(&self) -> Option<usize>;

    /// The likelihood's own parameters.
    fn parameters(&self) -> Vec<ParamInit> {
        Vec::new()
    }

    /// Whether nothing changes when one number is added to all latents of an image.
    fn is_shift_invariant(&self) -> bool {
        false
    }

    /// The same likelihood with predicted probabilities at another temperature; none where that has no meaning.
    /// Expectations stay as they are.
    fn at_temperature(&self, _temperature: Temperature) -> Option<Box<dyn Likelihood>> {
        None
    }

    /// Whether probabilities can be had at another temperature.
    fn calibratable(&self) -> bool {
        self.at_temperature(Temperature::ONE).is_some()
    }

    /// Units of targets whose noise is Gaussian with variance `theta[0]` in these units; none for other noise. Closed
    /// forms ask for it.
    fn gaussian_noise(&self) -> Option<TargetUnits> {
        None
    }

    /// Whether these targets fit (kind, number of classes).
    fn check_targets(&self, targets: &Targets) -> Result<(), DataError> {
        let kind = |classes: Option<usize>| match classes {
            Some(classes) => format!("labels of {classes} classes"),
            None => "real numbers".into(),
        };
        let found = match targets {
            Targets::Classes { classes, .. } => Some(*classes),
            Targets::Real(_) => None,
        };
        match self.classes() {
            expected if expected == found => Ok(()),
            expected => Err(DataError::TargetKind { expected: kind(expected), found: kind(found) }),
        }
    }

    /// Fills `out` (already reset) with the power expectations of each image and their derivatives.
    fn expect(&self, of: &Integrand, out: &mut Expectations);

    /// Predictive distribution of `y`.
    fn predict(&self, theta: &[f64], q: &Marginals) -> Predictive;

    /// `log p(y_n | x_n)` under the predictive distribution, one per image.
    fn log_predictive(&self, theta: &[f64], q: &Marginals, targets: &Targets) -> Vec<f64>;
}

/// The label of image `n`.
fn label(targets: &Targets, n: usize) -> usize {
    match targets {
        Targets::Classes { labels, .. } => labels[n] as usize,
        Targets::Real(_) => unreachable!("check_targets admits only labels"),
    }
}
