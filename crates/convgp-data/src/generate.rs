//! Synthetic data sets.

use convgp::data::{Dataset, ImageShape, Images, Pixels, Targets};
use convgp::rng::Rng;

const SIDE: usize = 28;
const SMALLEST: usize = 4;
/// Height and width differ by at least this many pixels.
const MARGIN: usize = 3;

/// The rectangles data of Larochelle et al. (2007): outlines one pixel wide on 28x28 images, told wide from tall.
///
/// Height and width run from 4 to 28 and never come closer than 3; the 506 allowed pairs are equally likely, and so
/// are the corners where the outline fits. Pixels are 0 or 255; label 1 means taller than wide. Equal seeds give equal
/// images, and a longer set starts with the shorter one. This is the distribution of the original files, not a copy
/// of them.
///
/// ```
/// let data = convgp_data::generate::rectangles(1200, 0);
/// assert_eq!(data.class_names(), ["wide", "tall"]);
/// ```
///
/// # Panics
/// When `count` is zero: a data set holds at least one image.
pub fn rectangles(count: usize, seed: u64) -> Dataset {
    assert!(count > 0, "rectangles(0, _): a data set holds at least one image");
    let mut rng = Rng::new(seed);
    let sizes = allowed_sizes();
    let mut pixels = vec![0u8; count * SIDE * SIDE];
    let mut labels = Vec::with_capacity(count);
    for image in pixels.chunks_exact_mut(SIDE * SIDE) {
        let (height, width) = sizes[rng.below(sizes.len())];
        let (top, left) = (rng.below(SIDE - height + 1), rng.below(SIDE - width + 1));
        draw_outline(image, top, left, height, width);
        labels.push(u32::from(height > width));
    }
    let shape = ImageShape::new(SIDE, SIDE, 1).expect("28x28x1 has no empty side");
    let images = Images::new(shape, Pixels::U8(pixels)).expect("count images of the shape were drawn");
    let targets = Targets::classes(labels, 2).expect("labels are 0 or 1");
    Dataset::new(images, targets)
        .and_then(|data| data.with_class_names(vec!["wide".into(), "tall".into()]))
        .expect("one label per image and two names for two classes")
}

/// Every allowed `(height, width)`, in a fixed order.
fn allowed_sizes() -> Vec<(usize, usize)> {
    let sides = SMALLEST..=SIDE;
    sides
        .clone()
        .flat_map(|h| sides.clone().map(move |w| (h, w)))
        .filter(|&(h, w)| h.abs_diff(w) >= MARGIN)
        .collect()
}

fn draw_outline(image: &mut [u8], top: usize, left: usize, height: usize, width: usize) {
    let (bottom, right) = (top + height - 1, left + width - 1);
    image[top * SIDE + left..=top * SIDE + right].fill(255);
    image[bottom * SIDE + left..=bottom * SIDE + right].fill(255);
    for row in top..=bottom {
        image[row * SIDE + left] = 255;
        image[row * SIDE + right] = 255;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Top, left, height and width of the bounding box; checks that exactly its outline is drawn.
    fn outline(image: &[u8]) -> (usize, usize, usize, usize) {
        let on: Vec<(usize, usize)> =
            (0..SIDE * SIDE).filter(|&i| image[i] != 0).map(|i| (i / SIDE, i % SIDE)).collect();
        let (top, bottom) = (on[0].0, on[on.len() - 1].0);
        let left = on.iter().map(|p| p.1).min().unwrap();
        let right = on.iter().map(|p| p.1).max().unwrap();
        let expected = |r: usize, c: usize| {
            (top..=bottom).contains(&r)
                && (left..=right).contains(&c)
                && (r == top || r == bottom || c == left || c == right)
        };
        for (i, &v) in image.iter().enumerate() {
            assert_eq!(v, if expected(i / SIDE, i % SIDE) { 255 } else { 0 });
        }
        (top, left, bottom - top + 1, right - left + 1)
    }

    fn parts(data: &Dataset) -> (&[u8], &[u32]) {
        match (data.images().pixels(), data.targets()) {
            (Pixels::U8(p), Targets::Classes { labels, .. }) => (p, labels),
            other => panic!("{other:?}"),
        }
    }

    /// Chi-square per degree of freedom of counts against a uniform distribution.
    fn chi_square(counts: &[usize]) -> f64 {
        let expected = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
        let sum: f64 = counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
        sum / (counts.len() - 1) as f64
    }

    #[test]
    fn there_are_506_sizes() {
        assert_eq!(allowed_sizes().len(), 506);
    }

    #[test]
    fn sizes_and_corners_are_uniform_and_labels_follow_the_shape() {
        let data = rectangles(50_000, 7);
        let (pixels, labels) = parts(&data);
        let sizes = allowed_sizes();
        let mut by_size = vec![0; sizes.len()];
        // Corners of one side length share a distribution: look at heights and widths of 20 (nine places each).
        let (mut tops, mut lefts) = ([0; 9], [0; 9]);
        for (image, &label) in pixels.chunks_exact(SIDE * SIDE).zip(labels) {
            let (top, left, height, width) = outline(image);
            assert_eq!(label, u32::from(height > width));
            by_size[sizes.iter().position(|&s| s == (height, width)).expect("an allowed size")] += 1;
            if height == 20 {
                tops[top] += 1;
            }
            if width == 20 {
                lefts[left] += 1;
            }
        }
        // 505 degrees of freedom: standard deviation 0.063. Eight degrees: 99.9 % quantile 3.27.
        let ratio = chi_square(&by_size);
        assert!((ratio - 1.0).abs() < 0.25, "{ratio}");
        assert!(chi_square(&tops) < 3.3 && chi_square(&lefts) < 3.3, "{tops:?} {lefts:?}");
        let tall = labels.iter().filter(|&&l| l == 1).count();
        assert!((tall as f64 - 25_000.0).abs() < 4.0 * 112.0, "{tall}");
    }

    #[test]
    fn same_seed_same_images() {
        let (long, short) = (rectangles(20, 3), rectangles(10, 3));
        assert_eq!(long.select(&(0..10).collect::<Vec<_>>()).unwrap(), short);
        assert_ne!(rectangles(10, 4), short);
    }
}
