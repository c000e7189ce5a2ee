//! Reliability diagram: accuracy against confidence with the null band, counts underneath.

use super::{ANSWERS, Drawing};
use crate::canvas::{Area, Axes, axes, draw as canvas};
use crate::style::{BLUE, MUTED, WIDTH, line, wash};
use crate::{Report, ReportError};
use convgp::metrics::{Bin, Binning, NullBand, Reliability};
use convgp::rng::Rng;
use plotters::element::{Circle, Rectangle};
use plotters::prelude::LineSeries;
use plotters::style::Color;

const BINS: usize = 15;
const DRAWS: usize = 1000;
const MAIN: u32 = 330;
const COUNTS: u32 = 150;

/// The diagram, if there are test results.
pub(super) fn draw(report: &Report) -> Result<Vec<Drawing>, ReportError> {
    let Some(evaluation) = &report.evaluation else { return Ok(Vec::new()) };
    let c = evaluation.classified();
    let reliability = Reliability::new(&c.confidences(), &c.correct(), Binning::EqualWidth(BINS))?;
    let band = reliability.null_band(DRAWS, 0.95, &mut Rng::new(report.seed));
    let bins = reliability.bins();
    let svg = canvas((WIDTH, MAIN + COUNTS), |area, _| {
        let (top, bottom) = area.split_vertically(MAIN);
        accuracy(&top, &bins, &band)?;
        counts(&bottom, &bins)
    })?;
    Ok(vec![Drawing {
        name: "reliability".into(),
        section: ANSWERS,
        title: "Reliability".into(),
        caption: format!(
            "Fraction of right answers among those given with about the same confidence (dots), and how many there are. The \
             shaded band is where 95 % of perfectly calibrated models would put each dot with {} images: dots inside it are \
             no evidence against the model, dots below it are overconfidence.",
            c.len()
        ),
        svg,
    }])
}

fn accuracy(area: &Area<'_>, bins: &[Bin], band: &NullBand) -> Result<(), ReportError> {
    let mut plot =
        axes(area, &Axes { x: ("confidence", 0.0, 1.0), y: ("accuracy", 0.0, 1.0), legend_rows: 0 })?;
    let filled = || bins.iter().zip(&band.accuracy).filter(|(bin, _)| bin.count > 0);
    plot.draw_series(filled().map(|(bin, range)| {
        Rectangle::new(
            [(bin.lower, range.lower), (bin.upper, range.upper.max(range.lower + 0.004))],
            wash(BLUE, 0.2).filled(),
        )
    }))?;
    plot.draw_series(LineSeries::new([(0.0, 0.0), (1.0, 1.0)], line(MUTED, 1)))?;
    let dots = || filled().map(|(bin, _)| (bin.confidence, bin.accuracy));
    plot.draw_series(LineSeries::new(dots(), line(BLUE, 2)))?;
    plot.draw_series(dots().map(|at| Circle::new(at, 4, BLUE.filled())))?;
    Ok(())
}

fn counts(area: &Area<'_>, bins: &[Bin]) -> Result<(), ReportError> {
    let most = bins.iter().map(|b| b.count).max().unwrap_or(1) as f64;
    let mut plot =
        axes(area, &Axes { x: ("confidence", 0.0, 1.0), y: ("images", 0.0, 1.05 * most), legend_rows: 0 })?;
    plot.draw_series(bins.iter().filter(|b| b.count > 0).map(|b| {
        let inset = 0.1 * (b.upper - b.lower);
        Rectangle::new([(b.lower + inset, 0.0), (b.upper - inset, b.count as f64)], BLUE.filled())
    }))?;
    Ok(())
}
