//! Settings of a training run.

use crate::Model;
use crate::data::{Dataset, Images};
use crate::model::{ModelSpec, Weights};
use crate::objective::{ALPHA, Objective};
use crate::optim::{AdamSpec, Schedule};
use crate::params::{ParamError, Params};
use crate::rng::Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Stream of the generator that draws initial parameters, apart from every other use of the seed.
const INITIAL_STREAM: u64 = 2;

/// A model and how it is trained: what a spec file holds.
///
/// Files from before [`TrainSpec::frozen`] held parameters fixed by a rate factor of zero; such factors are read as names in
/// `frozen`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct ExperimentSpec {
    /// The model.
    pub model: ModelSpec,
    /// Its training.
    pub train: TrainSpec,
}

/// An experiment as it stands in a file.
#[derive(Deserialize)]
#[serde(rename = "ExperimentSpec", deny_unknown_fields)]
struct Written {
    model: ModelSpec,
    #[serde(default)]
    train: TrainSpec,
}

impl From<Written> for ExperimentSpec {
    fn from(Written { model, mut train }: Written) -> Self {
        train.freeze_zero_rates(&model);
        Self { model, train }
    }
}

impl ExperimentSpec {
    /// Reads a spec from TOML.
    pub fn from_toml(text: &str) -> crate::Result<Self> {
        Ok(toml::from_str(text)?)
    }

    /// The model with its initial parameters, a function of spec, data and seed.
    pub fn initial_model(&self, data: &Dataset) -> crate::Result<(Model, Params)> {
        let (model, params) = self.initial_parameters(data.images())?;
        model.likelihood().check_targets(data.targets())?;
        Ok((model, params))
    }

    /// The same from images alone.
    pub fn initial_parameters(&self, images: &Images) -> crate::Result<(Model, Params)> {
        let rng = &mut Rng::stream(self.train.seed, INITIAL_STREAM);
        let (model, mut params) = Model::new(&self.model, Some(images), rng)?;
        for (name, &number) in &self.train.initial {
            let len = params.get(name)?.len();
            params.set(name, &vec![number; len])?;
        }
        self.train.freeze(&mut params)?;
        Ok((model, params))
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
    /// Fraction of a minibatch drawn by importance: how badly images were explained when last seen. Images then
    /// count the less the more often they are drawn, so the bound's estimate stays unbiased, with less noise once most
    /// images are explained. Not for likelihoods with parameters of their own.
    #[serde(alias = "focus")]
    pub importance_fraction: f64,
    /// What is maximised: the bound, or an energy.
    #[serde(skip_serializing_if = "Objective::is_bound")]
    pub objective: Objective,
    /// Initial values by parameter name, such as `"conv.kernel.variance" = 500.0`, in place of those the model starts with.
    /// Where a parameter has several numbers, all of them get the value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub initial: BTreeMap<String, f64>,
    /// Parameters that keep their initial values: names, or beginnings of names up to a dot, such as `conv.kernel`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frozen: Vec<String>,
    /// What moves the posterior.
    pub q: QStep,
    /// Gradient steps, for everything natural steps do not move.
    pub adam: AdamSpec,
    /// Natural-gradient steps.
    pub natural: NaturalSpec,
    /// Natural form: steps between evaluations of the divergence, which costs a triangular inverse per latent and is
    /// needed for reports only. The other form has it for free, at every step.
    pub report_every: u64,
    /// Whether the temperature of predicted probabilities is fitted at the end of training, see
    /// [`fit_temperature`](super::fit_temperature()).
    #[serde(alias = "sharpen")]
    pub fit_temperature: bool,
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
    /// Trust radius: how far one image may ask a latent to move in one step. Images that softmax thinks badly of ask for too much, the more
    /// so the larger the kernel's variance. Includes `clip`. Not for noise on
    /// targets of any size.
    #[serde(skip_serializing_if = "Option::is_none", alias = "reach")]
    pub trust_radius: Option<f64>,
}

impl Default for NaturalSpec {
    fn default() -> Self {
        Self {
            gamma: 0.1,
            schedule: Schedule::WarmupCosine { warmup: 20, floor: 0.1 },
            clip: true,
            trust_radius: None,
        }
    }
}

impl NaturalSpec {
    /// What [`Model::natural_step`](crate::Model::natural_step) is to be given.
    pub fn limit(&self) -> Option<f64> {
        self.trust_radius.or(self.clip.then_some(f64::INFINITY))
    }
}

/// What happens when a step fails: parameters go back to the last snapshot, moments are forgotten, and the steps back off:
/// both sizes are halved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecoverySpec {
    /// Successful steps between copies of the parameters.
    pub snapshot_every: u64,
    /// Back-offs in force at the same time before training stops with an error.
    pub tries: u32,
    /// Successful steps in a row after which one back-off is taken back.
    #[serde(alias = "calm")]
    pub stable_steps: u64,
}

