//! Single against double precision of the fused engine on real images, at the default jitter.
//!
//! The bundled digits always run. With `CONVGP_DATA` pointing at a folder that holds `mnist` and `cifar10`, the same is
//! done at the size of the paper's experiments (M = 750); `cargo test -p convgp-cli --test precision -- --nocapture`
//! prints the errors.

use convgp::cov::{Fused, Lane};
use convgp::data::Dataset;
use convgp::model::Workspace;
use convgp::params::Params;
use convgp::rng::Rng;
use convgp::{Model, ModelSpec};

struct Case<'a> {
    name: &'a str,
    views: &'a str,
    extra: &'a str,
    inducing: usize,
    batch: usize,
}

/// Bound and gradient, by parameter array.
fn evaluate<T: Lane>(model: &Model, values: &Params, data: &Dataset, batch: usize) -> (f64, Vec<f64>) {
    let mut ws = Workspace::<Fused<T>>::default();
    let batch = data.batch(&(0..batch).collect::<Vec<_>>());
    let bound = model.elbo_and_grad(&Fused::default(), values, batch.of(data.len()), &mut ws).unwrap();
    (bound.elbo, ws.grad)
}

#[allow(clippy::print_stdout)]
fn compare(case: &Case<'_>, data: &Dataset) {
    let shape = data.images().shape();
    let text = format!(
        "image = {{ height = {}, width = {}, channels = {} }}
         likelihood = {{ type = 'robust-max', classes = 10 }}
         posterior = {{ structure = 'mean-field' }}
         [[components]]
         name = 'conv'
         views = {}
         weights = 'learned'
         normalise = true
         kernel = {{ type = 'rbf', variance = 20.0 }}
         {}
         inducing = {{ count = {} }}",
        shape.height(),
        shape.width(),
        shape.channels(),
        case.views,
        case.extra,
        case.inducing
    );
    let rng = &mut Rng::new(5);
    let (model, mut values) =
        Model::new(&ModelSpec::from_toml(&text).unwrap(), Some(data.images()), rng).unwrap();
    // Away from the start: means that matter and weights that differ.
    let q = model.variational().mean_slot().range();
    values[q].iter_mut().for_each(|m| *m = rng.normal());
    for response in model.components()[0].responses() {
        let weights = response.weights_slot().expect("weights are learned");
        weights.of_mut(&mut values).iter_mut().for_each(|w| *w += 0.3 * rng.normal());
    }
    let (single, single_grad) = evaluate::<f32>(&model, &values, data, case.batch);
    let (double, double_grad) = evaluate::<f64>(&model, &values, data, case.batch);
    let bound = ((single - double) / double).abs();
    println!("{}, M = {}: bound {bound:.1e}", case.name, case.inducing);
    assert!(bound < 1e-5, "{}: bounds {single} and {double}", case.name);
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
    for e in model.layout().entries() {
        let (a, b) = (e.slot.of(&single_grad), e.slot.of(&double_grad));
        let size = norm(&mut b.iter().copied());
        let error = norm(&mut a.iter().zip(b).map(|(a, b)| a - b)) / size;
        println!("    {:24} {error:.1e}", e.name);
        // With one component and robust-max the bound does not depend on the kernel's variance.
        if !e.name.ends_with("variance") {
            assert!(error < 1e-2, "{}: gradient in {} is off by {error:.1e}", case.name, e.name);
        }
    }
}

#[test]
fn bundled_digits() {
    let (train, _) = convgp_data::sample::mnist();
    let views = "{ type = 'patches', patch = [5, 5] }";
    compare(&Case { name: "digits", views, extra: "", inducing: 200, batch: 40 }, &train);
    let views = "{ type = 'patches', patch = [5, 5], located = true }";
    let extra = "location = { type = 'matern32', lengthscale = 3.0 }";
    compare(&Case { name: "digits, located", views, extra, inducing: 200, batch: 40 }, &train);
}

#[test]
#[allow(clippy::print_stdout)]
fn full_data_sets() {
    if std::env::var_os("CONVGP_DATA").is_none() {
        println!("skipped: CONVGP_DATA is not set");
        return;
    }
    let options = convgp_data::OpenOptions { limit: Some(2000), ..Default::default() };
    for (set, name, views) in [
        ("mnist", "MNIST, weighted", "{ type = 'patches', patch = [5, 5] }"),
        ("cifar10", "CIFAR-10, pooled", "{ type = 'patches', patch = [5, 5] }"),
        ("cifar10", "CIFAR-10, colour patches", "{ type = 'patches', patch = [5, 5], channels = 'all' }"),
        ("cifar10", "CIFAR-10, multi-channel", "{ type = 'patches', patch = [5, 5], channels = 'each' }"),
    ] {
        let loaded = convgp_data::registry::open_named(set, None, &options).unwrap();
        let train = loaded.train().expect("both sets have a training split");
        compare(&Case { name, views, extra: "", inducing: 750, batch: 40 }, train);
    }
}
