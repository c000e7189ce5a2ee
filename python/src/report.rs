//! Figures and the page about a model.

use crate::data::Data;
use crate::failure::Outcome;
use crate::model::Model;
use crate::pool::run;
use convgp_report::{CurvePoint, RunCurves};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;

/// What was learned, to look at.
#[pyclass(module = "convgp._convgp", frozen)]
#[derive(Debug)]
pub struct Report(convgp_report::Report);

/// Steps, seconds, bound, held-out error, held-out root mean square error, held-out NLPP.
type Point = (u64, f64, Option<f64>, Option<f64>, Option<f64>, Option<f64>);

#[pymethods]
impl Report {
    /// About a model, how its training went, and what it says about images with targets.
    #[new]
    #[pyo3(signature = (model, title, facts, history, held_out=None, *, threads=None))]
    fn new(
        py: Python<'_>,
        model: &Model,
        title: &str,
        facts: Vec<(String, String)>,
        history: Vec<Point>,
        held_out: Option<&Data>,
        threads: Option<usize>,
    ) -> Outcome<Self> {
        let point = |(step, seconds, bound, error, rmse, nlpp)| CurvePoint {
            step,
            seconds,
            bound,
            error,
            rmse,
            nlpp,
        };
        let points: Vec<CurvePoint> = history.into_iter().map(point).collect();
        let held_out = held_out.map(|data| model.dataset(data)).transpose()?;
        let saved = &model.saved;
        run(py, threads, || {
            let mut report = convgp_report::Report::new(title);
            for (name, value) in &facts {
                report = report.fact(name, value);
            }
            if !points.is_empty() {
                report = report.run(RunCurves { name: title.into(), points });
            }
            let evaluation = held_out.map(|data| saved.evaluate("images given", data)).transpose()?;
            Ok(Self(report.trained(saved, evaluation.as_ref())?))
        })
    }

    /// The page: one file, nothing to fetch.
    fn html(&self, py: Python<'_>) -> Outcome<String> {
        run(py, Some(1), || Ok(self.0.html()?))
    }

    /// Every figure: its name and its PNG file.
    fn pngs<'py>(&self, py: Python<'py>) -> Outcome<Vec<(String, Bound<'py, PyBytes>)>> {
        let pngs = run(py, Some(1), || Ok(self.0.pngs()?))?;
        Ok(pngs.into_iter().map(|(name, png)| (name, PyBytes::new(py, &png))).collect())
    }

    /// Writes `report.html` and the folder `figures` into a folder, which is made if it is not there.
    fn write(&self, py: Python<'_>, folder: PathBuf) -> Outcome<()> {
        run(py, Some(1), || Ok(self.0.write(&folder)?))
    }
}
