//! Images added to a closed-form model, and removed from it.

use crate::data::Data;
use crate::failure::{Failure, Outcome};
use crate::model::Model;
use crate::pool::run;
use convgp::closed_form::Statistics;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

#[pymethods]
impl Model {
    /// Whether it is solved in closed form rather than trained in steps.
    #[getter]
    fn is_closed_form(&self) -> bool {
        self.saved.model.is_closed_form()
    }

    /// Whether it can be updated.
    #[getter]
    fn has_statistics(&self) -> bool {
        self.statistics.is_some()
    }

    /// Adds images, or removes them; after an error nothing has changed. Returns whether an answer rule was lost.
    #[pyo3(signature = (data, *, remove=false, threads=None))]
    fn update(&mut self, py: Python<'_>, data: &Data, remove: bool, threads: Option<usize>) -> Outcome<bool> {
        let dataset = self.dataset(data)?;
        let Self { saved, statistics, .. } = self;
        let kept = statistics.as_ref().ok_or_else(|| Failure::Value("no statistics were kept".into()))?;
        let had_rule = saved.answer_rule.is_some();
        let (added, removed) = if remove { (None, Some(&dataset)) } else { (Some(&dataset), None) };
        let (new, _) = run(py, threads, || Ok(saved.update(kept.clone(), added, removed)?))?;
        *statistics = Some(new);
        Ok(had_rule)
    }

    /// The bytes of a statistics file.
    fn statistics_to_bytes<'py>(&self, py: Python<'py>) -> Outcome<Option<Bound<'py, PyBytes>>> {
        let Some(statistics) = &self.statistics else { return Ok(None) };
        Ok(Some(PyBytes::new(py, &run(py, Some(1), || Ok(statistics.to_bytes()?))?)))
    }

    /// Takes statistics back from such bytes.
    fn set_statistics(&mut self, py: Python<'_>, bytes: &[u8]) -> Outcome<()> {
        let (model, params) = (&self.saved.model, &self.saved.params);
        self.statistics = Some(run(py, Some(1), || Ok(Statistics::from_bytes(bytes, model, params)?))?);
        Ok(())
    }
}
