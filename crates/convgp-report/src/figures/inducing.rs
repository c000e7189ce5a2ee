//! Inducing inputs as pictures, sorted by the mean of their inducing output.

use super::{Drawing, MODEL};
use crate::canvas::{Anchor, draw as canvas, number, shortened, text};
use crate::model::{ModelView, ResponseView};
use crate::raster::{Raster, Tones};
use crate::style::{INK, MUTED, SMALL, WIDTH};
use crate::{Report, ReportError};

const COLUMNS: usize = 14;
/// Rows of pictures per latent, when there are one or two latents, and when there are more.
const ROWS: (usize, usize) = (4, 1);
const GAP: i32 = 4;
const HEAD: i32 = 22;

/// One figure per response.
pub(super) fn draw(report: &Report) -> Result<Vec<Drawing>, ReportError> {
    let Some(model) = &report.model else { return Ok(Vec::new()) };
    let pictured = model.responses.iter().enumerate().filter(|(_, r)| !r.inducing.is_empty());
    pictured.map(|(i, r)| figure(model, i, r)).collect()
}

fn figure(model: &ModelView, index: usize, response: &ResponseView) -> Result<Drawing, ReportError> {
    let latents = model.latent_names.len();
    let room = COLUMNS * if latents <= 2 { ROWS.0 } else { ROWS.1 };
    let (all, shown) = (response.inducing.len(), response.inducing.len().min(room));
    let rows = shown.div_ceil(COLUMNS) as i32;
    let shape = response.layout.view;
    let side = WIDTH as i32 / COLUMNS as i32 - GAP;
    let height = side * shape.height() as i32 / shape.width() as i32;
    let block = HEAD + rows * (height + GAP) + 8;
    let tones = Tones::of(response.inducing.iter().flatten().copied());
    let svg = canvas((WIDTH, (block * latents as i32) as u32), |area, overlay| {
        for (l, name) in model.latent_names.iter().enumerate() {
            let mean = |m: usize| response.means[m * latents + l];
            let order = extremes(&sorted(all, mean), shown);
            let (top, last) = (l as i32 * block, order.len() - 1);
            let range = format!("{} to {}", number(mean(order[0])), number(mean(order[last])));
            text(area, &shortened(name, 30), (2, top + 10), Anchor::Left, SMALL, INK)?;
            text(area, &range, (WIDTH as i32 - 4, top + 10), Anchor::Right, SMALL, MUTED)?;
            for (i, &m) in order.iter().enumerate() {
                let (row, column) = ((i / COLUMNS) as i32, (i % COLUMNS) as i32);
                let at = (column * (side + GAP) + 2, top + HEAD + row * (height + GAP));
                overlay.put(
                    &Raster::picture(&response.inducing[m], shape, tones),
                    at,
                    (side as u32, height as u32),
                );
            }
        }
        Ok(())
    })?;
    let which = if shown < all {
        format!("The {} highest and {} lowest of {all}", shown - shown / 2, shown / 2)
    } else {
        format!("All {all}")
    };
    Ok(Drawing {
        name: format!("inducing-{index}"),
        section: MODEL,
        title: format!("Inducing inputs: {}", response.name),
        caption: format!(
            "{which}, from the one that speaks most for a latent to the one that speaks most against it; the numbers are the \
             first and the last posterior mean of the inducing outputs."
        ),
        svg,
    })
}

/// Indices by decreasing mean.
fn sorted(count: usize, mean: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| mean(*b).total_cmp(&mean(*a)));
    order
}

/// The first and the last of a sorted list, `count` together.
fn extremes(order: &[usize], count: usize) -> Vec<usize> {
    let low = count / 2;
    [&order[..count - low], &order[order.len() - low..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_kept_in_order() {
        let order = sorted(6, |m| [0.1, 0.9, -0.5, 0.3, 0.0, 0.2][m]);
        assert_eq!(order, [1, 3, 5, 0, 4, 2]);
        assert_eq!(extremes(&order, 3), [1, 3, 2]);
        assert_eq!(extremes(&order, 6), order);
    }
}
