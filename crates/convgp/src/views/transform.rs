//! What is done to every patch by itself: contrast, whitening, unit length.

use super::{Constant, GeometryError, Layout, Views, ViewsSize};
use crate::data::Images;
use crate::linalg::{Accumulate, Mat, MatMut, MatRef, dot, eigen_symmetric, gemm, norm_squared};
use crate::rng::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Patches that whitening is fitted on, at most, and images they are taken from.
const FIT_PATCHES: usize = 40_000;
const FIT_IMAGES: usize = 500;
/// A patch whose pixels vary by no more than this (a sample variance) is blank: it says nothing about patches.
const BLANK: f64 = 1e-4;

/// Transforms of a patch `v` of `E` numbers, in this order; each is left out when absent. Coordinates stay as they are.
///
/// ```text
/// contrast = c:  v <- v - mean(v),  v <- v / sqrt(mean(v^2) + c)
/// whiten = e:    v <- (v - mu) W,   mu and W the ZCA of training patches, eigenvalues + e times their mean
/// unit = c:      v <- v / sqrt(|v|^2 + c)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PatchTransform {
    /// Takes off the mean and divides by the spread; the number is added to the variance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contrast: Option<f64>,
    /// Makes elements of training patches uncorrelated; the number is added to eigenvalues, relative to their mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whiten: Option<f64>,
    /// Scales to unit length; the number is added to the squared length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<f64>,
}

/// A fitted whitening: `v <- (v - mean) matrix`.
#[derive(Debug, Clone, PartialEq)]
pub struct Whitening {
    /// One number per element.
    pub mean: Vec<f64>,
    /// `E x E`, row-major.
    pub matrix: Vec<f64>,
}

impl Whitening {
    /// The ZCA of patches, `[patch][element]`: `U diag(1 / sqrt(w + epsilon mean(w))) U^T` of their covariance.
    pub fn fit(patches: &[f64], len: usize, epsilon: f64) -> Self {
        let count = patches.len() / len;
        if count < 2 {
            let matrix = Mat::from_fn(len, len, |i, j| if i == j { 1.0 } else { 0.0 });
            return Self { mean: vec![0.0; len], matrix: matrix.data().to_vec() };
        }
        let mut mean = vec![0.0; len];
        patches.chunks_exact(len).for_each(|v| mean.iter_mut().zip(v).for_each(|(m, x)| *m += x));
        mean.iter_mut().for_each(|m| *m /= count as f64);
        let centred: Vec<f64> =
            patches.chunks_exact(len).flat_map(|v| v.iter().zip(&mean).map(|(x, m)| x - m)).collect();
        let centred = MatRef::from_column_major_slice(&centred, len, count);
        let mut covariance = Mat::zeros(len, len);
        let scale = 1.0 / (count as f64 - 1.0);
        gemm(covariance.view_mut(), Accumulate::Set, scale, centred, centred.transpose());
        let (values, vectors) = eigen_symmetric(&covariance);
        let floor = epsilon * values.iter().sum::<f64>() / len as f64;
        let scaled = Mat::from_fn(len, len, |i, k| vectors[(i, k)] / (values[k].max(0.0) + floor).sqrt());
        let mut matrix = Mat::zeros(len, len);
        gemm(matrix.view_mut(), Accumulate::Set, 1.0, scaled.view(), vectors.view().transpose());
        if matrix.data().iter().all(|x| x.is_finite()) {
            Self { mean, matrix: matrix.data().to_vec() }
        } else {
            // All patches are alike: there is nothing to whiten.
            Self::fit(&[], len, epsilon)
        }
    }
}

impl Whitening {
    /// The whitening of a component's set of views, from arrays by name.
    pub(crate) fn saved(
        component: &str,
        set: usize,
        array: &dyn Fn(&str) -> Option<Vec<f64>>,
    ) -> Option<Self> {
        let array = |what: &str| array(&whitening_name(component, set, what));
        Some(Self { mean: array("mean")?, matrix: array("matrix")? })
    }
}

