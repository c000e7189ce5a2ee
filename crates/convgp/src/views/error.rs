//! What can be wrong with the geometry of views.

use crate::data::ImageShape;

/// Why views cannot be cut from an image of the given shape.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum GeometryError {
    #[error("a patch of {height} x {width} pixels is empty; both sides must be at least 1")]
    ZeroPatch { height: usize, width: usize },
    #[error(
        "a patch of {height} x {width} pixels does not fit into a {shape} image; use at most {} x {}",
        shape.height(),
        shape.width()
    )]
    PatchTooLarge { height: usize, width: usize, shape: ImageShape },
    #[error("a stride of {rows} x {cols} pixels stands still; both steps must be at least 1")]
    ZeroStride { rows: usize, cols: usize },
    #[error("channel {channel} asked for, but the image has {channels}; channels are counted from 0")]
    ChannelOutOfRange { channel: usize, channels: usize },
    #[error("`{set}` needs a square image, this one is {shape}; use flips, or pad the images to a square")]
    NotSquare { set: &'static str, shape: ImageShape },
    #[error(
        "shifts of up to {shift} pixels push a {shape} image out of its own frame; use at most {}",
        shape.height().min(shape.width()) - 1
    )]
    ShiftTooLarge { shift: usize, shape: ImageShape },
    #[error("scaling by {value} is not possible; factors must be positive, 1 leaves the image as it is")]
    BadScaling { value: f64 },
    #[error("`{set}` contains {value}; every entry must be a finite number")]
    NotFinite { set: &'static str, value: f64 },
    #[error("the permutation has {found} entries, a {shape} image has {} pixel values; one entry each", shape.len())]
    PermutationLength { found: usize, shape: ImageShape },
    #[error(
        "entry {position} of the permutation is {source_index}, which is out of range or used before; \
         each of 0..={} must occur exactly once",
        count - 1
    )]
    NotAPermutation { position: usize, source_index: usize, count: usize },
    #[error("`contrast.{field}` is {value}; it must be a positive number")]
    BadContrast { field: &'static str, value: f64 },
    #[error("`augmentation.{field}` is {value}; it must be zero or a positive number")]
    BadAugmentation { field: &'static str, value: f64 },
    #[error("`transform.{field}` is {value}; it must be a positive number")]
    BadTransform { field: &'static str, value: f64 },
    #[error(
        "whitening of patches is fitted on training images, and there are none; give images, or leave `transform.whiten` out"
    )]
    WhiteningWithoutImages,
    #[error("whitening is for patches of {found} numbers, these have {len}")]
    WhiteningSize { len: usize, found: usize },
    #[error("an orbit needs at least one map; give the identity if the image itself is meant")]
    EmptyOrbit,
    #[error("map {index} of the orbit is for {found} images, the windows are for {expected}")]
    OrbitShape { index: usize, found: ImageShape, expected: ImageShape },
}
