//! Looking into a model.

use crate::arrays::array;
use crate::data::Data;
use crate::failure::Outcome;
use crate::model::Model;
use crate::pool::run;
use convgp::FittedModel;
use convgp::cov::Fused;
use convgp::data::Images;
use convgp::inspect::{Evidence, Explainer, Part};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Component, response, share of the prior variance, share of the explained variance.
type ShareRow = (String, usize, f64, f64);

#[pymethods]
impl Model {
    /// Every component: name, inducing inputs as pictures (`M x height x width x channels`), and the weights of its views
    /// (`responses x planes x rows x columns`).
    fn components<'py>(&self, py: Python<'py>) -> Outcome<Vec<Bound<'py, PyDict>>> {
        let FittedModel { model, params, .. } = &self.saved;
        let mut all = Vec::new();
        for component in model.components() {
            let responses = component.responses();
            let layout = responses[0].views().layout();
            let view = layout.view;
            let inducing = (0..component.inducing()).flat_map(|m| &component.z(params, m)[..view.len()]);
            let shape = [component.inducing(), view.height(), view.width(), view.channels()];
            let weights: Vec<f64> = responses.iter().flat_map(|r| r.weights(params)).collect();
            let places = [responses.len(), layout.planes.len(), layout.rows, layout.cols];
            let out = PyDict::new(py);
            out.set_item("name", component.name())?;
            out.set_item("inducing", array(py, inducing.copied().collect(), &shape)?)?;
            out.set_item("weights", array(py, weights, &places)?)?;
            out.set_item("learned_weights", responses[0].weights_slot().is_some())?;
            all.push(out);
        }
        Ok(all)
    }

    /// What every view of every image contributes to the latent means: for every image a list of dictionaries, one per
    /// component and response.
    #[pyo3(signature = (data, *, threads=None))]
    fn explain<'py>(
        &self,
        py: Python<'py>,
        data: &Data,
        threads: Option<usize>,
    ) -> Outcome<Vec<Vec<Bound<'py, PyDict>>>> {
        let images = &self.images(data);
        let evidence = self.explainer(py, threads, |explainer| {
            (0..images.count())
                .map(|n| Ok(explainer.evidence(images, n)?))
                .collect::<Outcome<Vec<Evidence>>>()
        })?;
        let part = |p: &Part, latents: usize| part_dictionary(py, p, latents, images);
        evidence.iter().map(|e| e.parts.iter().map(|p| part(p, e.latents())).collect()).collect()
    }

    /// How much of the function each response of each component is, over the images.
    #[pyo3(signature = (data, *, threads=None))]
    fn shares(&self, py: Python<'_>, data: &Data, threads: Option<usize>) -> Outcome<Vec<ShareRow>> {
        let shares = self.explainer(py, threads, |explainer| Ok(explainer.shares(&self.images(data))?))?;
        Ok(shares.into_iter().map(|s| (s.component, s.response, s.prior, s.explained)).collect())
    }
}

impl Model {
    /// Hands an explainer of the model to `look`.
    fn explainer<T: Send>(
        &self,
        py: Python<'_>,
        threads: Option<usize>,
        look: impl FnOnce(&Explainer<'_, '_, Fused>) -> Outcome<T> + Send,
    ) -> Outcome<T> {
        run(py, threads, || {
            let engine = Fused::<f32>::default();
            let predictor = self.saved.predictor(&engine)?;
            look(&Explainer::new(&predictor)?)
        })
    }
}

fn part_dictionary<'py>(
    py: Python<'py>,
    part: &Part,
    latents: usize,
    images: &Images,
) -> Outcome<Bound<'py, PyDict>> {
    let (layout, shape) = (&part.layout, images.shape());
    let places = [layout.planes.len(), layout.rows, layout.cols, latents];
    let planes = layout.planes.len();
    let painted = (0..latents).flat_map(|l| (0..planes).map(move |plane| (l, plane)));
    let painted: Vec<f64> = painted.flat_map(|(l, plane)| part.paint(plane, l, shape)).collect();
    let out = PyDict::new(py);
    out.set_item("component", &part.component)?;
    out.set_item("response", part.response)?;
    out.set_item("planes", layout.planes.clone())?;
    out.set_item("mean", array(py, part.mean.clone(), &places)?)?;
    out.set_item("sd", array(py, part.sd.clone(), &places)?)?;
    out.set_item("inducing", array(py, part.inducing.clone(), &[part.inducing.len() / latents, latents])?)?;
    out.set_item("maps", array(py, painted, &[latents, planes, shape.height(), shape.width()])?)?;
    Ok(out)
}
