//! Likelihoods by name: what a model file says about `p(y | f)`.

use super::{
    Binary, Gaussian, Labels, Likelihood, Logit, Probit, RobustMax, Softmax, TargetUnits, Temperature,
    VarianceDerivative,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// What is wrong with a likelihood's settings.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum LikelihoodError {
    #[error("the noise variance is {value}; it must be positive and finite")]
    Variance { value: f64 },
    #[error("targets have offset {offset} and scale {scale}; both must be finite and the scale positive")]
    Units { offset: f64, scale: f64 },
    #[error("the link jitter is {value}; it must be at least 0 and below 0.5")]
    LinkJitter { value: f64 },
    #[error("{classes} class(es) given; a multi-class likelihood needs at least 2")]
    Classes { classes: usize },
    #[error("epsilon is {value}; it must lie strictly between 0 and 1 (1e-3 is usual)")]
    Epsilon { value: f64 },
    #[error("squash is {value}; it must be at least 0 and below 0.5 (1e-6 is usual)")]
    Squash { value: f64 },
    #[error(
        "{samples} samples given; the number must be even and at least 2, as draws come in antithetic pairs"
    )]
    Samples { samples: usize },
    #[error(
        "the inverse temperature is {value}; it must be positive and finite (1 leaves probabilities as they are)"
    )]
    InverseTemperature { value: f64 },
    #[error(
        "`sharpness` is {value}; the temperature of predictions belongs to a fitted model, so leave it out of the spec"
    )]
    Sharpness { value: f64 },
}

/// A likelihood as written in a model file; [`LikelihoodSpec::build`] checks it.
///
/// ```
/// # use convgp::likelihood::LikelihoodSpec;
/// let likelihood = LikelihoodSpec::softmax(10).build()?;
/// assert_eq!(likelihood.latents(), 10);
/// # Ok::<(), convgp::likelihood::LikelihoodError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum LikelihoodSpec {
    /// [`Gaussian`]: regression.
    Gaussian {
        /// Initial noise variance; learned.
        #[serde(default = "noise_variance")]
        variance: f64,
        /// Units of the targets; as they are if not given.
        #[serde(default, skip_serializing_if = "TargetUnits::is_identity")]
        units: TargetUnits,
    },
    /// [`Probit`]: two classes.
    Probit {
        /// `j` in `p = (1 - 2j) Φ(f) + j`.
        #[serde(default)]
        link_jitter: f64,
    },
    /// [`Logit`]: two classes.
    Logit {},
    /// [`Labels`]: `K` classes by regression on labels, for the closed-form solver.
    Labels {
        /// Number of classes `K`.
        classes: usize,
    },
    /// [`RobustMax`]: `K` classes, the paper's choice.
    RobustMax {
        /// Number of classes `K`.
        classes: usize,
        /// Probability that the label is not the largest latent.
        #[serde(default = "epsilon")]
        epsilon: f64,
        /// Whether `epsilon` is a trainable parameter.
        #[serde(default)]
        learn_epsilon: bool,
        /// `s` in `(1 - 2s) Φ + s`.
        #[serde(default = "squash")]
        squash: f64,
    },
    /// [`Softmax`]: `K` classes by quasi-Monte-Carlo.
    Softmax {
        /// Number of classes `K`.
        classes: usize,
        /// Draws per image and evaluation; even.
        #[serde(default = "samples")]
        samples: usize,
        /// Draws per image for prediction; even.
        #[serde(default = "predict_samples")]
        predict_samples: usize,
        /// Seed of the draws.
        #[serde(default)]
        seed: u64,
        /// Estimate of the derivative in the variances.
        #[serde(default)]
        derivative: VarianceDerivative,
        /// Read from files of version 0.1 only, which kept the inverse temperature of a fitted model here.
        #[schemars(skip)]
        #[serde(default, skip_serializing, deserialize_with = "other_than_one")]
        sharpness: Option<f64>,
    },
}

/// A number, if it is there and not 1.
fn other_than_one<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    Ok(Some(f64::deserialize(from)?).filter(|&number| number != 1.0))
}
fn noise_variance() -> f64 {
    0.1
}
fn epsilon() -> f64 {
    1e-3
}
fn squash() -> f64 {
    1e-6
}
fn samples() -> usize {
    32
}
fn predict_samples() -> usize {
    256
}

impl LikelihoodSpec {
    /// Gaussian noise with the usual initial variance.
    pub fn gaussian() -> Self {
        Self::Gaussian { variance: noise_variance(), units: TargetUnits::default() }
    }

    /// The same for targets such as these, which have mean 0 and variance 1 to the model.
    pub fn standardised(y: &[f64]) -> Self {
        Self::Gaussian { variance: noise_variance(), units: TargetUnits::of(y) }
    }

    /// The plain probit.
    pub fn probit() -> Self {
        Self::Probit { link_jitter: 0.0 }
    }

    /// Robust-max with the usual settings.
    pub fn robust_max(classes: usize) -> Self {
        Self::RobustMax { classes, epsilon: epsilon(), learn_epsilon: false, squash: squash() }
    }

