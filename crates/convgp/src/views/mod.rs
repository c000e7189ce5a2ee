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
//! - `check_views` (feature `testing`): the contract every implementation is tested with.
//!
//! # Order
//!
//! Pixels lie row-major with the channel fastest (see [`crate::data`]). Views lie in *planes* of `rows x cols` top-left
//! corners, view index `(plane * rows + row) * cols + col`; what a plane is (a channel, a map of an orbit) is said by
//! [`Layout`]. Elements of a view are row-major with the channel fastest, coordinates last.

mod affine;
mod augment;
#[cfg(any(test, feature = "testing"))]
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
#[cfg(any(test, feature = "testing"))]
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
use crate::linalg::Mat;

/// Sizes of views of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewsSize {
    /// Shape of the images looked at.
    pub image: ImageShape,
    /// Number of views `P`, at least one.
    pub count: usize,
    /// Numbers in one view `E`, coordinates included.
    pub len: usize,
    /// Trailing numbers of every view that do not depend on the image.
    pub coordinates: usize,
}

/// `P` views of an image, each of `E` numbers: a map of the pixels, then the coordinates of location-aware views.
///
/// ```
/// use convgp::{data::ImageShape, views::{Channels, Views, Windows}};
///
/// let windows = Windows::new(ImageShape::new(2, 2, 1)?, (1, 2), (1, 1), Channels::All)?;
/// let mut views = [0.0; 4];
/// windows.write(&[0.1, 0.2, 0.3, 0.4], &mut views);
/// assert_eq!((windows.count(), windows.len(), views), (2, 2, [0.1, 0.2, 0.3, 0.4]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A new kind of views is an implementation of this trait; `check_views` (feature `testing`) tests it.
pub trait Views: std::fmt::Debug + Send + Sync {
    /// What they look at, how many they are and how long.
    fn size(&self) -> ViewsSize;

    /// Shape of the images looked at.
    fn image_shape(&self) -> ImageShape {
        self.size().image
    }

    /// Number of views `P`, at least one.
    fn count(&self) -> usize {
        self.size().count
    }

    /// Numbers in one view `E`, coordinates included.
    fn len(&self) -> usize {
        self.size().len
    }

    /// Never true: a view holds at least one pixel.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Trailing numbers of every view that do not depend on the image: 2 for a location-aware view (row and column), else 0.
    fn coordinates(&self) -> usize {
        self.size().coordinates
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

    /// Writes the views of several images that lie one after the other.
    fn write_many(&self, images: &[f64], out: &mut [f64]) {
        let images = images.chunks_exact(self.image_shape().len());
        images.zip(out.chunks_exact_mut(self.count() * self.len())).for_each(|(x, out)| self.write(x, out));
    }

    /// Whether they look at the responses of a first stage, which are no picture, rather than at pixels.
    fn is_staged(&self) -> bool {
        false
    }

    /// Products of the only view of an image with other such views (`[other][element]`), as sums over places of the image:
    /// the layout of the places, and `others x places`. None where there is no such sum.
    fn products_by_place(&self, image: &[f64], others: &[f64]) -> Option<(Layout, Mat)> {
        let _ = (image, others);
        None
    }

    /// Adds the arrays that they are made of and that are no parameters, such as a whitening; `name` is that of the
    /// component, `set` counts its sets of views.
    fn constants<'a>(&'a self, name: &str, set: usize, out: &mut Vec<Constant<'a>>) {
        let _ = (name, set, out);
    }

    /// How the views lie on the image, to paint one number per view.
    fn layout(&self) -> Layout;

    /// The windows when the views are nothing but windows of the untouched image (with coordinates or without), so that
    /// an engine may work with pixel offsets and box filters.
    fn windows(&self) -> Option<&Windows> {
        None
    }
}

/// A named array that belongs to a model and is no parameter of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant<'a> {
    /// Its name in a model file.
    pub name: String,
    /// Its shape as an array.
    pub shape: Vec<usize>,
    /// Its numbers, row-major.
    pub values: &'a [f64],
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
