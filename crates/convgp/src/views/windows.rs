//! Windows: patches cut from an image on a regular grid.
//!
//! Element `e` of view `p` is `image[bases[p] + offsets[e]]`: two short tables describe all `P x E` numbers.

use super::{GeometryError, Layout, Views, ViewsSize};
use crate::data::ImageShape;

/// How windows treat colour. With one channel all three are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channels {
    /// Windows of every channel taken separately, the channel slowest: `C * rows * cols` views of `h * w` numbers.
    Pooled,
    /// Windows through all channels, the channel fastest: `rows * cols` views of `h * w * C` numbers.
    All,
    /// Windows of one channel only.
    Only(usize),
}

/// All windows of one size on a grid, without padding. A stride that does not divide the image leaves its last rows or
/// columns out.
///
/// ```
/// use convgp::data::ImageShape;
/// use convgp::views::{Channels, Views, Windows};
///
/// let shape = ImageShape::new(28, 28, 1).unwrap();
/// let windows = Windows::new(shape, (5, 5), (1, 1), Channels::All)?;
/// assert_eq!((windows.count(), windows.len()), (576, 25));
/// # Ok::<(), convgp::views::GeometryError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    shape: ImageShape,
    patch: (usize, usize),
    stride: (usize, usize),
    channels: Channels,
    location_aware: bool,
    grid: (usize, usize),
    bases: Vec<usize>,
    offsets: Vec<usize>,
}

impl Windows {
    /// Windows of `patch` (rows, columns), `stride` (rows, columns) apart.
    pub fn new(
        shape: ImageShape,
        patch: (usize, usize),
        stride: (usize, usize),
        channels: Channels,
    ) -> Result<Self, GeometryError> {
        let (height, width) = patch;
        if height == 0 || width == 0 {
            return Err(GeometryError::ZeroPatch { height, width });
        }
        if height > shape.height() || width > shape.width() {
            return Err(GeometryError::PatchTooLarge { height, width, shape });
        }
        if stride.0 == 0 || stride.1 == 0 {
            return Err(GeometryError::ZeroStride { rows: stride.0, cols: stride.1 });
        }
        match channels {
            Channels::Only(channel) if channel >= shape.channels() => {
                Err(GeometryError::ChannelOutOfRange { channel, channels: shape.channels() })
            }
            _ => Ok(Self::checked(shape, patch, stride, channels)),
        }
    }

    /// The whole image as the only view, in its own order.
    pub fn image(shape: ImageShape) -> Self {
        Self::checked(shape, (shape.height(), shape.width()), (1, 1), Channels::All)
    }

    /// One view for every pixel of every channel, channel slowest: [`Channels::Pooled`] windows of one pixel.
    pub fn pixels(shape: ImageShape) -> Self {
        Self::checked(shape, (1, 1), (1, 1), Channels::Pooled)
    }

    fn checked(shape: ImageShape, patch: (usize, usize), stride: (usize, usize), channels: Channels) -> Self {
        let grid = ((shape.height() - patch.0) / stride.0 + 1, (shape.width() - patch.1) / stride.1 + 1);
        let at =
            |row: usize, col: usize, channel: usize| (row * shape.width() + col) * shape.channels() + channel;
        // The channels that number views, and those that number elements.
        let (outer, inner) = match channels {
            Channels::Pooled => (0..shape.channels(), 0..1),
            Channels::All => (0..1, 0..shape.channels()),
            Channels::Only(c) => (c..c + 1, 0..1),
        };
        let mut bases = Vec::with_capacity(outer.len() * grid.0 * grid.1);
        for channel in outer {
            for row in 0..grid.0 {
                bases.extend((0..grid.1).map(|col| at(row * stride.0, col * stride.1, channel)));
            }
        }
        let mut offsets = Vec::with_capacity(patch.0 * patch.1 * inner.len());
        for row in 0..patch.0 {
            for col in 0..patch.1 {
                offsets.extend(inner.clone().map(|channel| at(row, col, channel)));
            }
        }
        Self { shape, patch, stride, channels, location_aware: false, grid, bases, offsets }
    }

    /// The same windows with row and column of the top-left corner, in pixels, appended to every view.
    #[must_use]
    pub fn location_aware(mut self) -> Self {
        self.location_aware = true;
        self
    }