    /// Softmax with the usual settings.
    pub fn softmax(classes: usize) -> Self {
        Self::Softmax {
            classes,
            samples: samples(),
            predict_samples: predict_samples(),
            seed: 0,
            derivative: VarianceDerivative::default(),
            sharpness: None,
        }
    }

    /// Takes out the temperature of a model file of version 0.1.
    pub(crate) fn take_temperature(&mut self) -> Result<Option<Temperature>, LikelihoodError> {
        match self {
            Self::Softmax { sharpness, .. } => sharpness.take().map(Temperature::from_inverse).transpose(),
            _ => Ok(None),
        }
    }

    /// The likelihood, or what is wrong with its settings.
    #[rustfmt::skip] // one line per likelihood
    pub fn build(&self) -> Result<Box<dyn Likelihood>, LikelihoodError> {
        Ok(match *self {
            Self::Gaussian { variance, units } => Box::new(Gaussian::new(variance)?.with_units(units)?),
            Self::Probit { link_jitter } => Box::new(Probit::new(link_jitter)?),
            Self::Logit {} => Box::new(Binary(Logit)),
            Self::Labels { classes } => Box::new(Labels::new(classes)?),
            Self::RobustMax { classes, epsilon, learn_epsilon, squash } => Box::new(RobustMax::new(classes, epsilon)?.learn_epsilon(learn_epsilon).with_squash(squash)?),
            Self::Softmax { sharpness: Some(value), .. } => return Err(LikelihoodError::Sharpness { value }),
            Self::Softmax { classes, samples, predict_samples, seed, derivative, .. } => Box::new(Softmax::new(classes)?.with_samples(samples, predict_samples)?.with_seed(seed).with_derivative(derivative)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(toml: &str) -> Result<LikelihoodSpec, toml::de::Error> {
        toml::from_str(toml)
    }

    #[test]
    fn names_and_defaults() {
        for (text, spec) in [
            ("type = 'gaussian'", LikelihoodSpec::gaussian()),
            ("type = 'probit'", LikelihoodSpec::probit()),
            ("type = 'logit'", LikelihoodSpec::Logit {}),
            ("type = 'labels'\nclasses = 4", LikelihoodSpec::Labels { classes: 4 }),
            ("type = 'robust-max'\nclasses = 10", LikelihoodSpec::robust_max(10)),
            ("type = 'softmax'\nclasses = 3", LikelihoodSpec::softmax(3)),
        ] {
            let read = parse(text).unwrap();
            assert_eq!(read, spec);
            let written = toml::to_string(&spec).unwrap();
            assert_eq!(parse(&written).unwrap(), spec, "{written}");
            spec.build().unwrap();
        }
        assert!(parse("type = 'softmax'\nclasses = 3\nderivative = 'pathwise'").is_ok());
        let old = parse("type = 'softmax'\nclasses = 3\nsharpness = 1.0").unwrap();
        assert_eq!(old, LikelihoodSpec::softmax(3), "as version 0.1 wrote it");
    }

    #[test]
    fn likelihoods_say_what_they_are() {
        for (spec, name, classes, gaussian, calibratable) in [
            (LikelihoodSpec::gaussian(), "Gaussian", None, true, false),
            (LikelihoodSpec::probit(), "probit", Some(2), false, false),
            (LikelihoodSpec::Logit {}, "logit", Some(2), false, false),
            (LikelihoodSpec::Labels { classes: 4 }, "label regression", Some(4), true, false),
            (LikelihoodSpec::robust_max(5), "robust-max", Some(5), false, false),
            (LikelihoodSpec::softmax(3), "softmax", Some(3), false, true),
        ] {
            let built = spec.build().unwrap();
            assert_eq!((built.name(), built.classes()), (name, classes));
            assert_eq!((built.gaussian_noise().is_some(), built.calibratable()), (gaussian, calibratable));
        }
        let units = LikelihoodSpec::standardised(&[3.0, 5.0]).build().unwrap().gaussian_noise();
        assert_eq!(units, Some(TargetUnits { offset: 4.0, scale: 1.0 }));
    }

    #[test]
    fn unknown_fields_and_names_are_refused() {
        for text in
            ["type = 'probit'\njitter = 1e-3", "type = 'logit'\nx = 1", "type = 'robust'", "classes = 3"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bad_settings_are_named() {
        for (text, message) in [
            ("type = 'gaussian'\nvariance = -1.0", "noise variance is -1"),
            ("type = 'robust-max'\nclasses = 1", "1 class(es)"),
            ("type = 'robust-max'\nclasses = 3\nepsilon = 1.0", "epsilon is 1"),
            ("type = 'robust-max'\nclasses = 3\nsquash = 0.7", "squash is 0.7"),
            ("type = 'softmax'\nclasses = 3\nsamples = 7", "7 samples"),
            ("type = 'softmax'\nclasses = 3\nsharpness = 2.0", "`sharpness` is 2"),
        ] {
            let error = parse(text).unwrap().build().unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
