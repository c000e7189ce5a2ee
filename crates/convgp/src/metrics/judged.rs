//! How good a model is on a set of images.

use super::{Classified, error_rate, nlpp, root_mean_square_error};
use crate::Result;
use crate::cov::Fused;
use crate::data::{Dataset, Targets};
use crate::likelihood::Predictive;
use crate::model::{Model, Predictor};
use serde::Serialize;

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