    /// Index of the first element of each view, `P` of them.
    pub fn bases(&self) -> &[usize] {
        &self.bases
    }
    /// Index of each pixel element relative to the first: `E` of them, coordinates not counted.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }
    /// Rows and columns of the grid of corners in one plane.
    pub fn grid(&self) -> (usize, usize) {
        self.grid
    }
    /// Planes of views: the channels of [`Channels::Pooled`], otherwise one.
    pub fn planes(&self) -> usize {
        self.bases.len() / (self.grid.0 * self.grid.1)
    }
    /// Rows and columns of a window.
    pub fn patch(&self) -> (usize, usize) {
        self.patch
    }
    /// Rows and columns between neighbouring windows.
    pub fn stride(&self) -> (usize, usize) {
        self.stride
    }
    /// How colour is treated.
    pub fn channels(&self) -> Channels {
        self.channels
    }
    /// Whether coordinates are appended.
    pub fn is_location_aware(&self) -> bool {
        self.location_aware
    }
    /// Pixel row and column of the top-left corner of view `p`.
    pub fn corner(&self, p: usize) -> (usize, usize) {
        let pixel = self.bases[p] / self.shape.channels();
        (pixel / self.shape.width(), pixel % self.shape.width())
    }
}

impl Views for Windows {
    fn size(&self) -> ViewsSize {
        let coordinates = if self.location_aware { 2 } else { 0 };
        let len = self.offsets.len() + coordinates;
        ViewsSize { image: self.shape, count: self.bases.len(), len, coordinates }
    }

    fn write(&self, image: &[f64], out: &mut [f64]) {
        for (p, (view, &base)) in out.chunks_exact_mut(self.len()).zip(&self.bases).enumerate() {
            let (pixels, coordinates) = view.split_at_mut(self.offsets.len());
            for (value, &offset) in pixels.iter_mut().zip(&self.offsets) {
                *value = image[base + offset];
            }
            if self.location_aware {
                let (row, col) = self.corner(p);
                coordinates.copy_from_slice(&[row as f64, col as f64]);
            }
        }
    }

    fn pullback(&self, _image: &[f64], views_bar: &[f64], image_bar: &mut [f64]) {
        for (view_bar, &base) in views_bar.chunks_exact(self.len()).zip(&self.bases) {
            for (&value_bar, &offset) in view_bar.iter().zip(&self.offsets) {
                image_bar[base + offset] += value_bar;
            }
        }
    }

    fn layout(&self) -> Layout {
        let planes = match self.channels {
            Channels::Pooled if self.shape.channels() > 1 => {
                (0..self.shape.channels()).map(|c| format!("channel {c}")).collect()
            }
            Channels::Only(c) => vec![format!("channel {c}")],
            Channels::Pooled | Channels::All => vec![String::new()],
        };
        let depth = if self.channels == Channels::All { self.shape.channels() } else { 1 };
        let view = ImageShape::new(self.patch.0, self.patch.1, depth).expect("a checked patch is not empty");
        Layout { planes, rows: self.grid.0, cols: self.grid.1, stride: self.stride, view }
    }

    fn windows(&self) -> Option<&Windows> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::check_views;
    use super::*;

    /// Pixel values that spell out where they are: row, column, channel as decimal digits.
    fn telling(shape: ImageShape) -> Vec<f64> {
        let (w, c) = (shape.width(), shape.channels());
        (0..shape.len()).map(|i| (i / (w * c) * 100 + i / c % w * 10 + i % c) as f64).collect()
    }

    fn views_of(windows: &Windows) -> Vec<Vec<f64>> {
        check_views(windows, 1).unwrap();
        let mut out = vec![f64::NAN; windows.count() * windows.len()];
        windows.write(&telling(windows.image_shape()), &mut out);
        out.chunks(windows.len()).map(<[f64]>::to_vec).collect()
    }

    fn colour() -> ImageShape {
        ImageShape::new(4, 5, 3).unwrap()
    }