fn whitening_name(component: &str, set: usize, what: &str) -> String {
    format!("{component}.whitening.{set}.{what}")
}

/// Views whose patches are transformed one by one.
#[derive(Debug, Clone)]
pub struct Transformed {
    views: Arc<dyn Views>,
    transform: PatchTransform,
    whitening: Option<Arc<Whitening>>,
}

impl Transformed {
    /// Checks the numbers. Whitening does nothing until it is given by [`Transformed::whitened`].
    pub fn new(views: Arc<dyn Views>, transform: PatchTransform) -> Result<Self, GeometryError> {
        let PatchTransform { contrast, whiten, unit } = transform;
        for (field, value) in [("contrast", contrast), ("whiten", whiten), ("unit", unit)] {
            if let Some(value) = value.filter(|v| !(v.is_finite() && *v > 0.0)) {
                return Err(GeometryError::BadTransform { field, value });
            }
        }
        Ok(Self { views, transform, whitening: None })
    }

    /// The same with this whitening.
    pub fn whitened(mut self, whitening: Whitening) -> Result<Self, GeometryError> {
        let len = self.pixels();
        if whitening.mean.len() != len || whitening.matrix.len() != len * len {
            return Err(GeometryError::WhiteningSize { len, found: whitening.mean.len() });
        }
        self.whitening = Some(Arc::new(whitening));
        Ok(self)
    }

    /// Whether whitening is asked for and has not been given.
    pub fn wants_whitening(&self) -> bool {
        self.transform.whiten.is_some() && self.whitening.is_none()
    }

    /// Whitening fitted on patches of random training images, blank ones left out.
    pub fn fit_whitening(&self, images: &Images, rng: &mut Rng) -> Whitening {
        let (e, len) = (self.views.len(), self.pixels());
        let mut image = vec![0.0; images.shape().len()];
        let mut all = vec![0.0; self.views.count() * e];
        let mut order: Vec<usize> = (0..images.count()).collect();
        rng.shuffle(&mut order);
        order.truncate(FIT_IMAGES);
        let share = (2 * FIT_PATCHES).div_ceil(order.len()).max(1);
        let mut patches = Vec::new();
        for n in order {
            images.write_image(n, &mut image);
            self.views.write(&image, &mut all);
            let mut places: Vec<usize> = (0..self.views.count()).collect();
            rng.shuffle(&mut places);
            for p in places.into_iter().take(share) {
                let view = &all[p * e..p * e + len];
                if patches.len() < FIT_PATCHES * len && !is_blank(view) {
                    let start = patches.len();
                    patches.extend_from_slice(view);
                    self.take_contrast(&mut patches[start..]);
                }
            }
        }
        Whitening::fit(&patches, len, self.transform.whiten.unwrap_or(1.0))
    }

    /// The whitening, once it is there.
    pub fn whitening(&self) -> Option<&Whitening> {
        self.whitening.as_deref()
    }

    /// Numbers of a view without its coordinates.
    fn pixels(&self) -> usize {
        self.views.len() - self.views.coordinates()
    }

    fn take_contrast(&self, v: &mut [f64]) {
        let Some(floor) = self.transform.contrast else { return };
        let mean = v.iter().sum::<f64>() / v.len() as f64;
        v.iter_mut().for_each(|x| *x -= mean);
        let gain = 1.0 / (norm_squared(v) / v.len() as f64 + floor).sqrt();
        v.iter_mut().for_each(|x| *x *= gain);
    }

