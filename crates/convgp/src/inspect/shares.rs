//! How much of the function each component is.

use super::Explainer;
use crate::Result;
use crate::cov::{Cov, Engine, Need};
use crate::data::{Batch, Images};

/// Images whose covariances are computed together.
const CHUNK: usize = 64;

/// What one response of one component makes of a data set.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// Name of the component.
    pub component: String,
    /// Index of the response within it.
    pub response: usize,
    /// Its fraction of the prior variance, averaged over the images.
    pub prior: f64,
    /// Its fraction of the explained variance: `cov(mean_b, mean) / var(mean)` over the images, all latents together.
    /// Fractions sum to one; one is negative where a response works against the others.
    pub explained: f64,
}

impl<E: Engine> Explainer<'_, '_, E> {
    /// Shares of every response of every component, over the images.
    pub fn shares(&self, images: &Images) -> Result<Vec<Share>> {
        let (model, values) = (self.predictor.model, &self.predictor.params);
        model.check_images(images.shape())?;
        let blocks = model.variational().blocks();
        let latents = self.latents();
        let mut prior = vec![0.0; blocks.len()];
        // Per block the means, N x L.
        let mut means = vec![Vec::new(); blocks.len()];
        let mut cov = vec![Cov::default(); model.components().len()];
        let all: Vec<usize> = (0..images.count()).collect();
        for chunk in all.chunks(CHUNK) {
            let batch = Batch::of_images(images, chunk);
            for (c, cov) in model.components().iter().zip(&mut cov) {
                let mut saved = E::Saved::default();
                self.predictor.engine.images(c, values, &batch, Need::Value, &mut saved, cov);
            }
            for ((c, cov), chol) in model.components().iter().zip(&mut cov).zip(self.predictor.factors()) {
                c.image_norm().apply(chol, cov);
            }
            for (i, b) in blocks.iter().enumerate() {
                let own = &cov[b.component];
                prior[i] += own.kff[b.response].iter().sum::<f64>();
                for n in 0..chunk.len() {
                    let (kuf, alpha) = (own.kuf[b.response].col(n), &self.alpha[i]);
                    let mean =
                        |l: usize| kuf.iter().zip(alpha.iter().skip(l).step_by(latents)).map(|(k, a)| k * a);
                    means[i].extend((0..latents).map(|l| mean(l).sum::<f64>()));
                }
            }
        }
        let explained = explained(&means, latents);
        let whole: f64 = prior.iter().sum();
        let share = |(i, b): (usize, &crate::variational::Block)| Share {
            component: model.components()[b.component].name().into(),
            response: b.response,
            prior: if whole > 0.0 { prior[i] / whole } else { 0.0 },
            explained: explained[i],
        };
        Ok(blocks.iter().enumerate().map(share).collect())
    }
}

/// `cov(mean_b, mean) / var(mean)` with `mean = sum_b mean_b`, latents centred each by itself; zeros when nothing varies.
fn explained(means: &[Vec<f64>], latents: usize) -> Vec<f64> {
    let centred: Vec<Vec<f64>> = means.iter().map(|m| centre(m, latents)).collect();
    let mut whole = vec![0.0; centred[0].len()];
    centred.iter().for_each(|m| whole.iter_mut().zip(m).for_each(|(w, m)| *w += m));
    let variance: f64 = whole.iter().map(|w| w * w).sum();
    let with_whole = |m: &Vec<f64>| m.iter().zip(&whole).map(|(m, w)| m * w).sum::<f64>();
    centred.iter().map(|m| if variance > 0.0 { with_whole(m) / variance } else { 0.0 }).collect()
}

/// Subtracts every column's mean from an `N x L` array.
fn centre(rows: &[f64], latents: usize) -> Vec<f64> {
    let count = (rows.len() / latents) as f64;
    let mean = |l: usize| rows.iter().skip(l).step_by(latents).sum::<f64>() / count;
    let means: Vec<f64> = (0..latents).map(mean).collect();
    rows.iter().enumerate().map(|(i, x)| x - means[i % latents]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explained_shares_sum_to_one_and_may_be_negative() {
        // Two images, one latent: the parts vary by 3 and by -1, the whole by 2.
        let shares = explained(&[vec![10.0, 13.0], vec![5.0, 4.0]], 1);
        assert_eq!(shares, [1.5, -0.5]);
        assert_eq!(explained(&[vec![1.0, 1.0]], 1), [0.0]);
    }
}
