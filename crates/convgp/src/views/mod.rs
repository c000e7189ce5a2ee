//! Views of an image: what the patch response `g` looks at.
//!
//! `f(x) = sum_p w_p g(x[p])`: an image `x` of `D` numbers has `P` views `x[p]` of `E` numbers each. A view is a map of
//! the pixels, mostly a linear one, with constants (its own coordinates) appended when it is *location-aware*.
//!
//! - [`Windows`]: patches on a grid; the whole image and single pixels are the largest and the smallest window.
//! - [`Orbit`]: windows of every transformed image, the transformations being [`ImageMap`]s.
//! - [`Contrasted`]: either of them, of an image's local contrast.
//! - [`Transformed`]: any of them, every patch normalised by itself.
//! - [`ViewSpec`]: the same, as written in a model file.
//! - [`check_views`]: the contract every implementation is tested with.
//!
//! # Order
//!
//! Pixels lie row-major with the channel fastest (see [`crate::data`]). Views lie in *planes* of `rows x cols` top-left
//! corners, view index `(plane * rows + row) * cols + col`; what a plane is (a channel, a map of an orbit) is said by
//! [`Layout`]. Elements of a view are row-major with the channel fastest, coordinates last.

mod affine;
mod augment;
mod contract;
mod contrast;
mod error;
mod maps;
mod orbit;
mod sets;
mod spec;
mod transform;
mod windows;

pub use affine::Affine;
pub use augment::Augmentation;
pub use contract::check_views;
pub use contrast::{Contrast, Contrasted};
pub use error::GeometryError;
pub use maps::ImageMap;
pub use orbit::Orbit;
pub use sets::{MapSet, compose_sets};
pub use spec::{ChannelSpec, Pair, ViewSpec};
pub use transform::{PatchTransform, Transformed, Whitening};
pub use windows::{Channels, Windows};

use crate::data::ImageShape;

/// `P` views of an image, each of `E` numbers: a map of the pixels, then the coordinates of location-aware views.
///
/// A new kind of views is an implementation of this trait; [`check_views`] tests it.
pub trait Views: std::fmt::Debug + Send + Sync {
    /// Shape of the images looked at.
    fn image_shape(&self) -> ImageShape;

    /// Number of views `P`, at least one.
    fn count(&self) -> usize;

    /// Numbers in one view `E`, coordinates included.
    fn len(&self) -> usize;

    /// Never true: a view holds at least one pixel.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Trailing numbers of every view that do not depend on the image: 2 for a location-aware view (row and column), else 0.
    fn coordinates(&self) -> usize {
        0
    }

    /// Writes all views of one image, row-major `P x E`.
    fn write(&self, image: &[f64], out: &mut [f64]);

    /// Adds the pullback of [`Views::write`] at an image: `image_bar += J^T views_bar`, `views_bar` being `P x E`.
    fn pullback(&self, image: &[f64], views_bar: &[f64], image_bar: &mut [f64]);

    /// Whether the map of the pixels is linear, as it is unless views are normalised.
    fn is_linear(&self) -> bool {
        true
    }

    /// Which views of an image say nothing because their pixels are all alike; none, unless patches are transformed.
    fn blank(&self, image: &[f64]) -> Vec<bool> {
        let _ = image;
        vec![false; self.count()]
    }

    /// These views when their patches are transformed, whose whitening belongs to a model's numbers.
    fn transformed(&self) -> Option<&Transformed> {
        None
    }

    /// How the views lie on the image, to paint one number per view.
    fn layout(&self) -> Layout;

    /// The windows when the views are nothing but windows of the untouched image (with coordinates or without), so that
    /// an engine may work with pixel offsets and box filters.
    fn windows(&self) -> Option<&Windows> {
        None
    }
}

/// Where views lie: planes of `rows x cols` top-left corners, `stride` pixels apart.
///
/// The weights of plane `k` are `weights[k * rows * cols..][..rows * cols]`, a heat map as it stands; one inducing
/// input without its coordinates is an image of shape `view`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// A name for every plane, such as `channel 0` or `flip-horizontal`; empty for the only plane of plain windows.
    pub planes: Vec<String>,
    /// Corners below each other.
    pub rows: usize,
    /// Corners beside each other.
    pub cols: usize,
    /// Pixels between neighbouring corners, down and to the right.
    pub stride: (usize, usize),
    /// A view's own shape as a picture.
    pub view: ImageShape,
}

impl Layout {
    /// Number of views, `planes * rows * cols`.
    pub fn count(&self) -> usize {
        self.planes.len() * self.rows * self.cols
    }

    /// Plane of view `p`, and the pixel row and column of its top-left corner.
    pub fn place(&self, p: usize) -> (usize, usize, usize) {
        let (plane, cell) = (p / (self.rows * self.cols), p % (self.rows * self.cols));
        (plane, cell / self.cols * self.stride.0, cell % self.cols * self.stride.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout_places_views_in_order() {
        let view = ImageShape::new(2, 2, 1).unwrap();
        let layout = Layout { planes: vec!["a".into(), "b".into()], rows: 3, cols: 4, stride: (2, 5), view };
        assert_eq!(layout.count(), 24);
        assert_eq!(layout.place(0), (0, 0, 0));
        assert_eq!(layout.place(7), (0, 2, 15));
        assert_eq!(layout.place(12 + 9), (1, 4, 5));
    }
}
