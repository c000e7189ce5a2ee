//! Shares of components in the prior and in the explained variance.

use super::{Drawing, MODEL};
use crate::canvas::{Anchor, draw as canvas, shortened, text};
use crate::model::response_name;
use crate::style::{GRID, INK, MUTED, NORMAL, SMALL, WIDTH, line, series};
use crate::{Report, ReportError};
use convgp::inspect::Share;
use plotters::element::{PathElement, Rectangle};
use plotters::style::Color;

const ROW: i32 = 26;
const HEAD: i32 = 30;
const LEFT: i32 = 150;
const RIGHT: i32 = 64;

/// Which of the two shares.
type Of = fn(&Share) -> f64;

/// Two groups of bars, if the model has more than one response.
pub(super) fn draw(report: &Report) -> Result<Vec<Drawing>, ReportError> {
    let Some(shares) = report.model.as_ref().map(|m| &m.shares).filter(|s| s.len() > 1) else {
        return Ok(Vec::new());
    };
    let groups: [(&str, Of); 2] =
        [("share of the prior variance", |s| s.prior), ("share of the explained variance", |s| s.explained)];
    let low = shares.iter().fold(0.0f64, |m, s| m.min(s.explained));
    let high = shares.iter().fold(1.0f64, |m, s| m.max(s.explained));
    let room = f64::from(WIDTH as i32 - LEFT - RIGHT);
    let x = |v: f64| LEFT + (room * (v - low) / (high - low)).round() as i32;
    let block = HEAD + ROW * shares.len() as i32 + 12;
    let svg = canvas((WIDTH, (2 * block) as u32), |area, _| {
        for (g, (title, of)) in groups.iter().enumerate() {
            let top = g as i32 * block;
            text(area, title, (LEFT, top + 14), Anchor::Left, NORMAL, INK)?;
            for (i, share) in shares.iter().enumerate() {
                let y = top + HEAD + i as i32 * ROW + ROW / 2;
                let v = of(share);
                let several = shares.iter().filter(|s| s.component == share.component).count();
                let name = shortened(&response_name(&share.component, share.response, several), 18);
                text(area, &name, (LEFT - 8, y), Anchor::Right, SMALL, INK)?;
                let ends = (x(0.0).min(x(v)), x(0.0).max(x(v)).max(x(0.0) + 1));
                area.draw(&Rectangle::new([(ends.0, y - 8), (ends.1, y + 8)], series(i).filled()))?;
                let words = format!("{:.1} %", 100.0 * v);
                text(area, &words, (ends.1 + 6, y), Anchor::Left, SMALL, MUTED)?;
            }
            let foot = top + HEAD + ROW * shares.len() as i32;
            area.draw(&PathElement::new(vec![(x(0.0), top + HEAD), (x(0.0), foot)], line(GRID, 1)))?;
        }
        Ok(())
    })?;
    Ok(vec![Drawing {
        name: "components".into(),
        section: MODEL,
        title: "Components".into(),
        caption: "What each part could contribute before training data were seen, and how much of the variation of the \
                  latent means over images comes from it. A part that works against the others has a negative share."
            .into(),
        svg,
    }])
}
