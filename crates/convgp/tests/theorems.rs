//! What theory promises, on small random problems: bounds, optima, ranks.

mod common;

use common::{
    Setup, assert_close, eigenvalues, factor, log_normal, noise_images, rectangles, times, transposed,
};
use convgp::cov::{Reference, exact_covariance};
use convgp::data::{Batch, Dataset, ImageShape, Images, Pixels, Targets};
use convgp::linalg::{Mat, dot, solve_lower};
use convgp::model::Workspace;
use convgp::rng::Rng;
use convgp::variational::Form;
use convgp::{Model, ModelSpec};

fn components(kind: usize) -> &'static str {
    [
        "[[components]]\nviews = { type = 'image' }\nkernel = { type = 'rbf', lengthscale = 1.9 }\ninducing = { count = 4 }",
        "[[components]]\nviews = { type = 'patches', patch = [3, 2] }\nkernel = { type = 'rbf', variance = 0.3 }\ninducing = { count = 5 }",
        "[[components]]\nviews = { type = 'patches', patch = [2, 2] }\nweights = 'learned'\nwhite = 0.1\nkernel = { type = 'matern32' }\ninducing = { count = 4 }
         [[components]]\nviews = { type = 'image' }\nkernel = { type = 'rbf', lengthscale = 1.9 }\ninducing = { count = 3 }",
        "[[components]]\nviews = { type = 'patches', patch = [2, 3], located = true }\nweights = 'learned'\nnormalise = true\nkernel = { type = 'rbf' }\nlocation = { type = 'matern12', lengthscale = 3.0 }\ninducing = { count = 5 }",
    ][kind]
}

fn regression(kind: usize, count: usize, fields: &str, seed: u64) -> Setup {
    let text = format!(
        "image = {{ height = 4, width = 3 }}\nlikelihood = {{ type = 'gaussian', variance = 0.3 }}\njitter = {{ relative = 1e-8 }}\n{fields}\n{}",
        components(kind)
    );
    Setup::new(&text, count, seed)
}

fn real(targets: &Targets) -> &[f64] {
    match targets {
        Targets::Real(y) => y,
        Targets::Classes { .. } => unreachable!("a regression problem"),
    }
}

/// `log N(y; 0, sum_c K_c + s2 I)`, every covariance a literal double sum over views.
fn exact_evidence(setup: &Setup) -> f64 {
    let (batch, y) = (setup.full_batch(), real(setup.data.targets()));
    let noise = setup.model.likelihood_theta(&setup.values)[0];
    let mut k = Mat::from_fn(y.len(), y.len(), |i, j| if i == j { noise } else { 0.0 });
    for c in setup.model.components() {
        let part = exact_covariance(c, &setup.values, &batch);
        k.data_mut().iter_mut().zip(part.data()).for_each(|(k, p)| *k += p);
    }
    log_normal(&k, y)
}

fn full_bound(setup: &Setup, ws: &mut Workspace<Reference>) -> f64 {
    let count = setup.data.len();
    setup.model.elbo_and_grad(&Reference, &setup.values, setup.full_batch().of(count), ws).unwrap().elbo
}

/// One natural step of size one from the full batch.
fn natural_step(setup: &mut Setup, ws: &mut Workspace<Reference>) {
    setup.model.set_form(Form::Natural, &mut setup.values).unwrap();
    full_bound(setup, ws);
    setup.model.natural_step(1.0, None, ws, &mut setup.values);
}

#[test]
fn the_bound_is_below_the_evidence() {
    let mut ws = Workspace::default();
    for seed in 0..40 {
        for structure in ["full", "mean-field"] {
            let fields = format!("posterior = {{ structure = '{structure}' }}");
            let mut setup = regression(seed as usize % 4, 6, &fields, seed);
            let evidence = exact_evidence(&setup);
            let bound = full_bound(&setup, &mut ws);
            assert!(bound < evidence, "seed {seed}: bound {bound}, evidence {evidence}");
            natural_step(&mut setup, &mut ws);
            let best = full_bound(&setup, &mut ws);
            assert!(bound < best && best <= evidence + 1e-9, "seed {seed}: {bound}, {best}, {evidence}");
        }
    }
}

