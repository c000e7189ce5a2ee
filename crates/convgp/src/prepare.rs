//! How images became the numbers a model saw: kept in the model file, so that prediction does the same.

use crate::data::{DataError, Images, PixelScale, PixelView};
use serde::{Deserialize, Serialize};

/// How an image is brought to another size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// Cut the largest centred part of the right proportions, then scale it.
    #[default]
    Crop,
    /// Scale height and width separately.
    Stretch,
    /// Cut out the centre without scaling; smaller images get a black border.
    Centre,
}

/// The units of pixels: which the training images had, and how they became numbers around 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Scaling {
    /// Pixels from 0 to 255, divided by 255.
    #[default]
    Bytes,
    /// Numbers, taken as they were: what files of version 0.1 say of pixels that are no bytes.
    Values {
        /// The smallest.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// Numbers on a scale that the training images showed.
    Learned {
        /// The pixel that becomes 0.
        zero: f64,
        /// The pixel that becomes 1.
        one: f64,
        /// The smallest.
        low: f64,
        /// The largest.
        high: f64,
    },
}

/// Everything that was done to images before a model saw them; size and channels are the model's own.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Preparation {
    /// The units of pixels.
    pub scaling: Scaling,
    /// How images of other sizes are brought to the model's.
    pub fit: Fit,
}

impl Preparation {
    /// The images as the model has to see them, see [`Scaling::scale_for`].
    pub fn prepare(&self, images: Images) -> Result<Images, DataError> {
        let scale = self.scaling.scale_for(&images)?;
        Ok(images.with_scale(scale))
    }
}

/// Pixels that are looked at for outliers.
const LOOKED_AT: usize = 1 << 18;
/// A fraction of the pixels on either side, which may be outliers.
const TAIL: f64 = 0.001;
/// Pixels further out than this many times the range of all but the tails are outliers.
const OUTLYING: f64 = 8.0;
/// Images whose largest pixel is smaller than this fraction of the training images' are on another scale.
const DIM: f64 = 0.1;

impl Scaling {
    /// The scale that training images show: the smallest pixel becomes 0, the largest 1. Where a few pixels lie far
    /// outside of all others, the others decide. Images in other units (multiplied, shifted) give the same numbers.
    pub fn learn(images: &Images) -> Self {
        let pixels = images.pixels().view();
        let (low, high) = pixels.extremes();
        let (mut zero, mut one) = (low, high);
        if let Some((from, to)) = bulk(pixels).filter(|(from, to)| high - low > OUTLYING * (to - from)) {
            (zero, one) = (from, to);
        }
        match (low, high) {
            (0.0, 255.0) if zero == low && one == high => Scaling::Bytes,
            _ if zero == one => Scaling::Learned { zero, one: zero + 1.0, low, high },
            _ => Scaling::Learned { zero, one, low, high },
        }
    }

    /// What version 0.1 did: bytes are divided by 255, all else is taken as it is.
    pub fn as_stored(images: &Images) -> Self {
        match images.pixels().view() {
            PixelView::U8(_) => Scaling::Bytes,
            pixels => {
                let (low, high) = pixels.extremes();
                Scaling::Values { low, high }
            }
        }
    }

    /// The map from pixels to numbers.
    pub fn scale(self) -> PixelScale {
        match self {
            Scaling::Bytes => PixelScale::BYTES,
            Scaling::Values { .. } => PixelScale::AS_STORED,
            Scaling::Learned { zero, one, .. } => PixelScale { zero, one },
        }
    }

    /// The smallest and largest pixel of the training images, in their units.
    pub fn range(self) -> (f64, f64) {
        match self {
            Scaling::Bytes => (0.0, 255.0),
            Scaling::Values { low, high } | Scaling::Learned { low, high, .. } => (low, high),
        }
    }

    /// The same as numbers that the model saw.
    pub fn seen_range(self) -> (f64, f64) {
        let (low, high) = self.range();
        (self.scale().apply(low), self.scale().apply(high))
    }

    /// The map to use for other images. Fractions from 0 to 1 and bytes from 0 to 255 are two ways to write the same
    /// pixels: where a model was trained on one of them, images in the other are converted. All else must be on the
    /// scale of the training images, see [`Scaling::check`].
    ///
    /// ```
    /// use convgp::data::{ImageShape, Images, PixelScale, Pixels};
    /// use convgp::prepare::Scaling;
    /// let shape = ImageShape::new(1, 2, 1)?;
    /// let fractions = Images::new(shape, Pixels::F32(vec![0.0, 0.5]))?;
    /// let scale = Scaling::Bytes.scale_for(&fractions)?;
    /// assert_eq!(scale, PixelScale { zero: 0.0, one: 1.0 });
    /// assert!(Scaling::Bytes.conversion(scale).is_some());
    /// # Ok::<(), convgp::data::DataError>(())
    /// ```
    pub fn scale_for(self, images: &Images) -> Result<PixelScale, DataError> {
        let PixelScale { zero, one } = self.scale();
        match (self.range(), images.pixels().view()) {
            ((low, 255.0), pixels) if low >= 0.0 && are_fractions(pixels) => {
                Ok(PixelScale { zero: zero / 255.0, one: one / 255.0 })
            }
            ((low, 1.0), pixels) if low >= 0.0 && are_bytes(pixels) => {
                Ok(PixelScale { zero: 255.0 * zero, one: 255.0 * one })
            }
            _ => self.check(images).map(|()| self.scale()),
        }
    }

