//! Prediction from frozen parameters.

use super::Model;
use crate::Result;
use crate::cov::{Cov, Engine, Need, exact_cross_covariance};
use crate::data::{Batch, Dataset, Images};
use crate::error::NumericalError;
use crate::likelihood::{Marginals, Predictive};
use crate::linalg::{CholeskyScratch, Into, Mat, View, cholesky, gemm, norm_squared};
use crate::rng::Rng;
use crate::variational::{Form, PosteriorScratch, Variational};
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
    pub(crate) values: Cow<'a, [f64]>,
    /// In covariance form: natural parameters would have to be factorised for every block.
    variational: Variational,
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
    pub fn new(model: &'a Model, engine: &'a E, values: &'a [f64]) -> Result<Self> {
        model.check_values(values)?;
        let mut scratch = CholeskyScratch::default();
        let mut chol = Vec::new();
        for (i, c) in model.components().iter().enumerate() {
            let (mut kuu, mut factor) = (Mat::default(), Mat::default());
            engine.kuu(c, values, &mut kuu);
            model.factorise(i, values, &kuu, &mut factor, &mut scratch)?;
            chol.push(factor);
        }
        let (mut variational, mut values) = (model.variational().clone(), Cow::Borrowed(values));
        if variational.form() == Form::Natural {
            variational
                .set_form(Form::Covariance, &mut model.layout().clone(), values.to_mut())
                .map_err(|_| NumericalError::IndefinitePosterior { latent: 0 })?;
        }
        Ok(Self { model, engine, values, variational, chol })
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
        let marginals = self.latents(images)?;
        Ok(self.model.likelihood().predict(self.model.likelihood_theta(&self.values), &marginals))
    }

    /// `log p(y_n | x_n)` for every image; the mean of its negative is the NLPP.
    pub fn log_density(&self, data: &Dataset) -> Result<Vec<f64>> {
        self.model.likelihood().check_targets(data.targets())?;
        let marginals = self.latents(data.images())?;
        let theta = self.model.likelihood_theta(&self.values);
        Ok(self.model.likelihood().log_predictive(theta, &marginals, data.targets()))
    }

    fn run(&self, images: &Images, need: Need, only: Option<usize>) -> Result<Marginals> {
        self.model.check_images(images.shape())?;
        let (latents, components) = (self.variational.latents(), self.model.components().len());
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
                self.engine.images(c, &self.values, &pass.batch, need, &mut pass.saved[i], cov);
            } else {
                // A component that is left out contributes neither to A nor to the prior variance.
                cov.resize(c.responses().len(), c.inducing(), pass.batch.len());
                cov.kuf.iter_mut().for_each(|k| k.fill(0.0));
                cov.kff.iter_mut().for_each(|k| k.fill(0.0));
            }
        }
    }

    pub(crate) fn marginals(
        &self,
        cov: &[Cov],
        need: Need,
        scratch: &mut PosteriorScratch,
        out: &mut Marginals,
    ) -> Result<()> {
        self.variational
            .marginals(&self.values, &self.chol, cov, need, scratch, out)
            .map_err(|e| NumericalError::IndefinitePosterior { latent: e.latent })?;
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
        for c in self.model.components() {
            let k = exact_cross_covariance(c, &self.values, &pass.batch, &pass.batch);
            prior.data_mut().iter_mut().zip(k.data()).for_each(|(p, k)| *p += k);
            let white = c.white(&self.values) * c.responses().len() as f64;
            (0..b).for_each(|i| prior[(i, i)] += white);
        }
        let a = pass.posterior.a.view();
        gemm(prior.view_mut(), Into::Add, -1.0, a.transpose(), a);
        let cov = (0..self.variational.latents())
            .map(|l| {
                let t: View<'_> = pass.posterior.product(l).view();
                let mut cov = prior.clone();
                gemm(cov.view_mut(), Into::Add, 1.0, t.transpose(), t);
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
        let factors =
            self.cov.iter().enumerate().map(|(l, c)| sampling_factor(c, l)).collect::<Result<Vec<_>>>()?;
        let draw = |rng: &mut Rng| {
            let mut f = self.mean.clone();
            for (l, factor) in factors.iter().enumerate() {
                for j in 0..factor.cols() {
                    let e = rng.normal();
                    factor.col(j)[j..].iter().zip(j..).for_each(|(r, i)| f[i * latents + l] += r * e);
                }
            }
            f
        };
        Ok((0..count).map(|_| draw(rng)).collect())
    }
}

/// A lower factor of a covariance that may be singular: jitter grows from rounding size until it factorises.
pub(crate) fn sampling_factor(cov: &Mat, latent: usize) -> Result<Mat> {
    let n = cov.rows();
    let scale = norm_squared(cov.data()).sqrt().max(f64::MIN_POSITIVE);
    for power in [-14, -12, -10, -8, -6] {
        let mut factor = cov.clone();
        (0..n).for_each(|i| factor[(i, i)] += scale * 10f64.powi(power));
        if cholesky(factor.view_mut(), &mut CholeskyScratch::default()).is_ok() {
            return Ok(factor);
        }
    }
    Err(NumericalError::IndefinitePosterior { latent }.into())
}
