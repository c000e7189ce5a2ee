//! The report: what it shows, and writing it.

use crate::curves::RunCurves;
use crate::figures::{self, Drawing};
use crate::png::Renderer;
use crate::{Evaluation, ModelView, Outliers, ReportError, html};
use convgp::io::write_atomically;
use std::path::Path;

/// Everything a report may show; whatever is missing leaves its figures out.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub(crate) title: String,
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) runs: Vec<RunCurves>,
    pub(crate) evaluation: Option<Evaluation>,
    pub(crate) model: Option<ModelView>,
    pub(crate) outliers: Vec<Outliers>,
    pub(crate) seed: u64,
}

impl Report {
    /// An empty report.
    pub fn new(title: &str) -> Self {
        Self { title: title.into(), ..Self::default() }
    }
    /// Adds a line to the table at the top: data set, model, machine, command.
    pub fn fact(mut self, name: &str, value: &str) -> Self {
        self.facts.push((name.into(), value.into()));
        self
    }
    /// Adds a run's curves; several are overlaid.
    pub fn run(mut self, run: RunCurves) -> Self {
        self.runs.push(run);
        self
    }
    /// Shows test results.
    pub fn evaluation(mut self, evaluation: Evaluation) -> Self {
        self.evaluation = Some(evaluation);
        self
    }
    /// Shows the model from inside.
    pub fn model(mut self, model: ModelView) -> Self {
        self.model = Some(model);
        self
    }
    /// Adds a comparison with out-of-distribution images.
    pub fn outliers(mut self, outliers: Outliers) -> Self {
        self.outliers.push(outliers);
        self
    }
    /// Seed of the simulated intervals; equal reports are equal files.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// The page as a string: one file, nothing to fetch.
    pub fn html(&self) -> Result<String, ReportError> {
        html::page(self, &figures::draw_all(self)?)
    }

    /// Every figure: its name and its SVG file, on white.
    pub fn svgs(&self) -> Result<Vec<(String, String)>, ReportError> {
        Ok(figures::draw_all(self)?.into_iter().map(|d| (d.name, on_white(&d.svg))).collect())
    }

    /// Every figure: its name and its PNG file.
    pub fn pngs(&self) -> Result<Vec<(String, Vec<u8>)>, ReportError> {
        let renderer = Renderer::new();
        let png = |d: Drawing| Ok((d.name, renderer.png(&d.svg)?));
        figures::draw_all(self)?.into_iter().map(png).collect()
    }

    /// Writes `report.html`, and every figure as `figures/NAME.svg` and `figures/NAME.png`, into `dir`, which is made if it
    /// is not there. Files of the same names are replaced whole.
    pub fn write(&self, dir: &Path) -> Result<(), ReportError> {
        let drawings = figures::draw_all(self)?;
        write_drawings(&dir.join("figures"), &drawings)?;
        Ok(write_atomically(&dir.join("report.html"), html::page(self, &drawings)?.as_bytes())?)
    }
}

/// Writes every drawing as `NAME.svg` and `NAME.png` into a folder, which is made if it is not there.
pub(crate) fn write_drawings(dir: &Path, drawings: &[Drawing]) -> Result<(), ReportError> {
    std::fs::create_dir_all(dir).map_err(|source| ReportError::Access { path: dir.into(), source })?;
    let renderer = Renderer::new();
    for Drawing { name, svg, .. } in drawings {
        write_atomically(&dir.join(format!("{name}.svg")), on_white(svg).as_bytes())?;
        write_atomically(&dir.join(format!("{name}.png")), &renderer.png(svg)?)?;
    }
    Ok(())
}

/// A figure for use by itself, where the page behind it may have any colour.
fn on_white(svg: &str) -> String {
    let start = svg.find('>').map_or(0, |end| end + 1);
    let (head, body) = svg.split_at(start);
    format!("{head}\n<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>{body}")
}
