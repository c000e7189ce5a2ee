//! Images, targets and minibatches.
//!
//! Images are stored compactly (bytes stay bytes) and handed to the engines as `f64` in a [`Batch`], on the
//! [`PixelScale`] they carry. Memory layout is row-major with the channel fastest,
//! `(row * width + col) * channels + channel`, always.

mod batch;
mod id;
mod pixels;

pub use batch::{Batch, Minibatch};
pub(crate) use id::{extend_id, image_id};
pub use pixels::{PixelOwner, PixelScale, PixelView, Pixels};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most numbers in one image: far more than is sensible, and few enough for sizes never to overflow.
pub const MOST_VALUES: usize = 1 << 28;

/// What is wrong with a data set.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum DataError {
    #[error("an image shape needs at least one row, column and channel; got {height} x {width} x {channels}")]
    EmptyShape { height: usize, width: usize, channels: usize },
    #[error(
        "an image of {height} x {width} x {channels} values is too large; at most {MOST_VALUES} are possible"
    )]
    ImageTooLarge { height: usize, width: usize, channels: usize },
    #[error("there are no images; a data set needs at least one")]
    Empty,
    #[error("{values} pixel values are not a whole number of {shape} images ({per_image} values each)")]
    PixelCount { values: usize, shape: ImageShape, per_image: usize },
    #[error("{images} images but {targets} targets; every image needs exactly one")]
    TargetCount { images: usize, targets: usize },
    #[error("pixel {pixel} of image {image} is {value}; pixels must be finite")]
    NotFinite { image: usize, pixel: usize, value: f64 },
    #[error("label {label} of image {image} is out of range; with {classes} classes labels are 0..={}", classes - 1)]
    LabelOutOfRange { image: usize, label: u32, classes: usize },
    #[error("target {value} of image {image} is not finite")]
    TargetNotFinite { image: usize, value: f64 },
    #[error("{classes} class(es) given; classification needs at least 2")]
    TooFewClasses { classes: usize },
    #[error("{names} class names for {classes} classes")]
    ClassNames { names: usize, classes: usize },
    #[error("{names} names for {images} images; every image needs exactly one")]
    ImageNames { names: usize, images: usize },
    #[error("image {index} asked for, but there are only {count}")]
    IndexOutOfRange { index: usize, count: usize },
    #[error("the likelihood expects {expected}, the targets are {found}")]
    TargetKind { expected: String, found: String },
    #[error(
        "pixels reach from {low} to {high}, those the model was trained on from {trained_low} to {trained_high}: this is another scale. Give pixels in the units of the training images"
    )]
    PixelRange { low: f64, high: f64, trained_low: f64, trained_high: f64 },
    #[error("the data are {found} images, the model expects {expected}")]
    ShapeMismatch { found: ImageShape, expected: ImageShape },
}

/// Height, width and channels of an image; each at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RawShape", deny_unknown_fields)]
pub struct ImageShape {
    height: usize,
    width: usize,
    channels: usize,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RawShape {
    height: usize,
    width: usize,
    #[serde(default = "one")]
    channels: usize,
}

fn one() -> usize {
    1
}

impl TryFrom<RawShape> for ImageShape {
    type Error = DataError;
    fn try_from(raw: RawShape) -> Result<Self, DataError> {
        Self::new(raw.height, raw.width, raw.channels)
    }
}

impl ImageShape {
    /// Checks that no side is zero.
    pub fn new(height: usize, width: usize, channels: usize) -> Result<Self, DataError> {
        if height == 0 || width == 0 || channels == 0 {
            return Err(DataError::EmptyShape { height, width, channels });
        }
        let values = height.checked_mul(width).and_then(|pixels| pixels.checked_mul(channels));
        if values.is_none_or(|values| values > MOST_VALUES) {
            return Err(DataError::ImageTooLarge { height, width, channels });
        }
        Ok(Self { height, width, channels })
    }
    /// Rows.
    pub fn height(self) -> usize {
        self.height
    }
    /// Columns.
    pub fn width(self) -> usize {
        self.width
    }
    /// Channels.
    pub fn channels(self) -> usize {
        self.channels
    }
    /// Numbers in one image, `D = height * width * channels`.
    pub fn len(self) -> usize {
        self.height * self.width * self.channels
    }
    /// Never true: a shape has at least one pixel.
    pub fn is_empty(self) -> bool {
        false
    }
}

impl std::fmt::Display for ImageShape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}x{}", self.height, self.width, self.channels)
    }
}