    #[test]
    fn pooled_channels_are_the_slowest_index_of_views() {
        let windows = Windows::new(colour(), (2, 3), (1, 1), Channels::Pooled).unwrap();
        let views = views_of(&windows);
        assert_eq!((windows.grid(), windows.planes(), views.len()), ((3, 3), 3, 27));
        assert_eq!(views[0], [0.0, 10.0, 20.0, 100.0, 110.0, 120.0]);
        // View (channel 2, row 1, col 2) is number (2 * 3 + 1) * 3 + 2.
        assert_eq!(views[23], [122.0, 132.0, 142.0, 222.0, 232.0, 242.0]);
        assert_eq!(windows.layout().planes, ["channel 0", "channel 1", "channel 2"]);
        assert_eq!(windows.layout().place(23), (2, 1, 2));
    }

    #[test]
    fn all_channels_are_the_fastest_index_of_elements() {
        let windows = Windows::new(colour(), (2, 3), (1, 1), Channels::All).unwrap();
        let views = views_of(&windows);
        assert_eq!((views.len(), windows.len()), (9, 18));
        assert_eq!(views[5][..6], [120.0, 121.0, 122.0, 130.0, 131.0, 132.0]);
        assert_eq!(views[5][9..12], [220.0, 221.0, 222.0]);
        assert_eq!(windows.layout().view, ImageShape::new(2, 3, 3).unwrap());
    }

    #[test]
    fn one_channel_is_a_slice_of_the_pooled_ones() {
        let pooled = views_of(&Windows::new(colour(), (3, 2), (1, 1), Channels::Pooled).unwrap());
        for c in 0..3 {
            let only = views_of(&Windows::new(colour(), (3, 2), (1, 1), Channels::Only(c)).unwrap());
            assert_eq!(only, pooled[c * 8..(c + 1) * 8]);
        }
    }

    #[test]
    fn strides_leave_a_remainder_out() {
        let shape = ImageShape::new(7, 9, 1).unwrap();
        let windows = Windows::new(shape, (2, 3), (3, 4), Channels::All).unwrap();
        let views = views_of(&windows);
        assert_eq!(windows.grid(), (2, 2)); // rows 0 and 3 (row 6 would stick out), columns 0 and 4
        let corners: Vec<f64> = views.iter().map(|v| v[0]).collect();
        assert_eq!(corners, [0.0, 40.0, 300.0, 340.0]);
        assert_eq!(windows.layout().place(3), (0, 3, 4));
    }

    #[test]
    fn location_aware_views_end_with_their_corner() {
        for channels in [Channels::Pooled, Channels::All, Channels::Only(1)] {
            let plain = Windows::new(colour(), (2, 2), (2, 3), channels).unwrap();
            let located = plain.clone().location_aware();
            assert_eq!((located.len(), located.coordinates()), (plain.len() + 2, 2));
            for (p, (a, b)) in views_of(&plain).iter().zip(views_of(&located)).enumerate() {
                let cell = p % 4;
                assert_eq!(b[..a.len()], a[..]);
                assert_eq!(b[a.len()..], [(cell / 2 * 2) as f64, (cell % 2 * 3) as f64]);
            }
        }
    }

    #[test]
    fn image_and_pixels_are_windows() {
        let image = Windows::image(colour());
        assert_eq!(views_of(&image), [telling(colour())]);
        assert_eq!(image.layout().view, colour());
        let pixels = views_of(&Windows::pixels(colour()));
        assert_eq!((pixels.len(), pixels[0].len()), (60, 1));
        assert_eq!(pixels[20 + 7], [121.0]); // channel 1, row 1, column 2
    }

    #[test]
    fn bad_geometry_is_named() {
        let new = |patch, stride, channels| Windows::new(colour(), patch, stride, channels).unwrap_err();
        let err = new((0, 2), (1, 1), Channels::All);
        assert_eq!(err, GeometryError::ZeroPatch { height: 0, width: 2 });
        let err = new((4, 6), (1, 1), Channels::All);
        assert_eq!(
            err.to_string(),
            "a patch of 4 x 6 pixels does not fit into a 4x5x3 image; use at most 4 x 5"
        );
        assert_eq!(new((2, 2), (1, 0), Channels::All), GeometryError::ZeroStride { rows: 1, cols: 0 });
        let err = new((2, 2), (1, 1), Channels::Only(3));
        assert_eq!(err, GeometryError::ChannelOutOfRange { channel: 3, channels: 3 });
    }
}
