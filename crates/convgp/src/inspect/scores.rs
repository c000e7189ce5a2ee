//! How little a model knows about an image, by four scores; each is larger for less familiar images.

use super::InspectError;
use crate::Result;
use crate::component::Component;
use crate::cov::{Cov, Engine, Need};
use crate::data::{Batch, Images};
use crate::likelihood::{Marginals, Predictive};
use crate::metrics::{entropy, most_probable};
use crate::model::Predictor;
use crate::rng::Rng;

/// Images whose covariances are computed together.
const CHUNK: usize = 64;
/// Added to both variances of the ratio, relative to what the prior variance would be if the views were independent.
const RELATIVE_FLOOR: f64 = 1e-6;

/// Scores of several images.
#[derive(Debug, Clone, PartialEq)]
pub struct Uncertainty {
    /// One minus the largest class probability.
    pub doubt: Vec<f64>,
    /// Entropy of the class probabilities in nats.
    pub entropy: Vec<f64>,
    /// The part of the entropy that knowing `f` would remove: `H(E[p(y|f)]) - E[H(p(y|f))]`, from draws of the latents.
    pub mutual_information: Vec<f64>,
    /// Posterior variance of the latents (their mean) over prior variance: 1 where the data taught nothing, 0 where all is
    /// known.
    ///
    /// The prior variance of a convolutional model depends on the image. On a blank one all views are equal and their
    /// responses add up in step: `(sum_p w_p)^2 k`, which is the largest possible value for equal weights and can be next to
    /// nothing for weights that cancel. The ratio takes that out. Where the prior variance itself vanishes the ratio would be
    /// 0 / 0; a small floor in both makes it 1, since nothing was learnt there.
    pub variance_ratio: Vec<f64>,
}

/// Scores images; `draws` is the number of samples behind the mutual information (100 give about two digits).
pub fn uncertainty<E: Engine>(
    predictor: &Predictor<'_, E>,
    images: &Images,
    draws: usize,
    rng: &mut Rng,
) -> Result<Uncertainty> {
    let q = predictor.latents(images)?;
    let Predictive::Classes { probabilities, classes } = predictor.predict_from(&q) else {
        return Err(InspectError::NotClasses.into());
    };
    let rows = || probabilities.chunks_exact(classes);
    Ok(Uncertainty {
        doubt: rows().map(|row| (1.0 - row[most_probable(row)]).clamp(0.0, 1.0)).collect(),
        entropy: rows().map(entropy).collect(),
        mutual_information: mutual_information(predictor, &q, draws.max(1), rng)?,
        variance_ratio: variance_ratio(predictor, images, &q),
    })
}

/// Both entropies come from the same draws, so that the difference is never negative.
fn mutual_information<E: Engine>(
    predictor: &Predictor<'_, E>,
    q: &Marginals,
    draws: usize,
    rng: &mut Rng,
) -> Result<Vec<f64>> {
    let mut sample = Marginals { mean: q.mean.clone(), var: vec![0.0; q.var.len()] };
    let (mut mean, mut inner) = (Vec::new(), Vec::new());
    let mut width = 1;
    for _ in 0..draws {
        for (f, (m, v)) in sample.mean.iter_mut().zip(q.mean.iter().zip(&q.var)) {
            *f = m + v.sqrt() * rng.normal();
        }
        let Predictive::Classes { probabilities, classes } = predictor.predict_from(&sample) else {
            return Err(InspectError::NotClasses.into());
        };
        width = classes;
        mean.resize(probabilities.len(), 0.0);
        inner.resize(probabilities.len() / classes, 0.0);
        mean.iter_mut().zip(&probabilities).for_each(|(m, p)| *m += p / draws as f64);
        let rows = probabilities.chunks_exact(classes);
        inner.iter_mut().zip(rows).for_each(|(h, row)| *h += entropy(row) / draws as f64);
    }
    Ok(mean.chunks_exact(width).zip(&inner).map(|(row, h)| (entropy(row) - h).max(0.0)).collect())
}

fn variance_ratio<E: Engine>(predictor: &Predictor<'_, E>, images: &Images, q: &Marginals) -> Vec<f64> {
    let (prior, independent) = prior_variances(predictor, images);
    let latents = q.var.len() / prior.len();
    let ratio = |(n, var): (usize, &[f64])| {
        let floor = RELATIVE_FLOOR * independent[n];
        let posterior = var.iter().sum::<f64>() / latents as f64;
        (posterior + floor) / (prior[n] + floor)
    };
    q.var.chunks_exact(latents).enumerate().map(ratio).collect()
}

/// Of every image: the prior variance of `f`, and what it would be with independent views, `sum_p w_p^2 k(x[p], x[p])`.
fn prior_variances<E: Engine>(predictor: &Predictor<'_, E>, images: &Images) -> (Vec<f64>, Vec<f64>) {
    let values = &predictor.params;
    let (mut prior, mut independent) = (vec![0.0; images.count()], vec![0.0; images.count()]);
    let all: Vec<usize> = (0..images.count()).collect();
    for chunk in all.chunks(CHUNK) {
        let batch = Batch::of_images(images, chunk);
        for c in predictor.model.components() {
            let (mut cov, mut saved) = (Cov::default(), E::Saved::default());
            predictor.engine.images(c, values, &batch, Need::Value, &mut saved, &mut cov);
            for (i, &n) in chunk.iter().enumerate() {
                prior[n] += cov.kff.iter().map(|k| k[i]).sum::<f64>();
                independent[n] += independent_variance(c, values, batch.image(i));
            }
        }
    }
    (prior, independent)
}

fn independent_variance(c: &Component, values: &[f64], image: &[f64]) -> f64 {
    let theta = c.theta(values);
    let of_response = |r: &crate::component::Response| -> f64 {
        let (views, weights) = (r.views(), r.weights(values));
        let mut all = vec![0.0; views.count() * views.len()];
        views.write(image, &mut all);
        let each = all.chunks_exact(views.len()).zip(&weights);
        each.map(|(view, w)| w * w * c.kernel().value(theta, view, view)).sum()
    };
    c.responses().iter().map(of_response).sum()
}
