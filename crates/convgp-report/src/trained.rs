//! A report about a trained model.

use crate::{Evaluation, ModelView, Report, ReportError};
use convgp::Model;
use convgp::cov::Fused;
use convgp::inspect::Explainer;
use convgp::likelihood::Predictive;
use convgp::metrics::Judged;
use convgp::model::Predictor;
use convgp::rng::Rng;

/// Seed of the draws from the prior.
const SEED: u64 = 0;

impl Report {
    /// Adds the view into a model and, if there are any, results on images it was not trained on.
    pub fn trained(
        self,
        model: &Model,
        values: &[f64],
        class_names: &[String],
        judged: Option<&Judged>,
    ) -> Result<Self, ReportError> {
        let engine = Fused::<f32>::default();
        let predictor = Predictor::new(model, &engine, values)?;
        let explainer = Explainer::new(&predictor)?;
        let Some(judged) = judged else {
            let report = self.fact("results", "none: no images at hand that were held out");
            return Ok(report.model(ModelView::without_images(&explainer, class_names)?));
        };
        let images = judged.data.images();
        let view = ModelView::new(&explainer, class_names, images, &telling(judged)?, &mut Rng::new(SEED))?;
        let report =
            self.model(view).fact("results on", &format!("{} images: {}", judged.data.len(), judged.name));
        match (&judged.predictive, judged.classified()?) {
            (Predictive::Classes { probabilities, .. }, Some(c)) => {
                let names = judged.data.class_names().to_vec();
                let (labels, images) = (c.labels().to_vec(), images.clone());
                Ok(report.evaluation(Evaluation::new(probabilities.clone(), labels, names, images)?))
            }
            _ => Ok(report
                .fact("root mean square error", &judged.figures.error_text())
                .fact("NLPP", &format!("{:.4}", judged.figures.nlpp))),
        }
    }
}

/// Images whose evidence is shown: the first, and the mistake made with most confidence.
fn telling(judged: &Judged) -> Result<Vec<usize>, ReportError> {
    let Some(c) = judged.classified()? else { return Ok(vec![0]) };
    let (correct, confidences) = (c.correct(), c.confidences());
    let wrong = (1..c.len()).filter(|&n| !correct[n]);
    let worst = wrong.max_by(|&a, &b| confidences[a].total_cmp(&confidences[b]));
    Ok([0].into_iter().chain(worst).collect())
}
