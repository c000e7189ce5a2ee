//! Linear maps from an image to an image of the same shape: a few weighted source pixels for every target pixel.

use super::{Affine, GeometryError};
use crate::data::ImageShape;

/// Sample points this close to a pixel centre are that pixel, so that rounding never blurs an exact copy.
const SNAP: f64 = 1e-9;

/// A sparse linear map of images. Flips, turns and shifts have at most one source per pixel, of weight 1: they copy
/// exactly.
///
/// ```
/// use convgp::data::ImageShape;
/// use convgp::views::{Affine, ImageMap};
///
/// let flip = ImageMap::from_affine(ImageShape::new(1, 3, 1).unwrap(), &Affine::flip_horizontal());
/// let mut flipped = [0.0; 3];
/// flip.apply(&[1.0, 2.0, 3.0], &mut flipped);
/// assert_eq!(flipped, [3.0, 2.0, 1.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ImageMap {
    name: String,
    shape: ImageShape,
    /// `taps[starts[i]..starts[i + 1]]` are the sources of target `i`, ascending, with non-zero weights.
    starts: Vec<usize>,
    taps: Vec<(usize, f64)>,
}

impl ImageMap {
    /// Every channel transformed alike, with bilinear interpolation and zeros outside the image.
    pub fn from_affine(shape: ImageShape, affine: &Affine) -> Self {
        let channels = shape.channels();
        let centre = [(shape.height() - 1) as f64 / 2.0, (shape.width() - 1) as f64 / 2.0];
        let (mut starts, mut taps) = (vec![0], Vec::with_capacity(shape.len()));
        for row in 0..shape.height() {
            for col in 0..shape.width() {
                let [y, x] = affine.apply([row as f64 - centre[0], col as f64 - centre[1]]);
                let sources = bilinear(shape, y + centre[0], x + centre[1]);
                for channel in 0..channels {
                    taps.extend(sources.iter().map(|&(pixel, weight)| (pixel * channels + channel, weight)));
                    starts.push(taps.len());
                }
            }
        }
        Self { name: affine.name().to_owned(), shape, starts, taps }
    }

    /// `target[i] = source[permutation[i]]` over all pixel values, channels included.
    pub fn from_permutation(
        shape: ImageShape,
        name: impl Into<String>,
        permutation: &[usize],
    ) -> Result<Self, GeometryError> {
        let count = shape.len();
        if permutation.len() != count {
            return Err(GeometryError::PermutationLength { found: permutation.len(), shape });
        }
        let mut used = vec![false; count];
        for (position, &source_index) in permutation.iter().enumerate() {
            if used.get(source_index) != Some(&false) {
                return Err(GeometryError::NotAPermutation { position, source_index, count });
            }
            used[source_index] = true;
        }
        let taps = permutation.iter().map(|&source| (source, 1.0)).collect();
        Ok(Self { name: name.into(), shape, starts: (0..=count).collect(), taps })
    }

    /// Writes the transformed image.
    pub fn apply(&self, image: &[f64], out: &mut [f64]) {
        for (target, ends) in out.iter_mut().zip(self.starts.windows(2)) {
            *target =
                self.taps[ends[0]..ends[1]].iter().map(|&(source, weight)| weight * image[source]).sum();
        }
    }

    /// Adds the pullback of [`ImageMap::apply`] to `image_bar`.
    pub fn pullback(&self, out_bar: &[f64], image_bar: &mut [f64]) {
        for (&target_bar, ends) in out_bar.iter().zip(self.starts.windows(2)) {
            for &(source, weight) in &self.taps[ends[0]..ends[1]] {
                image_bar[source] += weight * target_bar;
            }
        }
    }

    /// Shape of the images mapped.
    pub fn shape(&self) -> ImageShape {
        self.shape
    }
    /// What it does, in words.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The table `p` with `target[i] = source[p[i]]`, if the map only reorders pixels.
    pub fn permutation(&self) -> Option<Vec<usize>> {
        let table: Vec<usize> = self.taps.iter().map(|tap| tap.0).collect();
        let copies =
            self.taps.iter().all(|tap| tap.1 == 1.0) && self.starts.windows(2).all(|s| s[1] == s[0] + 1);
        (copies && Self::from_permutation(self.shape, "", &table).is_ok()).then_some(table)
    }

    /// Whether images come out as they went in.
    pub fn is_identity(&self) -> bool {
        self.taps.len() == self.shape.len()
            && self.taps.iter().enumerate().all(|(i, &tap)| tap == (i, 1.0) && self.starts[i] == i)
    }

    /// Whether both do the same up to rounding, whatever they are called.
    pub fn same(&self, other: &Self) -> bool {
        let near = |a: &(usize, f64), b: &(usize, f64)| a.0 == b.0 && (a.1 - b.1).abs() < SNAP;
        self.shape == other.shape
            && self.starts == other.starts
            && self.taps.iter().zip(&other.taps).all(|(a, b)| near(a, b))
    }
}

/// Pixels and weights whose sum is the image at a point between pixel centres.
fn bilinear(shape: ImageShape, row: f64, col: f64) -> Vec<(usize, f64)> {
    let mut taps = Vec::with_capacity(4);
    for (r, row_weight) in neighbours(row, shape.height()) {
        for (c, col_weight) in neighbours(col, shape.width()) {
            taps.push((r * shape.width() + c, row_weight * col_weight));
        }
    }
    taps
}

