//! A spec that was chosen, on its way to a model.

use super::PresetError;
use crate::data::Dataset;
use crate::error::InitError;
use crate::kernel::{KernelSpec, Lengthscale};
use crate::train::ExperimentSpec;
use crate::views::{Pair, ViewSpec};
use crate::{Error, Model, Result};

/// Images that natural steps remember, for every inducing input: fewer are mostly noise, more hold the posterior back.
const REMEMBERED: usize = 8;
/// The largest natural step, taken where every step sees all images.
const LARGEST_STEP: f64 = 0.5;

/// A complete spec with its name and how it came about.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Model and training.
    pub experiment: ExperimentSpec,
    /// Short name, for folders and files.
    pub name: String,
    /// What was chosen, and why.
    pub reasons: Vec<String>,
    /// Whether the number of inducing inputs was ours to choose.
    pub free_inducing: bool,
    /// Whether the size of natural steps was.
    pub free_steps: bool,
}

/// What a user settles, whatever the model.
#[derive(Debug, Clone, Default)]
pub struct Settled {
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

impl Chosen {
    /// Takes over what a user settled. What was chosen and depends on it follows.
    pub fn settle(&mut self, settled: &Settled, data: &Dataset) -> std::result::Result<(), PresetError> {
        let mut patches = false;
        for component in &mut self.experiment.model.components {
            component.inducing.count = settled.inducing.unwrap_or(component.inducing.count);
            if let ViewSpec::Patches { patch, .. } = &mut component.views {
                *patch = settled.patch.map_or(*patch, Pair::Each);
                patches = true;
            }
        }
        if settled.patch.is_some() && !patches {
            return Err(PresetError::NoPatches);
        }
        let train = &mut self.experiment.train;
        train.batch_size = settled.batch_size.unwrap_or(train.batch_size);
        train.steps = settled.steps.unwrap_or(train.steps);
        train.seed = settled.seed.unwrap_or(train.seed);
        self.free_inducing &= settled.inducing.is_none();
        self.reasons.retain(|reason| {
            let known = |what: &str, settled: bool| settled && reason.starts_with(what);
            !known("inducing", settled.inducing.is_some()) && !known("patches", settled.patch.is_some())
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
        const WHAT: &str = "training: natural gradients";
        self.reasons.retain(|reason| !reason.starts_with(WHAT));
        self.reasons
            .push(format!("{WHAT}, steps of {:.2} on {} images", train.natural.gamma, train.batch_size));
    }

    /// The model with its initial parameters. Where the number of inducing inputs was ours to choose and the data have
    /// fewer distinct views, all of them are taken.
    pub fn build(&mut self, data: &Dataset) -> Result<(Model, Vec<f64>)> {
        loop {
            match self.experiment.initial_model(data) {
                Err(Error::Init(InitError::TooFewViews { component, found, .. }))
                    if self.free_inducing && found > 0 =>
                {
                    let spec = &mut self.experiment.model;
                    let index = (0..spec.components.len()).find(|&i| spec.component_name(i) == component);
                    spec.components[index.expect("the error names a component")].inducing.count = found;
                    self.reasons.push(format!("{component}: M = {found}, all distinct views the data have"));
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
        write_out_kernel(&mut component.kernel);
    }
}

fn write_out_kernel(kernel: &mut KernelSpec) {
    if !kernel.terms.is_empty() {
        return kernel.terms.iter_mut().for_each(write_out_kernel);
    }
    kernel.variance.get_or_insert(1.0);
    kernel.lengthscale.get_or_insert(Lengthscale::default());
    if ["additive", "channels"].contains(&kernel.kind.as_str()) {
        kernel.of.get_or_insert_with(|| "rbf".into());
    }
}
