//! Patch weights as heat maps on the image grid.

use super::{Drawing, MODEL};
use crate::canvas::{Anchor, Area, Pictures, draw as canvas, number, shortened, text};
use crate::model::ResponseView;
use crate::raster::{Raster, largest};
use crate::style::{INK, MUTED, SMALL, WIDTH};
use crate::{Report, ReportError};

const COLUMNS: usize = 2;
/// Planes of one response that are drawn at most.
const MOST_PLANES: usize = 8;
const HEAD: i32 = 22;
const BAR: i32 = 44;

/// One figure per response with learned weights on more than one view.
pub(super) fn draw(report: &Report) -> Result<Vec<Drawing>, ReportError> {
    let responses = report.model.iter().flat_map(|m| &m.responses).enumerate();
    let drawn = responses.filter_map(|(i, r)| {
        let weights = r.weights.as_ref().filter(|w| w.len() > 1)?;
        Some(figure(i, r, weights))
    });
    drawn.collect()
}

fn figure(index: usize, response: &ResponseView, weights: &[f64]) -> Result<Drawing, ReportError> {
    let layout = &response.layout;
    let limit = largest(weights);
    let shown = layout.planes.len().min(MOST_PLANES);
    let columns = if shown == 1 { 1 } else { COLUMNS };
    let side = if shown == 1 { 360 } else { WIDTH as i32 / 2 - 20 };
    let height = (side * layout.rows as i32 / layout.cols as i32).max(4);
    let rows = shown.div_ceil(columns) as i32;
    let svg = canvas((WIDTH, (rows * (height + HEAD) + BAR) as u32), |area, overlay| {
        for (plane, name) in layout.planes.iter().take(shown).enumerate() {
            let (row, column) = ((plane / columns) as i32, (plane % columns) as i32);
            let left = (WIDTH as i32 - columns as i32 * (side + 16)) / 2 + 8;
            let (x, y) = (left + column * (side + 16), row * (height + HEAD));
            text(area, &shortened(name, 32), (x, y + 11), Anchor::Left, SMALL, INK)?;
            let per_plane = layout.rows * layout.cols;
            let map = Raster::heat(&weights[plane * per_plane..(plane + 1) * per_plane], layout.cols, limit);
            overlay.put(&map, (x, y + HEAD), (side as u32, height as u32));
        }
        colour_bar(area, overlay, rows * (height + HEAD) + 10, limit)
    })?;
    Ok(Drawing {
        name: format!("weights-{index}"),
        section: MODEL,
        title: format!("Patch weights: {}", response.name),
        caption: "The weight of each patch in the sum, at the place of its top-left corner: red counts for, blue against, \
                  white not at all."
            .into(),
        svg,
    })
}

/// The scale from `-limit` to `limit`, with its ends.
pub(super) fn colour_bar(
    area: &Area<'_>,
    overlay: &mut Pictures,
    y: i32,
    limit: f64,
) -> Result<(), ReportError> {
    const STEPS: i32 = 64;
    const LENGTH: u32 = 240;
    let steps: Vec<f64> = (0..STEPS).map(|i| f64::from(2 * i - STEPS + 1) / f64::from(STEPS - 1)).collect();
    let left = (WIDTH - LENGTH) as i32 / 2;
    overlay.put(&Raster::heat(&steps, STEPS as usize, 1.0), (left, y), (LENGTH, 10));
    for (x, v) in [(left, -limit), (left + LENGTH as i32 / 2, 0.0), (left + LENGTH as i32, limit)] {
        text(area, &number(v), (x, y + 22), Anchor::Centre, SMALL, MUTED)?;
    }
    Ok(())
}
