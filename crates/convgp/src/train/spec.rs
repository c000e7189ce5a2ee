//! Settings of a training run.

use crate::Model;
use crate::data::{Dataset, Images};
use crate::model::ModelSpec;
use crate::optim::{AdamSpec, Schedule};
use crate::rng::Rng;
use serde::{Deserialize, Serialize};

/// Stream of the generator that draws initial parameters, apart from every other use of the seed.
const INITIAL_STREAM: u64 = 2;

/// A model and how it is trained: what the files in `specs/` hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentSpec {
    /// The model.
    pub model: ModelSpec,
    /// Its training.
    #[serde(default)]
    pub train: TrainSpec,
}

impl ExperimentSpec {
    /// Reads a spec from TOML.
    pub fn from_toml(text: &str) -> crate::Result<Self> {
        Ok(toml::from_str(text)?)
    }

    /// The model with its initial parameters, a function of spec, data and seed.
    pub fn initial_model(&self, data: &Dataset) -> crate::Result<(Model, Vec<f64>)> {
        let (model, values) = self.initial_parameters(data.images())?;
        model.likelihood().check_targets(data.targets())?;
        Ok((model, values))
    }

    /// The same from images alone.
    pub fn initial_parameters(&self, images: &Images) -> crate::Result<(Model, Vec<f64>)> {
        Model::new(&self.model, Some(images), &mut Rng::stream(self.train.seed, INITIAL_STREAM))
    }
}

/// How a model is trained. Every field has a default, so a spec names only what it changes.
///
/// ```
/// let spec: convgp::train::TrainSpec = toml::from_str(r#"
///     steps = 500
///     batch_size = 100
///     adam = { rate = 0.01, schedule = { type = "constant" } }
/// "#)?;
/// assert!(spec.natural.clip && spec.adam.weights == 6.0);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrainSpec {
    /// Images per step; all of them when there are fewer.
    pub batch_size: usize,
    /// Steps to take, which is also what schedules plan with. A run limited by time changes the plan once it knows its
    /// speed: [`Trainer::set_total_steps`](super::Trainer::set_total_steps).
    pub steps: u64,
    /// Seed of the minibatches (the initial parameters have their own).
    pub seed: u64,
    /// Whether minibatches are drawn with replacement (as in the 2017 code) or walk through shuffled epochs.
    pub replacement: bool,
    /// Share of a minibatch drawn by how badly images were explained when last seen, instead of evenly. Images then
    /// count the less the more often they are drawn, so the bound's estimate stays unbiased, with less noise once most
    /// images are explained. Not for likelihoods with parameters of their own.
    pub focus: f64,
    /// What moves the posterior.
    pub q: QStep,
    /// Gradient steps, for everything natural steps do not move.
    pub adam: AdamSpec,
    /// Natural-gradient steps.
    pub natural: NaturalSpec,
    /// Natural form: steps between evaluations of the divergence, which costs a triangular inverse per latent and is
    /// needed for reports only. The other form has it for free, at every step.
    pub report_every: u64,
    /// Whether answers are sharpened at the end of training, see [`sharpness`](super::sharpness()).
    pub sharpen: bool,
    /// What happens when the numbers go wrong.
    pub recovery: RecoverySpec,
}

/// What moves the posterior.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QStep {
    /// Closed-form natural-gradient steps.
    #[default]
    Natural,
    /// The same optimiser as everything else.
    Adam,
}

/// Natural-gradient steps.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NaturalSpec {
    /// Step size, above 0 and at most 1.
    pub gamma: f64,
    /// Factor on it as training goes on.
    pub schedule: Schedule,
    /// Treat positive derivatives in variances as zero, so that precisions stay positive definite. Changes nothing
    /// for log-concave likelihoods; robust-max and the squashed probit need it.
    pub clip: bool,
    /// How far an image may ask a latent to move at once. Images that softmax thinks badly of ask for too much, the more
    /// so the larger the kernel's variance. Includes `clip`. Not for noise on
    /// targets of any size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach: Option<f64>,
}

impl Default for NaturalSpec {
    fn default() -> Self {
        Self {
            gamma: 0.1,
            schedule: Schedule::WarmupCosine { warmup: 20, floor: 0.1 },
            clip: true,
            reach: None,
        }
    }
}

impl NaturalSpec {
    /// What [`Model::natural_step`](crate::Model::natural_step) is to be given.
    pub fn limit(&self) -> Option<f64> {
        self.reach.or(self.clip.then_some(f64::INFINITY))
    }
}

/// What happens when a step fails: parameters go back to the last good ones, moments are forgotten, both step sizes
/// are halved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecoverySpec {
    /// Good steps between copies of the parameters.
    pub snapshot_every: u64,
    /// Halvings in force at the same time before training stops with an error.
    pub tries: u32,
    /// Good steps in a row after which one halving is taken back.
    pub calm: u64,
}

impl Default for RecoverySpec {
    fn default() -> Self {
        Self { snapshot_every: 10, tries: 8, calm: 100 }
    }
}

