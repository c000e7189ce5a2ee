//! Local contrast: pixels relative to the brightness around them, in units of the contrast around them.

use super::{GeometryError, Layout, Views, ViewsSize};
use crate::data::ImageShape;
use crate::linalg::dot;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A blur ends after so many standard deviations.
const REACH: f64 = 3.0;
/// The spread that contrasts are given: about that of pixels, so that settings made for pixels fit.
const SPREAD: f64 = 0.3;

/// What to look at instead of pixels `x`: `0.3 d / sqrt(G mean(d^2) + floor^2)` with `d = x - G mean(x)`, where means are
/// over channels and `G` is a Gaussian blur that knows where the image ends. Light and shade are gone, colours stay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Contrast {
    /// Standard deviation of the blur, in pixels.
    pub radius: f64,
    /// Contrast below which differences count as noise.
    pub floor: f64,
}

impl Default for Contrast {
    fn default() -> Self {
        Self { radius: 3.0, floor: 0.1 }
    }
}

/// Views of an image's local contrast.
#[derive(Debug, Clone)]
pub struct Contrasted {
    views: Arc<dyn Views>,
    blur: Blur,
    floor: f64,
}

impl Contrasted {
    /// Checks that radius and floor are positive.
    pub fn new(views: Arc<dyn Views>, contrast: Contrast) -> Result<Self, GeometryError> {
        let Contrast { radius, floor } = contrast;
        for (field, value) in [("radius", radius), ("floor", floor)] {
            if !(value.is_finite() && value > 0.0) {
                return Err(GeometryError::BadContrast { field, value });
            }
        }
        let blur = Blur::new(views.image_shape(), radius);
        Ok(Self { views, blur, floor })
    }

    /// `d`, as long as the image, and `0.3 / sqrt(G mean(d^2) + floor^2)`, a number per pixel.
    fn detail_and_gain(&self, image: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let channels = self.image_shape().channels();
        let around = self.blur.apply(&means(image, channels));
        let detail: Vec<f64> = image.iter().enumerate().map(|(i, x)| x - around[i / channels]).collect();
        let squares: Vec<f64> = detail.iter().map(|d| d * d).collect();
        let spread = self.blur.apply(&means(&squares, channels));
        let gain = spread.iter().map(|s| SPREAD / (s + self.floor * self.floor).sqrt()).collect();
        (detail, gain)
    }

    fn contrast(&self, detail: &[f64], gain: &[f64]) -> Vec<f64> {
        let channels = self.image_shape().channels();
        detail.iter().enumerate().map(|(i, d)| d * gain[i / channels]).collect()
    }
}

/// The mean over the channels of every pixel.
fn means(image: &[f64], channels: usize) -> Vec<f64> {
    image.chunks_exact(channels).map(|pixel| pixel.iter().sum::<f64>() / channels as f64).collect()
}

impl Views for Contrasted {
    fn size(&self) -> ViewsSize {
        self.views.size()
    }
    fn is_linear(&self) -> bool {
        false
    }

    fn write(&self, image: &[f64], out: &mut [f64]) {
        let (detail, gain) = self.detail_and_gain(image);
        self.views.write(&self.contrast(&detail, &gain), out);
    }

    fn pullback(&self, image: &[f64], views_bar: &[f64], image_bar: &mut [f64]) {
        let channels = self.image_shape().channels();
        let (detail, gain) = self.detail_and_gain(image);
        let mut bar = vec![0.0; image.len()];
        self.views.pullback(&self.contrast(&detail, &gain), views_bar, &mut bar);
        // gain' = -gain^3 spread' / (2 SPREAD^2)
        let through_gain = bar.chunks_exact(channels).zip(detail.chunks_exact(channels)).zip(&gain);
        let spread_bar: Vec<f64> = through_gain
            .map(|((bar, d), gain)| dot(bar, d) * -0.5 * gain.powi(3) / (SPREAD * SPREAD))
            .collect();
        let squares_bar = self.blur.transposed(&spread_bar);
        for (i, bar) in bar.iter_mut().enumerate() {
            let pixel = i / channels;
            *bar = *bar * gain[pixel] + 2.0 * detail[i] * squares_bar[pixel] / channels as f64;
        }
        let around_bar = self.blur.transposed(&means(&bar, channels));
        for (i, out) in image_bar.iter_mut().enumerate() {
            *out += bar[i] - around_bar[i / channels];
        }
    }

    fn layout(&self) -> Layout {
        self.views.layout()
    }
}

/// A Gaussian blur of one number per pixel, down and across; weights of pixels outside the image go to those inside.
#[derive(Debug, Clone)]
struct Blur {
    down: Vec<Taps>,
    across: Vec<Taps>,
}

/// The sources of one target: neighbours from `start`, with weights that sum to one.
#[derive(Debug, Clone)]
struct Taps {
    start: usize,
    weights: Vec<f64>,
}

