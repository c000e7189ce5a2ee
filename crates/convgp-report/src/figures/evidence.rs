//! Evidence maps: which parts of an image spoke for which latent, and the inducing inputs that carried it.

use super::weights::colour_bar;
use super::{ANSWERS, Drawing};
use crate::canvas::{Anchor, Area, Pictures, draw as canvas, number, shortened, text};
use crate::model::{EvidenceView, ModelView, ResponseView, response_name};
use crate::raster::{Raster, Tones, largest};
use crate::style::{INK, MUTED, SMALL, WIDTH};
use crate::{Report, ReportError};
use convgp::inspect::{Evidence, Part};

/// Latents in one figure, those with the largest means first.
const LATENTS: usize = 3;
/// Inducing inputs shown per row.
const CARRIERS: usize = 6;
const GAP: i32 = 10;
const HEAD: i32 = 42;
const ROW_HEAD: i32 = 22;
const CARRIER: i32 = 52;

/// One figure per explained image: the latents with the largest means, and what carried the first.
pub(super) fn draw(report: &Report) -> Result<Vec<Drawing>, ReportError> {
    let Some(model) = &report.model else { return Ok(Vec::new()) };
    let each = model.evidence.iter().enumerate();
    each.map(|(i, view)| {
        let latents = by_mean(view);
        let shown = &latents[..latents.len().min(LATENTS)];
        figure(model, view, (shown, &latents[..1]), format!("evidence-{i}"))
    })
    .collect()
}

/// Every latent of every explained image, and what carried each.
pub(crate) fn draw_all_latents(model: &ModelView) -> Result<Vec<Drawing>, ReportError> {
    let mut out = Vec::new();
    for view in &model.evidence {
        for shown in by_mean(view).chunks(LATENTS) {
            out.push(figure(model, view, (shown, shown), format!("evidence-{}", out.len()))?);
        }
    }
    Ok(out)
}

/// Latents in order of decreasing mean.
fn by_mean(view: &EvidenceView) -> Vec<usize> {
    let means = view.evidence.latent_means();
    let mut latents: Vec<usize> = (0..means.len()).collect();
    latents.sort_by(|a, b| means[*b].total_cmp(&means[*a]));
    latents
}

fn figure(
    model: &ModelView,
    view: &EvidenceView,
    (latents, carried): (&[usize], &[usize]),
    name: String,
) -> Result<Drawing, ReportError> {
    let means = view.evidence.latent_means();
    let side = WIDTH as i32 / (1 + LATENTS) as i32 - GAP;
    let height = side * model.shape.height() as i32 / model.shape.width() as i32;
    let rows: Vec<&Part> = view.evidence.parts.iter().filter(|p| p.layout.count() > 1).collect();
    // A model without patches has no map; its row is the image alone.
    let block = ROW_HEAD + height + GAP;
    let maps = HEAD + block * rows.len().max(1) as i32;
    let bars = if rows.is_empty() { 0 } else { 40 };
    let pairs = || view.evidence.parts.iter().zip(&model.responses);
    let carriers: Vec<_> = carried.iter().flat_map(|&l| pairs().map(move |pair| (pair, l))).collect();
    let carriers_height = carriers.len() as i32 * (CARRIER + 44);
    let size = (side as u32, height as u32);
    let svg = canvas((WIDTH, (maps + bars + carriers_height) as u32), |area, overlay| {
        let tones = Tones::of(view.image.iter().copied());
        overlay.put(&Raster::picture(&view.image, model.shape, tones), (0, HEAD + ROW_HEAD), size);
        for (column, &l) in latents.iter().enumerate() {
            let x = (column as i32 + 1) * (side + GAP) + side / 2;
            text(area, &shortened(&model.latent_names[l], 14), (x, 10), Anchor::Centre, SMALL, INK)?;
            text(area, &format!("mean {}", number(means[l])), (x, 28), Anchor::Centre, SMALL, MUTED)?;
        }
        let painted: Vec<Vec<Vec<f64>>> = rows
            .iter()
            .map(|part| latents.iter().map(|&l| part.paint(0, l, model.shape)).collect())
            .collect();
        let limit = largest(painted.iter().flatten().flatten());
        for (row, part) in rows.iter().enumerate() {
            let y = HEAD + row as i32 * block;
            text(area, &part_name(&view.evidence, part), (side + GAP, y + 10), Anchor::Left, SMALL, MUTED)?;
            for (column, map) in painted[row].iter().enumerate() {
                let at = ((column as i32 + 1) * (side + GAP), y + ROW_HEAD);
                overlay.put(&Raster::heat(map, model.shape.width(), limit), at, size);
            }
        }
        if !rows.is_empty() {
            colour_bar(area, overlay, maps + 2, limit)?;
        }
        for (i, (pair, l)) in carriers.into_iter().enumerate() {
            let top = maps + bars + i as i32 * (CARRIER + 44);
            draw_carriers(area, overlay, (model, &view.evidence), pair, l, top)?;
        }
        Ok(())
    })?;
    Ok(Drawing {
        name,
        section: ANSWERS,
        title: format!("Evidence in image {}", view.number),
        caption: "What every place contributes to the largest latents, spread over the pixels of its patch: red for, blue \
                  against. The contributions of all patches sum to the latent mean. Below, the inducing inputs through which \
                  most of the evidence for the first latent came, with their part of it."
            .into(),
        svg,
    })
}

fn part_name(evidence: &Evidence, part: &Part) -> String {
    let several = evidence.parts.iter().filter(|p| p.component == part.component).count();
    shortened(&response_name(&part.component, part.response, several), 40)
}

/// A row of the inducing inputs that contributed most to latent `l`.
fn draw_carriers(
    area: &Area<'_>,
    overlay: &mut Pictures,
    (model, evidence): (&ModelView, &Evidence),
    (part, response): (&Part, &ResponseView),
    l: usize,
    top: i32,
) -> Result<(), ReportError> {
    if response.inducing.is_empty() {
        return Ok(());
    }
    let tones = Tones::of(response.inducing.iter().flatten().copied());
    let words = format!("{}: carriers, {}", part_name(evidence, part), shortened(&model.latent_names[l], 14));
    text(area, &words, (2, top + 10), Anchor::Left, SMALL, INK)?;
    let shape = response.layout.view;
    let longest = shape.height().max(shape.width()) as i32;
    let size = [shape.width(), shape.height()].map(|s| (CARRIER * s as i32 / longest).max(1) as u32);
    let cell = WIDTH as i32 / CARRIERS as i32;
    for (i, (m, v)) in part.carriers(l, CARRIERS).into_iter().enumerate() {
        let x = i as i32 * cell + 2;
        overlay.put(&Raster::picture(&response.inducing[m], shape, tones), (x, top + 22), (size[0], size[1]));
        text(
            area,
            &number(v),
            (x + size[0] as i32 / 2, top + 32 + size[1] as i32),
            Anchor::Centre,
            SMALL,
            MUTED,
        )?;
    }
    Ok(())
}