/// A stack of images of one shape with finite pixels.
///
/// ```
/// use convgp::data::{ImageShape, Images, Pixels};
///
/// let shape = ImageShape::new(1, 2, 1)?;
/// assert_eq!(Images::new(shape, Pixels::F64(vec![0.5, 1.0, 0.0, 0.25]))?.count(), 2);
/// assert!(Images::new(shape, Pixels::F64(vec![0.5, 1.0, 0.0])).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Images {
    shape: ImageShape,
    pixels: Pixels,
    scale: PixelScale,
}

impl Images {
    /// Checks count and finiteness. `pixels` holds one image after the other, on the scale [`PixelScale::of_storage`].
    pub fn new(shape: ImageShape, pixels: Pixels) -> Result<Self, DataError> {
        let (values, per_image) = (pixels.len(), shape.len());
        if values == 0 {
            return Err(DataError::Empty);
        }
        if !values.is_multiple_of(per_image) {
            return Err(DataError::PixelCount { values, shape, per_image });
        }
        if let Some((i, value)) = pixels.view().first_not_finite() {
            return Err(DataError::NotFinite { image: i / per_image, pixel: i % per_image, value });
        }
        let scale = PixelScale::of_storage(pixels.view());
        Ok(Self { shape, pixels, scale })
    }

    /// The same pixels on another scale.
    pub fn with_scale(self, scale: PixelScale) -> Self {
        Self { scale, ..self }
    }

    /// Shape of every image.
    pub fn shape(&self) -> ImageShape {
        self.shape
    }
    /// Number of images; never zero.
    pub fn count(&self) -> usize {
        self.pixels.len() / self.shape.len()
    }
    /// The stored pixels, one image after the other.
    pub fn pixels(&self) -> &Pixels {
        &self.pixels
    }
    /// How stored pixels become the numbers a model sees.
    pub fn scale(&self) -> PixelScale {
        self.scale
    }

    /// Writes image `index` as `f64` into `out`, which must hold [`ImageShape::len`] numbers.
    pub fn write_image(&self, index: usize, out: &mut [f64]) {
        let d = self.shape.len();
        self.pixels.view().write(index * d..(index + 1) * d, self.scale, out);
    }

    /// The chosen images, in the order given.
    pub fn select(&self, indices: &[usize]) -> Result<Self, DataError> {
        let (d, count) = (self.shape.len(), self.count());
        if let Some(&index) = indices.iter().find(|&&i| i >= count) {
            return Err(DataError::IndexOutOfRange { index, count });
        }
        let pixels = self.pixels.view().pick(d, indices);
        Ok(Self::new(self.shape, pixels)?.with_scale(self.scale))
    }
}

/// One target per image.
///
/// ```
/// use convgp::data::Targets;
///
/// assert_eq!(Targets::classes(vec![2, 0, 1], 3)?.len(), 3);
/// assert!(Targets::classes(vec![3], 3).is_err());
/// assert!(Targets::real(vec![f64::NAN]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Targets {
    /// Class labels `0..classes`.
    Classes {
        /// One label per image, each below `classes`.
        labels: Vec<u32>,
        /// Number of classes, at least 2.
        classes: usize,
    },
    /// Real numbers, for regression.
    Real(Vec<f64>),
}

