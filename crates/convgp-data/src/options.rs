//! What a caller may ask of the data.

use convgp::data::ImageShape;
pub use convgp::prepare::Fit;

use crate::loaded::{Format, SplitKind};

/// A wanted image size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// How to get there.
    pub fit: Fit,
}

impl Size {
    /// Crops to the proportions, then scales.
    pub fn new(height: usize, width: usize) -> Self {
        Self { height, width, fit: Fit::Crop }
    }
}

/// Colour of the images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Colour {
    /// As stored; for image files: RGB as soon as one of them has colour.
    #[default]
    AsFound,
    /// One channel (luminance).
    Grey,
    /// Three channels.
    Rgb,
}

/// How labels are to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TargetKind {
    /// Classes when all labels are whole numbers or words, else real numbers.
    #[default]
    Auto,
    /// Classes.
    Classes,
    /// Real numbers, for regression.
    Real,
}

/// Options of [`open`](crate::open()). The default reads everything as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenOptions {
    /// Skip detection and read as this format.
    pub format: Option<Format>,
    /// Bring all images to this size. `None` keeps it; image files of mixed sizes are then cropped to 32x32.
    pub size: Option<Size>,
    /// Grey or RGB.
    pub colour: Colour,
    /// Keep only these classes, in this order; names or numbers. Empty keeps all.
    pub classes: Vec<String>,
    /// Keep at most this many images of each split, classes balanced.
    pub limit: Option<usize>,
    /// Keep only these splits. Empty keeps all.
    pub splits: Vec<SplitKind>,
    /// Classes or real numbers.
    pub targets: TargetKind,
    /// Number of classes when the files do not tell; labels beyond are an error.
    pub class_count: Option<usize>,
    /// Classes there are in any case, such as those of a model, whether the data have images of them or not.
    pub known_classes: Vec<String>,
    /// Column with the label in tables and Parquet files: a name, or a number from 0.
    pub label_column: Option<String>,
    /// Shape of flat images in tables and arrays, when they are not square and grey.
    pub image_shape: Option<ImageShape>,
    /// Seed of every random choice, such as which images `limit` keeps.
    pub seed: u64,
    /// Largest number of bytes of decoded data.
    pub memory_cap: u64,
    /// Make an unreadable image an error instead of skipping it.
    pub strict: bool,
    /// Take images without labels too, see [`open_any`](crate::open_any()).
    pub unlabelled: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            format: None,
            size: None,
            colour: Colour::AsFound,
            classes: Vec::new(),
            limit: None,
            splits: Vec::new(),
            targets: TargetKind::Auto,
            class_count: None,
            known_classes: Vec::new(),
            label_column: None,
            image_shape: None,
            seed: 0,
            memory_cap: 8 << 30,
            strict: false,
            unlabelled: false,
        }
    }
}

impl OpenOptions {
    /// Numbers in an image, where shape or size and colour say so.
    pub(crate) fn pixels(&self) -> Option<usize> {
        let channels = match self.colour {
            Colour::AsFound => None,
            Colour::Grey => Some(1),
            Colour::Rgb => Some(3),
        };
        let sized = || self.size.zip(channels).map(|(size, channels)| size.height * size.width * channels);
        self.image_shape.map(ImageShape::len).or_else(sized)
    }

    /// Whether a split is wanted.
    pub(crate) fn wants(&self, split: SplitKind) -> bool {
        self.splits.is_empty() || self.splits.contains(&split)
    }
}
