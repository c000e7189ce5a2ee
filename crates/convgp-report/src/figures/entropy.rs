//! Predictive entropy of right and of wrong answers.

use super::{ANSWERS, Drawing};
use crate::canvas::{Axes, axes, draw as canvas, legend};
use crate::style::{BLUE, HEIGHT, ORANGE, WIDTH, line, wash};
use crate::{Report, ReportError};
use plotters::element::Rectangle;
use plotters::style::Color;

const BINS: usize = 25;

/// Two histograms over each other, if there are test results.
pub(super) fn draw(report: &Report) -> Result<Vec<Drawing>, ReportError> {
    let Some(evaluation) = &report.evaluation else { return Ok(Vec::new()) };
    let c = evaluation.classified();
    let (entropies, correct) = (c.entropies(), c.correct());
    let most = (c.classes() as f64).ln();
    let of = |wanted: bool| {
        let chosen = entropies.iter().zip(&correct).filter(|(_, right)| **right == wanted);
        histogram(chosen.map(|(h, _)| h / most))
    };
    let groups = [(of(true), BLUE, "right answers"), (of(false), ORANGE, "wrong answers")];
    let high = groups.iter().flat_map(|g| &g.0.0).fold(0.0f64, |m, v| m.max(*v)).max(1.0);
    let svg = canvas((WIDTH, HEIGHT + 40), |area, _| {
        let spec =
            Axes { x: ("entropy, nats", 0.0, most), y: ("% of the group", 0.0, 1.05 * high), legend_rows: 2 };
        let mut plot = axes(area, &spec)?;
        for (row, ((heights, count), colour, name)) in groups.iter().enumerate() {
            let bar = |(i, h): (usize, &f64)| {
                let x = |i: usize| most * i as f64 / BINS as f64;
                [(x(i), 0.0), (x(i + 1), *h)]
            };
            let tall = || heights.iter().enumerate().filter(|(_, h)| **h > 0.0);
            plot.draw_series(tall().map(|b| Rectangle::new(bar(b), wash(*colour, 0.35).filled())))?;
            plot.draw_series(tall().map(|b| Rectangle::new(bar(b), line(*colour, 1))))?;
            legend(area, row, *colour, &format!("{name} ({count})"))?;
        }
        Ok(())
    })?;
    Ok(vec![Drawing {
        name: "entropy".into(),
        section: ANSWERS,
        title: "Predictive entropy".into(),
        caption: "How unsure the model was when it was right and when it was wrong, each group to 100 %. The further apart, \
                  the better unsure answers can be withheld."
            .into(),
        svg,
    }])
}

/// Percentages of values from 0 to 1 in equal bins, and how many values there are.
fn histogram(values: impl Iterator<Item = f64>) -> (Vec<f64>, usize) {
    let (mut heights, mut count) = (vec![0.0; BINS], 0);
    for v in values {
        heights[((v * BINS as f64) as usize).min(BINS - 1)] += 1.0;
        count += 1;
    }
    heights.iter_mut().for_each(|h| *h *= 100.0 / f64::from(count.max(1)));
    (heights, count as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_hold_both_ends() {
        let (heights, count) = histogram([0.0, 1.0, 1.0, 0.5].into_iter());
        assert_eq!((heights[0], heights[12], heights[24], count), (25.0, 25.0, 50.0, 4));
        assert_eq!(histogram(std::iter::empty()).1, 0);
    }
}
