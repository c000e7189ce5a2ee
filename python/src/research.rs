//! For one's own loop: the bound, its gradients, covariances, single steps.

use crate::arrays::{Array, array, matrix};
use crate::data::Data;
use crate::failure::{Failure, Outcome};
use crate::model::Model;
use crate::pool::run;
use convgp::FittedModel;
use convgp::cov::Fused;
use convgp::data::{Batch, Dataset};
use convgp::io::parameter_shape;
use convgp::model::{Bound as Evidence, Workspace};
use convgp::optim::{Adam, AdamState};
use convgp::train::{QStep, TrainSpec, new_adam};
use convgp::variational::Form;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Derivatives by name.
type Gradients<'py> = Bound<'py, PyDict>;
/// The bound, its expectation term and its divergence.
type BoundParts = (f64, f64, f64);

/// All of it as one batch, and the number of images the bound is about.
fn batch(dataset: &Dataset, count: Option<usize>) -> (Batch, usize) {
    let all: Vec<usize> = (0..dataset.len()).collect();
    (dataset.batch(&all), count.unwrap_or(dataset.len()))
}

fn parts(bound: &Evidence) -> BoundParts {
    (bound.elbo, bound.expectation, bound.kl)
}

#[pymethods]
impl Model {
    /// The bound on a minibatch of `count` images (its own number if `None`), its expectation term and its divergence. `draw`
    /// numbers the evaluation for likelihoods that sample.
    #[pyo3(signature = (data, count=None, *, draw=0, threads=None))]
    fn elbo(
        &self,
        py: Python<'_>,
        data: &Data,
        count: Option<usize>,
        draw: u64,
        threads: Option<usize>,
    ) -> Outcome<BoundParts> {
        let FittedModel { model, params, .. } = &self.saved;
        let (batch, count) = batch(&self.dataset(data)?, count);
        run(py, threads, || {
            let engine = Fused::<f32>::default();
            Ok(parts(&model.elbo(
                &engine,
                params,
                batch.of(count).at_draw(draw),
                &mut Workspace::default(),
            )?))
        })
    }

    /// The same, and the bound's derivatives in every parameter by name. In natural form those of q are left out.
    #[pyo3(signature = (data, count=None, *, draw=0, threads=None))]
    fn gradients<'py>(
        &self,
        py: Python<'py>,
        data: &Data,
        count: Option<usize>,
        draw: u64,
        threads: Option<usize>,
    ) -> Outcome<(BoundParts, Gradients<'py>)> {
        let FittedModel { model, params, .. } = &self.saved;
        let (batch, count) = batch(&self.dataset(data)?, count);
        let (bound, grad) = run(py, threads, || {
            let mut ws = Workspace::default();
            let bound = model.elbo_and_grad(
                &Fused::<f32>::default(),
                params,
                batch.of(count).at_draw(draw),
                &mut ws,
            )?;
            Ok((bound, ws.grad))
        })?;
        let out = PyDict::new(py);
        for entry in model.layout().entries().iter().filter(|e| e.slot.range().end <= grad.len()) {
            let numbers = entry.slot.of(&grad).to_vec();
            out.set_item(&entry.name, array(py, numbers, &parameter_shape(model, entry))?)?;
        }
        Ok((parts(&bound), out))
    }

    /// Covariances of every component: `(Kuu, [Kuf per response], [kff per response])`, without jitter.
    #[pyo3(signature = (data, *, threads=None))]
    #[allow(clippy::type_complexity)] // three arrays per component
    fn covariances<'py>(
        &self,
        py: Python<'py>,
        data: &Data,
        threads: Option<usize>,
    ) -> Outcome<Vec<(Array<'py>, Vec<Array<'py>>, Vec<Bound<'py, PyArray1<f64>>>)>> {
        use convgp::cov::{Cov, Engine, Need};
        use convgp::linalg::Mat;
        let FittedModel { model, params, .. } = &self.saved;
        model.check_images(data.images.shape())?;
        let all: Vec<usize> = (0..data.images.count()).collect();
        let batch = Batch::of_images(&self.images(data), &all);
        let found = run(py, threads, || {
            let engine = Fused::<f32>::default();
            let component = |c| {
                let (mut kuu, mut cov) = (Mat::default(), Cov::default());
                engine.kuu(c, params, &mut kuu);
                engine.images(c, params, &batch, Need::Value, &mut Default::default(), &mut cov);
                (kuu, cov)
            };
            Ok(model.components().iter().map(component).collect::<Vec<_>>())
        })?;
        let arrays = |(kuu, cov): (Mat, Cov)| {
            let kuf = cov.kuf.iter().map(|k| matrix(py, k)).collect::<PyResult<_>>()?;
            let kff = cov.kff.into_iter().map(|k| PyArray1::from_vec(py, k)).collect();
            Ok((matrix(py, &kuu)?, kuf, kff))
        };
        found.into_iter().map(arrays).collect()
    }
}

