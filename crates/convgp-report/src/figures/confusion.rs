//! Confusion matrix: labels down, answers across.

use super::{ANSWERS, Drawing};
use crate::canvas::{Anchor, draw as canvas, shortened, text};
use crate::style::{BLUE, GRID, INK, MUTED, NORMAL, ORANGE, SMALL, WIDTH, line, wash};
use crate::{Report, ReportError};
use plotters::element::Rectangle;
use plotters::style::Color;

/// Above this many classes numbers would not fit their cells.
const MOST_NUMBERED: usize = 16;
const LEFT: i32 = 92;
const TOP: i32 = 52;

/// The matrix, if there are test results.
pub(super) fn draw(report: &Report) -> Result<Vec<Drawing>, ReportError> {
    let Some(evaluation) = &report.evaluation else { return Ok(Vec::new()) };
    let (c, names) = (evaluation.classified(), evaluation.class_names());
    let (k, counts) = (c.classes(), c.confusion());
    let cell = ((WIDTH as i32 - LEFT - 8) / k as i32).clamp(1, 90);
    let per_label: Vec<usize> = counts.chunks_exact(k).map(|row| row.iter().sum()).collect();
    let svg = canvas((WIDTH, (TOP + cell * k as i32 + 8) as u32), |area, _| {
        text(area, "answer", (LEFT + cell * k as i32 / 2, 12), Anchor::Centre, NORMAL, INK)?;
        text(area, "label", (8, TOP - 16), Anchor::Left, NORMAL, INK)?;
        for (i, name) in names.iter().enumerate() {
            if k > MOST_NUMBERED && i % k.div_ceil(MOST_NUMBERED) != 0 {
                continue;
            }
            let middle = i as i32 * cell + cell / 2;
            let across = shortened(name, (cell as usize / 8).max(2));
            text(area, &across, (LEFT + middle, TOP - 16), Anchor::Centre, SMALL, MUTED)?;
            text(area, &shortened(name, 11), (LEFT - 8, TOP + middle), Anchor::Right, SMALL, MUTED)?;
        }
        for (i, &count) in counts.iter().enumerate() {
            let (label, answer) = (i / k, i % k);
            let (x, y) = (LEFT + answer as i32 * cell, TOP + label as i32 * cell);
            let corners = [(x, y), (x + cell, y + cell)];
            if count > 0 {
                let share = count as f64 / per_label[label] as f64;
                let colour = if label == answer { BLUE } else { ORANGE };
                area.draw(&Rectangle::new(corners, wash(colour, 0.1 + 0.75 * share.sqrt()).filled()))?;
            }
            area.draw(&Rectangle::new(corners, line(GRID, 1)))?;
            if count > 0 && k <= MOST_NUMBERED {
                let size = SMALL.min(0.95 * f64::from(cell) / count.to_string().len() as f64 * 1.5);
                text(area, &count.to_string(), (x + cell / 2, y + cell / 2), Anchor::Centre, size, INK)?;
            }
        }
        Ok(())
    })?;
    Ok(vec![Drawing {
        name: "confusion".into(),
        section: ANSWERS,
        title: "Confusion matrix".into(),
        caption: "Numbers of images by label and answer; the stronger the colour, the larger the part of the label's \
                  images. Blue is right, orange wrong."
            .into(),
        svg,
    }])
}
