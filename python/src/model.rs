//! A model: made from data and a name or spec, its parameters, its file.

use crate::arrays::{Array, array, dictionary};
use crate::data::Data;
use crate::failure::{Failure, Outcome};
use crate::pool::run;
use convgp::FittedModel;
use convgp::closed_form::Statistics;
use convgp::data::{Dataset, Images, PixelScale};
use convgp::fitted::AnswerRule;
use convgp::io::parameter_shape;
use convgp::memory;
use convgp::metrics::threshold_for_risk;
use convgp::model::ModelSpec;
use convgp::prepare::{Preparation, Scaling};
use convgp::preset::{self, Overrides, ResolvedConfig, write_out_defaults};
use convgp::train::{ExperimentSpec, TrainSpec};
use convgp::variational::Form;
use convgp_paper::{Experiment, Recipe};
use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::PathBuf;
use std::time::Duration;

/// A model with its parameters: what a model file holds, and how it is trained.
#[pyclass(module = "convgp._convgp")]
#[derive(Debug)]
pub struct Model {
    pub saved: FittedModel,
    pub train: TrainSpec,
    pub reasons: Vec<String>,
    /// What it was solved from, where that was kept.
    pub statistics: Option<Statistics>,
}

#[pymethods]
impl Model {
    /// A model for the data, with its initial parameters: by `name`, by `spec` (JSON), by `toml` (its text), or chosen from
    /// the data. Everything else overrides what these say.
    #[staticmethod]
    #[pyo3(signature = (data, *, name=None, spec=None, toml=None, recipe="fast", inducing=None, patch=None, batch_size=None,
                        steps=None, seconds=None, seed=0, threads=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments
    fn create(
        py: Python<'_>,
        data: &Data,
        name: Option<&str>,
        spec: Option<&str>,
        toml: Option<&str>,
        recipe: &str,
        inducing: Option<usize>,
        patch: Option<(usize, usize)>,
        batch_size: Option<usize>,
        steps: Option<u64>,
        seconds: Option<f64>,
        seed: u64,
        threads: Option<usize>,
    ) -> Outcome<Self> {
        if data.targets.is_none() {
            return Self::without_targets(py, data, spec, seed, threads);
        }
        let dataset = data.dataset()?;
        let scaling = Scaling::learn(dataset.images());
        let dataset = dataset.with_scale(scaling.scale());
        let mut chosen = match (spec, toml) {
            (Some(json), _) => given(parse_json(json)?),
            (None, Some(text)) => given(parse_toml(text)?),
            (None, None) => {
                let in_steps = steps.is_some() || batch_size.is_some();
                run(py, threads, || by_name(name, recipe, &dataset, seconds, in_steps))?
            }
        };
        let patch = patch.map(|(h, w)| [h, w]);
        chosen.apply(&Overrides { inducing, patch, batch_size, steps, seed: Some(seed) }, &dataset)?;
        chosen.experiment.train.check()?;
        write_out_defaults(&mut chosen.experiment);
        run(py, threads, || {
            check_memory(&chosen.experiment, dataset.images())?;
            let (model, params) = chosen.build(&dataset)?;
            let preparation = Preparation { scaling, ..Preparation::default() };
            let class_names = dataset.class_names().to_vec();
            let saved = FittedModel::new(model, params, class_names, preparation)?;
            let reasons = chosen.decisions.iter().map(ToString::to_string).collect();
            Ok(Self { saved, train: chosen.experiment.train, reasons, statistics: None })
        })
    }

