//! How training went: the rows of a run's `results.csv`.

use crate::ReportError;
use serde::Deserialize;
use std::path::Path;

/// One row: what was measured after some steps. Cells that were not measured are empty.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CurvePoint {
    /// Steps taken.
    pub step: u64,
    /// Wall-clock seconds of training.
    pub seconds: f64,
    /// The bound on the log evidence.
    #[serde(default)]
    pub bound: Option<f64>,
    /// Error rate on held-out images, 0 to 1.
    #[serde(default, alias = "held_out_error")]
    pub error: Option<f64>,
    /// Root mean square error on held-out images, of regression.
    #[serde(default)]
    pub rmse: Option<f64>,
    /// Negative log predictive probability on held-out images.
    #[serde(default, alias = "held_out_nlpp")]
    pub nlpp: Option<f64>,
}

/// The curves of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunCurves {
    /// What the run is called in legends.
    pub name: String,
    /// In order of steps.
    pub points: Vec<CurvePoint>,
}

impl RunCurves {
    /// Reads a `results.csv` with at least the columns `step` and `seconds`; `bound`, `error` (or `held_out_error`) and
    /// `nlpp` (or `held_out_nlpp`) are used when there, others ignored.
    pub fn read(path: &Path, name: &str) -> Result<Self, ReportError> {
        let file =
            std::fs::File::open(path).map_err(|source| ReportError::Access { path: path.into(), source })?;
        let mut reader = csv::Reader::from_reader(file);
        let problem = |line: u64, what: String| ReportError::Curves { path: path.into(), line, what };
        let columns = reader.headers().map_err(|e| problem(1, e.to_string()))?.clone();
        for column in ["step", "seconds"] {
            if !columns.iter().any(|c| c == column) {
                return Err(problem(
                    1,
                    format!("there is no column `{column}`; is this a run's results.csv?"),
                ));
            }
        }
        let mut points = Vec::new();
        for record in reader.records() {
            let record =
                record.map_err(|e| problem(e.position().map_or(0, csv::Position::line), e.to_string()))?;
            let line = record.position().map_or(0, csv::Position::line);
            let point = record.deserialize(Some(&columns));
            let point: CurvePoint = point.map_err(|e| problem(line, in_column(&e, &columns)))?;
            points.push(point);
        }
        Ok(Self { name: name.into(), points })
    }

    /// The curves of a regression run, whose file has root mean square errors where others have error rates.
    pub fn of_regression(mut self) -> Self {
        self.points.iter_mut().for_each(|p| p.rmse = p.error.take());
        self
    }
}

/// The message with the name of the column instead of its number.
fn in_column(e: &csv::Error, columns: &csv::StringRecord) -> String {
    let csv::ErrorKind::Deserialize { err, .. } = e.kind() else { return e.to_string() };
    match err.field().and_then(|field| columns.get(field as usize)) {
        Some(column) => format!("column `{column}`: {}", err.kind()),
        None => err.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RunCurves, ReportError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("results.csv");
        std::fs::write(&path, text).unwrap();
        RunCurves::read(&path, "a run")
    }

    #[test]
    fn empty_cells_are_things_not_measured() {
        let run =
            read("step,seconds,bound,train_log_density,error,nlpp\n10,0.5,-3.5,-1,,\n20,1.25,-2,,0.5,0.7\n");
        let other = read("step,seconds,held_out_nlpp,rate,held_out_error\n20,1.25,0.7,0.01,0.5\n").unwrap();
        let point =
            |step, seconds, bound, error, nlpp| CurvePoint { step, seconds, bound, error, rmse: None, nlpp };
        assert_eq!(other.points, [point(20, 1.25, None, Some(0.5), Some(0.7))]);
        assert_eq!(
            run.unwrap().points,
            [point(10, 0.5, Some(-3.5), None, None), point(20, 1.25, Some(-2.0), Some(0.5), Some(0.7))]
        );
    }

    #[test]
    fn mistakes_name_the_line() {
        let message = |text| read(text).unwrap_err().to_string();
        let bad = message("step,seconds,bound\n1,0.5,-3\n2,soon,-2\n");
        assert!(bad.contains("results.csv, line 3: column `seconds`"), "{bad}");
        assert!(message("step,bound\n1,2\n").contains("no column `seconds`"));
        assert!(message("step,seconds\n1\n").contains("line 2"));
        let missing = RunCurves::read("no/such/results.csv".as_ref(), "x").unwrap_err().to_string();
        assert!(missing.starts_with("no/such/results.csv: "), "{missing}");
    }
}
