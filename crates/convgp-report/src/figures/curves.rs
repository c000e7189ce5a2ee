//! Error (for regression its root mean square), NLPP and bound against wall-clock time and against steps, runs overlaid.

use super::{Drawing, TRAINING};
use crate::canvas::{Axes, axes, draw as canvas, legend};
use crate::curves::CurvePoint;
use crate::style::{HEIGHT, WIDTH, line, series};
use crate::{Report, ReportError};
use plotters::element::Circle;
use plotters::prelude::LineSeries;

struct Quantity {
    name: &'static str,
    title: &'static str,
    axis: &'static str,
    of: fn(&CurvePoint) -> Option<f64>,
    /// Whether the axis starts at zero if nothing lies below.
    from_zero: bool,
}

const QUANTITIES: [Quantity; 4] = [
    Quantity {
        name: "error",
        title: "Held-out error",
        axis: "error, %",
        of: |p| Some(100.0 * p.error?),
        from_zero: true,
    },
    Quantity {
        name: "rmse",
        title: "Held-out root mean square error",
        axis: "root mean square error",
        of: |p| p.rmse,
        from_zero: true,
    },
    Quantity { name: "nlpp", title: "Held-out NLPP", axis: "NLPP", of: |p| p.nlpp, from_zero: true },
    Quantity {
        name: "bound",
        title: "Bound on the log evidence",
        axis: "bound",
        of: |p| p.bound,
        from_zero: false,
    },
];

struct Against {
    name: &'static str,
    axis: &'static str,
    of: fn(&CurvePoint) -> f64,
}

const AGAINST: [Against; 2] = [
    Against { name: "time", axis: "seconds", of: |p| p.seconds },
    Against { name: "steps", axis: "steps", of: |p| p.step as f64 },
];

/// Two plots for every quantity that was measured.
pub(super) fn draw(report: &Report) -> Result<Vec<Drawing>, ReportError> {
    let mut out = Vec::new();
    for quantity in &QUANTITIES {
        for against in &AGAINST {
            out.extend(plot(report, quantity, against)?);
        }
    }
    Ok(out)
}

fn plot(report: &Report, quantity: &Quantity, against: &Against) -> Result<Option<Drawing>, ReportError> {
    let lines: Vec<Vec<(f64, f64)>> = report
        .runs
        .iter()
        .map(|run| {
            let point = |p: &CurvePoint| Some(((against.of)(p), (quantity.of)(p)?));
            run.points.iter().filter_map(point).filter(|(x, y)| x.is_finite() && y.is_finite()).collect()
        })
        .collect();
    let Some((low, high)) = interesting_range(&lines, quantity.from_zero) else { return Ok(None) };
    let last = lines.iter().flatten().fold(0.0f64, |m, p| m.max(p.0));
    let rows = report.runs.len();
    let svg = canvas((WIDTH, HEIGHT + 20 * rows as u32), |area, _| {
        let spec = Axes { x: (against.axis, 0.0, last), y: (quantity.axis, low, high), legend_rows: rows };
        let mut chart = axes(area, &spec)?;
        for (i, points) in lines.iter().enumerate() {
            let shown = points.iter().copied().filter(|(_, y)| (low..=high).contains(y));
            chart.draw_series(LineSeries::new(shown.clone(), line(series(i), 2)))?;
            if points.len() < 40 {
                let dot = |p| Circle::new(p, 3, plotters::style::Color::filled(&series(i)));
                chart.draw_series(shown.map(dot))?;
            }
            legend(area, i, series(i), &report.runs[i].name)?;
        }
        Ok(())
    })?;
    Ok(Some(Drawing {
        name: format!("{}-{}", quantity.name, against.name),
        section: TRAINING,
        title: format!("{} against {}", quantity.title, against.name),
        caption: "The first steps may lie outside the plot, so that what follows can be told apart.".into(),
        svg,
    }))
}

/// From the least to the largest value once the first twentieth of every run is over, and a little more.
fn interesting_range(lines: &[Vec<(f64, f64)>], from_zero: bool) -> Option<(f64, f64)> {
    let late = lines.iter().flat_map(|l| &l[l.len() / 20..]).map(|p| p.1);
    let (low, high) = late.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), y| (a.min(y), b.max(y)));
    if low > high {
        return None;
    }
    let room = 0.05 * (high - low);
    Some(if from_zero && low >= 0.0 { (0.0, (high + room).max(1e-3)) } else { (low - room, high + room) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_leaves_out_the_beginning_of_long_runs_only() {
        let long: Vec<(f64, f64)> =
            (0..40).map(|i| (f64::from(i), if i < 2 { -1e6 } else { -100.0 + f64::from(i) })).collect();
        let (low, high) = interesting_range(&[long], false).unwrap();
        assert!(low > -110.0 && high > -61.0 && high < -50.0);
        let (low, _) = interesting_range(&[vec![(0.0, -1e6), (1.0, 0.0)]], false).unwrap();
        assert!(low < -1e6);
        assert_eq!(interesting_range(&[vec![]], true), None);
        let (zero, _) = interesting_range(&[vec![(0.0, 3.0), (1.0, 2.0)]], true).unwrap();
        let (negative, _) = interesting_range(&[vec![(0.0, 3.0), (1.0, -2.0)]], true).unwrap();
        assert!(zero == 0.0 && negative < -2.0, "densities of real targets may exceed one");
    }
}