/// For Gaussian noise one natural step of size one from the full batch reaches the optimum: the gradient in `q`
/// vanishes and the bound is the collapsed one, `log N(y; 0, Q + s2 I) - tr(K - Q) / (2 s2)`, `Q = A^T A`.
#[test]
fn a_full_natural_step_is_the_collapsed_optimum() {
    for (kind, seed) in [(0, 1), (1, 2), (2, 3), (3, 4)] {
        let (mut setup, mut ws) = (regression(kind, 9, "", seed), Workspace::default());
        natural_step(&mut setup, &mut ws);
        let bound = full_bound(&setup, &mut ws);
        assert_close(bound, collapsed(&setup, &ws), 1e-9);

        setup.model.set_form(Form::Covariance, &mut setup.values).unwrap();
        assert_close(full_bound(&setup, &mut ws), bound, 1e-10);
        let q = setup.model.variational().slot();
        let largest = |v: &[f64]| v.iter().fold(0.0_f64, |a, x| a.max(x.abs()));
        let rest = largest(&ws.grad[..q.range().start]);
        assert!(
            largest(q.of(&ws.grad)) < 1e-8 * rest,
            "{:e} in q, {rest:e} elsewhere",
            largest(q.of(&ws.grad))
        );
        // A second step stays there.
        let before = setup.values.clone();
        natural_step(&mut setup, &mut ws);
        setup.model.set_form(Form::Covariance, &mut setup.values).unwrap();
        for (a, b) in before.iter().zip(&*setup.values) {
            assert_close(*b, *a, 1e-9);
        }
    }
}

fn collapsed(setup: &Setup, ws: &Workspace<Reference>) -> f64 {
    let (y, noise) = (real(setup.data.targets()), setup.model.likelihood_theta(&setup.values)[0]);
    let n = y.len();
    let (mut k, mut trace) = (Mat::from_fn(n, n, |i, j| if i == j { noise } else { 0.0 }), 0.0);
    for (kuu, cov) in ws.kuu().iter().zip(ws.cov()) {
        let mean_diagonal = (0..kuu.rows()).map(|i| kuu[(i, i)]).sum::<f64>() / kuu.rows() as f64;
        let l = factor(kuu, 1e-8 * mean_diagonal);
        for (kuf, kff) in cov.kuf.iter().zip(&cov.kff) {
            let mut a = kuf.clone();
            solve_lower(l.view(), a.view_mut());
            let q = times(&transposed(&a), &a);
            k.data_mut().iter_mut().zip(q.data()).for_each(|(k, q)| *k += q);
            trace += (0..n).map(|i| kff[i] - q[(i, i)]).sum::<f64>();
        }
    }
    log_normal(&k, y) - trace / (2.0 * noise)
}

/// Adding inducing inputs never lowers the best bound.
#[test]
fn more_inducing_inputs_do_not_hurt() {
    let best = |count: usize, z: &[f64]| {
        let text = format!(
            "image = {{ height = 4, width = 3 }}\nlikelihood = {{ type = 'gaussian', variance = 0.3 }}\njitter = {{ relative = 1e-8 }}
             [[components]]\nviews = {{ type = 'patches', patch = [3, 2] }}\nweights = 'learned'\nkernel = {{ type = 'rbf' }}\ninducing = {{ count = {count}, init = 'uniform' }}"
        );
        let (model, mut values) =
            Model::new(&ModelSpec::from_toml(&text).unwrap(), None, &mut Rng::new(0)).unwrap();
        model.layout().set(&mut values, "component-0.z", &z[..count * 6]).unwrap();
        let mut rng = Rng::new(5);
        let images = noise_images(model.spec().image, 10, &mut rng);
        let targets = Targets::real((0..10).map(|_| rng.normal()).collect()).unwrap();
        let mut setup = Setup { model, values, data: Dataset::new(images, targets).unwrap() };
        let mut ws = Workspace::default();
        natural_step(&mut setup, &mut ws);
        full_bound(&setup, &mut ws)
    };
    let mut rng = Rng::new(6);
    let z: Vec<f64> = (0..8 * 6).map(|_| rng.uniform()).collect();
    let bounds: Vec<f64> = [1, 2, 4, 6, 8].iter().map(|&m| best(m, &z)).collect();
    assert!(bounds.windows(2).all(|b| b[1] >= b[0] - 1e-9), "{bounds:?}");
    assert!(bounds[4] > bounds[0] + 1e-3, "{bounds:?}");
}

