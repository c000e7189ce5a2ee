//! How images became the numbers a model saw: kept in the model file, so that prediction does the same.

use crate::data::{DataError, Images, PixelView};
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

/// What pixels were.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Scaling {
    /// Bytes, divided by 255.
    #[default]
    Bytes,
    /// Numbers, taken as they were.
    Values {
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
    /// What pixels were.
    pub scaling: Scaling,
    /// How images of other sizes are brought to the model's.
    pub fit: Fit,
}

impl Scaling {
    /// That of these images.
    pub fn of(images: &Images) -> Self {
        match images.pixels().view() {
            PixelView::U8(_) => Scaling::Bytes,
            PixelView::F32(v) => Self::values(v.iter().map(|&x| f64::from(x))),
            PixelView::F64(v) => Self::values(v.iter().copied()),
        }
    }

    fn values(pixels: impl Iterator<Item = f64>) -> Self {
        let start = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = pixels.fold(start, |(low, high), x| (low.min(x), high.max(x)));
        Scaling::Values { low, high }
    }

    /// The smallest and largest pixel there can be, or was.
    pub fn range(self) -> (f64, f64) {
        match self {
            Scaling::Bytes => (0.0, 1.0),
            Scaling::Values { low, high } => (low, high),
        }
    }

    /// Refuses images whose pixels cannot be on the same scale as the ones these were: wider than twice their range, or
    /// bytes where they were numbers outside of 0 to 1.
    pub fn check(self, images: &Images) -> Result<(), DataError> {
        let found = Self::of(images);
        let ((low, high), (trained_low, trained_high)) = (found.range(), self.range());
        let slack = (trained_high - trained_low).max(f64::MIN_POSITIVE);
        let too_wide = low < trained_low - slack || high > trained_high + slack;
        let other_unit = found == Scaling::Bytes && (trained_low < 0.0 || trained_high > 1.0);
        if found != self && (too_wide || other_unit) {
            return Err(DataError::PixelRange { low, high, trained_low, trained_high });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ImageShape, Pixels};

    fn images(pixels: Pixels) -> Images {
        Images::new(ImageShape::new(1, 2, 1).unwrap(), pixels).unwrap()
    }

    #[test]
    fn pixels_on_another_scale_are_refused() {
        let bytes = images(Pixels::U8(vec![0, 3]));
        let unit = images(Pixels::F32(vec![0.0, 1.0]));
        let wide = images(Pixels::F64(vec![0.0, 255.0]));
        for (trained, given, fits) in [
            (&bytes, &bytes, true),
            (&bytes, &unit, true),
            (&unit, &bytes, true),
            (&wide, &wide, true),
            (&bytes, &wide, false),
            (&wide, &bytes, false),
            (&unit, &wide, false),
        ] {
            assert_eq!(Scaling::of(trained).check(given).is_ok(), fits, "{trained:?} {given:?}");
        }
        let text = Scaling::of(&bytes).check(&wide).unwrap_err().to_string();
        assert!(text.contains("from 0 to 255") && text.contains("from 0 to 1"), "{text}");
    }

    #[test]
    fn it_survives_json() {
        for p in [
            Preparation::default(),
            Preparation { scaling: Scaling::Values { low: -0.5, high: 2.25 }, fit: Fit::Stretch },
        ] {
            assert_eq!(serde_json::from_str::<Preparation>(&serde_json::to_string(&p).unwrap()).unwrap(), p);
        }
    }
}
