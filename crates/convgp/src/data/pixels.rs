//! Pixels as they are stored, and the scale that makes numbers of them.

use std::ops::Range;
use std::sync::Arc;

/// Pixel storage.
#[derive(Debug, Clone)]
pub enum Pixels {
    /// Eight-bit pixels.
    U8(Vec<u8>),
    /// Sixteen-bit pixels.
    U16(Vec<u16>),
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
    /// Somebody else's memory, such as an array of another language, used where it lies.
    Lent(Arc<dyn PixelOwner>),
}

/// Memory that holds pixels, always the same ones.
pub trait PixelOwner: std::fmt::Debug + Send + Sync {
    /// The pixels.
    fn pixels(&self) -> PixelView<'_>;
}

/// Borrowed pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PixelView<'a> {
    /// Eight-bit pixels.
    U8(&'a [u8]),
    /// Sixteen-bit pixels.
    U16(&'a [u16]),
    /// Single precision.
    F32(&'a [f32]),
    /// Double precision.
    F64(&'a [f64]),
}

/// The pixels that a model sees as 0 and as 1; those between and beyond follow on a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PixelScale {
    /// The pixel that becomes 0.
    pub zero: f64,
    /// The pixel that becomes 1; another number than `zero`.
    pub one: f64,
}

impl PixelScale {
    /// Numbers as they are.
    pub const AS_STORED: Self = Self { zero: 0.0, one: 1.0 };
    /// Bytes divided by 255.
    pub const BYTES: Self = Self { zero: 0.0, one: 255.0 };

    /// What is meant where nobody says so: whole numbers are fractions of the largest that can be stored.
    pub fn of_storage(pixels: PixelView<'_>) -> Self {
        match pixels {
            PixelView::U8(_) => Self::BYTES,
            PixelView::U16(_) => Self { zero: 0.0, one: f64::from(u16::MAX) },
            PixelView::F32(_) | PixelView::F64(_) => Self::AS_STORED,
        }
    }

    /// A pixel as a model sees it.
    pub fn apply(self, pixel: f64) -> f64 {
        (pixel - self.zero) / (self.one - self.zero)
    }
}

/// The same expression for the numbers of any storage.
macro_rules! with_numbers {
    ($view:expr, $v:ident => $what:expr) => {
        match $view {
            PixelView::U8($v) => $what,
            PixelView::U16($v) => $what,
            PixelView::F32($v) => $what,
            PixelView::F64($v) => $what,
        }
    };
}

#[allow(clippy::useless_conversion)] // the same text for every storage
impl PixelView<'_> {
    /// How many numbers there are.
    pub fn len(self) -> usize {
        with_numbers!(self, v => v.len())
    }
    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// Bytes that one number takes.
    pub fn width(self) -> usize {
        with_numbers!(self, v => size_of_val(v).checked_div(v.len()).unwrap_or(0))
    }
    /// Number `i` as it is stored.
    pub fn get(self, i: usize) -> f64 {
        with_numbers!(self, v => f64::from(v[i]))
    }
    /// The smallest and the largest number as stored; infinities the wrong way round if there are none.
    pub fn extremes(self) -> (f64, f64) {
        let start = (f64::INFINITY, f64::NEG_INFINITY);
        with_numbers!(self, v => v.iter().fold(start, |(low, high), &x| {
            (low.min(f64::from(x)), high.max(f64::from(x)))
        }))
    }

    pub(super) fn write(self, range: Range<usize>, scale: PixelScale, out: &mut [f64]) {
        with_numbers!(self, v => {
            out.iter_mut().zip(&v[range]).for_each(|(o, &x)| *o = scale.apply(f64::from(x)))
        });
    }

    pub(super) fn first_not_finite(self) -> Option<(usize, f64)> {
        match self {
            PixelView::U8(_) | PixelView::U16(_) => None,
            _ => with_numbers!(self, v => {
                v.iter().position(|&x| !f64::from(x).is_finite()).map(|i| (i, f64::from(v[i])))
            }),
        }
    }

    /// The chosen images of `d` numbers each.
    pub(super) fn pick(self, d: usize, indices: &[usize]) -> Pixels {
        fn rows<T: Copy>(v: &[T], d: usize, indices: &[usize]) -> Vec<T> {
            indices.iter().flat_map(|&i| v[i * d..(i + 1) * d].iter().copied()).collect()
        }
        match self {
            PixelView::U8(v) => Pixels::U8(rows(v, d, indices)),
            PixelView::U16(v) => Pixels::U16(rows(v, d, indices)),
            PixelView::F32(v) => Pixels::F32(rows(v, d, indices)),
            PixelView::F64(v) => Pixels::F64(rows(v, d, indices)),
        }
    }
}

impl Pixels {
    /// The pixels, wherever they are.
    pub fn view(&self) -> PixelView<'_> {
        match self {
            Pixels::U8(v) => PixelView::U8(v),
            Pixels::U16(v) => PixelView::U16(v),
            Pixels::F32(v) => PixelView::F32(v),
            Pixels::F64(v) => PixelView::F64(v),
            Pixels::Lent(owner) => owner.pixels(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.view().len()
    }
}

impl PartialEq for Pixels {
    fn eq(&self, other: &Self) -> bool {
        self.view() == other.view()
    }
}
