//! A likelihood from outside the crate: regression with Student-t noise, which forgives outliers. A log density and its
//! slope are enough; quadrature, derivatives and prediction follow.
//!
//! `cargo run --example new_likelihood`

#![allow(clippy::print_stdout)]

use convgp::cov::Reference;
use convgp::data::{Dataset, Images, Pixels, Targets};
use convgp::likelihood::{ConditionalMoments, Predictive, Real, ScalarLogDensity, check_likelihood};
use convgp::model::{Predictor, Workspace};
use convgp::params::ParamInit;
use convgp::rng::Rng;
use convgp::{Model, ModelSpec};
use std::f64::consts::PI;

/// `y = f + scale t`, `t` Student-t with 4 degrees of freedom, `scale` learned:
/// `log p = log(3 / 8) - log scale - 5/2 log(1 + r^2 / 4)`, `r = (y - f) / scale`.
#[derive(Debug)]
struct StudentT;

const FREEDOM: f64 = 4.0;

impl ScalarLogDensity for StudentT {
    type Target = f64;

    fn log_density_and_slope(&self, theta: &[f64], f: f64, y: f64) -> (f64, f64) {
        let (scale, r) = (theta[0], (y - f) / theta[0]);
        let value = (3.0f64 / 8.0).ln() - scale.ln() - 2.5 * (r * r / FREEDOM).ln_1p();
        (value, 5.0 * r / (FREEDOM + r * r) / scale)
    }
    fn parameters(&self) -> Vec<ParamInit> {
        vec![ParamInit::positive("scale", 0.5)]
    }
    fn add_theta_slope(&self, theta: &[f64], f: f64, y: f64, by: f64, theta_bar: &mut [f64]) {
        let r = (y - f) / theta[0];
        theta_bar[0] += by * (5.0 * r * r / (FREEDOM + r * r) - 1.0) / theta[0];
    }
}

impl ConditionalMoments for StudentT {
    fn mean_and_var(&self, theta: &[f64], f: f64) -> (f64, f64) {
        (f, theta[0] * theta[0] * FREEDOM / (FREEDOM - 2.0))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    check_likelihood(&Real(StudentT), &[0.7], &Targets::real(vec![0.3, -1.2, 8.0])?, 1e-12)?;

    // Components come from a spec as usual; only the likelihood is ours.
    let spec = ModelSpec::from_toml(
        r#"
        image = { height = 6, width = 5 }
        likelihood = { type = "gaussian" } # not used
        [[components]]
        views = { type = "patches", patch = [3, 2] }
        weights = "learned"
        kernel = { type = "rbf" }
        inducing = { count = 8 }
        "#,
    )?;
    let mut rng = Rng::new(1);
    let images = Images::new(spec.image, Pixels::F64((0..20 * 30).map(|_| rng.uniform()).collect()))?;
    let targets = Targets::real((0..20).map(|n| (f64::from(n) * PI / 7.0).sin()).collect())?;
    let data = Dataset::new(images, targets)?;
    let (model, values) =
        Model::with_likelihood(&spec, Box::new(Real(StudentT)), Some(data.images()), &mut rng)?;
    let (batch, mut ws) = (data.batch(&[0, 1, 2, 3]), Workspace::default());
    let bound = model.elbo_and_grad(&Reference, &values, batch.of(data.len()), &mut ws)?;
    let slope = model.layout().entry("likelihood.scale")?.slot.of(&ws.grad)[0];
    println!("keeps the contract; bound {:.3}, derivative in the scale {slope:.3}", bound.elbo);
    let predictor = Predictor::new(&model, &Reference, &values)?;
    if let Predictive::Real { mean, var } = predictor.predict(data.images())? {
        println!("first image: {:.3} with variance {:.3}", mean[0], var[0]);
    }
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
