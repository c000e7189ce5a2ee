//! Prediction from frozen parameters.

use super::Model;
use crate::Result;
use crate::component::ImageNorm;
use crate::cov::{Cov, Engine, Need, exact_cross_covariance};
use crate::data::{Batch, Dataset, Images};
use crate::error::NumericalError;
use crate::likelihood::{Likelihood, Marginals, Predictive, Temperature};
use crate::linalg::{Accumulate, Cholesky, CholeskyScratch, Mat, gemm, norm_squared};
use crate::params::{Form, Params};
use crate::rng::Rng;
use crate::variational::PosteriorScratch;
use std::borrow::Cow;

/// Images that go through covariances and posterior together.
const CHUNK: usize = 128;
/// Chunks of the posterior are filled up with zeros to a multiple of this: products of a narrower or odd width may
/// round differently.
const COLUMNS: usize = 32;

/// A model frozen at one parameter vector: `Kuu` is factorised once, images stream through in chunks. An image's
/// answer does not depend on which others are in its chunk.
#[derive(Debug)]
pub struct Predictor<'a, E: Engine> {
    pub(crate) model: &'a Model,
    pub(crate) engine: &'a E,
    /// In covariance form: natural parameters would have to be factorised for every block.
    pub(crate) params: Cow<'a, Params>,
    /// In place of the model's likelihood, where predictions are tempered.
    tempered: Option<Box<dyn Likelihood>>,
    chol: Vec<Mat>,
}

/// Buffers of one pass over the data.
struct Pass<E: Engine> {
    batch: Batch,
    cov: Vec<Cov>,
    saved: Vec<E::Saved>,
    posterior: PosteriorScratch,
    marginals: Marginals,
}

impl<E: Engine> Pass<E> {
    fn new(batch: Batch, components: usize) -> Self {
        Self {
            batch,
            cov: vec![Cov::default(); components],
            saved: (0..components).map(|_| E::Saved::default()).collect(),
            posterior: PosteriorScratch::default(),
            marginals: Marginals::default(),
        }
    }
}

/// Joint posterior of `f` at several images: one mean and one covariance matrix per latent.
#[derive(Debug, Clone)]
pub struct JointPrediction {
    /// Means, `B x L` row-major.
    pub mean: Vec<f64>,
    /// One `B x B` covariance per latent.
    pub cov: Vec<Mat>,
}

impl<'a, E: Engine> Predictor<'a, E> {
    /// Factorises `Kuu` of every component, and rewrites `q` in covariance form.
    pub fn new(model: &'a Model, engine: &'a E, params: &'a Params) -> Result<Self> {
        model.check_values(params)?;
        let mut scratch = CholeskyScratch::default();
        let mut chol = Vec::new();
        for (i, c) in model.components().iter().enumerate() {
            let (mut kuu, mut factor) = (Mat::default(), Mat::default());
            engine.kuu(c, params, &mut kuu);
            model.factorise(i, params, &kuu, &mut factor, &mut scratch)?;
            chol.push(factor);
        }
        let mut params = Cow::Borrowed(params);
        if params.form() == Form::Natural {
            model.set_form(Form::Covariance, params.to_mut())?;
        }
        Ok(Self { model, engine, params, tempered: None, chol })
    }

    /// Raises predicted class probabilities to the power `1 / T` and scales them to sum to one again. Latents, and
    /// likelihoods that are not [calibratable](Likelihood::calibratable), stay as they are.
    pub fn at_temperature(self, temperature: Temperature) -> Self {
        let tempered = match temperature {
            Temperature::ONE => None,
            temperature => self.model.likelihood().at_temperature(temperature),
        };
        Self { tempered, ..self }
    }

    /// The likelihood that predicts.
    pub fn likelihood(&self) -> &dyn Likelihood {
        self.tempered.as_deref().unwrap_or(self.model.likelihood())
    }

    /// The likelihood's own parameters.
    pub fn theta(&self) -> &[f64] {
        self.model.likelihood_theta(&self.params)
    }

    /// The Cholesky factor of each component's `Kuu`.
    pub fn factors(&self) -> &[Mat] {
        &self.chol
    }

