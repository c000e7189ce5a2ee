//! Each training image as the others see it.

use super::{Model, Wanted, Workspace};
use crate::Result;
use crate::cov::Engine;
use crate::data::{Batch, Dataset};
use crate::likelihood::Marginals;
use crate::params::Params;

/// Images evaluated together.
const CHUNK: usize = 128;
/// Least share of its precision that an image leaves to the others, against rounding.
const LEAST_REST: f64 = 1e-2;

impl Model {
    /// Marginals of chosen training images' latents as they would be had each image by itself not been trained on, `B x L`.
    ///
    /// At its optimum `q` is the prior times one Gaussian factor per image, whose precision is minus twice the derivative
    /// of the image's expected log density in the variance; the factor is divided out. This costs no more than a prediction.
    /// `alpha` is the power of the energy that was maximised, 0 for the bound.
    pub fn leave_one_out<E: Engine>(
        &self,
        engine: &E,
        params: &Params,
        data: &Dataset,
        indices: &[usize],
        alpha: f64,
    ) -> Result<Marginals> {
        self.check_values(params)?;
        let latents = self.likelihood.latents();
        let (mut out, mut ws) = (Marginals::default(), Workspace::<E>::default());
        let mut batch = Batch::empty(data.images().shape());
        for (draw, chunk) in indices.chunks(CHUNK).enumerate() {
            data.write_batch(chunk, &mut batch);
            let wanted = Wanted { alpha, gradient: false, kl: false };
            self.evaluate(engine, params, batch.of(data.len()).at_draw(draw as u64), wanted, &mut ws)?;
            for (i, (&mean, &var)) in ws.marginals.mean.iter().zip(&ws.marginals.var).enumerate() {
                let (n, l) = (i / latents, i % latents);
                let explained = ws.posterior.variance_of_inducing(l, n);
                let precision = (-2.0 * ws.expect.var_bar[i]).max(0.0);
                let without = explained / (1.0 - precision * explained).max(LEAST_REST);
                out.mean.push(mean - without * ws.expect.mean_bar[i]);
                out.var.push(var - explained + without);
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cov::Reference;
    use crate::model::Predictor;
    use crate::rng::Rng;
    use crate::train::testing::{regression, small_spec};
    use crate::variational::Form;

    /// The best `q` for some images of a data set: one whole natural step, exact where noise is Gaussian.
    fn trained(data: &Dataset, indices: &[usize]) -> (Model, Params) {
        let (model, mut values) = Model::new(&small_spec(), Some(data.images()), &mut Rng::new(6)).unwrap();
        model.set_form(Form::Natural, &mut values).unwrap();
        let mut ws = Workspace::default();
        model.elbo_and_grad(&Reference, &values, data.batch(indices).of(indices.len()), &mut ws).unwrap();
        model.natural_step(1.0, Some(f64::INFINITY), &ws, &mut values);
        (model, values)
    }

    #[test]
    fn is_what_training_without_the_image_gives() {
        let data = regression(12, 3);
        let all: Vec<usize> = (0..12).collect();
        let (model, values) = trained(&data, &all);
        let left_out = model.leave_one_out(&Reference, &values, &data, &all, 0.0).unwrap();
        for i in 0..12 {
            let others: Vec<usize> = all.iter().copied().filter(|&j| j != i).collect();
            let (model, values) = trained(&data, &others);
            let predictor = Predictor::new(&model, &Reference, &values).unwrap();
            let expected = predictor.latents(&data.images().select(&[i]).unwrap()).unwrap();
            let (mean, var) = (left_out.mean[i], left_out.var[i]);
            assert!((mean - expected.mean[0]).abs() < 1e-8, "image {i}: {mean}, {}", expected.mean[0]);
            assert!((var - expected.var[0]).abs() < 1e-8, "image {i}: {var}, {}", expected.var[0]);
        }
    }
}
