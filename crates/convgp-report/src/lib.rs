//! What was learned, to look at: figures as SVG and PNG, and one self-contained HTML file.
//!
//! ```no_run
//! use convgp_report::{Report, RunCurves};
//!
//! let curves = RunCurves::read("runs/0001-mnist/results.csv".as_ref(), "mnist")?;
//! Report::new("Digits").run(curves).write("report".as_ref())?;
//! # Ok::<(), convgp_report::ReportError>(())
//! ```
//!
//! | module | what lives there |
//! |---|---|
//! | [`RunCurves`], [`Evaluation`], [`ModelView`], [`Outliers`] | what a report shows: curves, test results, the model itself |
//! | `figures` | one file per figure, each a function from a [`Report`] to drawings |
//! | `canvas`, `style`, `raster` | drawing on SVG, colours and type, pictures made of pixels |
//! | `png` | SVG to PNG with a font of its own, so that no machine needs one |
//! | `html` | the page |
//!
//! How to read each figure: `docs/guide/report.md`.

#![warn(missing_docs)]

mod canvas;
mod curves;
mod error;
mod evaluation;
mod figures;
mod html;
mod model;
mod outliers;
mod png;
mod raster;
mod report;
mod style;
mod trained;

pub use curves::{CurvePoint, RunCurves};
pub use error::ReportError;
pub use evaluation::Evaluation;
pub use model::ModelView;
pub use outliers::{Outliers, Score};
pub use report::Report;