impl Default for RecoverySpec {
    fn default() -> Self {
        Self { snapshot_every: 10, tries: 8, stable_steps: 100 }
    }
}

impl Default for TrainSpec {
    fn default() -> Self {
        Self {
            batch_size: 200,
            steps: 1000,
            seed: 0,
            replacement: false,
            importance_fraction: 0.5,
            objective: Objective::default(),
            initial: BTreeMap::new(),
            frozen: Vec::new(),
            q: QStep::Natural,
            adam: AdamSpec::default(),
            natural: NaturalSpec::default(),
            report_every: 10,
            fit_temperature: true,
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
    #[error(
        "`objective.type` is \"tightened-bound\", which only collapsed training has; use \"bound\" or \"power-ep\""
    )]
    CollapsedOnly,
    #[error("the saved state does not fit: {what} has {found} numbers, the model and data need {expected}")]
    StateLength { what: &'static str, found: usize, expected: usize },
}

/// What a factor on the rate must be.
const RATE_FACTOR: &str =
    "positive; to hold parameters fixed, name them in `frozen`, such as [\"conv.kernel\"]";

impl TrainSpec {
    /// Freezes the parameters of [`TrainSpec::frozen`].
    pub(super) fn freeze(&self, params: &mut Params) -> Result<(), ParamError> {
        self.frozen.iter().try_for_each(|name| params.set_trainable(name, false))
    }

    /// Turns rate factors of zero into names in `frozen`.
    fn freeze_zero_rates(&mut self, model: &ModelSpec) {
        let AdamSpec { kernel, z, weights, likelihood, q, .. } = AdamSpec::default();
        let adam = &mut self.adam;
        let mut is_zero = |factor: fn(&mut AdamSpec) -> &mut f64, usual: f64| {
            let zero = *factor(adam) == 0.0;
            if zero {
                *factor(adam) = usual;
            }
            zero
        };
        let (kernel, z) = (is_zero(|a| &mut a.kernel, kernel), is_zero(|a| &mut a.z, z));
        let (weights, q) = (is_zero(|a| &mut a.weights, weights), is_zero(|a| &mut a.q, q));
        let likelihood = is_zero(|a| &mut a.likelihood, likelihood);
        let mut freeze = |fixed: bool, name: String| {
            if fixed && !self.frozen.contains(&name) {
                self.frozen.push(name);
            }
        };
        for (i, c) in model.components.iter().enumerate() {
            let name = model.component_name(i);
            freeze(kernel, format!("{name}.kernel"));
            freeze(kernel && c.white.is_some(), format!("{name}.white"));
            freeze(weights && c.weights != Weights::Ones, format!("{name}.weights"));
            freeze(z, format!("{name}.z"));
        }
        let parameters = model.likelihood.build().is_ok_and(|l| !l.parameters().is_empty());
        freeze(likelihood && parameters, "likelihood".into());
        freeze(q && self.q == QStep::Adam, "q".into());
    }

