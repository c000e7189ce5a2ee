//! Pictures made of pixels: images, patches, heat maps.

use base64::Engine as _;
use convgp::data::ImageShape;
use image::{ExtendedColorType, ImageEncoder, codecs::png::PngEncoder};

/// An RGB picture.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Raster {
    width: usize,
    height: usize,
    rgb: Vec<[u8; 3]>,
}

/// Which numbers are black and white in a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tones {
    black: f64,
    white: f64,
}

impl Tones {
    /// Pixels mostly within `[0, 1]` keep that range, so that pictures compare; others are stretched to what they fill, but
    /// for the outermost hundredths.
    pub fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut all: Vec<f64> = values.filter(|v| v.is_finite()).collect();
        all.sort_by(f64::total_cmp);
        let Some(last) = all.len().checked_sub(1) else { return Self { black: 0.0, white: 1.0 } };
        let (low, high) = (all[last / 100], all[last - last / 100]);
        if low > -0.25 && high < 1.25 && high > 0.05 {
            Self { black: 0.0, white: 1.0 }
        } else {
            Self { black: low, white: high.max(low + 1e-12) }
        }
    }

    fn tone(self, v: f64) -> u8 {
        (255.0 * (v - self.black) / (self.white - self.black)).round().clamp(0.0, 255.0) as u8
    }
}

impl Raster {
    /// An image or a patch: three channels are colours, otherwise the mean of the channels is grey.
    pub fn picture(values: &[f64], shape: ImageShape, tones: Tones) -> Self {
        let pixel = |v: &[f64]| match v {
            [r, g, b] => [tones.tone(*r), tones.tone(*g), tones.tone(*b)],
            _ => [tones.tone(v.iter().sum::<f64>() / v.len() as f64); 3],
        };
        let rgb = values.chunks_exact(shape.channels()).map(pixel).collect();
        Self { width: shape.width(), height: shape.height(), rgb }
    }

    /// A heat map: blue below zero, white at zero, red above, full colour at `limit`.
    pub fn heat(values: &[f64], width: usize, limit: f64) -> Self {
        let rgb: Vec<_> = values.iter().map(|v| heat_colour(v / limit.max(f64::MIN_POSITIVE))).collect();
        Self { width, height: rgb.len() / width, rgb }
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Every pixel `times` as wide and high.
    pub fn enlarged(&self, times: usize) -> Self {
        let (width, height) = (self.width * times, self.height * times);
        let at = |i: usize| self.rgb[i / width / times * self.width + i % width / times];
        Self { width, height, rgb: (0..width * height).map(at).collect() }
    }

    /// As a PNG inside a URI.
    pub fn data_uri(&self) -> String {
        let mut png = Vec::new();
        PngEncoder::new(&mut png)
            .write_image(
                self.rgb.as_flattened(),
                self.width as u32,
                self.height as u32,
                ExtendedColorType::Rgb8,
            )
            .expect("a picture in memory has as many pixels as it says");
        format!("data:image/png;base64,{}", base64::engine::general_purpose::STANDARD.encode(png))
    }
}

/// From deep blue through white to deep red, for -1 to 1.
pub(crate) fn heat_colour(v: f64) -> [u8; 3] {
    const BLUE: [f64; 3] = [20.0, 80.0, 170.0];
    const RED: [f64; 3] = [185.0, 30.0, 45.0];
    let v = if v.is_finite() { v.clamp(-1.0, 1.0) } else { 0.0 };
    let end = if v < 0.0 { BLUE } else { RED };
    end.map(|c| (255.0 + v.abs().powf(0.8) * (c - 255.0)).round() as u8)
}

/// The largest magnitude, for symmetric colour scales.
pub(crate) fn largest<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    values.into_iter().fold(0.0, |m, v| m.max(v.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_keep_their_pixels_when_enlarged() {
        let shape = ImageShape::new(1, 2, 3).unwrap();
        let r = Raster::picture(&[0.0, 0.5, 1.0, 1.0, 0.0, 0.0], shape, Tones { black: 0.0, white: 1.0 });
        assert_eq!(r.rgb, [[0, 128, 255], [255, 0, 0]]);
        let large = r.enlarged(2);
        assert_eq!((large.width, large.height), (4, 2));
        assert_eq!(large.rgb[..4], [[0, 128, 255], [0, 128, 255], [255, 0, 0], [255, 0, 0]]);
    }

    #[test]
    fn tones_follow_data_that_are_not_pixels() {
        assert_eq!(Tones::of([0.0, 0.4, 1.1].into_iter()), Tones { black: 0.0, white: 1.0 });
        assert_eq!(Tones::of([-3.0, 0.0, 2.0].into_iter()), Tones { black: -3.0, white: 2.0 });
        assert_eq!(Tones::of(std::iter::empty()), Tones { black: 0.0, white: 1.0 });
    }

    #[test]
    fn heat_is_white_at_zero_and_has_two_ends() {
        assert_eq!(heat_colour(0.0), [255; 3]);
        assert_eq!((heat_colour(2.0), heat_colour(-1.0)), ([185, 30, 45], [20, 80, 170]));
        let r = Raster::heat(&[0.0, 1.0, -1.0, 0.0], 2, 1.0);
        assert_eq!((r.width, r.height, r.rgb[1]), (2, 2, [185, 30, 45]));
    }
}
