//! Draws from the prior as response maps of one image.

use super::{Drawing, MODEL};
use crate::canvas::{Anchor, draw as canvas, shortened, text};
use crate::model::{ModelView, PRIOR_DRAWS, ResponseView};
use crate::raster::{Raster, Tones, largest};
use crate::style::{INK, SMALL, WIDTH};
use crate::{Report, ReportError};

const GAP: i32 = 8;
const HEAD: i32 = 22;

/// One figure, a row per response whose map has more than one cell.
pub(super) fn draw(report: &Report) -> Result<Vec<Drawing>, ReportError> {
    let Some(model) = &report.model else { return Ok(Vec::new()) };
    let rows: Vec<&ResponseView> = model.responses.iter().filter(|r| !r.prior.is_empty()).collect();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let side = WIDTH as i32 / (1 + PRIOR_DRAWS) as i32 - GAP;
    let image_height = side * model.shape.height() as i32 / model.shape.width() as i32;
    let block = HEAD + image_height + GAP;
    let svg = canvas((WIDTH, block as u32 * rows.len() as u32), |area, overlay| {
        for (row, response) in rows.iter().enumerate() {
            let y = row as i32 * block;
            text(area, &shortened(&response.name, 40), (2, y + 11), Anchor::Left, SMALL, INK)?;
            let size = (side as u32, image_height as u32);
            overlay.put(&sample(model), (0, y + HEAD), size);
            for (i, map) in response.prior.iter().enumerate() {
                let per_plane = response.layout.rows * response.layout.cols;
                let first = &map[..per_plane];
                let picture = Raster::heat(first, response.layout.cols, largest(first));
                let height = side * response.layout.rows as i32 / response.layout.cols as i32;
                overlay.put(
                    &picture,
                    ((i as i32 + 1) * (side + GAP), y + HEAD),
                    (side as u32, height.max(1) as u32),
                );
            }
        }
        Ok(())
    })?;
    Ok(vec![Drawing {
        name: "prior".into(),
        section: MODEL,
        title: "What the prior expects".into(),
        caption: "An image, and draws of its weighted patch responses from the prior, each on its own scale: patches that \
                  look alike get like responses. The first plane of views is shown."
            .into(),
        svg,
    }])
}

fn sample(model: &ModelView) -> Raster {
    Raster::picture(&model.sample, model.shape, Tones::of(model.sample.iter().copied()))
}