    /// Whether the numbers make sense.
    pub fn check(&self) -> Result<(), TrainError> {
        let AdamSpec { rate, beta1, beta2, epsilon, kernel, z, weights, likelihood, q, .. } = self.adam;
        let positive = |x: f64| x > 0.0 && x.is_finite();
        let fraction = |x: f64| (0.0..1.0).contains(&x);
        let (batch, every) = (self.batch_size as f64, self.report_every as f64);
        let copies = self.recovery.snapshot_every as f64;
        let (importance, even) = (self.importance_fraction, self.importance_fraction == 0.0);
        let radius = self.natural.trust_radius.unwrap_or(f64::INFINITY);
        let alpha = self.objective.alpha();
        let rules = [
            ("objective.alpha", alpha, self.objective.has_valid_alpha(), ALPHA),
            ("batch_size", batch, self.batch_size > 0, "at least 1"),
            ("report_every", every, self.report_every > 0, "at least 1"),
            ("recovery.snapshot_every", copies, self.recovery.snapshot_every > 0, "at least 1"),
            ("importance_fraction", importance, fraction(importance), "at least 0 and below 1"),
            ("importance_fraction", importance, even || !self.replacement, "0 where `replacement` is true"),
            ("natural.gamma", self.natural.gamma, self.natural.gamma <= 1.0, "above 0 and at most 1"),
            ("natural.gamma", self.natural.gamma, positive(self.natural.gamma), "above 0 and at most 1"),
            ("natural.trust_radius", radius, radius > 0.0, "positive"),
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
        let factors = factors.map(|(field, v)| (field, v, positive(v), RATE_FACTOR));
        if self.objective == (Objective::TightenedBound {}) {
            return Err(TrainError::CollapsedOnly);
        }
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
        let spec = TrainSpec {
            q: QStep::Adam,
            objective: Objective::PowerEp { alpha: 0.5 },
            replacement: true,
            importance_fraction: 0.0,
            steps: 7,
            ..TrainSpec::default()
        };
        assert_eq!(toml::from_str::<TrainSpec>(&toml::to_string(&spec).unwrap()).unwrap(), spec);
        let json = serde_json::to_string(&spec).unwrap();
        assert_eq!(serde_json::from_str::<TrainSpec>(&json).unwrap(), spec);
        assert_eq!(toml::from_str::<TrainSpec>("").unwrap(), TrainSpec::default());
    }

    #[test]
    fn rates_of_zero_in_old_files_are_read_as_frozen() {
        let text = |train: &str| {
            format!(
                "[model]\nimage = {{ height = 5, width = 5 }}\nlikelihood = {{ type = 'gaussian' }}\n\
                 [[model.components]]\nname = 'conv'\nviews = {{ type = 'patches', patch = 3 }}\nwhite = 0.1\n\
                 kernel = {{ type = 'rbf' }}\ninducing = {{ count = 2 }}\n[train]\n{train}"
            )
        };
        let read = |train: &str| ExperimentSpec::from_toml(&text(train)).unwrap().train;
        let old = read("adam = { kernel = 0.0, z = 0.0, weights = 0.0, likelihood = 0.0, q = 0.0 }");
        let frozen = ["conv.kernel", "conv.white", "conv.z", "likelihood"].map(String::from).to_vec();
        assert_eq!(old, TrainSpec { frozen, ..TrainSpec::default() });
        assert!(read("q = 'adam'\nadam = { q = 0.0 }").frozen == ["q"]);
    }

    #[test]
    fn old_names_of_fields_are_read() {
        let old = "focus = 0.25\nsharpen = false\nnatural = { reach = 3.0 }\nrecovery = { calm = 7 }";
        let new: TrainSpec = toml::from_str(old).unwrap();
        assert_eq!((new.importance_fraction, new.fit_temperature), (0.25, false));
        assert_eq!((new.natural.trust_radius, new.recovery.stable_steps), (Some(3.0), 7));
        assert_eq!(toml::from_str::<TrainSpec>(&toml::to_string(&new).unwrap()).unwrap(), new);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, words) in [
            ("batch_size = 0", "`batch_size` is 0; it must be at least 1"),
            ("importance_fraction = 1.0", "`importance_fraction` is 1; it must be at least 0 and below 1"),
            ("replacement = true", "`importance_fraction` is 0.5; it must be 0 where `replacement` is true"),
            ("natural = { gamma = 1.5 }", "`natural.gamma` is 1.5"),
            ("natural = { trust_radius = 0.0 }", "`natural.trust_radius` is 0; it must be positive"),
            ("adam = { rate = -1.0 }", "`adam.rate` is -1"),
            ("adam = { weights = -0.5 }", "`adam.weights` is -0.5"),
            (
                "adam = { z = 0.0 }",
                "`adam.z` is 0; it must be positive; to hold parameters fixed, name them in `frozen`",
            ),
            ("adam = { schedule = { type = 'step-decay', every = 0 } }", "`every` must be"),
            ("recovery = { snapshot_every = 0 }", "recovery.snapshot_every"),
            (
                "objective = { type = 'power-ep', alpha = 0.0 }",
                "`objective.alpha` is 0; it must be above 0 and at most 1",
            ),
            ("objective = { type = 'power-ep', alpha = 1.5 }", "`objective.alpha` is 1.5"),
            ("objective = { type = 'tightened-bound' }", "only collapsed training"),
        ] {
            let err = toml::from_str::<TrainSpec>(text).unwrap().check().unwrap_err().to_string();
            assert!(err.contains(words), "{text} gave: {err}");
        }
        assert!(toml::from_str::<TrainSpec>("batchsize = 3").is_err());
        assert!(toml::from_str::<TrainSpec>("natural = { gama = 0.1 }").is_err());
    }
}
