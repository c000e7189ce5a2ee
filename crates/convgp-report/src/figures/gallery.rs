//! Images to look at: the least certain ones, and the mistakes made with most confidence.

use super::{ANSWERS, Drawing};
use crate::canvas::{Anchor, draw as canvas, shortened, text};
use crate::model::image;
use crate::raster::{Raster, Tones};
use crate::style::{INK, MUTED, WIDTH};
use crate::{Evaluation, Report, ReportError};

const COLUMNS: usize = 5;
const MOST: usize = 15;
/// Size of the words under a picture, which is narrow.
const TINY: f64 = 13.0;
/// Height of the two lines under a picture.
const WORDS: i32 = 38;

/// Two galleries, if there are test results; the second only if there are mistakes.
pub(super) fn draw(report: &Report) -> Result<Vec<Drawing>, ReportError> {
    let Some(evaluation) = &report.evaluation else { return Ok(Vec::new()) };
    let c = evaluation.classified();
    let (entropies, confidences, correct) = (c.entropies(), c.confidences(), c.correct());
    let uncertain = largest((0..c.len()).collect(), &entropies);
    let mistakes = largest((0..c.len()).filter(|n| !correct[*n]).collect(), &confidences);
    let mut out = Vec::new();
    for (name, title, caption, chosen) in [
        (
            "uncertain",
            "Most uncertain images",
            "Largest predictive entropy first. Under each: label, then answer and its probability.",
            uncertain,
        ),
        (
            "mistakes",
            "Most confident mistakes",
            "Wrong answers with the largest probability first. Under each: label, then answer and its probability.",
            mistakes,
        ),
    ] {
        if !chosen.is_empty() {
            let svg = gallery(evaluation, &chosen)?;
            let files: Vec<String> = chosen.iter().map(|&n| evaluation.image_name(n)).collect();
            let caption = format!("{caption} The images, row by row: {}.", files.join(", "));
            let (name, title) = (name.into(), title.into());
            out.push(Drawing { name, section: ANSWERS, title, caption, svg });
        }
    }
    Ok(out)
}

/// The first [`MOST`] of `which` by decreasing score.
fn largest(mut which: Vec<usize>, scores: &[f64]) -> Vec<usize> {
    which.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    which.truncate(MOST);
    which
}

fn gallery(evaluation: &Evaluation, chosen: &[usize]) -> Result<String, ReportError> {
    let (c, names, images) = (evaluation.classified(), evaluation.class_names(), evaluation.images());
    let (predicted, confidences) = (c.predicted(), c.confidences());
    let pictures: Vec<Vec<f64>> = chosen.iter().map(|&n| image(images, n)).collect();
    let tones = Tones::of(pictures.iter().flatten().copied());
    let cell = WIDTH as i32 / COLUMNS as i32;
    let side = cell - 12;
    let shape = images.shape();
    let height = side * shape.height() as i32 / shape.width() as i32;
    let rows = chosen.len().div_ceil(COLUMNS) as i32;
    canvas((WIDTH, (rows * (height + WORDS + 10)) as u32), |area, overlay| {
        for (i, (&n, picture)) in chosen.iter().zip(&pictures).enumerate() {
            let (x, y) = ((i % COLUMNS) as i32 * cell, (i / COLUMNS) as i32 * (height + WORDS + 10));
            overlay.put(&Raster::picture(picture, shape, tones), (x + 6, y), (side as u32, height as u32));
            let label = shortened(evaluation.label_name(n), 13);
            text(area, &label, (x + cell / 2, y + height + 11), Anchor::Centre, TINY, INK)?;
            let percent = 100.0 * confidences[n];
            let digits = usize::from(percent > 99.0);
            let answer = format!("\u{2192} {}, {percent:.digits$} %", shortened(&names[predicted[n]], 8));
            text(area, &answer, (x + cell / 2, y + height + 28), Anchor::Centre, TINY, MUTED)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_come_first() {
        assert_eq!(largest(vec![0, 1, 3], &[0.5, 0.9, 1.0, 0.7]), [1, 3, 0]);
        assert_eq!(largest((0..40).collect(), &[0.0; 40]).len(), MOST);
    }
}
