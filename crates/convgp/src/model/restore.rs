//! A model from its spec alone, for numbers that will come from a file.

use super::{ComponentSpec, InducingInit, Model, ModelSpec};
use crate::Result;
use crate::params::Params;
use crate::rng::Rng;

impl Model {
    /// The structure a spec describes, with placeholder numbers: nothing is taken from training data, whatever the
    /// spec says about initial values.
    pub(crate) fn restore(
        spec: &ModelSpec,
        saved: &dyn Fn(&str) -> Option<Vec<f64>>,
    ) -> Result<(Self, Params)> {
        let mut plain = spec.clone();
        plain.components.iter_mut().for_each(take_nothing);
        let (model, params) =
            Self::assemble(&plain, plain.likelihood.build()?, None, Some(saved), &mut Rng::new(0))?;
        Ok((Self { spec: spec.clone(), ..model }, params))
    }
}

/// Replaces what would be taken from training data.
fn take_nothing(c: &mut ComponentSpec) {
    c.inducing.init = InducingInit::Uniform;
    c.kernel.replace_median(1.0);
    c.first_stage.iter_mut().for_each(|first| take_nothing(first));
}
