//! Colours and type. Ink, muted and grid are changed by the page's style sheet in dark mode, by exactly these values; all
//! others are readable on white and on black.

use plotters::style::{Color, RGBAColor, RGBColor, ShapeStyle, TextStyle};
use plotters::style::{FontFamily, FontStyle, IntoFont};

/// Text and axes.
pub(crate) const INK: RGBColor = RGBColor(0x1f, 0x23, 0x28);
/// Secondary text.
pub(crate) const MUTED: RGBColor = RGBColor(0x65, 0x6d, 0x76);
/// Grid lines.
pub(crate) const GRID: RGBColor = RGBColor(0xd8, 0xde, 0xe4);
/// Right answers, the first run.
pub(crate) const BLUE: RGBColor = RGBColor(0x2f, 0x7e, 0xd8);
/// Wrong answers, the second run.
pub(crate) const ORANGE: RGBColor = RGBColor(0xe0, 0x6c, 0x2c);

/// Colours of runs, in order; they repeat.
const SERIES: [RGBColor; 8] = [
    BLUE,
    ORANGE,
    RGBColor(0x2d, 0x9d, 0x6a),
    RGBColor(0x9a, 0x5f, 0xc9),
    RGBColor(0xc9, 0x3f, 0x6b),
    RGBColor(0x8c, 0x6d, 0x46),
    RGBColor(0x1c, 0x9a, 0xa8),
    RGBColor(0x8a, 0x8f, 0x2a),
];

/// Colour of series `i`.
pub(crate) fn series(i: usize) -> RGBColor {
    SERIES[i % SERIES.len()]
}

/// Width of every figure: narrow enough that text of [`SMALL`] size stays readable when a phone shrinks it.
pub(crate) const WIDTH: u32 = 520;
/// Height of an ordinary plot.
pub(crate) const HEIGHT: u32 = 340;

/// Size of labels, in pixels.
pub(crate) const SMALL: f64 = 14.0;
/// Size of axis descriptions.
pub(crate) const NORMAL: f64 = 15.0;

/// The SVG backend divides sizes by this, so that a size means the height of a line.
const LINE_HEIGHT: f64 = 1.24;

/// Sans-serif text of a size in pixels.
pub(crate) fn font(size: f64, colour: RGBColor) -> TextStyle<'static> {
    let font = (FontFamily::SansSerif, size * LINE_HEIGHT, FontStyle::Normal).into_font();
    TextStyle { color: colour.to_backend_color(), ..TextStyle::from(font) }
}

/// A line.
pub(crate) fn line(colour: RGBColor, width: u32) -> ShapeStyle {
    ShapeStyle { color: colour.to_rgba(), filled: false, stroke_width: width }
}

/// A transparent fill.
pub(crate) fn wash(colour: RGBColor, opacity: f64) -> RGBAColor {
    colour.mix(opacity)
}
