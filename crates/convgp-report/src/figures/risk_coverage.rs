//! Error among the answers that are given, against how many are given.

use super::{ANSWERS, Drawing};
use crate::canvas::{Axes, axes, draw as canvas};
use crate::style::{BLUE, HEIGHT, MUTED, ORANGE, WIDTH, line};
use crate::{Report, ReportError};
use convgp::metrics::RiskCoverage;
use plotters::element::Circle;
use plotters::prelude::LineSeries;
use plotters::style::Color;

/// Points a line is drawn with at most.
const POINTS: usize = 1000;

/// The curve, if there are test results.
pub(super) fn draw(report: &Report) -> Result<Vec<Drawing>, ReportError> {
    let Some(evaluation) = &report.evaluation else { return Ok(Vec::new()) };
    let c = evaluation.classified();
    let curve = RiskCoverage::new(&c.confidences(), &c.correct())?;
    let points: Vec<(f64, f64)> =
        curve.points().map(|(coverage, risk)| (100.0 * coverage, 100.0 * risk)).collect();
    // The first few answers decide the curve's left end all by themselves; they must not set the scale.
    let settled = &points[(points.len() / 20).min(points.len() - 1)..];
    let high = settled.iter().fold(0.0f64, |m, p| m.max(p.1)).max(0.1) * 1.1;
    let shown = points.iter().step_by(points.len().div_ceil(POINTS)).chain(points.last());
    let shown: Vec<_> = shown.copied().filter(|p| p.1 <= high).collect();
    let marks = [0.8, 0.9, 0.95].map(|c| (100.0 * c, 100.0 * curve.error_at(c)));
    let whole = 100.0 * c.error();
    let svg = canvas((WIDTH, HEIGHT), |area, _| {
        let spec =
            Axes { x: ("answered, %", 0.0, 100.0), y: ("error among answers, %", 0.0, high), legend_rows: 0 };
        let mut plot = axes(area, &spec)?;
        plot.draw_series(LineSeries::new([(0.0, whole), (100.0, whole)], line(MUTED, 1)))?;
        plot.draw_series(LineSeries::new(shown, line(BLUE, 2)))?;
        plot.draw_series(marks.map(|at| Circle::new(at, 4, ORANGE.filled())))?;
        Ok(())
    })?;
    Ok(vec![Drawing {
        name: "risk-coverage".into(),
        section: ANSWERS,
        title: "Risk against coverage".into(),
        caption: format!(
            "Error when only the most confident answers are given. The grey line is the error without restraint; a model \
             that knew its mistakes would stay at zero until {:.1} % are answered. Dots: 80, 90 and 95 %.",
            100.0 - whole
        ),
        svg,
    }])
}
