//! A complete spec on its way to a model.

use super::{Aspect, Decision, PresetError};
use crate::data::Dataset;
use crate::error::InitError;
use crate::model::FIRST_STAGE;
use crate::params::Params;
use crate::train::ExperimentSpec;
use crate::views::{Pair, ViewSpec};
use crate::{Error, Model, Result};

/// Images that natural steps remember, for every inducing input: fewer are mostly noise, more hold the posterior back.
const REMEMBERED: usize = 8;
/// The largest natural step, taken where every step sees all images.
const LARGEST_STEP: f64 = 0.5;

/// A complete spec with its name and how it came about.
#[derive(Debug, Clone)]
pub struct ResolvedConfig {
    /// Model and training.
    pub experiment: ExperimentSpec,
    /// Short name, for folders and files.
    pub name: String,
    /// What was decided for the user.
    pub decisions: Vec<Decision>,
    /// Whether the number of inducing inputs was ours to choose.
    pub free_inducing: bool,
    /// Whether the size of natural steps was.
    pub free_steps: bool,
}

/// What a user sets, whatever the model.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// Inducing inputs of every component.
    pub inducing: Option<usize>,
    /// Height and width of patches.
    pub patch: Option<[usize; 2]>,
    /// Images per step.
    pub batch_size: Option<usize>,
    /// Steps to take.
    pub steps: Option<u64>,
    /// Seed of initial parameters and minibatches.
    pub seed: Option<u64>,
}

impl ResolvedConfig {
    /// Takes over what a user set. What was decided and depends on it follows.
    pub fn apply(&mut self, overrides: &Overrides, data: &Dataset) -> std::result::Result<(), PresetError> {
        let mut patches = false;
        for component in &mut self.experiment.model.components {
            component.inducing.count = overrides.inducing.unwrap_or(component.inducing.count);
            let mut stage = Some(component);
            while let Some(component) = stage {
                if let ViewSpec::Patches { patch, .. } = &mut component.views {
                    *patch = overrides.patch.map_or(*patch, Pair::Each);
                    patches = true;
                }
                stage = component.first_stage.as_deref_mut();
            }
        }
        if overrides.patch.is_some() && !patches {
            return Err(PresetError::NoPatches);
        }
        let train = &mut self.experiment.train;
        train.batch_size = overrides.batch_size.unwrap_or(train.batch_size);
        train.steps = overrides.steps.unwrap_or(train.steps);
        train.seed = overrides.seed.unwrap_or(train.seed);
        self.free_inducing &= overrides.inducing.is_none();
        self.decisions.retain(|decision| match decision.what {
            Aspect::Inducing => overrides.inducing.is_none(),
            Aspect::Patches => overrides.patch.is_none(),
            _ => true,
        });
        self.fit_steps(data);
        Ok(())
    }

    /// Natural steps for so many inducing inputs, images and images per step, where their size is ours to choose.
    pub(super) fn fit_steps(&mut self, data: &Dataset) {
        if !self.free_steps {
            return;
        }
        let ExperimentSpec { model, train } = &mut self.experiment;
        let inducing: usize = model.components.iter().map(|c| c.inducing.count).sum();
        let remembered = (REMEMBERED * inducing).clamp(1, data.len());
        train.natural.gamma = (train.batch_size as f64 / remembered as f64).min(LARGEST_STEP);
        let value =
            format!("natural gradients, steps of {:.2} on {} images", train.natural.gamma, train.batch_size);
        self.decisions.retain(|decision| decision.what != Aspect::Training);
        self.decisions.push(Decision::new(Aspect::Training, value, ""));
    }

    /// The model with its initial parameters. Where the number of inducing inputs was ours to choose and the data have
    /// fewer distinct views, all of them are taken.
    pub fn build(&mut self, data: &Dataset) -> Result<(Model, Params)> {
        loop {
            match self.experiment.initial_model(data) {
                Err(Error::Init(InitError::TooFewViews { component, found, .. }))
                    if self.free_inducing && found > 0 =>
                {
                    let spec = &mut self.experiment.model;
                    let stages = component.matches(FIRST_STAGE).count();
                    let name = &component[..component.len() - stages * FIRST_STAGE.len()];
                    let index = (0..spec.components.len()).find(|&i| spec.component_name(i) == name);
                    let mut named = &mut spec.components[index.expect("the error names a component")];
                    for _ in 0..stages {
                        named = named.first_stage.as_deref_mut().expect("the error names a stage");
                    }
                    named.inducing.count = found;
                    let value = format!("M = {found} of {component}");
                    let why = "all distinct views the data have";
                    self.decisions.push(Decision::new(Aspect::Inducing, value, why));
                }
                other => return other,
            }
        }
    }
}

/// Gives optional fields the values they stand for, so that a saved spec says everything.
pub fn write_out_defaults(experiment: &mut ExperimentSpec) {
    let names: Vec<String> =
        (0..experiment.model.components.len()).map(|i| experiment.model.component_name(i)).collect();
    for (component, name) in experiment.model.components.iter_mut().zip(names) {
        component.name = Some(name);
        component.kernel.write_out_defaults();
    }
}