impl Targets {
    /// Checked class labels.
    pub fn classes(labels: Vec<u32>, classes: usize) -> Result<Self, DataError> {
        if classes < 2 {
            return Err(DataError::TooFewClasses { classes });
        }
        if let Some(image) = labels.iter().position(|&l| l as usize >= classes) {
            return Err(DataError::LabelOutOfRange { image, label: labels[image], classes });
        }
        Ok(Targets::Classes { labels, classes })
    }

    /// Checked real targets.
    pub fn real(values: Vec<f64>) -> Result<Self, DataError> {
        if let Some(image) = values.iter().position(|v| !v.is_finite()) {
            return Err(DataError::TargetNotFinite { image, value: values[image] });
        }
        Ok(Targets::Real(values))
    }

    /// Number of targets.
    pub fn len(&self) -> usize {
        match self {
            Targets::Classes { labels, .. } => labels.len(),
            Targets::Real(v) => v.len(),
        }
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The chosen targets, in the order given.
    pub fn select(&self, indices: &[usize]) -> Self {
        match self {
            Targets::Classes { labels, classes } => {
                Targets::Classes { labels: indices.iter().map(|&i| labels[i]).collect(), classes: *classes }
            }
            Targets::Real(v) => Targets::Real(indices.iter().map(|&i| v[i]).collect()),
        }
    }
}

/// Images with their targets.
///
/// ```
/// use convgp::data::{Dataset, ImageShape, Images, Pixels, Targets};
///
/// let images = Images::new(ImageShape::new(2, 2, 1)?, Pixels::U8(vec![0, 255, 10, 20, 30, 40, 50, 60]))?;
/// let data = Dataset::new(images, Targets::classes(vec![1, 0], 2)?)?;
/// assert_eq!(data.len(), 2);
/// assert_eq!(data.batch(&[1]).targets(), &Targets::classes(vec![0], 2)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Dataset {
    images: Images,
    targets: Targets,
    class_names: Vec<String>,
    image_names: Option<Vec<String>>,
}

/// The names of images do not count: the same images may lie in other files.
impl PartialEq for Dataset {
    fn eq(&self, other: &Self) -> bool {
        (&self.images, &self.targets, &self.class_names)
            == (&other.images, &other.targets, &other.class_names)
    }
}

impl Dataset {
    /// Checks that counts agree. Class names default to the numbers.
    pub fn new(images: Images, targets: Targets) -> Result<Self, DataError> {
        if images.count() != targets.len() {
            return Err(DataError::TargetCount { images: images.count(), targets: targets.len() });
        }
        // The variants are public, so these may not have been through a constructor.
        let targets = match targets {
            Targets::Classes { labels, classes } => Targets::classes(labels, classes)?,
            Targets::Real(values) => Targets::real(values)?,
        };
        let class_names = match &targets {
            Targets::Classes { classes, .. } => (0..*classes).map(|c| c.to_string()).collect(),
            Targets::Real(_) => Vec::new(),
        };
        Ok(Self { images, targets, class_names, image_names: None })
    }

    /// Gives the classes names, one per class.
    pub fn with_class_names(mut self, names: Vec<String>) -> Result<Self, DataError> {
        if names.len() != self.class_names.len() {
            return Err(DataError::ClassNames { names: names.len(), classes: self.class_names.len() });
        }
        self.class_names = names;
        Ok(self)
    }

    /// Gives the images names, one per image, such as the files they came from.
    pub fn with_image_names(mut self, names: Vec<String>) -> Result<Self, DataError> {
        if names.len() != self.len() {
            return Err(DataError::ImageNames { names: names.len(), images: self.len() });
        }
        self.image_names = Some(names);
        Ok(self)
    }

    /// The same images on another scale.
    pub fn with_scale(self, scale: PixelScale) -> Self {
        Self { images: self.images.with_scale(scale), ..self }
    }

