//! A model from its spec alone, for numbers that will come from a file.

use super::{InducingInit, Model, ModelSpec};
use crate::Result;
use crate::error::SpecError;
use crate::kernel::{KernelSpec, Lengthscale};
use crate::rng::Rng;
use crate::variational::Form;

impl Model {
    /// The structure a spec describes, with placeholder numbers: nothing is taken from training data, whatever the
    /// spec says about initial values.
    pub(crate) fn restore(spec: &ModelSpec) -> Result<(Self, Vec<f64>)> {
        let mut plain = spec.clone();
        for c in &mut plain.components {
            c.inducing.init = InducingInit::Uniform;
            without_median(&mut c.kernel);
        }
        let (mut model, values) = Self::new(&plain, None, &mut Rng::new(0))?;
        model.spec = spec.clone();
        Ok((model, values))
    }

    /// Says which form the numbers of `q` are in, without rewriting them.
    pub(crate) fn assume_form(&mut self, form: Form) -> Result<()> {
        if form == Form::Natural && !self.variational.whitened() {
            return Err(SpecError::NaturalUnwhitened.into());
        }
        self.variational.assume_form(form, &mut self.layout);
        Ok(())
    }
}

fn without_median(kernel: &mut KernelSpec) {
    if let Some(Lengthscale::Named(_)) = kernel.lengthscale {
        kernel.lengthscale = Some(Lengthscale::One(1.0));
    }
    kernel.terms.iter_mut().for_each(without_median);
}
