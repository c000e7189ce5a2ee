//! Likelihoods: what inference asks of `p(y | f)`.
//!
//! Seam 2 of the design. A likelihood sees the marginals of the latents, `q(f_nl) = N(mean, var)`, and gives back the
//! expected log density of each image with its derivatives in mean and variance. Arrays are row-major `B x L`.
//!
//! A new likelihood of one latent is a [`ScalarLogDensity`]; any other implements [`Likelihood`]. [`check_likelihood`] tests
//! either. To be named in a model file it also takes a variant of [`LikelihoodSpec`].

mod batch;
mod bernoulli;
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
pub trait Likelihood: std::fmt::Debug + Send + Sync {
    /// Number of latent functions `L`.
    fn latents(&self) -> usize;

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

    /// Whether these targets fit (kind, number of classes).
    fn check_targets(&self, targets: &Targets) -> Result<(), DataError>;

    /// Fills `out` (already reset) with power expectations `(1 / alpha) log E_q[p(y | f)^alpha]`, `0 <= alpha <= 1`, and
    /// derivatives. At `alpha = 0` they are expected log densities, the limit.
    ///
    /// `draw` numbers the evaluation; likelihoods that sample use it to choose their points, others ignore it.
    fn expect_power(
        &self,
        alpha: f64,
        theta: &[f64],
        q: &Marginals,
        targets: &Targets,
        draw: u64,
        out: &mut Expectations,
    );

    /// Expected log densities.
    fn expect(&self, theta: &[f64], q: &Marginals, targets: &Targets, draw: u64, out: &mut Expectations) {
        self.expect_power(0.0, theta, q, targets, draw, out);
    }

    /// Predictive distribution of `y`.
    fn predict(&self, theta: &[f64], q: &Marginals) -> Predictive;

    /// `log p(y_n | x_n)` under the predictive distribution, one per image.
    fn log_predictive(&self, theta: &[f64], q: &Marginals, targets: &Targets) -> Vec<f64>;
}

/// Refuses targets that are not labels of exactly `classes` classes.
fn check_classes(targets: &Targets, classes: usize) -> Result<(), DataError> {
    match targets {
        Targets::Classes { classes: found, .. } if *found == classes => Ok(()),
        _ => Err(target_kind(targets, format!("labels of {classes} classes"))),
    }
}

/// Refuses targets that are not labels of two classes.
fn check_binary(targets: &Targets) -> Result<(), DataError> {
    check_classes(targets, 2)
}

/// Refuses targets that are not real numbers.
fn check_real(targets: &Targets) -> Result<(), DataError> {
    match targets {
        Targets::Real(_) => Ok(()),
        Targets::Classes { .. } => Err(target_kind(targets, "real numbers".into())),
    }
}

fn target_kind(targets: &Targets, expected: String) -> DataError {
    let found = match targets {
        Targets::Classes { classes, .. } => format!("labels of {classes} classes"),
        Targets::Real(_) => "real numbers".into(),
    };
    DataError::TargetKind { expected, found }
}

/// The label of image `n`.
fn label(targets: &Targets, n: usize) -> usize {
    match targets {
        Targets::Classes { labels, .. } => labels[n] as usize,
        Targets::Real(_) => unreachable!("check_targets admits only labels"),
    }
}