impl Blur {
    fn new(shape: ImageShape, radius: f64) -> Self {
        Self { down: taps(shape.height(), radius), across: taps(shape.width(), radius) }
    }

    fn apply(&self, plane: &[f64]) -> Vec<f64> {
        let width = self.across.len();
        let mut down = vec![0.0; plane.len()];
        for (out, tap) in down.chunks_exact_mut(width).zip(&self.down) {
            for (line, &weight) in plane[tap.start * width..].chunks_exact(width).zip(&tap.weights) {
                add(out, weight, line);
            }
        }
        let blurred = |line: &[f64]| -> Vec<f64> {
            self.across.iter().map(|tap| dot(&tap.weights, &line[tap.start..][..tap.weights.len()])).collect()
        };
        down.chunks_exact(width).flat_map(blurred).collect()
    }

    fn transposed(&self, plane: &[f64]) -> Vec<f64> {
        let width = self.across.len();
        let mut across = vec![0.0; plane.len()];
        for (out, line) in across.chunks_exact_mut(width).zip(plane.chunks_exact(width)) {
            for (&value, tap) in line.iter().zip(&self.across) {
                add(&mut out[tap.start..], value, &tap.weights);
            }
        }
        let mut out = vec![0.0; plane.len()];
        for (line, tap) in across.chunks_exact(width).zip(&self.down) {
            for (out, &weight) in out[tap.start * width..].chunks_exact_mut(width).zip(&tap.weights) {
                add(out, weight, line);
            }
        }
        out
    }
}

fn add(out: &mut [f64], weight: f64, values: &[f64]) {
    out.iter_mut().zip(values).for_each(|(out, value)| *out += weight * value);
}

fn taps(size: usize, radius: f64) -> Vec<Taps> {
    let reach = (REACH * radius).ceil().min(size as f64) as usize;
    let around = |at: usize| {
        let start = at.saturating_sub(reach);
        let bell = |i: usize| (-0.5 * ((i as f64 - at as f64) / radius).powi(2)).exp();
        let mut weights: Vec<f64> = (start..size.min(at + reach + 1)).map(bell).collect();
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= total);
        Taps { start, weights }
    };
    (0..size).map(around).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Channels, Windows, check_views};
    use super::*;

    fn contrasted(shape: (usize, usize, usize), contrast: Contrast) -> Result<Contrasted, GeometryError> {
        let shape = ImageShape::new(shape.0, shape.1, shape.2).unwrap();
        let windows = Windows::new(shape, (2, 3), (1, 2), Channels::All).unwrap().location_aware();
        Contrasted::new(Arc::new(windows), contrast)
    }

    fn contrast(views: &Contrasted, image: &[f64]) -> Vec<f64> {
        let (detail, gain) = views.detail_and_gain(image);
        views.contrast(&detail, &gain)
    }

    #[test]
    fn the_contract_holds() {
        for shape in [(5, 7, 3), (6, 4, 1)] {
            for radius in [0.5, 1.5, 40.0] {
                let views = contrasted(shape, Contrast { radius, floor: 0.2 }).unwrap();
                check_views(&views, 1).unwrap_or_else(|e| panic!("{shape:?}, radius {radius}: {e}"));
            }
        }
    }

    #[test]
    fn light_and_shade_do_not_matter() {
        let views = contrasted((9, 8, 1), Contrast { radius: 1.5, floor: 1e-6 }).unwrap();
        let image: Vec<f64> = (0..72).map(|i| ((i * i) as f64).sin()).collect();
        let lit: Vec<f64> = image.iter().map(|x| 0.3 * x + 4.0).collect();
        for (a, b) in contrast(&views, &image).iter().zip(contrast(&views, &lit)) {
            assert!((a - b).abs() < 1e-9, "{a} {b}");
        }
        assert!(contrast(&views, &[0.7; 72]).iter().all(|y| y.abs() < 1e-9), "an even image has no contrast");
    }

    #[test]
    fn a_grey_image_is_divided_by_its_own_spread() {
        // A radius this large takes means over the whole image.
        let views = contrasted((4, 6, 1), Contrast { radius: 1e6, floor: 1e-9 }).unwrap();
        let image: Vec<f64> = (0..24).map(|i| (i * 5 % 7) as f64).collect();
        let mean = image.iter().sum::<f64>() / 24.0;
        let spread = (image.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 24.0).sqrt();
        for (y, x) in contrast(&views, &image).iter().zip(&image) {
            assert!((y - SPREAD * (x - mean) / spread).abs() < 1e-6, "{y}");
        }
    }

    #[test]
    fn senseless_numbers_are_refused() {
        for (radius, floor, field) in [(0.0, 0.1, "radius"), (f64::NAN, 0.1, "radius"), (1.0, -0.1, "floor")]
        {
            let error = contrasted((4, 4, 1), Contrast { radius, floor }).unwrap_err();
            assert!(error.to_string().contains(field), "{error}");
        }
    }
}
