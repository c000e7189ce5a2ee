//! Features of images: `A = F^{-1} Kuf`, normalised as the model says.

use crate::Result;
use crate::component::ImageNorm;
use crate::cov::{Cov, Engine, Need};
use crate::data::{Batch, Images, image_id};
use crate::likelihood::TargetUnits;
use crate::linalg::{CholeskyScratch, Mat, norm_squared};
use crate::model::Model;
use crate::variational::PosteriorScratch;
use rayon::prelude::*;

/// Images whose features are computed together; more where every batch has large inducing inputs to read.
const BATCH: usize = 256;
const STAGED_BATCH: usize = 1024;
/// Computes the features of images under a model with fixed kernels and inducing inputs.
#[derive(Debug)]
pub struct Features<'a, E: Engine> {
    model: &'a Model,
    engine: &'a E,
    values: Vec<f64>,
    chol: Vec<Mat>,
}

impl<'a, E: Engine> Features<'a, E> {
    /// Units of the model's targets.
    pub(crate) fn target_units(&self) -> TargetUnits {
        self.model.likelihood().gaussian_noise().unwrap_or_default()
    }

    /// Factorises `Kuu` of every component.
    pub fn new(model: &'a Model, engine: &'a E, values: &[f64]) -> Result<Self> {
        // The numbers of q, which come last, are not needed and may be many.
        let values = values[..model.variational().slot().range().start].to_vec();
        let mut chol = Vec::new();
        for (i, c) in model.components().iter().enumerate() {
            let (mut kuu, mut factor) = (Mat::default(), Mat::default());
            engine.kuu(c, &values, &mut kuu);
            model.factorise(i, &values, &kuu, &mut factor, &mut CholeskyScratch::default())?;
            chol.push(factor);
        }
        Ok(Self { model, engine, values, chol })
    }

    /// Inducing outputs `D`.
    pub fn outputs(&self) -> usize {
        self.model.variational().total()
    }

    /// Columns of features that one image has: one, and one for each of its copies.
    pub fn width(&self) -> usize {
        1 + self.model.spec().augmentation.map_or(0, |a| a.copies)
    }

    /// Calls `f` with the numbers, ids and features of every batch of images, in order, from image `first` on. Features
    /// are [`Features::width`] columns for each image, its copies after itself. `f` says whether to go on; returns
    /// whether it did to the end.
    pub fn for_each(
        &self,
        images: &Images,
        first: usize,
        mut f: impl FnMut(&[usize], &[u64], &Mat) -> Result<bool>,
    ) -> Result<bool> {
        self.model.check_images(images.shape())?;
        let components = self.model.components();
        let mut saved: Vec<E::Saved> = components.iter().map(|_| E::Saved::default()).collect();
        let mut cov = vec![Cov::default(); components.len()];
        let mut scratch = PosteriorScratch::default();
        let mut batch = Batch::empty(images.shape());
        let all: Vec<usize> = (first..images.count()).collect();
        let width = self.width();
        let staged = components.iter().any(|c| c.responses()[0].views().is_staged());
        let batch_size = if staged { STAGED_BATCH } else { BATCH };
        for indices in all.chunks((batch_size / width).max(1)) {
            let ids = self.fill(images, indices, &mut batch);
            for (i, c) in components.iter().enumerate() {
                let need = if c.image_norm() == ImageNorm::Kff { Need::Value } else { Need::Mean };
                self.engine.images(c, &self.values, &batch, need, &mut saved[i], &mut cov[i]);
            }
            self.model.variational().project(&self.chol, &cov, batch.len(), &mut scratch);
            self.normalise(&cov, &mut scratch.a);
            if !f(indices, &ids, &scratch.a)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Fills a batch with images and their copies; returns an id of every image, by its pixels.
    fn fill(&self, images: &Images, indices: &[usize], batch: &mut Batch) -> Vec<u64> {
        let (shape, len) = (images.shape(), images.shape().len());
        let pixels = batch.pixels_mut(shape, indices.len() * self.width());
        let groups = pixels.par_chunks_exact_mut(len * self.width()).zip(indices.par_iter());
        groups
            .map(|(group, &n)| {
                let (own, copies) = group.split_at_mut(len);
                images.write_image(n, own);
                let id = image_id(own);
                if let Some(augmentation) = &self.model.spec().augmentation {
                    augmentation.write(shape, own, id, copies);
                }
                id
            })
            .collect()
    }

    /// Divides the rows of every component by its norm of the image.
    fn normalise(&self, cov: &[Cov], a: &mut Mat) {
        for (i, c) in self.model.components().iter().enumerate() {
            let norm = c.image_norm();
            if norm == ImageNorm::None {
                continue;
            }
            let blocks = self.model.variational().blocks().iter().filter(|b| b.component == i);
            let (first, last) = blocks
                .fold((usize::MAX, 0), |(a, b), block| (a.min(block.rows.start), b.max(block.rows.end)));
            for n in 0..a.cols() {
                let rows = &mut a.col_mut(n)[first..last];
                let square = match norm {
                    ImageNorm::Kff => cov[i].kff.iter().map(|k| k[n]).sum(),
                    _ => norm_squared(rows),
                };
                let scale = 1.0 / square.max(f64::MIN_POSITIVE).sqrt();
                rows.iter_mut().for_each(|x| *x *= scale);
            }
        }
    }
}