    /// Marginal means and variances of all latents at the images, `B x L`.
    pub fn latents(&self, images: &Images) -> Result<Marginals> {
        self.run(images, Need::Value, None)
    }

    /// Means only: `kff` is not computed. The variances come back empty.
    pub fn means(&self, images: &Images) -> Result<Vec<f64>> {
        Ok(self.run(images, Need::Mean, None)?.mean)
    }

    /// The same for one component's share of the latents: `f = sum_c f_c`, and this is `f_c`.
    pub fn component_latents(&self, component: usize, images: &Images) -> Result<Marginals> {
        self.run(images, Need::Value, Some(component))
    }

    /// Class probabilities, or mean and variance of a real target.
    pub fn predict(&self, images: &Images) -> Result<Predictive> {
        Ok(self.predict_from(&self.latents(images)?))
    }

    /// The same from the latents at the images.
    pub fn predict_from(&self, latents: &Marginals) -> Predictive {
        self.likelihood().predict(self.theta(), latents)
    }

    /// `log p(y_n | x_n)` for every image; the mean of its negative is the NLPP.
    pub fn log_density(&self, data: &Dataset) -> Result<Vec<f64>> {
        self.model.likelihood().check_targets(data.targets())?;
        let latents = self.latents(data.images())?;
        Ok(self.likelihood().log_predictive(self.theta(), &latents, data.targets()))
    }

    fn run(&self, images: &Images, need: Need, only: Option<usize>) -> Result<Marginals> {
        self.model.check_images(images.shape())?;
        let (latents, components) = (self.model.variational().latents(), self.model.components().len());
        let mut pass = Pass::<E>::new(Batch::empty(images.shape()), components);
        let mut padded = vec![Cov::default(); components];
        let all: Vec<usize> = (0..images.count()).collect();
        let mut out = Marginals::default();
        for chunk in all.chunks(CHUNK) {
            pass.batch.fill(images, chunk);
            self.covariances(need, only, &mut pass);
            let cov = if chunk.len().is_multiple_of(COLUMNS) {
                &pass.cov
            } else {
                padded.iter_mut().zip(&pass.cov).for_each(|(to, from)| pad(from, to));
                &padded
            };
            self.marginals(cov, need, &mut pass.posterior, &mut pass.marginals)?;
            out.mean.extend_from_slice(&pass.marginals.mean[..chunk.len() * latents]);
            if need != Need::Mean {
                out.var.extend_from_slice(&pass.marginals.var[..chunk.len() * latents]);
            }
        }
        Ok(out)
    }

    /// Covariances of the batch in `pass`, of one component only if so asked.
    fn covariances(&self, need: Need, only: Option<usize>, pass: &mut Pass<E>) {
        for (i, c) in self.model.components().iter().enumerate() {
            let cov = &mut pass.cov[i];
            if only.is_none_or(|o| o == i) {
                let need = if c.image_norm() == ImageNorm::Kff { Need::Value } else { need };
                self.engine.images(c, &self.params, &pass.batch, need, &mut pass.saved[i], cov);
                c.image_norm().apply(&self.chol[i], cov);
            } else {
                // A component that is left out contributes neither to A nor to the prior variance.
                cov.resize(c.responses().len(), c.inducing(), pass.batch.len());
                cov.kuf.iter_mut().for_each(|k| k.fill(0.0));
                cov.kff.iter_mut().for_each(|k| k.fill(0.0));
            }
        }
    }

    /// What a component divides each image of a batch by.
    pub(crate) fn image_factors(&self, component: usize, batch: &Batch) -> Vec<f64> {
        let c = &self.model.components()[component];
        let norm = c.image_norm();
        if norm == ImageNorm::None {
            return vec![1.0; batch.len()];
        }
        let (mut saved, mut cov) = (E::Saved::default(), Cov::default());
        self.engine.images(c, &self.params, batch, Need::Value, &mut saved, &mut cov);
        norm.factors(&self.chol[component], &cov)
    }

    pub(crate) fn marginals(
        &self,
        cov: &[Cov],
        need: Need,
        scratch: &mut PosteriorScratch,
        out: &mut Marginals,
    ) -> Result<()> {
        self.model
            .variational()
            .marginals(&self.params, &self.chol, cov, need, scratch, out)
            .map_err(NumericalError::from)?;
        Ok(())
    }

