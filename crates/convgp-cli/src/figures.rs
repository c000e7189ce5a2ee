//! How good a model is on a set of images.

use convgp::Result;
use convgp::cov::Fused;
use convgp::data::{Dataset, Targets};
use convgp::likelihood::Predictive;
use convgp::metrics::{Classified, error_rate, nlpp, root_mean_square_error};
use convgp::model::{Model, Predictor};
use serde::Serialize;
use std::io::Write;

/// Error and negative log predictive probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figures {
    /// Number of images.
    pub images: usize,
    /// Fraction of wrong classes; absent for regression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// Root mean square error; absent for classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmse: Option<f64>,
    /// Mean of `-log p(y | x)`.
    pub nlpp: f64,
}

/// A set of images, what a model says about them, and how good that is.
#[derive(Debug)]
pub struct Judged {
    /// What the images are called.
    pub name: String,
    /// The images and their targets.
    pub data: Dataset,
    /// What the model says.
    pub predictive: Predictive,
    /// How good it is.
    pub figures: Figures,
}

impl Judged {
    /// Lets a model predict; latents are computed once.
    pub fn new(name: &str, model: &Model, values: &[f64], data: Dataset) -> Result<Self> {
        let (figures, predictive) = judge(model, values, &data)?;
        Ok(Self { name: name.into(), data, predictive, figures })
    }

    /// Probabilities beside labels; none for regression.
    pub fn classified(&self) -> Result<Option<Classified<'_>>> {
        match (&self.predictive, self.data.targets()) {
            (Predictive::Classes { probabilities, classes }, Targets::Classes { labels, .. }) => {
                Ok(Some(Classified::new(probabilities, labels, *classes)?))
            }
            _ => Ok(None),
        }
    }
}

fn judge(model: &Model, values: &[f64], data: &Dataset) -> Result<(Figures, Predictive)> {
    model.likelihood().check_targets(data.targets())?;
    let engine = Fused::<f32>::default();
    let latents = Predictor::new(model, &engine, values)?.latents(data.images())?;
    let theta = model.likelihood_theta(values);
    let predictive = model.likelihood().predict(theta, &latents);
    let log_densities = model.likelihood().log_predictive(theta, &latents, data.targets());
    let figures = Figures {
        images: data.len(),
        error: error_rate(&predictive, data.targets()),
        rmse: root_mean_square_error(&predictive, data.targets()),
        nlpp: nlpp(&log_densities),
    };
    Ok((figures, predictive))
}

impl Figures {
    /// Those of a model.
    pub fn of(model: &Model, values: &[f64], data: &Dataset) -> Result<Self> {
        Ok(judge(model, values, data)?.0)
    }

    /// `2.31 %`, or the root mean square error.
    pub fn error_text(&self) -> String {
        match (self.error, self.rmse) {
            (Some(error), _) => format!("{:.2} %", 100.0 * error),
            (None, Some(rmse)) => format!("{rmse:.4}"),
            (None, None) => String::new(),
        }
    }
}

/// A table of figures by name.
pub fn write_table(out: &mut dyn Write, rows: &[(String, Figures)]) -> std::io::Result<()> {
    let regression = rows.iter().any(|(_, f)| f.error.is_none());
    let error = if regression { "rmse" } else { "error" };
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(10);
    writeln!(out, "{:width$}  {:>8}  {error:>10}  {:>10}", "", "images", "NLPP")?;
    for (name, f) in rows {
        writeln!(out, "{name:width$}  {:>8}  {:>10}  {:>10.4}", f.images, f.error_text(), f.nlpp)?;
    }
    Ok(())
}
