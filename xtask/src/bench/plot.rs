//! A few lines in logarithmic axes as SVG.

use super::report::digits;
use std::fmt::Write;

/// One line.
#[derive(Debug)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Positive pairs, in order.
    pub points: Vec<(f64, f64)>,
}

/// One set of axes.
#[derive(Debug)]
pub struct Panel {
    /// What is shown.
    pub title: String,
    /// The lines.
    pub series: Vec<Series>,
}

const SIZE: (f64, f64) = (380.0, 280.0);
const MARGIN: (f64, f64) = (52.0, 36.0);
const COLOURS: [&str; 4] = ["#1b6ca8", "#d1495b", "#2e933c", "#8d6a9f"];

/// All panels, two in a row.
pub fn svg(panels: &[Panel]) -> String {
    let rows = panels.len().div_ceil(2) as f64;
    let (width, height) = (2.0 * SIZE.0, rows * SIZE.1);
    let mut out = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' font-family='sans-serif' \
         font-size='11'>\n<rect width='100%' height='100%' fill='white'/>\n"
    );
    for (i, panel) in panels.iter().enumerate() {
        let at = ((i % 2) as f64 * SIZE.0, (i / 2) as f64 * SIZE.1);
        let _ = writeln!(out, "<g transform='translate({},{})'>{}</g>", at.0, at.1, axes(panel));
    }
    out + "</svg>\n"
}

/// Smallest and largest of some positive numbers, a little wider, in logarithms.
fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (lo, hi) =
        values.map(f64::ln).fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
    let pad = 0.06 * (hi - lo).max(0.1);
    (lo - pad, hi + pad)
}

fn axes(panel: &Panel) -> String {
    let points = || panel.series.iter().flat_map(|s| &s.points);
    if points().next().is_none() {
        return String::new();
    }
    let (xs, ys) = (range(points().map(|p| p.0)), range(points().map(|p| p.1)));
    let (inner_w, inner_h) = (SIZE.0 - MARGIN.0 - 16.0, SIZE.1 - 2.0 * MARGIN.1);
    let x = |v: f64| MARGIN.0 + (v.ln() - xs.0) / (xs.1 - xs.0) * inner_w;
    let y = |v: f64| SIZE.1 - MARGIN.1 - (v.ln() - ys.0) / (ys.1 - ys.0) * inner_h;
    let bottom = SIZE.1 - MARGIN.1;
    let mut out = format!(
        "<text x='{}' y='20' font-size='13'>{}</text>\
         <path d='M{} {} V{bottom} H{}' fill='none' stroke='#444'/>",
        MARGIN.0,
        panel.title,
        MARGIN.0,
        MARGIN.1,
        SIZE.0 - 16.0
    );
    for &(v, _) in &panel.series[0].points {
        let _ = write!(out, "<text x='{:.1}' y='{}' text-anchor='middle'>{v}</text>", x(v), bottom + 15.0);
    }
    for v in ticks(ys) {
        let at = y(v);
        let _ = write!(
            out,
            "<path d='M{} {at:.1} H{}' stroke='#ddd'/><text x='{}' y='{:.1}' text-anchor='end'>{}</text>",
            MARGIN.0,
            SIZE.0 - 16.0,
            MARGIN.0 - 5.0,
            at + 4.0,
            digits(v).trim_end_matches('0').trim_end_matches('.')
        );
    }
    for (i, series) in panel.series.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let path: Vec<String> =
            series.points.iter().map(|p| format!("{:.1},{:.1}", x(p.0), y(p.1))).collect();
        let _ = write!(out, "<polyline points='{}' fill='none' stroke='{colour}'/>", path.join(" "));
        for p in &series.points {
            let _ = write!(out, "<circle cx='{:.1}' cy='{:.1}' r='3' fill='{colour}'/>", x(p.0), y(p.1));
        }
        let at = (MARGIN.0 + 10.0, MARGIN.1 + 12.0 + 14.0 * i as f64);
        let _ = write!(out, "<text x='{}' y='{}' fill='{colour}'>{}</text>", at.0, at.1, series.name);
    }
    out
}

/// 1, 2 and 5 times powers of ten inside a logarithmic range.
fn ticks((lo, hi): (f64, f64)) -> Vec<f64> {
    let decades =
        (lo / std::f64::consts::LN_10).floor() as i32..=(hi / std::f64::consts::LN_10).ceil() as i32;
    decades
        .flat_map(|d| [1.0, 2.0, 5.0].map(|f| f * 10f64.powi(d)))
        .filter(|v| (lo..=hi).contains(&v.ln()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_lie_inside_and_ticks_are_round() {
        assert_eq!(ticks((0.09f64.ln(), 1.1f64.ln())), [0.1, 0.2, 0.5, 1.0]);
        let points = vec![(1.0, 0.1), (10.0, 1.0)];
        let text = svg(&[Panel { title: "t".into(), series: vec![Series { name: "s".into(), points }] }]);
        assert!(
            text.starts_with("<svg") && text.ends_with("</svg>\n") && text.matches("<circle").count() == 2
        );
    }
}