    /// Reads a model file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> Outcome<Self> {
        run(py, Some(1), || Ok(Self::of(FittedModel::load(&path)?)))
    }

    /// Reads the bytes of a model file.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> Outcome<Self> {
        run(py, Some(1), || Ok(Self::of(FittedModel::from_bytes(bytes)?)))
    }

    /// Writes a model file; one that is there is replaced as a whole.
    fn save(&self, py: Python<'_>, path: PathBuf) -> Outcome<()> {
        run(py, Some(1), || Ok(self.saved.save(&path)?))
    }

    /// The bytes of a model file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Outcome<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &run(py, Some(1), || Ok(self.saved.to_bytes()?))?))
    }

    /// One line about it.
    fn describe(&self) -> String {
        convgp::inspect::describe(&self.saved.model)
    }

    /// Its structure and its training, as JSON.
    #[getter]
    fn spec(&self) -> Outcome<String> {
        let experiment = ExperimentSpec { model: self.saved.model.spec().clone(), train: self.train.clone() };
        Ok(serde_json::to_string(&experiment)?)
    }

    /// Replaces the settings of its training, given as JSON.
    fn set_train(&mut self, settings: &str) -> Outcome<()> {
        let train: TrainSpec = serde_json::from_str(settings)?;
        train.check()?;
        self.train = train;
        Ok(())
    }

    /// What was chosen, and why.
    #[getter]
    fn reasons(&self) -> Vec<String> {
        self.reasons.clone()
    }

    /// Height, width and channels of its images.
    #[getter]
    fn image_shape(&self) -> (usize, usize, usize) {
        let shape = self.saved.model.spec().image;
        (shape.height(), shape.width(), shape.channels())
    }

    /// One name per class; none for regression.
    #[getter]
    fn class_names(&self) -> Vec<String> {
        self.saved.class_names.clone()
    }

    /// Units of the pixels it was trained on, in words.
    #[getter]
    fn pixel_scale(&self) -> String {
        self.saved.preparation.scaling.to_string()
    }

    /// Number of latent functions.
    #[getter]
    fn latents(&self) -> usize {
        self.saved.model.likelihood().latents()
    }

    /// Refuses images whose pixels cannot be on the scale of those it was trained on; says what is converted.
    fn check_scale(&self, data: &Data) -> Outcome<Option<&'static str>> {
        let scaling = self.saved.preparation.scaling;
        scaling.scale_for(&data.images)?;
        Ok(scaling.conversion(self.scale(data)))
    }

    /// When it answers: risk, number of images the threshold was set on, threshold, coverage, error, upper_error.
    #[getter]
    fn answer_rule<'py>(&self, py: Python<'py>) -> Outcome<Option<Bound<'py, PyDict>>> {
        let rule = self.saved.answer_rule.as_ref().map(serde_json::to_value).transpose()?;
        Ok(rule.map(|r| dictionary(py, &r)).transpose()?)
    }

    /// Sets the threshold from which on it answers, on images that were not trained on.
    #[pyo3(signature = (data, risk, *, threads=None))]
    fn calibrate(&mut self, py: Python<'_>, data: &Data, risk: f64, threads: Option<usize>) -> Outcome<()> {
        let dataset = self.dataset(data)?;
        let rule = run(py, threads, || {
            let evaluation = self.saved.evaluate("", dataset)?;
            let Some(c) = evaluation.classified()? else {
                return Err(Failure::Value(
                    "the model predicts real numbers; there are no classes to withhold".into(),
                ));
            };
            let threshold = threshold_for_risk(&c.confidences(), &c.correct(), risk)?.ok_or_else(|| {
                Failure::Value(format!(
                    "even the most confident answers are wrong more often than {risk}; allow a larger risk, or use more images"
                ))
            })?;
            Ok(AnswerRule { risk, images: c.len(), threshold })
        })?;
        self.saved.answer_rule = Some(rule);
        Ok(())
    }

    /// Names of its parameters, in their order.
    fn parameter_names(&self) -> Vec<String> {
        self.saved.params.layout().entries().iter().map(|e| e.name.clone()).collect()
    }

    /// A parameter as an array.
    fn parameter<'py>(&self, py: Python<'py>, name: &str) -> Outcome<Array<'py>> {
        let FittedModel { model, params, .. } = &self.saved;
        let entry = params.layout().entry(name)?;
        Ok(array(py, entry.slot.of(params).to_vec(), &parameter_shape(model, entry))?)
    }

    /// Replaces a parameter's numbers.
    fn set_parameter(&mut self, name: &str, numbers: PyReadonlyArrayDyn<'_, f64>) -> Outcome<()> {
        let FittedModel { model, params, .. } = &mut self.saved;
        let shape = parameter_shape(model, model.layout().entry(name)?);
        if numbers.shape() != shape {
            let found = numbers.shape();
            return Err(Failure::Value(format!("parameter `{name}` has shape {shape:?}; {found:?} given")));
        }
        let new: Vec<f64> = numbers.as_array().iter().copied().collect();
        Ok(params.set(name, &new)?)
    }

    /// Whether training may move a parameter.
    fn is_trainable(&self, name: &str) -> Outcome<bool> {
        Ok(self.saved.params.layout().entry(name)?.trainable)
    }

    /// Freezes or frees every parameter whose name is `name` or begins with `name.`.
    fn set_trainable(&mut self, name: &str, trainable: bool) -> Outcome<()> {
        Ok(self.saved.params.set_trainable(name, trainable)?)
    }

    /// All parameters as one vector.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> Outcome<Array<'py>> {
        Ok(array(py, self.saved.params.to_vec(), &[self.saved.params.len()])?)
    }

    /// How q is written: "covariance" (means and factors, what files hold) or "natural" (what natural steps need).
    #[getter]
    fn form(&self) -> &'static str {
        match self.saved.params.form() {
            Form::Covariance => "covariance",
            Form::Natural => "natural",
        }
    }

    #[setter]
    fn set_form(&mut self, form: &str) -> Outcome<()> {
        let form = match form {
            "covariance" => Form::Covariance,
            "natural" => Form::Natural,
            other => {
                return Err(Failure::Value(format!(
                    "form is {other:?}; it is \"covariance\" or \"natural\""
                )));
            }
        };
        Ok(self.saved.model.set_form(form, &mut self.saved.params)?)
    }

    fn __repr__(&self) -> String {
        format!("<convgp model: {}>", self.describe())
    }
}

