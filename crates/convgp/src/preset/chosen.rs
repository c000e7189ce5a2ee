//! A spec that was chosen, on its way to a model.

use crate::data::Dataset;
use crate::error::InitError;
use crate::kernel::{KernelSpec, Lengthscale};
use crate::train::ExperimentSpec;
use crate::{Error, Model, Result};

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
}

impl Chosen {
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