    /// All views before unit length is given to them.
    fn write_whitened(&self, image: &[f64], out: &mut [f64]) {
        self.views.write(image, out);
        let (e, len) = (self.views.len(), self.pixels());
        out.chunks_exact_mut(e).for_each(|v| self.take_contrast(&mut v[..len]));
        if let Some(w) = &self.whitening {
            out.chunks_exact_mut(e).for_each(|v| v.iter_mut().zip(&w.mean).for_each(|(x, m)| *x -= m));
            let copy = out.to_vec();
            let count = self.views.count();
            let from = MatRef::from_column_major_slice(&copy, e, count).subrows(0, len);
            let to = MatMut::from_column_major_slice_mut(out, e, count).subrows_mut(0, len);
            // Row-major `v W` is column-major `W^T v`, and the stored matrix read by columns is `W^T`.
            gemm(to, Accumulate::Set, 1.0, MatRef::from_column_major_slice(&w.matrix, len, len), from);
        }
    }
}

/// Whether the pixels of a patch hardly differ.
fn is_blank(v: &[f64]) -> bool {
    let mean = v.iter().sum::<f64>() / v.len() as f64;
    let squares: f64 = v.iter().map(|x| (x - mean) * (x - mean)).sum();
    squares <= BLANK * (v.len() as f64 - 1.0)
}