/// The pixels on both sides of a coordinate that lie inside `0..size`, with their weights.
fn neighbours(at: f64, size: usize) -> impl Iterator<Item = (usize, f64)> {
    let at = if (at - at.round()).abs() < SNAP { at.round() } else { at };
    let (below, part) = (at.floor(), at - at.floor());
    [(below, 1.0 - part), (below + 1.0, part)]
        .into_iter()
        .filter(move |&(pixel, weight)| weight > 0.0 && pixel >= 0.0 && pixel < size as f64)
        .map(|(pixel, weight)| (pixel as usize, weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(map: &ImageMap, image: &[f64]) -> Vec<f64> {
        let mut out = vec![f64::NAN; image.len()];
        map.apply(image, &mut out);
        out
    }

    #[test]
    fn doing_nothing_is_exactly_the_identity() {
        let shape = ImageShape::new(5, 8, 3).unwrap();
        for affine in [
            Affine::identity(),
            Affine::rotation(0.0),
            Affine::rotation(-720.0),
            Affine::shear(0.0),
            Affine::scaling(1.0),
            Affine::translation(0, 0),
            Affine::rotation(17.0).then(&Affine::rotation(-17.0)),
            Affine::scaling(1.3).then(&Affine::scaling(1.0 / 1.3)),
        ] {
            assert!(ImageMap::from_affine(shape, &affine).is_identity(), "{}", affine.name());
        }
        assert!(!ImageMap::from_affine(shape, &Affine::flip_vertical()).is_identity());
    }

    #[test]
    fn square_symmetries_read_where_they_should() {
        let n = 4;
        let shape = ImageShape::new(n, n, 1).unwrap();
        let check = |affine: Affine, source: &dyn Fn(usize, usize) -> (usize, usize)| {
            let expected: Vec<usize> =
                (0..n * n).map(|i| source(i / n, i % n)).map(|(row, col)| row * n + col).collect();
            let map = ImageMap::from_affine(shape, &affine);
            assert_eq!(map.permutation(), Some(expected), "{}", affine.name());
        };
        let m = n - 1;
        check(Affine::flip_horizontal(), &|r, c| (r, m - c));
        check(Affine::flip_vertical(), &|r, c| (m - r, c));
        check(Affine::rotation(90.0), &|r, c| (c, m - r));
        check(Affine::rotation(180.0), &|r, c| (m - r, m - c));
        check(Affine::rotation(270.0), &|r, c| (m - c, r));
        check(Affine::transpose(), &|r, c| (c, r));
        check(Affine::antitranspose(), &|r, c| (m - c, m - r));
    }

    #[test]
    fn a_quarter_turn_is_the_limit_of_rotations() {
        let shape = ImageShape::new(7, 7, 2).unwrap();
        let image: Vec<f64> = (0..shape.len()).map(|i| (i * i % 23) as f64).collect();
        let turned = applied(&ImageMap::from_affine(shape, &Affine::rotation(90.0)), &image);
        let near = applied(&ImageMap::from_affine(shape, &Affine::rotation(90.0 + 1e-6)), &image);
        let gap = turned.iter().zip(&near).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(gap > 0.0 && gap < 1e-5, "{gap}");
        let by_parts = (0..3).fold(Affine::identity(), |a, _| a.then(&Affine::rotation(30.0)));
        assert_eq!(applied(&ImageMap::from_affine(shape, &by_parts), &image), turned);
    }

    #[test]
    fn shifts_fill_with_zeros_and_move_down_and_right() {
        let shape = ImageShape::new(2, 3, 1).unwrap();
        let map = ImageMap::from_affine(shape, &Affine::translation(1, -1));
        assert_eq!(applied(&map, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), [0.0, 0.0, 0.0, 2.0, 3.0, 0.0]);
        assert_eq!(map.permutation(), None);
    }

    #[test]
    fn shear_slants_to_the_right_and_scaling_enlarges() {
        let shape = ImageShape::new(3, 3, 1).unwrap();
        let bar = [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0];
        let slanted = applied(&ImageMap::from_affine(shape, &Affine::shear(0.25)), &bar);
        assert_eq!(slanted, [0.0, 0.75, 0.25, 0.0, 1.0, 0.0, 0.25, 0.75, 0.0]);
        let dot = [0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0];
        let grown = applied(&ImageMap::from_affine(shape, &Affine::scaling(2.0)), &dot);
        assert_eq!(grown, [0.25, 0.5, 0.25, 0.5, 1.0, 0.5, 0.25, 0.5, 0.25]);
    }

    #[test]
    fn permutations_are_checked() {
        let shape = ImageShape::new(1, 3, 1).unwrap();
        let new = |table: &[usize]| ImageMap::from_permutation(shape, "test", table);
        let cycle = new(&[1, 2, 0]).unwrap();
        assert_eq!(applied(&cycle, &[5.0, 6.0, -0.0]), [6.0, -0.0, 5.0]);
        assert_eq!(cycle.permutation(), Some(vec![1, 2, 0]));
        assert_eq!(new(&[0, 1]).unwrap_err(), GeometryError::PermutationLength { found: 2, shape });
        let repeated = GeometryError::NotAPermutation { position: 2, source_index: 1, count: 3 };
        assert_eq!(new(&[0, 1, 1]).unwrap_err(), repeated);
        let outside = GeometryError::NotAPermutation { position: 0, source_index: 3, count: 3 };
        assert_eq!(new(&[3, 1, 0]).unwrap_err(), outside);
    }
}
