//! Pixels given as numbers of unknown range, and flat images of unknown shape.

use convgp::data::{ImageShape, Pixels};

use crate::error::{Error, Result};
use crate::options::{Colour, OpenOptions};
use crate::source::Budget;

/// A list of pixel values that stays as small as its values allow.
#[derive(Debug)]
pub(crate) enum Numbers {
    /// So far only whole numbers 0..=255.
    Bytes(Vec<u8>),
    /// So far only whole numbers 0..=65535.
    Words(Vec<u16>),
    /// Anything else.
    Floats(Vec<f32>),
    /// Anything else that came in double precision.
    Doubles(Vec<f64>),
}

impl Numbers {
    pub(crate) fn new() -> Self {
        Numbers::Bytes(Vec::new())
    }

    /// Bytes that one more value takes.
    pub(crate) fn value_size(&self) -> u128 {
        match self {
            Numbers::Bytes(_) => 1,
            Numbers::Words(_) => 2,
            Numbers::Floats(_) => 4,
            Numbers::Doubles(_) => 8,
        }
    }

    /// Appends a value; the first that is too large for the others turns all of them into larger ones, which must fit
    /// the budget.
    pub(crate) fn push(&mut self, value: f32, file: &str, budget: &Budget) -> Result<()> {
        let (byte, word) = (value as u8, value as u16);
        match self {
            Numbers::Bytes(v) if f32::from(byte) == value => v.push(byte),
            Numbers::Words(v) if f32::from(word) == value => v.push(word),
            Numbers::Bytes(v) if f32::from(word) == value => {
                budget.take(v.len() as u128 + 1, file, "pixels as 16-bit numbers")?;
                *self = Numbers::Words(v.iter().map(|&b| b.into()).chain([word]).collect());
            }
            Numbers::Bytes(v) => {
                budget.take(3 * (v.len() as u128 + 1), file, "pixels as 32-bit numbers")?;
                *self = Numbers::Floats(v.iter().map(|&b| b.into()).chain([value]).collect());
            }
            Numbers::Words(v) => {
                budget.take(2 * (v.len() as u128 + 1), file, "pixels as 32-bit numbers")?;
                *self = Numbers::Floats(v.iter().map(|&w| w.into()).chain([value]).collect());
            }
            Numbers::Floats(v) => v.push(value),
            Numbers::Doubles(v) => v.push(f64::from(value)),
        }
        Ok(())
    }

    /// Doubles, or bytes if that is what they are.
    pub(crate) fn from_doubles(values: Vec<f64>) -> Self {
        if values.iter().all(|&v| f64::from(v as u8) == v) {
            Numbers::Bytes(values.into_iter().map(|v| v as u8).collect())
        } else {
            Numbers::Doubles(values)
        }
    }

    /// The same values in another order: entry `i` of the result is entry `from(i)`.
    pub(crate) fn reorder(self, from: impl Fn(usize) -> usize) -> Self {
        fn pick<T: Copy>(v: &[T], from: impl Fn(usize) -> usize) -> Vec<T> {
            (0..v.len()).map(|i| v[from(i)]).collect()
        }
        match self {
            Numbers::Bytes(v) => Numbers::Bytes(pick(&v, from)),
            Numbers::Words(v) => Numbers::Words(pick(&v, from)),
            Numbers::Floats(v) => Numbers::Floats(pick(&v, from)),
            Numbers::Doubles(v) => Numbers::Doubles(pick(&v, from)),
        }
    }
}

