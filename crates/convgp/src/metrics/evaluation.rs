//! How good a model is on a set of images.

use super::{Classified, error_rate, nlpp, root_mean_square_error};
use crate::Result;
use crate::cov::Engine;
use crate::data::{Dataset, Targets};
use crate::likelihood::Predictive;
use crate::model::Predictor;
use serde::Serialize;

/// Error and negative log predictive probability.
///
/// ```
/// # use convgp::{Model, ModelSpec, data::{Dataset, Images, Pixels, Targets}, rng::Rng};
/// # let spec = ModelSpec::from_toml(r#"
/// #     image = { height = 4, width = 4 }
/// #     likelihood = { type = "gaussian" }
/// #     [[components]]
/// #     views = { type = "patches", patch = [2, 2] }
/// #     kernel = { type = "rbf" }
/// #     inducing = { count = 3 }
/// # "#)?;
/// # let images = Images::new(spec.image, Pixels::F64((0..96).map(|i| f64::from(i * i % 17) / 17.0).collect()))?;
/// # let data = Dataset::new(images, Targets::real(vec![0.1, -0.4, 0.7, 0.2, 0.0, 0.3])?)?;
/// # let (model, params) = Model::new(&spec, Some(data.images()), &mut Rng::new(1))?;
/// use convgp::{cov::Reference, metrics::Metrics, model::Predictor};
///
/// let metrics = Metrics::of(&Predictor::new(&model, &Reference, &params)?, &data)?;
/// assert!(metrics.nlpp.is_finite());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Metrics {
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
pub struct DatasetEvaluation {
    /// What the images are called.
    pub name: String,
    /// The images and their targets.
    pub data: Dataset,
    /// What the model says.
    pub predictive: Predictive,
    /// How good it is.
    pub metrics: Metrics,
}

impl DatasetEvaluation {
    /// Lets a model predict; latents are computed once.
    pub fn new<E: Engine>(name: &str, predictor: &Predictor<'_, E>, data: Dataset) -> Result<Self> {
        let (metrics, predictive) = evaluate(predictor, &data)?;
        Ok(Self { name: name.into(), data, predictive, metrics })
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

fn evaluate<E: Engine>(predictor: &Predictor<'_, E>, data: &Dataset) -> Result<(Metrics, Predictive)> {
    let likelihood = predictor.likelihood();
    likelihood.check_targets(data.targets())?;
    let latents = predictor.latents(data.images())?;
    let predictive = predictor.predict_from(&latents);
    let log_densities = likelihood.log_predictive(predictor.theta(), &latents, data.targets());
    let metrics = Metrics {
        images: data.len(),
        error: error_rate(&predictive, data.targets()),
        rmse: root_mean_square_error(&predictive, data.targets()),
        nlpp: nlpp(&log_densities),
    };
    Ok((metrics, predictive))
}

impl Metrics {
    /// Those of predictions.
    pub fn of<E: Engine>(predictor: &Predictor<'_, E>, data: &Dataset) -> Result<Self> {
        Ok(evaluate(predictor, data)?.0)
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
