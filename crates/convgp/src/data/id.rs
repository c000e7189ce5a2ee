//! Ids of images, by their pixels.

/// Ids know pixels to so many levels: those of bytes and finer, and too few for rounding in other units to show.
const LEVELS: f64 = 16.0 * 255.0;
/// Where ids begin.
const ID: u64 = 0x243f_6a88_85a3_08d3;

/// An id of an image with these pixels.
pub(crate) fn image_id(pixels: &[f64]) -> u64 {
    pixels.iter().fold(ID, |id, x| extend_id(id, (x * LEVELS).round()))
}

/// An id with one more number.
pub(crate) fn extend_id(id: u64, x: f64) -> u64 {
    let id = (id.rotate_left(5) ^ x.to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    id ^ (id >> 32)
}