/// `n` images of 6 x 5 pixels and the covariance of a component's `f` at them.
fn covariance(component: &str, pixels: Vec<f64>, weights: Option<&dyn Fn(usize) -> f64>) -> Mat {
    let text = format!(
        "image = {{ height = 6, width = 5 }}\nlikelihood = {{ type = 'probit' }}\n[[components]]\n{component}\ninducing = {{ count = 2, init = 'uniform' }}"
    );
    let (model, mut values) =
        Model::new(&ModelSpec::from_toml(&text).unwrap(), None, &mut Rng::new(0)).unwrap();
    if let (Some(w), Some(slot)) = (weights, model.components()[0].responses()[0].weights_slot()) {
        slot.of_mut(&mut values).iter_mut().enumerate().for_each(|(p, v)| *v = w(p));
    }
    let images = Images::new(ImageShape::new(6, 5, 1).unwrap(), Pixels::F64(pixels)).unwrap();
    let all: Vec<usize> = (0..images.count()).collect();
    exact_covariance(&model.components()[0], &values, &Batch::of_images(&images, &all))
}

/// All 30 images with one lit pixel.
fn single_pixels() -> Vec<f64> {
    (0..30 * 30).map(|i| if i / 30 == i % 30 { 1.0 } else { 0.0 }).collect()
}

const CONV: &str = "views = { type = 'patches', patch = [3, 2] }\nweights = 'learned'\nkernel = { type = 'rbf', lengthscale = 0.7 }";
const RBF: &str = "views = { type = 'image' }\nkernel = { type = 'rbf', lengthscale = 0.7 }";

fn rank(k: &Mat) -> usize {
    let values = eigenvalues(k);
    values.iter().filter(|v| **v > 1e-12 * values[0]).count()
}

/// Images with one lit pixel show `w h + 1` different patches, the blank one among them: `f` lives in the span of as many
/// numbers `g(patch)`, however many images there are. Given `g(blank)` there are `w h`, the count of the paper's appendix B.
#[test]
fn convolution_has_low_rank_on_single_pixels() {
    for seed in 0..5 {
        let mut rng = Rng::new(seed);
        let weights: Vec<f64> = (0..16).map(|_| rng.normal()).collect();
        let k = covariance(CONV, single_pixels(), Some(&|p| weights[p]));
        assert!(rank(&k) <= 3 * 2 + 1, "{:?}", eigenvalues(&k));
        assert_eq!(rank(&given_blank(&k, &weights)), 3 * 2);
        assert!(rank(&covariance(CONV, single_pixels(), None)) <= 3 * 2 + 1);
    }
}

/// The covariance of `f` at the single-pixel images given `g(blank)`.
fn given_blank(k: &Mat, weights: &[f64]) -> Mat {
    // A blank image is a 31st one: f(blank) = sum(w) g(blank).
    let mut pixels = single_pixels();
    pixels.extend([0.0; 30]);
    let all = covariance(CONV, pixels, Some(&|p| weights[p]));
    let variance = all[(30, 30)];
    Mat::from_fn(30, 30, |i, j| k[(i, j)] - all[(i, 30)] * all[(j, 30)] / variance)
}

/// Adding an RBF component makes all of them distinguishable.
#[test]
fn convolution_plus_rbf_is_strictly_positive_definite() {
    let mut rng = Rng::new(9);
    let weights: Vec<f64> = (0..16).map(|_| rng.normal()).collect();
    let conv = covariance(CONV, single_pixels(), Some(&|p| weights[p]));
    let rbf = covariance(RBF, single_pixels(), None);
    let sum = Mat::from_fn(30, 30, |i, j| conv[(i, j)] + rbf[(i, j)]);
    let values = eigenvalues(&sum);
    assert!(values[29] > 1e-3 * rbf[(0, 0)], "{values:?}");
}

/// Any number of images that differ in their top-left patch and are blank elsewhere: the kernel matrix has full rank, so
/// the model is nonparametric.
#[test]
fn distinct_corners_are_strictly_positive_definite() {
    for count in [5, 20, 40] {
        let mut rng = Rng::new(count as u64);
        let mut pixels = vec![0.0; count * 30];
        for image in pixels.chunks_exact_mut(30) {
            for row in 0..3 {
                for col in 0..2 {
                    image[row * 5 + col] = rng.uniform();
                }
            }
        }
        let kernel = CONV.replace("0.7", "0.3");
        let weights: Vec<f64> = (0..16).map(|_| 0.5 + rng.uniform()).collect();
        for weights in [None, Some(&weights)] {
            let k = match weights {
                Some(w) => covariance(&kernel, pixels.clone(), Some(&|p| w[p])),
                None => covariance(&kernel, pixels.clone(), None),
            };
            assert_eq!(rank(&k), count);
            factor(&k, 0.0);
        }
    }
}

