//! A report about a trained model.

use crate::{Evaluation, ModelView, Report, ReportError};
use convgp::FittedModel;
use convgp::cov::Fused;
use convgp::inspect::Explainer;
use convgp::likelihood::Predictive;
use convgp::metrics::DatasetEvaluation;
use convgp::rng::Rng;

/// Seed of the draws from the prior.
const SEED: u64 = 0;

impl Report {
    /// Adds the view into a model and, if there are any, results on images it was not trained on.
    pub fn trained(
        self,
        fitted: &FittedModel,
        evaluation: Option<&DatasetEvaluation>,
    ) -> Result<Self, ReportError> {
        let engine = Fused::<f32>::default();
        let (predictor, class_names) = (fitted.predictor(&engine)?, &fitted.class_names);
        let explainer = Explainer::new(&predictor)?;
        let Some(evaluation) = evaluation else {
            let report = self.fact("results", "none: no images at hand that were held out");
            return Ok(report.model(ModelView::without_images(&explainer, class_names)?));
        };
        let images = evaluation.data.images();
        let view =
            ModelView::new(&explainer, class_names, images, &telling(evaluation)?, &mut Rng::new(SEED))?;
        let report = self
            .model(view)
            .fact("results on", &format!("{} images: {}", evaluation.data.len(), evaluation.name));
        match (&evaluation.predictive, evaluation.classified()?) {
            (Predictive::Classes { probabilities, .. }, Some(c)) => {
                let names = evaluation.data.class_names().to_vec();
                let (labels, images) = (c.labels().to_vec(), images.clone());
                let files = evaluation.data.image_names().map(<[String]>::to_vec);
                let shown = Evaluation::new(probabilities.clone(), labels, names, images)?;
                Ok(report.evaluation(shown.with_image_names(files)?))
            }
            _ => Ok(report
                .fact("root mean square error", &evaluation.metrics.error_text())
                .fact("NLPP", &format!("{:.4}", evaluation.metrics.nlpp))),
        }
    }
}

/// Images whose evidence is shown: the first, and the mistake made with most confidence.
fn telling(evaluation: &DatasetEvaluation) -> Result<Vec<usize>, ReportError> {
    let Some(c) = evaluation.classified()? else { return Ok(vec![0]) };
    let (correct, confidences) = (c.correct(), c.confidences());
    let wrong = (1..c.len()).filter(|&n| !correct[n]);
    let worst = wrong.max_by(|&a, &b| confidences[a].total_cmp(&confidences[b]));
    Ok([0].into_iter().chain(worst).collect())
}