    /// What [`Scaling::scale_for`] did to arrive at a scale, in words; nothing if it is the model's own.
    pub fn conversion(self, scale: PixelScale) -> Option<&'static str> {
        match scale {
            _ if scale == self.scale() => None,
            _ if self.range().1 == 255.0 => {
                Some("pixels from 0 to 1 were multiplied by 255: the model was trained on 0 to 255")
            }
            _ => Some("pixels from 0 to 255 were divided by 255: the model was trained on 0 to 1"),
        }
    }

    /// Refuses images that are on another scale than the training images were: wider than twice their range, or all of
    /// it near 0. Images of one value say nothing of their scale.
    pub fn check(self, images: &Images) -> Result<(), DataError> {
        let ((low, high), (trained_low, trained_high)) = (images.pixels().view().extremes(), self.range());
        let slack = (trained_high - trained_low).max(f64::MIN_POSITIVE);
        // Bytes are on one scale, whether the training images were bright or not.
        let bytes = matches!(images.pixels().view(), PixelView::U8(_))
            && trained_low >= 0.0
            && (DIM * 255.0..=255.0).contains(&trained_high);
        let wide = !bytes && (low < trained_low - slack || high > trained_high + slack);
        let magnitude = |low: f64, high: f64| low.abs().max(high.abs());
        let dim = low < high && magnitude(low, high) < DIM * magnitude(trained_low, trained_high);
        match wide || dim {
            true => Err(DataError::PixelRange { low, high, trained_low, trained_high }),
            false => Ok(()),
        }
    }
}

/// In words, for people.
impl std::fmt::Display for Scaling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Scaling::Bytes => write!(f, "pixels from 0 to 255, divided by 255"),
            Scaling::Values { low, high } => write!(f, "numbers as they were, from {low} to {high}"),
            Scaling::Learned { zero, one, low, high } => {
                write!(f, "pixels from {low} to {high}, {zero} becomes 0 and {one} becomes 1")
            }
        }
    }
}

/// Whether these can only be fractions from 0 to 1: stored as floating-point numbers, of more than one value. Whole
/// numbers of small value may be dark images.
fn are_fractions(pixels: PixelView<'_>) -> bool {
    let (low, high) = pixels.extremes();
    matches!(pixels, PixelView::F32(_) | PixelView::F64(_)) && 0.0 <= low && low < high && high <= 1.0
}

/// Whether these are whole numbers from 0 to 255, too bright for fractions of one.
fn are_bytes(pixels: PixelView<'_>) -> bool {
    let (low, high) = pixels.extremes();
    let whole = || (0..pixels.len()).all(|i| pixels.get(i).fract() == 0.0);
    low >= 0.0 && (DIM * 255.0..=255.0).contains(&high) && whole()
}

