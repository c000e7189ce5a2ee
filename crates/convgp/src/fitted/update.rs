//! Closed-form models to which images are added, or from which some are removed.

use super::FittedModel;
use crate::Result;
use crate::closed_form::{Options, Precision, Statistics, StatisticsError, Summary};
use crate::cov::Fused;
use crate::data::Dataset;
use std::sync::Arc;

impl FittedModel {
    /// Adds images to the model and then removes some: it becomes the one that a fit to the changed set gives, with the
    /// same kernels and inducing inputs. Takes the statistics it was solved from and gives back the new ones; after an
    /// error the model is the old one. An answer rule is dropped: it says nothing about the new model.
    pub fn update(
        &mut self,
        mut statistics: Statistics,
        added: Option<&Dataset>,
        removed: Option<&Dataset>,
    ) -> Result<(Statistics, Summary)> {
        let (model, params, engine) = (&self.model, &self.params, Fused::<f32>::default());
        if !model.is_closed_form() {
            return Err(StatisticsError::Steps.into());
        }
        if statistics.model != model.identity(params) {
            let what = "its kernels or inducing inputs have changed since; fit it again".into();
            return Err(StatisticsError::OtherModel { what }.into());
        }
        if let Some(data) = added {
            model.add_to_statistics(&engine, params, data, 0, &mut statistics, &mut |_, _| true)?;
        }
        if let Some(data) = removed {
            model.remove_from_statistics(&engine, params, data, &mut statistics)?;
        }
        if statistics.is_empty() {
            return Err(StatisticsError::NothingLeft.into());
        }
        let (model, mut params) = model.resized(params, &statistics)?;
        let options = Options { precision: Precision::Double, ..Options::default() };
        let summary = model.solve(&mut params, statistics.clone(), &options)?;
        (self.model, self.params, self.answer_rule) = (Arc::new(model), params, None);
        Ok((statistics, summary))
    }
}
