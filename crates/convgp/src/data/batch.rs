//! Minibatches.

use super::{ImageShape, Images, Targets};

/// A minibatch in double precision, ready for an engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    shape: ImageShape,
    pixels: Vec<f64>,
    targets: Targets,
    weights: Vec<f64>,
}

/// A batch as a sample of a data set.
#[derive(Debug, Clone, Copy)]
pub struct Minibatch<'a> {
    /// The images and targets.
    pub batch: &'a Batch,
    /// Images in the data set `N`.
    pub num_data: usize,
    /// Number of the evaluation, for likelihoods that sample.
    pub draw: u64,
}

impl Minibatch<'_> {
    /// The same at another number of the evaluation.
    pub fn at_draw(self, draw: u64) -> Self {
        Self { draw, ..self }
    }

    /// `N / B`.
    pub(crate) fn scale(&self) -> f64 {
        self.num_data as f64 / self.batch.len() as f64
    }
}

impl Batch {
    /// These images as a sample of a data set of `num_data`, at evaluation 0.
    pub fn of(&self, num_data: usize) -> Minibatch<'_> {
        Minibatch { batch: self, num_data, draw: 0 }
    }

    /// An empty batch to be filled later.
    pub fn empty(shape: ImageShape) -> Self {
        Self { shape, pixels: Vec::new(), targets: Targets::Real(Vec::new()), weights: Vec::new() }
    }

    /// A batch of images without targets, for prediction.
    pub fn of_images(images: &Images, indices: &[usize]) -> Self {
        let mut batch = Self::empty(images.shape());
        batch.fill(images, indices);
        batch
    }

    /// Replaces the images and drops the targets' meaning: only for prediction or together with new targets.
    pub fn fill(&mut self, images: &Images, indices: &[usize]) {
        let d = images.shape().len();
        self.shape = images.shape();
        self.weights.clear();
        self.pixels.resize(indices.len() * d, 0.0);
        for (row, &i) in self.pixels.chunks_exact_mut(d).zip(indices) {
            images.write_image(i, row);
        }
    }

    /// Replaces the images by as many of a shape, to be written, and drops the targets' meaning.
    pub(crate) fn pixels_mut(&mut self, shape: ImageShape, images: usize) -> &mut [f64] {
        self.shape = shape;
        self.weights.clear();
        self.pixels.resize(images * shape.len(), 0.0);
        &mut self.pixels
    }

    /// Replaces the targets by those of the given rows.
    pub(super) fn take_targets(&mut self, targets: &Targets, indices: &[usize]) {
        match (targets, &mut self.targets) {
            (
                Targets::Classes { labels, classes },
                Targets::Classes { labels: out, classes: out_classes },
            ) => {
                *out_classes = *classes;
                out.clear();
                out.extend(indices.iter().map(|&i| labels[i]));
            }
            (Targets::Real(v), Targets::Real(out)) => {
                out.clear();
                out.extend(indices.iter().map(|&i| v[i]));
            }
            (targets, out) => *out = targets.select(indices),
        }
    }

    /// Shape of every image.
    pub fn shape(&self) -> ImageShape {
        self.shape
    }
    /// Number of images `B`.
    pub fn len(&self) -> usize {
        self.pixels.len() / self.shape.len()
    }
    /// Whether it holds no image.
    pub fn is_empty(&self) -> bool {
        self.pixels.is_empty()
    }
    /// Pixels of image `n`.
    pub fn image(&self, n: usize) -> &[f64] {
        let d = self.shape.len();
        &self.pixels[n * d..(n + 1) * d]
    }
    /// Pixels of some images in a row, one after the other.
    pub fn pixels(&self, images: std::ops::Range<usize>) -> &[f64] {
        &self.pixels[images.start * self.shape.len()..images.end * self.shape.len()]
    }
    /// The targets, one per image (empty for a batch made by [`Batch::of_images`]).
    pub fn targets(&self) -> &Targets {
        &self.targets
    }
    /// How much each image counts in the bound's sum over images; empty when all count the same, as they do unless a
    /// [`Sampler`](crate::train::Sampler) drew some images more often than others.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }
    /// The weights, to be filled; they go when images do.
    pub(crate) fn weights_mut(&mut self) -> &mut Vec<f64> {
        &mut self.weights
    }
}