    /// The images.
    pub fn images(&self) -> &Images {
        &self.images
    }
    /// The targets.
    pub fn targets(&self) -> &Targets {
        &self.targets
    }
    /// One name per class; empty for regression.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }
    /// One name per image, if they have any.
    pub fn image_names(&self) -> Option<&[String]> {
        self.image_names.as_deref()
    }
    /// Number of images.
    pub fn len(&self) -> usize {
        self.images.count()
    }
    /// Never true: a data set holds at least one image.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The chosen rows, in the order given.
    pub fn select(&self, indices: &[usize]) -> Result<Self, DataError> {
        let images = self.images.select(indices)?;
        let (targets, class_names) = (self.targets.select(indices), self.class_names.clone());
        let chosen = |names: &Vec<String>| indices.iter().map(|&i| names[i].clone()).collect();
        let image_names = self.image_names.as_ref().map(chosen);
        Ok(Self { images, targets, class_names, image_names })
    }

    /// Refills `batch` with the given rows; allocates only when the batch grows.
    pub fn write_batch(&self, indices: &[usize], batch: &mut Batch) {
        batch.fill(&self.images, indices);
        batch.take_targets(&self.targets, indices);
    }

    /// A new batch of the given rows.
    pub fn batch(&self, indices: &[usize]) -> Batch {
        let mut batch = Batch::empty(self.images.shape());
        self.write_batch(indices, &mut batch);
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> ImageShape {
        ImageShape::new(2, 3, 1).unwrap()
    }

    #[test]
    fn bytes_are_scaled_and_layout_is_kept() {
        let images = Images::new(shape(), Pixels::U8((0..12).map(|i| i * 20).collect())).unwrap();
        let mut out = [0.0; 6];
        images.write_image(1, &mut out);
        assert_eq!(out[0], 120.0 / 255.0);
        assert_eq!(images.select(&[1, 0]).unwrap().count(), 2);
    }

    #[test]
    fn bad_data_is_named() {
        assert!(matches!(ImageShape::new(0, 3, 1), Err(DataError::EmptyShape { .. })));
        assert!(matches!(Images::new(shape(), Pixels::F64(vec![])), Err(DataError::Empty)));
        assert!(matches!(Images::new(shape(), Pixels::F64(vec![0.0; 7])), Err(DataError::PixelCount { .. })));
        let mut px = vec![0.0f32; 12];
        px[8] = f32::NAN;
        let err = Images::new(shape(), Pixels::F32(px)).unwrap_err();
        assert!(matches!(err, DataError::NotFinite { image: 1, pixel: 2, .. }), "{err}");
        let err = Targets::classes(vec![0, 1, 3], 3).unwrap_err();
        assert_eq!(err.to_string(), "label 3 of image 2 is out of range; with 3 classes labels are 0..=2");
        assert!(matches!(
            Targets::real(vec![1.0, f64::INFINITY]),
            Err(DataError::TargetNotFinite { image: 1, .. })
        ));
        let images = Images::new(shape(), Pixels::F64(vec![0.0; 12])).unwrap();
        let targets = Targets::real(vec![0.0]).unwrap();
        assert!(matches!(Dataset::new(images.clone(), targets), Err(DataError::TargetCount { .. })));
        let data = Dataset::new(images.clone(), Targets::real(vec![0.0, 1.0]).unwrap()).unwrap();
        let error = data.clone().with_image_names(vec!["a.png".into()]).unwrap_err();
        assert!(matches!(error, DataError::ImageNames { names: 1, images: 2 }), "{error}");
        let named = data.clone().with_image_names(vec!["a.png".into(), "b.png".into()]).unwrap();
        assert_eq!(named.select(&[1]).unwrap().image_names(), Some(&["b.png".to_string()][..]));
        assert!(named == data && data.image_names().is_none());
        assert!(matches!(images.select(&[2]), Err(DataError::IndexOutOfRange { index: 2, count: 2 })));
    }
}
