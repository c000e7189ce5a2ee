//! The figures. Each is one file with a function from the report to drawings, none when the report lacks what it shows, and
//! one line in [`FIGURES`].

mod components;
mod confusion;
mod curves;
mod entropy;
mod evidence;
mod gallery;
mod inducing;
mod prior;
mod reliability;
mod risk_coverage;
mod weights;

pub(crate) use evidence::draw_all_latents;

use crate::{Report, ReportError};

/// One figure, drawn.
#[derive(Debug, Clone)]
pub(crate) struct Drawing {
    /// Name of its files.
    pub name: String,
    /// Heading under which it stands.
    pub section: &'static str,
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// Without background.
    pub svg: String,
}

/// Draws a figure from whatever the report has.
type Figure = fn(&Report) -> Result<Vec<Drawing>, ReportError>;

/// All figures, in the order of the page.
const FIGURES: &[Figure] = &[
    curves::draw,
    reliability::draw,
    risk_coverage::draw,
    entropy::draw,
    confusion::draw,
    gallery::draw,
    evidence::draw,
    inducing::draw,
    weights::draw,
    components::draw,
    prior::draw,
];

/// Headings.
const TRAINING: &str = "Training";
const ANSWERS: &str = "Answers";
const MODEL: &str = "Inside the model";

/// Draws all of them.
pub(crate) fn draw_all(report: &Report) -> Result<Vec<Drawing>, ReportError> {
    let mut all = Vec::new();
    for figure in FIGURES {
        all.extend(figure(report)?);
    }
    Ok(all)
}
