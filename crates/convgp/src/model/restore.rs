//! A model from its spec alone, for numbers that will come from a file.

use super::{InducingInit, Model, ModelSpec};
use crate::Result;
use crate::params::Params;
use crate::rng::Rng;
use crate::views::Whitening;

impl Model {
    /// The structure a spec describes, with placeholder numbers: nothing is taken from training data, whatever the
    /// spec says about initial values.
    pub(crate) fn restore(
        spec: &ModelSpec,
        whitening: &dyn Fn(&str, usize) -> Option<Whitening>,
    ) -> Result<(Self, Params)> {
        let mut plain = spec.clone();
        for c in &mut plain.components {
            c.inducing.init = InducingInit::Uniform;
            c.kernel.replace_median(1.0);
        }
        let (model, params) =
            Self::assemble(&plain, plain.likelihood.build()?, None, Some(whitening), &mut Rng::new(0))?;
        Ok((Self { spec: spec.clone(), ..model }, params))
    }
}
