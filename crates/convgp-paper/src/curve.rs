//! How a run came to where it ended.

use crate::record::Record;
use crate::{Error, Experiment, Result};
use convgp::io::write_atomically;
use convgp_report::{CurvePoint, Report, RunCurves};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The last part of a run, whose slope tells whether it was still getting better.
const LAST: f64 = 0.2;
/// The figures that experiments can be compared by.
const DRAWN: [&str; 2] = ["error-time", "nlpp-time"];

/// How fast a run was still improving at its end: least-squares slopes over the last fifth of its time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Trend {
    /// Evaluations it rests on.
    pub evaluations: usize,
    /// Change of the error per hour of training, as a fraction of the images.
    pub error_per_hour: f64,
    /// Change of the NLPP per hour of training.
    pub nlpp_per_hour: f64,
}

impl Trend {
    /// Of a curve; none where the last fifth has fewer than two evaluations.
    pub fn of(points: &[CurvePoint]) -> Option<Self> {
        let start = (1.0 - LAST) * points.last()?.seconds;
        let late: Vec<[f64; 3]> = points
            .iter()
            .filter(|p| p.seconds >= start)
            .filter_map(|p| Some([p.seconds / 3600.0, p.error?, p.nlpp?]))
            .collect();
        Some(Self {
            evaluations: late.len(),
            error_per_hour: slope(late.iter().map(|p| (p[0], p[1])))?,
            nlpp_per_hour: slope(late.iter().map(|p| (p[0], p[2])))?,
        })
    }
}

/// Of the line with the least squares through the points.
fn slope(points: impl Iterator<Item = (f64, f64)> + Clone) -> Option<f64> {
    let count = points.clone().count() as f64;
    let (x, y) = points.clone().fold((0.0, 0.0), |(x, y), p| (x + p.0 / count, y + p.1 / count));
    let square: f64 = points.clone().map(|p| (p.0 - x).powi(2)).sum();
    let product: f64 = points.map(|p| (p.0 - x) * (p.1 - y)).sum();
    (square > 0.0).then_some(product / square)
}

/// The curve as a table: step, seconds of training, bound, error, NLPP.
pub fn to_csv(points: &[CurvePoint]) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["step", "seconds", "bound", "error", "nlpp"])?;
    for p in points {
        writer.serialize((p.step, p.seconds, p.bound, p.error, p.nlpp))?;
    }
    Ok(writer.into_inner().expect("memory can be written to"))
}

/// Draws the first seed of every experiment and recipe over seconds of training, one file for each figure and
/// quantity; returns the files.
pub fn draw(records: &[Record], folder: &Path, out: &Path) -> Result<Vec<PathBuf>> {
    let mut reports = BTreeMap::new();
    let least_seed = |r: &Record| {
        let alike = records.iter().filter(|o| (&o.experiment, o.recipe) == (&r.experiment, r.recipe));
        alike.map(|o| o.seed).min() == Some(r.seed)
    };
    for record in records.iter().filter(|r| least_seed(r)) {
        let figure = Experiment::find(&record.experiment)?.figure().to_string();
        let run = RunCurves::read(
            &folder.join(&record.curve),
            &format!("{}, {}", record.experiment, record.recipe.name()),
        )?;
        let report = reports.remove(&figure).unwrap_or_else(|| Report::new(&figure));
        reports.insert(figure, report.run(run));
    }
    std::fs::create_dir_all(out).map_err(|source| Error::Access { path: out.into(), source })?;
    let mut paths = Vec::new();
    for (figure, report) in reports {
        for (name, svg) in report.svgs()?.into_iter().filter(|(name, _)| DRAWN.contains(&name.as_str())) {
            let path = out.join(format!("{figure}-{name}.svg"));
            write_atomically(&path, svg.as_bytes())?;
            paths.push(path);
        }
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn committed_curves_are_drawn_for_each_data_set() {
        let (folder, out) =
            (Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/results")), tempfile::tempdir().unwrap());
        let paths = draw(&crate::record::read_all(folder).unwrap(), folder, out.path()).unwrap();
        let svg = std::fs::read_to_string(out.path().join("mnist-error-time.svg")).unwrap();
        assert!(svg.contains("mnist-weighted, fast"));
        assert!(!svg.contains("rectangles-weighted") && !svg.contains("ablation"));
        assert!(paths.iter().all(|path| path.is_file()) && paths.len() >= 4, "{paths:?}");
    }

    fn point(seconds: f64, error: f64, nlpp: f64) -> CurvePoint {
        CurvePoint { step: 1, seconds, bound: None, error: Some(error), rmse: None, nlpp: Some(nlpp) }
    }

    #[test]
    fn the_trend_is_that_of_the_last_fifth() {
        let mut points = vec![point(10.0, 0.9, 9.0), point(79.0, 0.5, 5.0)];
        assert_eq!(Trend::of(&points), None, "one evaluation has no slope");
        points.extend([point(80.0, 0.4, 1.0), point(90.0, 0.3, 2.0), point(100.0, 0.2, 3.0)]);
        let trend = Trend::of(&points).unwrap();
        assert_eq!(trend.evaluations, 3);
        assert!((trend.error_per_hour + 36.0).abs() < 1e-9 && (trend.nlpp_per_hour - 360.0).abs() < 1e-9);
    }

    #[test]
    fn curves_are_written_with_their_gaps() {
        let text = String::from_utf8(to_csv(&[point(1.5, 0.25, 0.5)]).unwrap()).unwrap();
        assert_eq!(text, "step,seconds,bound,error,nlpp\n1,1.5,,0.25,0.5\n");
    }
}