impl Default for TrainSpec {
    fn default() -> Self {
        Self {
            batch_size: 200,
            steps: 1000,
            seed: 0,
            replacement: false,
            focus: 0.5,
            q: QStep::Natural,
            adam: AdamSpec::default(),
            natural: NaturalSpec::default(),
            report_every: 10,
            sharpen: true,
            recovery: RecoverySpec::default(),
        }
    }
}

/// A run that cannot be started.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum TrainError {
    #[error("`{field}` is {value}; it must be {must}")]
    Setting { field: &'static str, value: f64, must: &'static str },
    #[error("`{field}`: {problem}")]
    Schedule { field: &'static str, problem: &'static str },
    #[error("the saved state does not fit: {what} has {found} numbers, the model and data need {expected}")]
    StateLength { what: &'static str, found: usize, expected: usize },
}

impl TrainSpec {
    /// Whether the numbers make sense.
    pub fn check(&self) -> Result<(), TrainError> {
        let AdamSpec { rate, beta1, beta2, epsilon, kernel, z, weights, likelihood, q, .. } = self.adam;
        let positive = |x: f64| x > 0.0 && x.is_finite();
        let fraction = |x: f64| (0.0..1.0).contains(&x);
        let (batch, every) = (self.batch_size as f64, self.report_every as f64);
        let copies = self.recovery.snapshot_every as f64;
        let reach = self.natural.reach.unwrap_or(f64::INFINITY);
        let rules = [
            ("batch_size", batch, self.batch_size > 0, "at least 1"),
            ("report_every", every, self.report_every > 0, "at least 1"),
            ("recovery.snapshot_every", copies, self.recovery.snapshot_every > 0, "at least 1"),
            ("focus", self.focus, fraction(self.focus), "at least 0 and below 1"),
            ("focus", self.focus, self.focus == 0.0 || !self.replacement, "0 where `replacement` is true"),
            ("natural.gamma", self.natural.gamma, self.natural.gamma <= 1.0, "above 0 and at most 1"),
            ("natural.gamma", self.natural.gamma, positive(self.natural.gamma), "above 0 and at most 1"),
            ("natural.reach", reach, reach > 0.0, "positive"),
            ("adam.rate", rate, positive(rate), "positive"),
            ("adam.epsilon", epsilon, positive(epsilon), "positive"),
            ("adam.beta1", beta1, fraction(beta1), "at least 0 and below 1"),
            ("adam.beta2", beta2, fraction(beta2), "at least 0 and below 1"),
        ];
        let factors = [
            ("adam.kernel", kernel),
            ("adam.z", z),
            ("adam.weights", weights),
            ("adam.likelihood", likelihood),
            ("adam.q", q),
        ];
        let factors = factors.map(|(field, v)| (field, v, v >= 0.0 && v.is_finite(), "at least 0"));
        if let Some(&(field, value, _, must)) = rules.iter().chain(&factors).find(|rule| !rule.2) {
            return Err(TrainError::Setting { field, value, must });
        }
        for (field, s) in [("adam.schedule", self.adam.schedule), ("natural.schedule", self.natural.schedule)]
        {
            if let Some(problem) = s.problem() {
                return Err(TrainError::Schedule { field, problem });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_survive_toml_and_json() {
        let spec =
            TrainSpec { q: QStep::Adam, replacement: true, focus: 0.0, steps: 7, ..TrainSpec::default() };
        assert_eq!(toml::from_str::<TrainSpec>(&toml::to_string(&spec).unwrap()).unwrap(), spec);
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<TrainSpec>(&json).unwrap(), spec);
        assert_eq!(toml::from_str::<TrainSpec>("").unwrap(), TrainSpec::default());
    }

    #[test]
    fn mistakes_are_named() {
        for (text, words) in [
            ("batch_size = 0", "`batch_size` is 0; it must be at least 1"),
            ("focus = 1.0", "`focus` is 1; it must be at least 0 and below 1"),
            ("replacement = true", "`focus` is 0.5; it must be 0 where `replacement` is true"),
            ("natural = { gamma = 1.5 }", "`natural.gamma` is 1.5"),
            ("natural = { reach = 0.0 }", "`natural.reach` is 0; it must be positive"),
            ("adam = { rate = -1.0 }", "`adam.rate` is -1"),
            ("adam = { weights = -0.5 }", "`adam.weights` is -0.5"),
            ("adam = { schedule = { type = 'step-decay', every = 0 } }", "`every` must be"),
            ("recovery = { snapshot_every = 0 }", "recovery.snapshot_every"),
        ] {
            let err = toml::from_str::<TrainSpec>(text).unwrap().check().unwrap_err().to_string();
            assert!(err.contains(words), "{text} gave: {err}");
        }
        assert!(toml::from_str::<TrainSpec>("batchsize = 3").is_err());
        assert!(toml::from_str::<TrainSpec>("natural = { gama = 0.1 }").is_err());
    }
}
