//! A kernel from outside the crate, twice: as a radial function, which gets lengthscales, slices, sums, products and
//! every engine; and as any covariance function, which only needs a value and its pullback.
//!
//! `cargo run --example new_kernel`

#![allow(clippy::print_stdout)]

use convgp::component::{ComponentParts, ImageNorm};
use convgp::cov::Reference;
use convgp::data::{Dataset, ImageShape, Images, Pixels, Targets};
use convgp::kernel::{Dims, Kernel, KernelError, PairBar, Radial, Stationary, check_kernel};
use convgp::likelihood::LikelihoodSpec;
use convgp::linalg::dot;
use convgp::model::{Jitter, PosteriorSpec, Weights, Workspace};
use convgp::params::ParamInit;
use convgp::real::Real;
use convgp::rng::Rng;
use convgp::views::{Channels, Windows};
use convgp::{Model, ModelSpec};
use std::sync::Arc;

/// The rational quadratic function with exponent 1, `1 / (1 + s / 2)`: heavier tails than the RBF.
#[derive(Debug, Clone, Copy)]
struct RationalQuadratic;

impl Radial for RationalQuadratic {
    const SMOOTH: bool = true;

    fn value_and_slope<T: Real>(s: T) -> (T, T) {
        let v = T::from_f64(1.0) / (T::from_f64(1.0) + s * T::from_f64(0.5));
        (v, v * v * T::from_f64(-0.5))
    }
}

/// `variance (a . b + offset)^2`, which is not a function of a distance.
#[derive(Debug)]
struct Quadratic;

impl Kernel for Quadratic {
    fn parameters(&self) -> Vec<ParamInit> {
        vec![ParamInit::positive("variance", 0.1), ParamInit::positive("offset", 1.0)]
    }
    fn check_len(&self, _len: usize) -> Result<(), KernelError> {
        Ok(())
    }
    fn value(&self, theta: &[f64], a: &[f64], b: &[f64]) -> f64 {
        theta[0] * (dot(a, b) + theta[1]).powi(2)
    }
    fn pullback(&self, theta: &[f64], a: &[f64], b: &[f64], g: f64, bar: &mut PairBar) {
        let inner = dot(a, b) + theta[1];
        bar.theta[0] += g * inner * inner;
        bar.theta[1] += g * theta[0] * 2.0 * inner;
        if let Some(b_bar) = bar.b.as_deref_mut() {
            b_bar.iter_mut().zip(a).for_each(|(bar, a)| *bar += g * theta[0] * 2.0 * inner * a);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let radial = Stationary::new(&RationalQuadratic, Dims::all(6), 1.0, 0.8);
    let kernels: [(&str, Arc<dyn Kernel>); 2] =
        [("rational quadratic", Arc::new(radial)), ("quadratic", Arc::new(Quadratic))];
    let data = random_images()?;
    for (name, kernel) in kernels {
        check_kernel(kernel.as_ref(), 6, 1)?;
        let windows = Windows::new(data.images().shape(), (3, 2), (1, 1), Channels::All)?;
        let mut rng = Rng::new(2);
        let parts = ComponentParts {
            name: "conv".into(),
            kernel,
            views: vec![Arc::new(windows)],
            weights: Weights::Learned,
            pooling: None,
            image_norm: ImageNorm::None,
            normalise: true,
            white: None,
            z: (0..8 * 6).map(|_| rng.uniform()).collect(),
        };
        let spec = ModelSpec {
            image: data.images().shape(),
            likelihood: LikelihoodSpec::probit(),
            posterior: PosteriorSpec::default(),
            jitter: Jitter::default(),
            augmentation: None,
            components: Vec::new(), // made by hand above
        };
        let likelihood = spec.likelihood.build()?;
        let (model, values) = Model::from_parts(spec, vec![parts], likelihood)?;
        let (batch, mut ws) = (data.batch(&[0, 1, 2, 3]), Workspace::default());
        let bound = model.elbo_and_grad(&Reference, &values, batch.of(data.len()), &mut ws)?;
        println!("{name}: keeps the contract; bound {:.3}, {} derivatives", bound.elbo, ws.grad.len());
    }
    Ok(())
}

fn random_images() -> Result<Dataset, convgp::Error> {
    let mut rng = Rng::new(1);
    let pixels = (0..20 * 30).map(|_| rng.uniform()).collect();
    let images = Images::new(ImageShape::new(6, 5, 1)?, Pixels::F64(pixels))?;
    Ok(Dataset::new(images, Targets::classes((0..20).map(|n| n % 2).collect(), 2)?)?)
}

#[test]
fn runs() {
    main().unwrap();
}
