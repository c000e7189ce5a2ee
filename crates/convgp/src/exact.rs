//! Exact Gaussian-process regression with the same kernels, for small problems and as a judge of the sparse bound.

use crate::Result;
use crate::cov::{exact_covariance, exact_cross_covariance};
use crate::data::{Batch, Dataset, Images, Targets};
use crate::error::{NumericalError, SpecError};
use crate::likelihood::{Marginals, Predictive};
use crate::linalg::{Cholesky, Mat, dot, norm_squared};
use crate::model::Model;

/// A model's prior conditioned on all training images, without inducing inputs: `y = f(x) + noise`.
///
/// Work: `N^2 P^2 / 2` kernel values and `N^3 / 3` flops, so a few hundred images.
///
/// ```
/// # use convgp::{Model, ModelSpec, data::{Dataset, Images, Pixels, Targets}, rng::Rng};
/// # let spec = ModelSpec::from_toml(r#"
/// #     image = { height = 4, width = 4 }
/// #     likelihood = { type = "gaussian" }
/// #     [[components]]
/// #     views = { type = "patches", patch = [2, 2] }
/// #     kernel = { type = "rbf" }
/// #     inducing = { count = 3 }
/// # "#)?;
/// # let images = Images::new(spec.image, Pixels::F64((0..96).map(|i| f64::from(i * i % 17) / 17.0).collect()))?;
/// # let data = Dataset::new(images, Targets::real(vec![0.1, -0.4, 0.7, 0.2, 0.0, 0.3])?)?;
/// # let (model, params) = Model::new(&spec, Some(data.images()), &mut Rng::new(1))?;
/// use convgp::{cov::Reference, exact::ExactGp, model::Workspace};
///
/// let exact = ExactGp::new(&model, &params, &data)?;
/// let batch = data.batch(&[0, 1, 2, 3, 4, 5]);
/// let bound = model.elbo(&Reference, &params, batch.of(data.len()), &mut Workspace::default())?;
/// assert!(bound.elbo <= exact.log_evidence());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ExactGp<'a> {
    model: &'a Model,
    values: &'a [f64],
    train: Batch,
    /// Factor of `K + noise I`.
    chol: Cholesky,
    /// `chol^{-1} y`.
    whitened: Vec<f64>,
}

impl<'a> ExactGp<'a> {
    /// Conditions on `data`. The likelihood must be Gaussian.
    pub fn new(model: &'a Model, values: &'a [f64], data: &Dataset) -> Result<Self> {
        model.check_images(data.images().shape())?;
        let (noise, y) = noise_and_targets(model, values, data.targets())?;
        let train = Batch::of_images(data.images(), &(0..data.len()).collect::<Vec<_>>());
        let mut sum = Mat::zeros(data.len(), data.len());
        for c in model.components() {
            let k = exact_covariance(c, values, &train);
            sum.data_mut().iter_mut().zip(k.data()).for_each(|(s, k)| *s += k);
        }
        (0..data.len()).for_each(|i| sum[(i, i)] += noise);
        let chol = Cholesky::new(sum).map_err(|e| NumericalError::IndefiniteMatrix {
            matrix: "covariance of the training images",
            row: e.row,
            size: data.len(),
            remedy: "raise the noise variance or drop duplicate images",
        })?;
        let mut whitened = y;
        chol.whiten_vector(&mut whitened);
        Ok(Self { model, values, train, chol, whitened })
    }

    /// `log p(y) = log N(y; 0, K + noise I)`, which no bound exceeds.
    pub fn log_evidence(&self) -> f64 {
        let n = self.whitened.len();
        let constant = 0.5 * n as f64 * libm::log(std::f64::consts::TAU);
        let log_scale = libm::log(self.model.likelihood().gaussian_noise().unwrap_or_default().scale);
        -constant - self.chol.half_log_det() - 0.5 * norm_squared(&self.whitened) - n as f64 * log_scale
    }