    /// Joint posterior of all latents at (a few) images; the prior covariance is the literal double sum over views.
    pub fn joint(&self, images: &Images) -> Result<JointPrediction> {
        self.model.check_images(images.shape())?;
        let all: Vec<usize> = (0..images.count()).collect();
        let mut pass = Pass::<E>::new(Batch::of_images(images, &all), self.model.components().len());
        self.covariances(Need::Value, None, &mut pass);
        self.marginals(&pass.cov, Need::Value, &mut pass.posterior, &mut pass.marginals)?;
        let b = all.len();
        let mut prior = Mat::zeros(b, b);
        for (i, c) in self.model.components().iter().enumerate() {
            let mut k = exact_cross_covariance(c, &self.params, &pass.batch, &pass.batch);
            let white = c.white(&self.params) * c.responses().len() as f64;
            (0..b).for_each(|n| k[(n, n)] += white);
            let factors = self.image_factors(i, &pass.batch);
            let normalised = |(at, k): (usize, &f64)| k / (factors[at / b] * factors[at % b]);
            prior
                .data_mut()
                .iter_mut()
                .zip(k.data().iter().enumerate())
                .for_each(|(p, k)| *p += normalised(k));
        }
        let a = pass.posterior.a.view();
        gemm(prior.view_mut(), Accumulate::Add, -1.0, a.transpose(), a);
        let cov = (0..self.model.variational().latents())
            .map(|l| {
                let mut cov = prior.clone();
                self.model.variational().add_inducing_covariance(&self.params, l, &pass.posterior, &mut cov);
                cov
            })
            .collect();
        Ok(JointPrediction { mean: pass.marginals.mean, cov })
    }
}

/// A copy filled up with zeros to a multiple of [`COLUMNS`] images.
fn pad(from: &Cov, to: &mut Cov) {
    let (inducing, images) = (from.kuf[0].rows(), from.kff[0].len());
    to.resize(from.kuf.len(), inducing, images.next_multiple_of(COLUMNS));
    for (from, to) in from.kuf.iter().zip(&mut to.kuf) {
        to.fill(0.0);
        to.data_mut()[..from.data().len()].copy_from_slice(from.data());
    }
    for (from, to) in from.kff.iter().zip(&mut to.kff) {
        to.fill(0.0);
        to[..images].copy_from_slice(from);
    }
}

impl JointPrediction {
    /// `count` joint draws, each `B x L` row-major.
    pub fn sample(&self, count: usize, rng: &mut Rng) -> Result<Vec<Vec<f64>>> {
        let latents = self.cov.len();
        let factors = self
            .cov
            .iter()
            .map(|c| sampling_factor(c, "joint covariance of a latent"))
            .collect::<Result<Vec<_>>>()?;
        let draw = |rng: &mut Rng| {
            let mut f = self.mean.clone();
            for (l, factor) in factors.iter().enumerate() {
                for j in 0..factor.lower().cols() {
                    let e = rng.normal();
                    factor.lower().col(j)[j..].iter().zip(j..).for_each(|(r, i)| f[i * latents + l] += r * e);
                }
            }
            f
        };
        Ok((0..count).map(|_| draw(rng)).collect())
    }
}

/// A lower factor of a covariance that may be singular: jitter grows from rounding size until it factorises.
pub(crate) fn sampling_factor(cov: &Mat, matrix: &'static str) -> Result<Cholesky> {
    let (n, mut row) = (cov.rows(), 0);
    let scale = norm_squared(cov.data()).sqrt().max(f64::MIN_POSITIVE);
    for power in [-14, -12, -10, -8, -6] {
        let mut factor = cov.clone();
        (0..n).for_each(|i| factor[(i, i)] += scale * 10f64.powi(power));
        match Cholesky::new(factor) {
            Ok(factor) => return Ok(factor),
            Err(e) => row = e.row,
        }
    }
    let remedy = "draw at fewer images, or at images that differ more";
    Err(NumericalError::IndefiniteMatrix { matrix, row, size: n, remedy }.into())
}
