//! Drawing one figure: a plotting area of the plotting crate, and pictures laid over it.

use crate::ReportError;
use crate::raster::Raster;
use crate::style::{GRID, INK, MUTED, NORMAL, SMALL, font, line};
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Write;

/// The area a figure is drawn on.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// A plot with two numeric axes.
pub(crate) type Plot<'a, 'b> = ChartContext<'b, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Pictures to be laid over a drawing. The SVG writer of the plotting crate has no images without a second copy of the
/// image library, so they are added to its output.
#[derive(Default)]
pub(crate) struct Pictures(String);

impl Pictures {
    /// Puts a picture at `(x, y)`, enlarged by whole pixels so that it stays crisp.
    pub fn put(&mut self, picture: &Raster, (x, y): (i32, i32), (width, height): (u32, u32)) {
        let times = (2 * width as usize).div_ceil(picture.width()).max(1);
        let uri = picture.enlarged(times).data_uri();
        let _ = writeln!(
            self.0,
            "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" preserveAspectRatio=\"none\" href=\"{uri}\"/>"
        );
    }
}

/// Runs a drawing function and returns the SVG, without a background.
pub(crate) fn draw(
    (width, height): (u32, u32),
    body: impl FnOnce(&Area<'_>, &mut Pictures) -> Result<(), ReportError>,
) -> Result<String, ReportError> {
    let (mut svg, mut pictures) = (String::new(), Pictures::default());
    {
        let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        body(&area, &mut pictures)?;
        area.present()?;
    }
    let end = svg.rfind("</svg>").unwrap_or(svg.len());
    svg.insert_str(end, &pictures.0);
    Ok(svg)
}

/// Where text hangs on its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    /// Starts there.
    Left,
    /// Is centred there.
    Centre,
    /// Ends there.
    Right,
}

/// Writes one line of text, vertically centred on `(x, y)`.
pub(crate) fn text(
    area: &Area<'_>,
    words: &str,
    at: (i32, i32),
    anchor: Anchor,
    size: f64,
    colour: RGBColor,
) -> Result<(), ReportError> {
    let h = match anchor {
        Anchor::Left => HPos::Left,
        Anchor::Centre => HPos::Center,
        Anchor::Right => HPos::Right,
    };
    let style = font(size, colour).pos(Pos::new(h, VPos::Center));
    Ok(area.draw(&Text::new(printable(words), at, style))?)
}

/// The text without control characters, which no XML may hold.
fn printable(words: &str) -> String {
    words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The text, shortened to `most` characters.
pub(crate) fn shortened(words: &str, most: usize) -> String {
    if words.chars().count() <= most {
        return words.into();
    }
    words.chars().take(most.saturating_sub(1)).chain(['\u{2026}']).collect()
}

/// A line of the legend above a plot.
pub(crate) fn legend(area: &Area<'_>, row: usize, colour: RGBColor, words: &str) -> Result<(), ReportError> {
    let y = LEGEND_ROW as i32 * row as i32 + LEGEND_ROW as i32 / 2;
    area.draw(&Rectangle::new([(14, y - 4), (32, y + 4)], colour.filled()))?;
    text(area, &shortened(words, 60), (40, y), Anchor::Left, SMALL, INK)
}

/// Height of a line of the legend.
pub(crate) const LEGEND_ROW: u32 = 20;

/// Axes with a grid: descriptions, ranges, and room left above for `legend_rows` lines.
pub(crate) struct Axes<'t> {
    pub x: (&'t str, f64, f64),
    pub y: (&'t str, f64, f64),
    pub legend_rows: usize,
}

/// Draws axes and returns the plot to put series on.
pub(crate) fn axes<'a, 'b>(area: &'b Area<'a>, axes: &Axes<'_>) -> Result<Plot<'a, 'b>, ReportError> {
    let (x0, x1) = widened(axes.x.1, axes.x.2);
    let (y0, y1) = widened(axes.y.1, axes.y.2);
    let mut plot = ChartBuilder::on(area)
        .margin(8)
        .margin_right(16)
        .margin_top(8 + LEGEND_ROW * axes.legend_rows as u32)
        .x_label_area_size(44)
        .y_label_area_size(62)
        .build_cartesian_2d(x0..x1, y0..y1)?;
    let format = |v: &f64| number(*v);
    plot.configure_mesh()
        .x_desc(axes.x.0)
        .y_desc(axes.y.0)
        .x_labels(7)
        .y_labels(7)
        .x_label_formatter(&format)
        .y_label_formatter(&format)
        .light_line_style(TRANSPARENT)
        .bold_line_style(line(GRID, 1))
        .axis_style(line(MUTED, 1))
        .label_style(font(SMALL, MUTED))
        .axis_desc_style(font(NORMAL, INK))
        .draw()?;
    Ok(plot)
}

/// A range of positive length that holds both ends.
fn widened(low: f64, high: f64) -> (f64, f64) {
    if high > low { (low, high) } else { (low - 0.5 * low.abs().max(1e-3), low + 0.5 * low.abs().max(1e-3)) }
}

/// A tick label: no more digits than it needs.
pub(crate) fn number(v: f64) -> String {
    let v = if v.abs() < 1e-12 { 0.0 } else { v };
    match v.abs() {
        a if a >= 1e6 => format!("{:.3}M", v / 1e6).replace(".000M", "M"),
        a if a >= 1e4 => format!("{:.1}k", v / 1e3).replace(".0k", "k"),
        a if a > 0.0 && a < 1e-3 => format!("{v:.0e}"),
        a => {
            let decimals = if a >= 1000.0 {
                0
            } else if a >= 10.0 {
                1
            } else if a >= 1.0 {
                2
            } else {
                3
            };
            let text = format!("{v:.decimals$}");
            if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').into() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (1e-17, "0"),
            (0.25, "0.25"),
            (-3.0, "-3"),
            (100.0, "100"),
            (6070.4, "6070"),
            (43.107, "43.1"),
            (0.0661, "0.066"),
            (12_500.0, "12.5k"),
            (2e-5, "2e-5"),
            (3e6, "3M"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn text_cannot_break_out_of_its_element() {
        let svg = draw((100, 50), |area, _| {
            text(area, "</text><script>&\u{0}\"", (1, 1), Anchor::Left, SMALL, INK)
        })
        .unwrap();
        assert!(svg.contains("&lt;/text&gt;&lt;script&gt;&amp; &quot;") && !svg.contains("<script"));
        assert!(svg.trim_end().ends_with("</svg>"));
    }

    #[test]
    fn long_names_are_shortened_by_characters() {
        assert_eq!(shortened("größer", 6), "größer");
        assert_eq!(shortened("größere", 6), "größe\u{2026}");
    }
}