    /// Posterior mean and variance of `f` at each image.
    pub fn latents(&self, images: &Images) -> Result<Marginals> {
        self.model.check_images(images.shape())?;
        let mut out = Marginals::default();
        for i in 0..images.count() {
            let new = Batch::of_images(images, &[i]);
            let (mut cross, mut prior) = (Mat::zeros(self.whitened.len(), 1), 0.0);
            for c in self.model.components() {
                let k = exact_cross_covariance(c, self.values, &self.train, &new);
                cross.data_mut().iter_mut().zip(k.data()).for_each(|(s, k)| *s += k);
                prior += exact_covariance(c, self.values, &new)[(0, 0)];
            }
            self.chol.whiten(cross.view_mut());
            out.mean.push(dot(cross.data(), &self.whitened));
            out.var.push((prior - norm_squared(cross.data())).max(0.0));
        }
        Ok(out)
    }

    /// Mean and variance of `y` at each image.
    pub fn predict(&self, images: &Images) -> Result<Predictive> {
        let theta = self.model.likelihood_theta(self.values);
        Ok(self.model.likelihood().predict(theta, &self.latents(images)?))
    }
}

/// Noise variance and real targets as the model sees them, or why closed forms do not apply.
pub(crate) fn noise_and_targets(model: &Model, values: &[f64], targets: &Targets) -> Result<(f64, Vec<f64>)> {
    let likelihood = model.likelihood();
    let (Some(units), None) = (likelihood.gaussian_noise(), likelihood.classes()) else {
        return Err(SpecError::CollapsedLikelihood.into());
    };
    likelihood.check_targets(targets)?;
    match targets {
        Targets::Real(y) => {
            Ok((model.likelihood_theta(values)[0], y.iter().map(|&y| units.standardise(y)).collect()))
        }
        Targets::Classes { .. } => Err(SpecError::CollapsedLikelihood.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::testing::{regression, small_spec};

    #[test]
    fn one_image_is_worked_out_by_hand() {
        let several = regression(6, 3);
        let data = several.select(&[2]).unwrap();
        let (model, values) =
            crate::Model::new(&small_spec(), Some(several.images()), &mut crate::rng::Rng::new(1)).unwrap();
        let gp = ExactGp::new(&model, &values, &data).unwrap();
        let one = Batch::of_images(data.images(), &[0]);
        let k: f64 = model.components().iter().map(|c| exact_covariance(c, &values, &one)[(0, 0)]).sum();
        let cross: f64 =
            model.components().iter().map(|c| exact_cross_covariance(c, &values, &one, &one)[(0, 0)]).sum();
        let (noise, y) = noise_and_targets(&model, &values, data.targets()).unwrap();
        let s = k + noise;
        let evidence = -0.5 * (std::f64::consts::TAU * s).ln() - 0.5 * y[0] * y[0] / s;
        assert!((gp.log_evidence() - evidence).abs() < 1e-12);
        let f = gp.latents(data.images()).unwrap();
        assert!((f.mean[0] - cross * y[0] / s).abs() < 1e-12);
        assert!((f.var[0] - (k - cross * cross / s)).abs() < 1e-12);
    }

    #[test]
    fn observed_places_are_known_better_than_new_ones() {
        let (data, other) = (regression(12, 3), regression(5, 8));
        let (model, values) =
            crate::Model::new(&small_spec(), Some(data.images()), &mut crate::rng::Rng::new(1)).unwrap();
        let gp = ExactGp::new(&model, &values, &data).unwrap();
        let Predictive::Real { mean, var } = gp.predict(data.images()).unwrap() else { panic!("regression") };
        assert!(mean.iter().all(|m| m.is_finite()) && var.iter().all(|v| *v > 0.0));
        let sum = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let (seen, unseen) = (gp.latents(data.images()).unwrap(), gp.latents(other.images()).unwrap());
        assert!(sum(&seen.var) < sum(&unseen.var));
    }

    #[test]
    fn classes_have_no_closed_form() {
        let data = regression(4, 0);
        let spec =
            crate::ModelSpec { likelihood: crate::likelihood::LikelihoodSpec::probit(), ..small_spec() };
        let (model, values) =
            crate::Model::new(&spec, Some(data.images()), &mut crate::rng::Rng::new(1)).unwrap();
        assert!(matches!(
            ExactGp::new(&model, &values, &data),
            Err(crate::Error::Spec(SpecError::CollapsedLikelihood))
        ));
    }
}