/// All 3 x 3 patches of the rectangles data: with them as inducing inputs nothing about `g` is left out, so the conditional
/// variance vanishes and the bound reaches the evidence.
#[test]
fn rectangles_are_represented_exactly_by_their_35_patches() {
    let data = rectangles(2000, &mut Rng::new(0));
    let z = distinct_patches(&data);
    assert_eq!(z.len(), 35 * 9);
    let text = "
        image = { height = 28, width = 28 }
        likelihood = { type = 'gaussian', variance = 0.5 }
        jitter = { relative = 1e-12 }
        [[components]]
        views = { type = 'patches', patch = 3 }
        weights = 'learned'
        normalise = true
        kernel = { type = 'rbf', variance = 30.0, lengthscale = 1.3 }
        inducing = { count = 35, init = 'uniform' }
    ";
    let mut rng = Rng::new(1);
    let (model, mut values) = Model::new(&ModelSpec::from_toml(text).unwrap(), None, &mut rng).unwrap();
    model.layout().set(&mut values, "component-0.z", &z).unwrap();
    let slot = model.layout().entry("component-0.weights").unwrap().slot;
    slot.of_mut(&mut values).iter_mut().for_each(|w| *w = rng.normal());
    let images = data.images().select(&(0..6).collect::<Vec<_>>()).unwrap();
    let targets = Targets::real((0..6).map(|_| rng.normal()).collect()).unwrap();
    let mut setup = Setup { model, values, data: Dataset::new(images, targets).unwrap() };
    let mut ws = Workspace::default();
    natural_step(&mut setup, &mut ws);
    let bound = full_bound(&setup, &mut ws);

    let (kuu, cov) = (&ws.kuu()[0], &ws.cov()[0]);
    let l = factor(kuu, 0.0);
    let mut a = cov.kuf[0].clone();
    solve_lower(l.view(), a.view_mut());
    for n in 0..6 {
        let (prior, left) = (cov.kff[0][n], cov.kff[0][n] - dot(a.col(n), a.col(n)));
        assert!(left.abs() < 1e-10 * prior, "image {n}: {left:e} of {prior} is left");
    }
    assert_close(bound, exact_evidence(&setup), 1e-9);
}

/// Every 3 x 3 patch that occurs, once, one after the other.
fn distinct_patches(data: &Dataset) -> Vec<f64> {
    let mut seen = std::collections::BTreeSet::new();
    let mut image = vec![0.0; 28 * 28];
    for n in 0..data.len() {
        data.images().write_image(n, &mut image);
        for row in 0..26 {
            for col in 0..26 {
                let lit = |i: usize| image[(row + i / 3) * 28 + col + i % 3] > 0.5;
                seen.insert((0..9).map(lit).collect::<Vec<bool>>());
            }
        }
    }
    seen.iter().flatten().map(|&lit| f64::from(u8::from(lit))).collect()
}

/// With whitened `q`, one component and robust-max the kernel variance scales all latents alike, which their order does
/// not notice: the bound does not depend on it. Two components share this only for a common factor.
#[test]
fn robust_max_does_not_see_the_scale_of_the_latents() {
    let text = |jitter: &str, components: &str| {
        format!(
            "image = {{ height = 4, width = 3 }}\nlikelihood = {{ type = 'robust-max', classes = 3 }}\njitter = {{ {jitter} }}\n{components}"
        )
    };
    let mut ws = Workspace::default();
    // Jitter that is relative to the diagonal scales with it; one that is absolute leaves a trace of its own size.
    for (jitter, tolerance) in [("relative = 1e-4", 1e-12), ("absolute = 1e-9", 1e-7)] {
        let setup = Setup::new(&text(jitter, components(1)), 8, 3);
        full_bound(&setup, &mut ws);
        let at = |name: &str| setup.model.layout().entry(name).unwrap().slot.range().start;
        let slope = ws.grad[at("component-0.kernel.variance")];
        let other = ws.grad[at("component-0.kernel.lengthscale")];
        assert!(slope.abs() < tolerance * other.abs(), "{slope:e} beside {other:e}");
    }
    let two = format!("{}\n{}", components(1), components(0));
    let setup = Setup::new(&text("relative = 1e-4", &two), 8, 3);
    full_bound(&setup, &mut ws);
    let slopes: Vec<f64> = setup
        .model
        .components()
        .iter()
        .map(|c| c.theta(&setup.values)[0] * c.theta_slot().of(&ws.grad)[0])
        .collect();
    assert!(slopes[0].abs() > 1e-2 && (slopes[0] + slopes[1]).abs() < 1e-10, "{slopes:?}");
}
