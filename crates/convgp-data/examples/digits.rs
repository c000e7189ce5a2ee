//! A location-aware convolutional model on the bundled digits, in half a minute: the README's example.

use convgp::cov::Fused;
use convgp::metrics::{error_rate, nlpp};
use convgp::model::Predictor;
use convgp::rng::Rng;
use convgp::train::{Control, TrainSpec, Trainer};
use convgp::{Model, ModelSpec};

#[allow(clippy::print_stdout)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (train, test) = convgp_data::sample::mnist(); // 300 + 100 digits, built in
    let spec = ModelSpec::from_toml(
        r#"
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
        "#,
    )?;
    let engine = Fused::<f32>::default();
    let (model, values) = Model::new(&spec, Some(train.images()), &mut Rng::new(0))?;
    let plan = TrainSpec { steps: 200, batch_size: 100, ..TrainSpec::default() };
    let mut trainer = Trainer::new(&model, &engine, &train, &plan, values)?;
    trainer.run(|_| Control::Continue, &mut [])?;
    let values = trainer.into_params();

    let predictor = Predictor::new(&model, &engine, &values)?;
    let error = error_rate(&predictor.predict(test.images())?, test.targets()).unwrap_or(f64::NAN);
    println!("error {:.1} %, NLPP {:.3}", 100.0 * error, nlpp(&predictor.log_density(&test)?));
    Ok(())
}
