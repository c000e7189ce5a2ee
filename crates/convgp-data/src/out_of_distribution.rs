//! Images that belong to no data set, to see whether a model knows that it does not know them.

use convgp::data::{DataError, ImageShape, Images, Pixels};
use convgp::rng::Rng;

/// Every pixel drawn evenly between `low` and `high`. Equal seeds give equal images.
pub fn noise(
    shape: ImageShape,
    (low, high): (f64, f64),
    count: usize,
    seed: u64,
) -> Result<Images, DataError> {
    let mut rng = Rng::new(seed);
    let pixel = |_| (low + (high - low) * rng.uniform()) as f32;
    Images::new(shape, Pixels::F32((0..count * shape.len()).map(pixel).collect()))
}

/// Images of one grey each, in even steps from `low` to `high`, both included.
pub fn blank(shape: ImageShape, (low, high): (f64, f64), count: usize) -> Result<Images, DataError> {
    let last = count.saturating_sub(1).max(1) as f64;
    let grey = |i: usize| (low + (high - low) * i as f64 / last) as f32;
    Images::new(shape, Pixels::F32((0..count).flat_map(|i| vec![grey(i); shape.len()]).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(images: &Images) -> &[f32] {
        match images.pixels() {
            Pixels::F32(v) => v,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn noise_fills_its_range_and_follows_its_seed() {
        let shape = ImageShape::new(4, 5, 3).unwrap();
        let images = noise(shape, (-1.0, 3.0), 200, 7).unwrap();
        let p = pixels(&images);
        assert_eq!((images.count(), p.len()), (200, 200 * 60));
        let mean = p.iter().sum::<f32>() / p.len() as f32;
        // The standard deviation of the mean is 4 / sqrt(12 * 12000) = 0.0105.
        assert!((mean - 1.0).abs() < 0.05, "{mean}");
        assert!(p.iter().all(|x| (-1.0..=3.0).contains(x)) && p.iter().any(|x| *x > 2.9));
        assert_eq!(images, noise(shape, (-1.0, 3.0), 200, 7).unwrap());
        assert_ne!(images, noise(shape, (-1.0, 3.0), 200, 8).unwrap());
    }

    #[test]
    fn blank_images_have_one_grey_each() {
        let images = blank(ImageShape::new(2, 2, 1).unwrap(), (0.0, 1.0), 3).unwrap();
        assert_eq!(pixels(&images), [[0.0; 4], [0.5; 4], [1.0; 4]].concat());
        assert_eq!(blank(images.shape(), (0.5, 1.0), 1).unwrap().count(), 1);
    }
}