impl Views for Transformed {
    fn size(&self) -> ViewsSize {
        self.views.size()
    }
    fn is_linear(&self) -> bool {
        false
    }
    fn layout(&self) -> Layout {
        self.views.layout()
    }
    fn constants<'a>(&'a self, name: &str, set: usize, out: &mut Vec<Constant<'a>>) {
        if let Some(Whitening { mean, matrix }) = self.whitening.as_deref() {
            let (name, len) = (|what: &str| whitening_name(name, set, what), mean.len());
            out.push(Constant { name: name("mean"), shape: vec![len], values: mean });
            out.push(Constant { name: name("matrix"), shape: vec![len, len], values: matrix });
        }
    }

    fn blank(&self, image: &[f64]) -> Vec<bool> {
        let (e, len) = (self.views.len(), self.pixels());
        let mut all = vec![0.0; self.views.count() * e];
        self.views.write(image, &mut all);
        all.chunks_exact(e).map(|v| is_blank(&v[..len])).collect()
    }

    fn write(&self, image: &[f64], out: &mut [f64]) {
        self.write_whitened(image, out);
        if let Some(floor) = self.transform.unit {
            let (e, len) = (self.views.len(), self.pixels());
            for v in out.chunks_exact_mut(e) {
                let scale = 1.0 / (norm_squared(&v[..len]) + floor).sqrt();
                v[..len].iter_mut().for_each(|x| *x *= scale);
            }
        }
    }

    fn pullback(&self, image: &[f64], views_bar: &[f64], image_bar: &mut [f64]) {
        let (e, len) = (self.views.len(), self.pixels());
        let mut bar = views_bar.to_vec();
        if let Some(floor) = self.transform.unit {
            let mut whitened = vec![0.0; bar.len()];
            self.write_whitened(image, &mut whitened);
            for (bar, v) in bar.chunks_exact_mut(e).zip(whitened.chunks_exact(e)) {
                let scale = 1.0 / (norm_squared(&v[..len]) + floor).sqrt();
                let along = dot(&bar[..len], &v[..len]) * scale * scale;
                bar[..len].iter_mut().zip(v).for_each(|(b, x)| *b = scale * (*b - along * x));
            }
        }
        if let Some(w) = &self.whitening {
            for bar in bar.chunks_exact_mut(e) {
                let pulled: Vec<f64> = w.matrix.chunks_exact(len).map(|row| dot(row, &bar[..len])).collect();
                bar[..len].copy_from_slice(&pulled);
            }
        }
        if let Some(floor) = self.transform.contrast {
            let mut raw = vec![0.0; bar.len()];
            self.views.write(image, &mut raw);
            for (bar, v) in bar.chunks_exact_mut(e).zip(raw.chunks_exact_mut(e)) {
                let (bar, v) = (&mut bar[..len], &mut v[..len]);
                let mean = v.iter().sum::<f64>() / len as f64;
                v.iter_mut().for_each(|x| *x -= mean);
                let gain = 1.0 / (norm_squared(v) / len as f64 + floor).sqrt();
                let along = dot(bar, v) * gain * gain / len as f64;
                bar.iter_mut().zip(v.iter()).for_each(|(b, x)| *b = gain * (*b - along * x));
                let mean = bar.iter().sum::<f64>() / len as f64;
                bar.iter_mut().for_each(|b| *b -= mean);
            }
        }
        self.views.pullback(image, &bar, image_bar);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Channels, Windows, check_views};
    use super::*;
    use crate::data::ImageShape;
    use crate::data::Pixels;

    fn views(channels: usize) -> Arc<dyn Views> {
        let shape = ImageShape::new(6, 5, channels).unwrap();
        Arc::new(Windows::new(shape, (3, 2), (1, 2), Channels::All).unwrap().location_aware())
    }

    fn images(count: usize, shape: ImageShape) -> Images {
        let mut rng = Rng::new(3);
        let pixels = (0..count * shape.len()).map(|_| rng.uniform()).collect();
        Images::new(shape, Pixels::F64(pixels)).unwrap()
    }

    #[test]
    fn the_contract_holds_for_every_combination() {
        for channels in [1, 3] {
            for bits in 1..8 {
                let pick = |bit: usize, value| (bits >> bit & 1 == 1).then_some(value);
                let transform =
                    PatchTransform { contrast: pick(0, 0.1), whiten: pick(1, 0.1), unit: pick(2, 0.3) };
                let mut views = Transformed::new(views(channels), transform).unwrap();
                if views.wants_whitening() {
                    let fitted = views.fit_whitening(&images(9, views.image_shape()), &mut Rng::new(1));
                    views = views.whitened(fitted).unwrap();
                }
                check_views(&views, 5).unwrap_or_else(|e| panic!("{transform:?}: {e}"));
            }
        }
    }

    #[test]
    fn whitened_patches_are_uncorrelated() {
        let mut rng = Rng::new(7);
        let patches: Vec<f64> = (0..4000)
            .flat_map(|_| {
                let (a, b) = (rng.normal(), rng.normal());
                [1.0 + a, a + 0.3 * b]
            })
            .collect();
        let w = Whitening::fit(&patches, 2, 1e-9);
        let white: Vec<[f64; 2]> = patches
            .chunks_exact(2)
            .map(|v| {
                let c = [v[0] - w.mean[0], v[1] - w.mean[1]];
                [0, 1].map(|j| c[0] * w.matrix[j] + c[1] * w.matrix[2 + j])
            })
            .collect();
        let mean = |f: &dyn Fn(&[f64; 2]) -> f64| white.iter().map(f).sum::<f64>() / 3999.0;
        assert!((mean(&|v| v[0] * v[0]) - 1.0).abs() < 1e-6);
        assert!((mean(&|v| v[1] * v[1]) - 1.0).abs() < 1e-6);
        assert!(mean(&|v| v[0] * v[1]).abs() < 1e-6);
    }

    #[test]
    fn blank_images_give_finite_patches() {
        let transform = PatchTransform { contrast: Some(0.01), whiten: Some(0.1), unit: Some(1e-3) };
        let views = Transformed::new(views(1), transform).unwrap();
        let blank = Images::new(views.image_shape(), Pixels::F64(vec![0.5; 60])).unwrap();
        let fitted = views.fit_whitening(&blank, &mut Rng::new(0));
        let views = views.whitened(fitted).unwrap();
        let mut out = vec![0.0; views.count() * views.len()];
        views.write(&[0.5; 30], &mut out);
        assert!(out.iter().all(|x| x.is_finite()));
        assert!(views.blank(&[0.5; 30]).iter().all(|b| *b));
    }

    #[test]
    fn senseless_numbers_are_refused() {
        let transform = PatchTransform { unit: Some(0.0), ..PatchTransform::default() };
        let error = Transformed::new(views(1), transform).unwrap_err().to_string();
        assert!(error.contains("transform.unit"), "{error}");
    }
}
