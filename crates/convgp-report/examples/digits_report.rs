//! Trains a convolution plus RBF on the bundled digits and writes a report:
//! `cargo run --release -p convgp-report --example digits_report -- DIR`.

use convgp::cov::Fused;
use convgp::data::{Dataset, Targets};
use convgp::inspect::{Explainer, uncertainty};
use convgp::likelihood::Predictive;
use convgp::metrics::{error_rate, nlpp};
use convgp::model::Predictor;
use convgp::rng::Rng;
use convgp::train::{Control, Observer, TrainSpec, Trainer, Trigger};
use convgp::{Model, ModelSpec};
use convgp_data::out_of_distribution::{blank, noise};
use convgp_report::{CurvePoint, Evaluation, ModelView, Outliers, Report, RunCurves};
use std::error::Error;

const SPEC: &str = r#"
    image = { height = 28, width = 28 }
    likelihood = { type = "softmax", classes = 10 }
    [[components]]
    name = "conv"
    views = { type = "patches", patch = 5, located = true }
    weights = "learned"
    normalise = true
    kernel = { type = "rbf", variance = 50.0 }
    location = { type = "matern32", lengthscale = 3.0 }
    inducing = { count = 100 }
    [[components]]
    name = "rbf"
    views = { type = "image" }
    kernel = { type = "rbf" }
    inducing = { count = 50 }
"#;

#[allow(dead_code, reason = "the browser test uses the rest of this file")]
fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "report".into());
    let (train, test) = convgp_data::sample::mnist();
    let plan = TrainSpec { steps: 200, batch_size: 100, ..TrainSpec::default() };
    Ok(report("Digits", SPEC, &plan, &train, &test)?.write(dir.as_ref())?)
}

/// Trains the model of `spec` and gathers everything a report can show.
pub fn report(
    title: &str,
    spec: &str,
    plan: &TrainSpec,
    train: &Dataset,
    test: &Dataset,
) -> Result<Report, Box<dyn Error>> {
    let engine = Fused::<f32>::default();
    let (model, values) = Model::new(&ModelSpec::from_toml(spec)?, Some(train.images()), &mut Rng::new(0))?;
    let mut points = Vec::new();
    let mut trainer = Trainer::new(&model, &engine, train, plan, values)?;
    let measure = Observer::new(Trigger::Steps((plan.steps / 10).max(1)), |context| {
        let predictor = Predictor::new(context.model, &engine, context.params)?;
        points.push(CurvePoint {
            step: context.report.step,
            seconds: context.elapsed.as_secs_f64(),
            bound: context.report.bound.and_then(|b| b.elbo()),
            error: error_rate(&predictor.predict(test.images())?, test.targets()),
            rmse: None,
            nlpp: Some(nlpp(&predictor.log_density(test)?)),
        });
        Ok(())
    });
    trainer.run(|_| Control::Continue, &mut [measure])?;
    let values = trainer.into_params();

    let predictor = Predictor::new(&model, &engine, &values)?;
    let explainer = Explainer::new(&predictor)?;
    let rng = &mut Rng::new(1);
    let names = test.class_names();
    let inside = ModelView::new(&explainer, names, test.images(), &[0, 1], rng)?;
    let ordinary = uncertainty(&predictor, test.images(), 100, rng)?;
    let mut report = Report::new(title)
        .fact("training images", &train.len().to_string())
        .fact("test images", &test.len().to_string())
        .fact("steps", &plan.steps.to_string())
        .run(RunCurves { name: title.into(), points })
        .evaluation(evaluation(&predictor, test)?)
        .model(inside);
    let (shape, range) = (test.images().shape(), (0.0, 1.0));
    for (name, images) in [("blank", blank(shape, range, 100)?), ("noise", noise(shape, range, 100, 2)?)] {
        report =
            report.outliers(Outliers::new(name, &ordinary, &uncertainty(&predictor, &images, 100, rng)?)?);
    }
    Ok(report)
}

fn evaluation(predictor: &Predictor<'_, Fused>, test: &Dataset) -> Result<Evaluation, Box<dyn Error>> {
    let (Predictive::Classes { probabilities, .. }, Targets::Classes { labels, .. }) =
        (predictor.predict(test.images())?, test.targets())
    else {
        return Err("the report is about classes".into());
    };
    Ok(Evaluation::new(probabilities, labels.clone(), test.class_names().to_vec(), test.images().clone())?)
}
