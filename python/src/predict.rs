//! Asking a model.

use crate::arrays::{Array, array};
use crate::data::Data;
use crate::failure::{Failure, Outcome};
use crate::model::Model;
use crate::pool::run;
use convgp::cov::Fused;
use convgp::data::Images;
use convgp::inspect::InspectError;
use convgp::likelihood::{Marginals, Predictive};
use convgp::metrics::{most_probable, nlpp};
use convgp::rng::Rng;
use numpy::PyArray1;
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// Images before the first look at Ctrl-C. An image's answer does not depend on which others are predicted with it.
const CHUNK: usize = 1024;
/// Chunks that take less are followed by larger ones.
const PATIENCE: Duration = Duration::from_millis(200);

/// Mean and variance, each an array.
type MeanAndVariance<'py> = (Array<'py>, Array<'py>);

#[pymethods]
impl Model {
    /// Class probabilities, `images x classes`.
    #[pyo3(signature = (data, *, threads=None))]
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        data: &Data,
        threads: Option<usize>,
    ) -> Outcome<Array<'py>> {
        match self.predictive(py, data, threads)? {
            Predictive::Classes { probabilities, classes } => {
                let rows = probabilities.len() / classes;
                Ok(array(py, probabilities, &[rows, classes])?)
            }
            Predictive::Real { .. } => Err(not_classes()),
        }
    }

    /// The most probable class of every image, as a number.
    #[pyo3(signature = (data, *, threads=None))]
    fn classes<'py>(
        &self,
        py: Python<'py>,
        data: &Data,
        threads: Option<usize>,
    ) -> Outcome<Bound<'py, PyArray1<usize>>> {
        match self.predictive(py, data, threads)? {
            Predictive::Classes { probabilities, classes } => {
                Ok(PyArray1::from_iter(py, probabilities.chunks_exact(classes).map(most_probable)))
            }
            Predictive::Real { .. } => Err(not_classes()),
        }
    }

    /// Mean and variance of a real target, one per image.
    #[pyo3(signature = (data, *, threads=None))]
    fn mean_and_variance<'py>(
        &self,
        py: Python<'py>,
        data: &Data,
        threads: Option<usize>,
    ) -> Outcome<MeanAndVariance<'py>> {
        match self.predictive(py, data, threads)? {
            Predictive::Real { mean, var } => {
                let shape = [mean.len()];
                Ok((array(py, mean, &shape)?, array(py, var, &shape)?))
            }
            Predictive::Classes { .. } => {
                Err(Failure::Value("the model predicts classes, not real numbers".into()))
            }
        }
    }

    /// Means and variances of the latent functions, `images x latents` each.
    #[pyo3(signature = (data, *, threads=None))]
    fn latent_marginals<'py>(
        &self,
        py: Python<'py>,
        data: &Data,
        threads: Option<usize>,
    ) -> Outcome<MeanAndVariance<'py>> {
        let Marginals { mean, var } = self.marginals(py, &self.images(data), threads)?;
        let shape = [data.images.count(), self.saved.model.likelihood().latents()];
        Ok((array(py, mean, &shape)?, array(py, var, &shape)?))
    }

    /// Joint draws of the latent functions at the images, `draws x images x latents`.
    #[pyo3(signature = (data, draws, seed, *, threads=None))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        data: &Data,
        draws: usize,
        seed: u64,
        threads: Option<usize>,
    ) -> Outcome<Array<'py>> {
        let numbers = run(py, threads, || {
            let engine = Fused::<f32>::default();
            let joint = self.saved.predictor(&engine)?.joint(&self.images(data))?;
            Ok(joint.sample(draws, &mut Rng::new(seed))?.concat())
        })?;
        let latents = self.saved.model.likelihood().latents();
        Ok(array(py, numbers, &[draws, data.images.count(), latents])?)
    }

    /// Mean of `-log p(y | x)` over images with targets.
    #[pyo3(signature = (data, *, threads=None))]
    fn nlpp(&self, py: Python<'_>, data: &Data, threads: Option<usize>) -> Outcome<f64> {
        let dataset = self.dataset(data)?;
        run(py, threads, || {
            let engine = Fused::<f32>::default();
            let predictor = self.saved.predictor(&engine)?;
            Ok(nlpp(&predictor.log_density(&dataset)?))
        })
    }
}

impl Model {
    fn predictive(&self, py: Python<'_>, data: &Data, threads: Option<usize>) -> Outcome<Predictive> {
        let q = self.marginals(py, &self.images(data), threads)?;
        let engine = Fused::<f32>::default();
        run(py, threads, || Ok(self.saved.predictor(&engine)?.predict_from(&q)))
    }

    fn marginals(&self, py: Python<'_>, images: &Images, threads: Option<usize>) -> Outcome<Marginals> {
        let engine = Fused::<f32>::default();
        let predictor = run(py, threads, || Ok(self.saved.predictor(&engine)?))?;
        let mut all = Marginals::default();
        let (mut start, mut size) = (0, CHUNK);
        while start < images.count() {
            let begun = Instant::now();
            let some: Vec<usize> = (start..images.count().min(start + size)).collect();
            let q = run(py, threads, || match some.len() == images.count() {
                true => Ok(predictor.latents(images)?),
                false => Ok(predictor.latents(&images.select(&some)?)?),
            })?;
            all.mean.extend(q.mean);
            all.var.extend(q.var);
            py.check_signals()?;
            start += size;
            // Buffers are made anew for every chunk: no more of them than Ctrl-C needs.
            if begun.elapsed() < PATIENCE {
                size *= 4;
            }
        }
        Ok(all)
    }
}

fn not_classes() -> Failure {
    convgp::Error::from(InspectError::NotClasses).into()
}
