//! A fitted model: what is saved, and what predicts.

mod answer;
mod update;

pub use answer::AnswerRule;

use crate::Result;
use crate::cov::{Engine, Fused};
use crate::data::{Dataset, Images};
use crate::likelihood::{Predictive, Temperature};
use crate::metrics::{DatasetEvaluation, most_probable};
use crate::model::{Model, Predictor};
use crate::params::{Form, Params};
use crate::prepare::Preparation;
use std::sync::Arc;

/// A model with its numbers and everything else that decides what it says about an image. The same file gives the same
/// predictions in the library, on the command line and in Python.
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
/// use convgp::{FittedModel, prepare::Preparation};
///
/// let fitted = FittedModel::new(model, params, Vec::new(), Preparation::default())?;
/// let read = FittedModel::from_bytes(&fitted.to_bytes()?)?;
/// assert_eq!(read.predict(data.images())?, fitted.predict(data.images())?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct FittedModel {
    /// Structure.
    pub model: Arc<Model>,
    /// Parameters.
    pub params: Params,
    /// One name per class; empty for regression.
    pub class_names: Vec<String>,
    /// What has to be done to images before it sees them.
    pub preparation: Preparation,
    /// Temperature of its class probabilities.
    pub temperature: Temperature,
    /// When it answers; always, if there is none.
    pub answer_rule: Option<AnswerRule>,
}

impl FittedModel {
    /// A model that always answers, at temperature 1, with `q` in covariance form.
    pub fn new(
        model: impl Into<Arc<Model>>,
        mut params: Params,
        class_names: Vec<String>,
        preparation: Preparation,
    ) -> Result<Self> {
        let model = model.into();
        model.set_form(Form::Covariance, &mut params)?;
        let (temperature, answer_rule) = (Temperature::ONE, None);
        Ok(Self { model, params, class_names, preparation, temperature, answer_rule })
    }

    /// Predictions by an engine, at the model's temperature.
    pub fn predictor<'a, E: Engine>(&'a self, engine: &'a E) -> Result<Predictor<'a, E>> {
        Ok(Predictor::new(&self.model, engine, &self.params)?.at_temperature(self.temperature))
    }

    /// Class probabilities, or mean and variance of a real target, by the fast engine.
    pub fn predict(&self, images: &Images) -> Result<Predictive> {
        self.predictor(&Fused::<f32>::default())?.predict(images)
    }

    /// What it says about images with targets, and how good that is, by the fast engine.
    pub fn evaluate(&self, name: &str, data: Dataset) -> Result<DatasetEvaluation> {
        DatasetEvaluation::new(name, &self.predictor(&Fused::<f32>::default())?, data)
    }

    /// The class it answers with; none where its answer rule withholds one.
    pub fn answer(&self, probabilities: &[f64]) -> Option<&str> {
        match &self.answer_rule {
            Some(rule) if !rule.threshold.answers(probabilities) => None,
            _ => self.class_names.get(most_probable(probabilities)).map(String::as_str),
        }
    }
}