/// Decides what the numbers of all splits mean together.
///
/// Whole numbers up to 255 are bytes; if none is above 1 they are a drawing in black (0) and white (1, stored as 255).
/// Other whole numbers are kept in 16 bits where they fit.
pub(crate) fn settle(all: Vec<Numbers>) -> Vec<Pixels> {
    let bytes = all.iter().all(|n| matches!(n, Numbers::Bytes(_)));
    let drawing = bytes && all.iter().all(|n| matches!(n, Numbers::Bytes(v) if v.iter().all(|&b| b <= 1)));
    let whole = all.iter().all(|n| matches!(n, Numbers::Bytes(_) | Numbers::Words(_)));
    let settle_one = |numbers| match numbers {
        Numbers::Bytes(v) if drawing => Pixels::U8(v.into_iter().map(|b| b * 255).collect()),
        Numbers::Bytes(v) if bytes => Pixels::U8(v),
        Numbers::Bytes(v) if whole => Pixels::U16(v.into_iter().map(u16::from).collect()),
        Numbers::Bytes(v) => Pixels::F32(v.into_iter().map(f32::from).collect()),
        Numbers::Words(v) if whole => Pixels::U16(v),
        Numbers::Words(v) => Pixels::F32(v.into_iter().map(f32::from).collect()),
        Numbers::Floats(v) => Pixels::F32(v),
        Numbers::Doubles(v) => Pixels::F64(v),
    };
    all.into_iter().map(settle_one).collect()
}

/// Whether so many pixels are an image of the shape asked for, else a square grey one.
pub(crate) fn is_image_size(pixels: usize, options: &OpenOptions) -> bool {
    options.image_shape.map_or(pixels > 0 && pixels.isqrt().pow(2) == pixels, |shape| shape.len() == pixels)
}

/// Shape of flat images: as asked, else square and grey, else of the size and colour that are wanted.
pub(crate) fn flat_shape(pixels: usize, options: &OpenOptions, file: &str) -> Result<ImageShape> {
    let side = pixels.isqrt();
    match options.image_shape {
        Some(shape) if shape.len() == pixels => Ok(shape),
        Some(shape) => Err(Error::Unexpected {
            file: file.into(),
            place: crate::error::Place::Header,
            found: format!("{pixels} pixels per image"),
            expected: format!("{} for {shape} images", shape.len()),
        }),
        None if side * side == pixels => ImageShape::new(side, side, 1).map_err(Error::data(file)),
        None if options.pixels() == Some(pixels) => {
            let channels = if options.colour == Colour::Rgb { 3 } else { 1 };
            let (height, width) = options.size.map_or((0, 0), |size| (size.height, size.width));
            ImageShape::new(height, width, channels).map_err(Error::data(file))
        }
        None => Err(Error::NotSquare { file: file.into(), pixels }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(values: &[f32]) -> Numbers {
        let mut n = Numbers::new();
        values.iter().for_each(|&v| n.push(v, "f", &Budget::new(1000)).unwrap());
        n
    }

    #[test]
    fn meaning_is_decided_for_all_splits_together() {
        let settled = |a: &[f32], b: &[f32]| settle(vec![numbers(a), numbers(b)]);
        assert_eq!(settled(&[0.0, 1.0], &[1.0]), [Pixels::U8(vec![0, 255]), Pixels::U8(vec![255])]);
        assert_eq!(settled(&[0.0, 1.0], &[7.0]), [Pixels::U8(vec![0, 1]), Pixels::U8(vec![7])]);
        assert_eq!(settled(&[0.0, 1.0], &[0.5]), [Pixels::F32(vec![0.0, 1.0]), Pixels::F32(vec![0.5])]);
        assert_eq!(settled(&[3.0, 256.0], &[1.0]), [Pixels::U16(vec![3, 256]), Pixels::U16(vec![1])]);
        assert_eq!(
            settled(&[3.0, 256.0, 0.5], &[]),
            [Pixels::F32(vec![3.0, 256.0, 0.5]), Pixels::F32(vec![])]
        );
        assert_eq!(settled(&[3.0, 256.0], &[-1.0]), [Pixels::F32(vec![3.0, 256.0]), Pixels::F32(vec![-1.0])]);
    }

    #[test]
    fn turning_into_floats_is_paid_for() {
        let mut n = Numbers::new();
        (0..10).for_each(|i| n.push(i as f32, "f", &Budget::new(0)).unwrap());
        assert!(matches!(n.push(0.5, "f", &Budget::new(20)), Err(Error::TooLarge { .. })));
    }
}