impl Model {
    /// A spec says what the targets will be; pixels are taken as they are.
    fn without_targets(
        py: Python<'_>,
        data: &Data,
        spec: Option<&str>,
        seed: u64,
        threads: Option<usize>,
    ) -> Outcome<Self> {
        let spec = spec.ok_or_else(|| {
            Failure::Value("without targets there is nothing to choose by; give a spec".into())
        })?;
        let mut experiment = parse_json(spec)?;
        experiment.train.seed = seed;
        write_out_defaults(&mut experiment);
        let (model, params) = run(py, threads, || {
            check_memory(&experiment, &data.images)?;
            Ok(experiment.initial_parameters(&data.images)?)
        })?;
        let preparation = Preparation { scaling: Scaling::as_stored(&data.images), ..Preparation::default() };
        let saved = FittedModel::new(model, params, Vec::new(), preparation)?;
        Ok(Self { saved, train: experiment.train, reasons: Vec::new(), statistics: None })
    }

    /// Images on the scale of those it was trained on.
    pub fn images(&self, data: &Data) -> Images {
        data.images.clone().with_scale(self.scale(data))
    }

    /// The same with their targets.
    pub fn dataset(&self, data: &Data) -> Outcome<Dataset> {
        Ok(data.dataset()?.with_scale(self.scale(data)))
    }

    /// Images were checked when they came in. Those of one row are rows of numbers, which may have any range.
    fn scale(&self, data: &Data) -> PixelScale {
        let scaling = self.saved.preparation.scaling;
        let converted = scaling.scale_for(&data.images).ok().filter(|_| data.images.shape().height() > 1);
        converted.unwrap_or_else(|| scaling.scale())
    }

    fn of(saved: FittedModel) -> Self {
        Self { saved, train: TrainSpec::default(), reasons: Vec::new(), statistics: None }
    }
}

/// An experiment of the catalogue, or a named model for the data; by default one chosen from them.
fn by_name(
    name: Option<&str>,
    recipe: &str,
    data: &Dataset,
    seconds: Option<f64>,
    in_steps: bool,
) -> Outcome<ResolvedConfig> {
    let recipe: Recipe = recipe.parse()?;
    if let Some(experiment) = name.and_then(|name| Experiment::find(name).ok()) {
        return Ok(given(experiment.minibatch_spec(recipe)?));
    }
    let (name, time) = (name.map(str::parse).transpose()?, seconds.map(duration).transpose()?);
    let in_steps = in_steps || recipe == Recipe::Paper;
    let name = name.or_else(|| preset::default_model(data, in_steps));
    Ok(convgp_paper::choose(name, recipe, data, time)?)
}

/// Refuses what would not fit in memory, before anything is built.
fn check_memory(experiment: &ExperimentSpec, images: &Images) -> Outcome<()> {
    let sets = [images];
    Ok(memory::check(experiment, &sets, 0, memory::left_beside_others(&sets))?)
}

fn given(experiment: ExperimentSpec) -> ResolvedConfig {
    ResolvedConfig {
        experiment,
        name: "spec".into(),
        decisions: Vec::new(),
        free_inducing: false,
        free_steps: false,
    }
}

/// A model and its training, or a model alone.
fn parse_json(text: &str) -> Outcome<ExperimentSpec> {
    let tree: serde_json::Value = serde_json::from_str(text)?;
    Ok(match tree.get("model") {
        Some(_) => serde_json::from_value(tree)?,
        None => {
            ExperimentSpec { model: serde_json::from_value::<ModelSpec>(tree)?, train: TrainSpec::default() }
        }
    })
}

fn parse_toml(text: &str) -> Outcome<ExperimentSpec> {
    let tree: toml::Table = toml::from_str(text)?;
    Ok(match tree.get("model") {
        Some(_) => ExperimentSpec::from_toml(text)?,
        None => ExperimentSpec { model: ModelSpec::from_toml(text)?, train: TrainSpec::default() },
    })
}

/// Seconds that make sense.
pub fn duration(seconds: f64) -> Outcome<Duration> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|t| !t.is_zero());
    time.ok_or_else(|| Failure::Value(format!("{seconds} seconds; time must be positive")))
}