/// The range of some pixels without the tails; none where it is empty.
fn bulk(pixels: PixelView<'_>) -> Option<(f64, f64)> {
    // An odd step meets all columns of images of even width.
    let step = (pixels.len() / LOOKED_AT).max(1) | 1;
    let mut some: Vec<f64> = (0..pixels.len()).step_by(step).map(|i| pixels.get(i)).collect();
    let last = some.len().checked_sub(1)?;
    some.sort_unstable_by(f64::total_cmp);
    let tail = (TAIL * last as f64).ceil() as usize;
    let (from, to) = (some[tail.min(last)], some[last.saturating_sub(tail)]);
    (from < to).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ImageShape, Pixels};

    fn images(pixels: Pixels) -> Images {
        Images::new(ImageShape::new(1, 2, 1).unwrap(), pixels).unwrap()
    }

    fn seen(images: &Images) -> Vec<f64> {
        let mut out = vec![0.0; 2 * images.count()];
        out.chunks_exact_mut(2).enumerate().for_each(|(i, o)| images.write_image(i, o));
        out
    }

    #[test]
    fn pixels_on_another_scale_are_refused_in_both_directions() {
        let bytes = images(Pixels::U8(vec![0, 255]));
        let floats = images(Pixels::F32(vec![0.0, 255.0]));
        let unit = images(Pixels::F32(vec![0.0, 1.0]));
        let sixteen = images(Pixels::U8(vec![0, 16]));
        let deep = images(Pixels::U16(vec![0, 65535]));
        let all = [&bytes, &floats, &unit, &sixteen, &deep];
        for trained in all {
            for given in all {
                let highs = [trained, given].map(|i| i.pixels().view().extremes().1);
                let same = highs[0] == highs[1] || highs == [1.0, 255.0] || highs == [255.0, 1.0];
                let prepared =
                    Preparation { scaling: Scaling::learn(trained), fit: Fit::Crop }.prepare(given.clone());
                assert_eq!(prepared.is_ok(), same, "{trained:?} {given:?}");
                assert!(prepared.is_err() || seen(&prepared.unwrap()) == [0.0, 1.0], "{trained:?} {given:?}");
            }
            let (_, high) = trained.pixels().view().extremes();
            let blank = images(Pixels::F64(vec![high / 2.0; 2]));
            assert!(Scaling::learn(trained).check(&blank).is_ok());
        }
        let text = Scaling::learn(&unit).check(&sixteen).unwrap_err().to_string();
        assert!(text.contains("from 0 to 16") && text.contains("from 0 to 1:"), "{text}");
    }

    #[test]
    fn fractions_and_bytes_are_converted_into_each_other() {
        let bytes = images(Pixels::U8(vec![0, 255, 51, 102]));
        let fractions = images(Pixels::F64(vec![0.0, 1.0, 0.2, 0.4]));
        let [on_bytes, on_fractions] = [&bytes, &fractions].map(Scaling::learn);
        for (scaling, given, word) in
            [(on_bytes, &fractions, "multiplied by 255"), (on_fractions, &bytes, "divided by 255")]
        {
            let scale = scaling.scale_for(given).unwrap();
            assert!(scaling.conversion(scale).unwrap().contains(word));
            let numbers = seen(&given.clone().with_scale(scale));
            assert!(numbers.iter().zip([0.0, 1.0, 0.2, 0.4]).all(|(a, b)| (a - b).abs() < 1e-15));
        }
        assert_eq!(on_bytes.conversion(on_bytes.scale_for(&bytes).unwrap()), None);
        let dark = images(Pixels::U8(vec![0, 1]));
        assert!(on_bytes.scale_for(&dark).is_err(), "bytes of 1 are no fractions");
        let dim = images(Pixels::F32(vec![0.0, 0.01]));
        assert_eq!(
            seen(&dim.clone().with_scale(on_bytes.scale_for(&dim).unwrap())),
            [0.0, f64::from(0.01f32)]
        );
        for odd in [vec![0.0, 200.5], vec![-1.0, 200.0], vec![0.0, 20.0], vec![0.0, 256.0]] {
            assert!(on_fractions.scale_for(&images(Pixels::F64(odd.clone()))).is_err(), "{odd:?}");
        }
        let sixteen = Scaling::learn(&images(Pixels::U8(vec![0, 16])));
        assert!(sixteen.scale_for(&fractions).is_err() && sixteen.scale_for(&bytes).is_err());
    }

    #[test]
    fn units_do_not_matter() {
        let bytes = [0u8, 3, 7, 250, 255, 255, 12, 0, 1, 99];
        let plain = images(Pixels::U8(bytes.to_vec()));
        assert_eq!(Scaling::learn(&plain), Scaling::Bytes);
        let expected: Vec<f64> = bytes.iter().map(|&b| f64::from(b) / 255.0).collect();
        for (factor, shift) in [(1.0, 0.0), (16.0, 0.0), (255.0, -7.0), (1e-3, 5.0)] {
            let other = images(Pixels::F64(bytes.iter().map(|&b| factor * f64::from(b) + shift).collect()));
            let scaling = Scaling::learn(&other);
            let numbers = seen(&other.with_scale(scaling.scale()));
            assert!(numbers.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-11), "{numbers:?}");
        }
        assert_eq!(seen(&plain), expected, "bytes keep their bits");
    }

    #[test]
    fn a_few_hot_pixels_do_not_decide() {
        let mut pixels: Vec<u16> = (0..10_000).map(|i| i % 901).collect();
        pixels[77] = 65535;
        let Scaling::Learned { zero, one, high, .. } = Scaling::learn(&images(Pixels::U16(pixels))) else {
            panic!()
        };
        assert!(zero < 5.0 && (890.0..=900.0).contains(&one) && high == 65535.0);
        let mut sparse = vec![0.0; 10_000];
        sparse[5] = 3.0;
        let scale = Scaling::learn(&images(Pixels::F64(sparse))).scale();
        assert_eq!(scale, PixelScale { zero: 0.0, one: 3.0 }, "a few bright pixels are all there is");
        let constant = Scaling::learn(&images(Pixels::U8(vec![9; 4])));
        assert_eq!(constant.scale(), PixelScale { zero: 9.0, one: 10.0 });
    }

    #[test]
    fn it_survives_json() {
        let learned = Scaling::Learned { zero: 0.0, one: 16.0, low: -0.5, high: 22.25 };
        for p in [
            Preparation::default(),
            Preparation { scaling: Scaling::Values { low: -0.5, high: 2.25 }, fit: Fit::Stretch },
            Preparation { scaling: learned, fit: Fit::Crop },
        ] {
            assert_eq!(serde_json::from_str::<Preparation>(&serde_json::to_string(&p).unwrap()).unwrap(), p);
        }
    }
}