/// Takes single steps on minibatches of one's choice; remembers Adam's moments.
#[pyclass(module = "convgp._convgp")]
pub struct Stepper {
    spec: TrainSpec,
    adam: Adam,
    moments: AdamState,
    ws: Workspace<Fused>,
    taken: u64,
    /// The last parameters that were evaluated without trouble.
    snapshot: Option<Vec<f64>>,
}

#[pymethods]
impl Stepper {
    /// For a model. With `q` "natural", natural steps move the posterior and Adam everything else; with "adam", Adam moves all.
    /// Puts the model's q into the form that needs. `settings` are those of training, as JSON (the model's own if `None`).
    #[new]
    #[pyo3(signature = (model, q="natural", settings=None))]
    fn new(model: &mut Model, q: &str, settings: Option<&str>) -> Outcome<Self> {
        let mut spec = match settings {
            Some(json) => serde_json::from_str(json)?,
            None => model.train.clone(),
        };
        let form;
        (spec.q, form) = match q {
            "natural" => (QStep::Natural, Form::Natural),
            "adam" => (QStep::Adam, Form::Covariance),
            other => return Err(Failure::Value(format!("q is {other:?}; it is \"natural\" or \"adam\""))),
        };
        spec.check()?;
        model.saved.model.set_form(form, &mut model.saved.params)?;
        let adam = new_adam(&spec.adam, &model.saved.model, &model.saved.params);
        let moments = adam.initial_state();
        Ok(Self { spec, adam, moments, ws: Workspace::default(), taken: 0, snapshot: None })
    }

    /// Steps taken.
    #[getter]
    fn taken(&self) -> u64 {
        self.taken
    }

    /// One step on a minibatch of `count` images: one evaluation, then a natural step of size `gamma` and an Adam step of size `rate`.
    /// A size of 0 leaves that step out; `None` is the size in the settings. Returns the bound, or the energy that the settings name, before the step. Where it cannot be
    /// computed, the parameters go back to those of the step before and the moments are forgotten.
    #[pyo3(signature = (model, data, count=None, *, rate=None, gamma=None, threads=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments
    fn step(
        &mut self,
        py: Python<'_>,
        model: &mut Model,
        data: &Data,
        count: Option<usize>,
        rate: Option<f64>,
        gamma: Option<f64>,
        threads: Option<usize>,
    ) -> Outcome<BoundParts> {
        let (rate, gamma) = (rate.unwrap_or(self.spec.adam.rate), gamma.unwrap_or(self.spec.natural.gamma));
        let natural = self.spec.q == QStep::Natural;
        let dataset = model.dataset(data)?;
        let FittedModel { model, params, .. } = &mut model.saved;
        if natural != (params.form() == Form::Natural) {
            return Err(Failure::Value(
                "the model's form has changed since the stepper was made; make a new one".into(),
            ));
        }
        let (batch, count) = batch(&dataset, count);
        let Self { spec, adam, moments, ws, taken, snapshot } = self;
        run(py, threads, || {
            let (engine, alpha) = (Fused::<f32>::default(), spec.objective.alpha());
            let bound =
                match model.energy_and_grad(&engine, params, batch.of(count).at_draw(*taken), alpha, ws) {
                    Ok(bound) => bound,
                    Err(e) => {
                        if let Some(snapshot) = snapshot {
                            params.copy_from_slice(snapshot);
                        }
                        moments.reset();
                        return Err(e.into());
                    }
                };
            *snapshot = Some(params.to_vec());
            if natural && gamma > 0.0 {
                model.natural_step(gamma, spec.natural.limit(), ws, params);
            }
            if rate > 0.0 {
                adam.step(moments, rate, params, &ws.grad);
            }
            *taken += 1;
            Ok(parts(&bound))
        })
    }
}
