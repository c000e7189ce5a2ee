//! Copies of training images under small random maps: what a label does not depend on, said with images.

use super::{Affine, GeometryError};
use crate::data::ImageShape;
use crate::rng::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Copies of every training image, each under a random map, all with the image's target.
///
/// Maps are normally distributed about the identity. Beyond its border an image goes on as it ends there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Augmentation {
    /// Copies besides the image itself.
    pub copies: usize,
    /// Standard deviation of rotations, in degrees.
    #[serde(default)]
    pub rotation: f64,
    /// Standard deviation of shifts in both directions, in pixels.
    #[serde(default)]
    pub shift: f64,
    /// Standard deviation of the logarithm of the scale.
    #[serde(default)]
    pub scaling: f64,
    /// Standard deviation of the slope of shears.
    #[serde(default)]
    pub shear: f64,
    /// Whether every other copy is mirrored left and right.
    #[serde(default)]
    pub mirror: bool,
}

impl Augmentation {
    /// Refuses numbers that make no sense.
    pub fn check(&self) -> Result<(), GeometryError> {
        let Self { rotation, shift, scaling, shear, .. } = *self;
        for (field, value) in
            [("rotation", rotation), ("shift", shift), ("scaling", scaling), ("shear", shear)]
        {
            if !(value.is_finite() && value >= 0.0) {
                return Err(GeometryError::BadAugmentation { field, value });
            }
        }
        Ok(())
    }

    /// Writes the copies of an image one after the other; equal seeds give equal copies.
    pub fn write(&self, shape: ImageShape, image: &[f64], seed: u64, out: &mut [f64]) {
        let mut rng = Rng::new(seed);
        for (i, copy) in out.chunks_exact_mut(shape.len()).enumerate() {
            warp(&self.draw(i, &mut rng), shape, image, copy);
        }
    }

    /// Writes one of these copies.
    pub fn write_one(&self, shape: ImageShape, image: &[f64], seed: u64, copy: usize, out: &mut [f64]) {
        let mut rng = Rng::new(seed);
        (0..copy).for_each(|i| {
            self.draw(i, &mut rng);
        });
        warp(&self.draw(copy, &mut rng), shape, image, out);
    }

    fn draw(&self, copy: usize, rng: &mut Rng) -> Affine {
        let mut normal = |sd: f64| sd * rng.normal();
        let map = Affine::rotation(normal(self.rotation))
            .then(&Affine::shear(normal(self.shear)))
            .then(&Affine::scaling(libm::exp(normal(self.scaling))))
            .then(&Affine::moved(normal(self.shift), normal(self.shift)));
        if self.mirror && copy.is_multiple_of(2) { map.then(&Affine::flip_horizontal()) } else { map }
    }
}

/// An image under a map, by bilinear interpolation.
fn warp(map: &Affine, shape: ImageShape, image: &[f64], out: &mut [f64]) {
    let (height, width, channels) = (shape.height(), shape.width(), shape.channels());
    let centre = [(height - 1) as f64 / 2.0, (width - 1) as f64 / 2.0];
    // The pixel below a coordinate, the one after it, and how near the latter is.
    let split = |x: f64, last: usize| {
        let x = x.clamp(0.0, last as f64);
        let low = (x.floor() as usize).min(last);
        (low, (low + 1).min(last), x - low as f64)
    };
    for (p, pixel) in out.chunks_exact_mut(channels).enumerate() {
        let [row, col] = map.apply([(p / width) as f64 - centre[0], (p % width) as f64 - centre[1]]);
        let (top, bottom, down) = split(row + centre[0], height - 1);
        let (left, right, along) = split(col + centre[1], width - 1);
        for (c, value) in pixel.iter_mut().enumerate() {
            let at = |row: usize, col: usize| image[(row * width + col) * channels + c];
            let above = at(top, left) + along * (at(top, right) - at(top, left));
            let below = at(bottom, left) + along * (at(bottom, right) - at(bottom, left));
            *value = above + down * (below - above);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Augmentation =
        Augmentation { copies: 2, rotation: 0.0, shift: 0.0, scaling: 0.0, shear: 0.0, mirror: false };

    #[test]
    fn copies_are_images_under_maps() {
        let shape = ImageShape::new(3, 2, 2).unwrap();
        let image: Vec<f64> = (0..12).map(f64::from).collect();
        let mut out = vec![0.0; 24];
        NONE.write(shape, &image, 1, &mut out);
        assert_eq!(out, [&image[..], &image[..]].concat(), "no spread leaves images as they are");
        Augmentation { mirror: true, ..NONE }.write(shape, &image, 1, &mut out);
        assert_eq!(out[..4], [2.0, 3.0, 0.0, 1.0]);
        assert_eq!(out[12..], image[..]);
        let all = Augmentation { rotation: 10.0, shift: 1.0, scaling: 0.1, shear: 0.1, ..NONE };
        all.write(shape, &image, 1, &mut out);
        assert!(out.iter().all(|x| (0.0..=11.0).contains(x)) && out[..12] != out[12..]);
        let (first, mut second) = (out.clone(), vec![0.0; 12]);
        all.write_one(shape, &image, 1, 1, &mut second);
        assert_eq!(second, first[12..]);
        all.write(shape, &image, 1, &mut out);
        assert_eq!(out, first, "the seed decides");
        warp(&Affine::moved(0.5, 0.0), shape, &image, &mut out[..12]);
        assert_eq!(out[4..8], [2.0, 3.0, 4.0, 5.0], "half way between two rows");
    }

    #[test]
    fn senseless_spreads_are_refused() {
        let error = Augmentation { shear: f64::NAN, ..NONE }.check().unwrap_err().to_string();
        assert!(error.contains("augmentation.shear"), "{error}");
        assert!(Augmentation { rotation: -1.0, ..NONE }.check().is_err());
    }
}
