//! Models that must agree because they are the same model said in two ways.

mod common;

use common::{Setup, assert_all_close, assert_close, factor, log_normal, noise_images, times, transposed};
use convgp::cov::{Reference, exact_covariance, exact_cross_covariance};
use convgp::data::{Batch, Images};
use convgp::likelihood::Predictive;
use convgp::linalg::{Mat, dot, solve_lower};
use convgp::model::{Bound, Predictor, Workspace};
use convgp::params::Params;
use convgp::params::{packed_column, packed_len};
use convgp::rng::Rng;
use convgp::variational::Form;
use convgp::{Model, ModelSpec};

const RBF: &str = "
    [[components]]
    name = 'rbf'
    views = { type = 'image' }
    kernel = { type = 'rbf', variance = 1.2, lengthscale = 1.9 }
    inducing = { count = 4 }
";
const WEIGHTED: &str = "
    [[components]]
    name = 'conv'
    views = { type = 'patches', patch = [3, 2] }
    weights = 'learned'
    kernel = { type = 'rbf', variance = 0.9, lengthscale = 1.1 }
    inducing = { count = 5 }
";
const LOCATED: &str = "
    [[components]]
    name = 'located'
    views = { type = 'patches', patch = [2, 3], located = true }
    kernel = { type = 'matern52', lengthscale = 1.1 }
    location = { type = 'matern32', lengthscale = 2.0 }
    inducing = { count = 3 }
";

fn spec(likelihood: &str, fields: &str, components: &[&str]) -> String {
    format!(
        "image = {{ height = 5, width = 4 }}\nlikelihood = {{ {likelihood} }}\njitter = {{ relative = 1e-6 }}\n{fields}\n{}",
        components.concat()
    )
}

fn build(text: &str, images: &Images) -> (Model, Params) {
    Model::new(&ModelSpec::from_toml(text).unwrap(), Some(images), &mut Rng::new(1)).unwrap()
}

fn bound_and_gradient(model: &Model, values: &Params, batch: &Batch) -> (Bound, Vec<f64>) {
    let mut ws = Workspace::<Reference>::default();
    let bound = model.elbo_and_grad(&Reference, values, batch.of(2 * batch.len()), &mut ws).unwrap();
    (bound, ws.grad)
}

/// Copies every parameter of one model into another, under a changed name; those that are missing there or have another
/// size stay.
fn copy(from: (&Model, &[f64]), to: (&Model, &mut [f64]), rename: impl Fn(&str) -> String) {
    for e in from.0.layout().entries() {
        if let Ok(target) = to.0.layout().entry(&rename(&e.name))
            && target.slot.len() == e.slot.len()
        {
            to.0.layout().set(to.1, &target.name, e.slot.of(from.1)).unwrap();
        }
    }
}

#[test]
fn a_patch_as_large_as_the_image_is_the_rbf_model() {
    let rbf = Setup::new(&spec("type = 'probit'", "", &[RBF]), 7, 2);
    let conv = RBF.replace("type = 'image'", "type = 'patches', patch = [5, 4]");
    let (model, _) = build(&spec("type = 'probit'", "", &[&conv]), rbf.data.images());
    let batch = rbf.full_batch();
    assert_eq!(
        bound_and_gradient(&model, &rbf.values, &batch),
        bound_and_gradient(&rbf.model, &rbf.values, &batch)
    );
}

#[test]
fn weights_of_one_are_the_invariant_model() {
    let invariant = WEIGHTED.replace("weights = 'learned'", "");
    let plain = Setup::new(&spec("type = 'probit'", "", &[&invariant, RBF]), 7, 3);
    let (model, mut values) = build(&spec("type = 'probit'", "", &[WEIGHTED, RBF]), plain.data.images());
    copy((&plain.model, &plain.values), (&model, &mut values), str::to_owned);
    assert!(model.layout().entry("conv.weights").unwrap().slot.of(&values).iter().all(|w| *w == 1.0));
    let batch = plain.full_batch();
    let (bound, gradient) = bound_and_gradient(&model, &values, &batch);
    let (expected, expected_gradient) = bound_and_gradient(&plain.model, &plain.values, &batch);
    assert_eq!(bound, expected);
    for e in plain.model.layout().entries() {
        let here = model.layout().entry(&e.name).unwrap().slot;
        assert_eq!(here.of(&gradient), e.slot.of(&expected_gradient), "{}", e.name);
    }
}

#[test]
fn normalising_is_dividing_the_weights() {
    let normalised = format!("{WEIGHTED}normalise = true\n");
    let setup = Setup::new(&spec("type = 'probit'", "", &[&normalised]), 6, 4);
    let (model, _) = build(&spec("type = 'probit'", "", &[WEIGHTED]), setup.data.images());
    let mut values = setup.values.clone();
    let slot = model.layout().entry("conv.weights").unwrap().slot;
    slot.of_mut(&mut values).iter_mut().for_each(|w| *w /= 9.0);
    let batch = setup.full_batch();
    let (bound, mut gradient) = bound_and_gradient(&model, &values, &batch);
    let (expected, expected_gradient) = bound_and_gradient(&setup.model, &setup.values, &batch);
    slot.of_mut(&mut gradient).iter_mut().for_each(|g| *g /= 9.0);
    assert_close(bound.elbo, expected.elbo, 1e-12);
    assert_all_close(&gradient, &expected_gradient, 1e-11);
}

#[test]
fn places_that_matter_little_are_plain_convolution() {
    let far = LOCATED.replace("lengthscale = 2.0", "lengthscale = 1e7").replace("matern32", "rbf");
    let located = Setup::new(&spec("type = 'probit'", "", &[&far]), 6, 5);
    let plain = LOCATED
        .replace(", located = true", "")
        .replace("location = { type = 'matern32', lengthscale = 2.0 }", "");
    let (model, mut values) = build(&spec("type = 'probit'", "", &[&plain]), located.data.images());
    copy((&located.model, &located.values), (&model, &mut values), |name| {
        name.replace("kernel.0.", "kernel.")
    });
    let z = located.model.components()[0].z_slot().of(&located.values);
    let pixels: Vec<f64> = z.chunks_exact(8).flat_map(|z| z[..6].to_vec()).collect();
    model.layout().set(&mut values, "located.z", &pixels).unwrap();
    let batch = located.full_batch();
    let (bound, _) = bound_and_gradient(&model, &values, &batch);
    let (expected, _) = bound_and_gradient(&located.model, &located.values, &batch);
    assert_close(bound.elbo, expected.elbo, 1e-11);
}

#[test]
fn the_additive_kernel_is_a_sum_over_elements() {
    let additive = RBF.replace("type = 'rbf', variance", "type = 'additive', variance");
    let setup = Setup::new(&spec("type = 'probit'", "", &[&additive]), 6, 6);
    let (variance, lengthscale) = (setup.values[0], setup.values[1]);
    let term = |i: usize| {
        format!(
            "{{ type = 'rbf', variance = {variance}, lengthscale = {lengthscale}, dims = {{ start = {i}, len = 1 }} }}"
        )
    };
    let terms: Vec<String> = (0..20).map(term).collect();
    let sum = format!(
        "[[components]]\nname = 'rbf'\nviews = {{ type = 'image' }}\nkernel = {{ type = 'sum', terms = [{}] }}\ninducing = {{ count = 4 }}",
        terms.join(", ")
    );
    let (model, mut values) = build(&spec("type = 'probit'", "", &[&sum]), setup.data.images());
    copy((&setup.model, &setup.values), (&model, &mut values), str::to_owned);
    let batch = setup.full_batch();
    let (bound, gradient) = bound_and_gradient(&model, &values, &batch);
    let (expected, expected_gradient) = bound_and_gradient(&setup.model, &setup.values, &batch);
    assert_close(bound.elbo, expected.elbo, 1e-12);
    // The shared variance collects what the separate ones get.
    let theta = model.components()[0].theta_slot().of(&gradient);
    assert_close(theta.iter().step_by(2).sum(), expected_gradient[0], 1e-10);
    assert_close(theta.iter().skip(1).step_by(2).sum(), expected_gradient[1], 1e-10);
}

/// One component with a response per channel is one component per channel with everything but the inducing outputs in
/// common.
#[test]
fn multi_channel_is_a_sum_over_channels() {
    let conv = |name: &str, channels: &str| {
        WEIGHTED
            .replace("'conv'", &format!("'{name}'"))
            .replace("[3, 2]", &format!("[3, 2], channels = {channels}"))
    };
    for structure in ["full", "mean-field"] {
        let fields = format!("posterior = {{ structure = '{structure}' }}");
        let colour = |components: &[&str]| {
            spec("type = 'robust-max', classes = 3", &fields, components)
                .replace("width = 4", "width = 4, channels = 2")
        };
        let setup = Setup::new(&colour(&[&conv("conv", "'each'")]), 6, 7);
        let (model, mut values) = build(&colour(&[&conv("a", "0"), &conv("b", "1")]), setup.data.images());
        for (i, channel) in ["a", "b"].iter().enumerate() {
            copy((&setup.model, &setup.values), (&model, &mut values), |name| {
                name.replace("conv.", &format!("{channel}.")).replace(&format!("weights.{i}"), "weights")
            });
        }
        let batch = setup.full_batch();
        let (bound, gradient) = bound_and_gradient(&model, &values, &batch);
        let (expected, expected_gradient) = bound_and_gradient(&setup.model, &setup.values, &batch);
        assert_close(bound.elbo, expected.elbo, 1e-12);
        // Not the variance: with one component and robust-max nothing depends on it.
        for name in ["kernel.lengthscale", "z"] {
            let of = |model: &Model, owner: &str, gradient: &[f64]| {
                model.layout().entry(&format!("{owner}.{name}")).unwrap().slot.of(gradient).to_vec()
            };
            let (a, b) = (of(&model, "a", &gradient), of(&model, "b", &gradient));
            let both: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
            assert_all_close(&both, &of(&setup.model, "conv", &expected_gradient), 1e-9);
        }
    }
}

/// `S` of a mean-field posterior, written into a full one.
fn embed(block: &Setup, full: &Model, values: &mut [f64]) {
    copy((&block.model, &block.values), (full, values), str::to_owned);
    let (small, large) = (block.model.variational(), &full.variational().groups()[0]);
    let (total, len) = (small.total(), packed_len(small.total()));
    let triangles = large.slot.of_mut(values);
    triangles.fill(0.0);
    for (l, triangle) in triangles.chunks_exact_mut(len).enumerate() {
        for group in small.groups() {
            let (order, first) = (group.order(), group.rows.start);
            let packed = group.triangle(&block.values, l);
            for j in 0..order {
                for i in j..order {
                    let target = packed_column(total, first + j) + i - j;
                    triangle[target] = packed[packed_column(order, j) + i - j];
                }
            }
        }
    }
}

#[test]
fn block_diagonal_covariances_are_full_ones_with_zeros() {
    for whiten in [true, false] {
        let text = |structure: &str| {
            let fields = format!("posterior = {{ structure = '{structure}', whiten = {whiten} }}");
            spec("type = 'robust-max', classes = 3", &fields, &[WEIGHTED, RBF, LOCATED])
        };
        let block = Setup::new(&text("mean-field"), 6, 8);
        let (full, mut values) = build(&text("full"), block.data.images());
        embed(&block, &full, &mut values);
        let batch = block.full_batch();
        let (bound, gradient) = bound_and_gradient(&full, &values, &batch);
        let (expected, expected_gradient) = bound_and_gradient(&block.model, &block.values, &batch);
        assert_close(bound.elbo, expected.elbo, 1e-12);
        assert_close(bound.kl, expected.kl, 1e-12);
        for e in full.layout().entries().iter().filter(|e| !e.name.starts_with("q.factor")) {
            let there = block.model.layout().entry(&e.name).unwrap().slot;
            assert_all_close(e.slot.of(&gradient), there.of(&expected_gradient), 1e-9);
        }
        let latents = |model: &Model, values: &Params| {
            Predictor::new(model, &Reference, values).unwrap().latents(block.data.images()).unwrap()
        };
        let (found, expected) = (latents(&full, &values), latents(&block.model, &block.values));
        assert_all_close(&found.mean, &expected.mean, 1e-12);
        assert_all_close(&found.var, &expected.var, 1e-12);
    }
}

/// With an inducing input at every image the sparse model is the exact Gaussian process.
#[test]
fn inducing_inputs_at_the_images_give_the_exact_gp() {
    let component = RBF.replace("count = 4", "count = 12");
    let text = spec("type = 'gaussian', variance = 0.2", "", &[&component]).replace("1e-6", "1e-12");
    let mut setup = Setup::new(&text, 12, 9);
    let batch = setup.full_batch();
    let pixels: Vec<f64> = (0..12).flat_map(|n| batch.image(n).to_vec()).collect();
    setup.model.layout().set(&mut setup.values, "rbf.z", &pixels).unwrap();
    setup.model.set_form(Form::Natural, &mut setup.values).unwrap();
    let mut ws = Workspace::<Reference>::default();
    setup.model.elbo_and_grad(&Reference, &setup.values, batch.of(12), &mut ws).unwrap();
    setup.model.natural_step(1.0, None, &ws, &mut setup.values);
    let bound = setup.model.elbo(&Reference, &setup.values, batch.of(12), &mut ws).unwrap();

    let (c, noise) = (&setup.model.components()[0], setup.model.likelihood_theta(&setup.values)[0]);
    let mut k = exact_covariance(c, &setup.values, &batch);
    (0..12).for_each(|i| k[(i, i)] += noise);
    let convgp::data::Targets::Real(y) = setup.data.targets() else { unreachable!() };
    assert_close(bound.elbo, log_normal(&k, y), 1e-9);

    // Posterior at new images: mean = k* K^-1 y, var = k** - k* K^-1 k*.
    let new = noise_images(setup.data.images().shape(), 5, &mut Rng::new(10));
    let new_batch = Batch::of_images(&new, &[0, 1, 2, 3, 4]);
    let l = factor(&k, 0.0);
    let mut cross = exact_cross_covariance(c, &setup.values, &batch, &new_batch);
    solve_lower(l.view(), cross.view_mut());
    let mut white_y = Mat::from_fn(12, 1, |i, _| y[i]);
    solve_lower(l.view(), white_y.view_mut());
    let prior = exact_covariance(c, &setup.values, &new_batch);
    let predictor = Predictor::new(&setup.model, &Reference, &setup.values).unwrap();
    let found = predictor.latents(&new).unwrap();
    let Predictive::Real { mean, var } = predictor.predict(&new).unwrap() else { unreachable!() };
    for n in 0..5 {
        assert_close(found.mean[n], dot(cross.col(n), white_y.col(0)), 1e-8);
        assert_close(found.var[n], prior[(n, n)] - dot(cross.col(n), cross.col(n)), 1e-8);
        assert_eq!((mean[n], var[n]), (found.mean[n], found.var[n] + noise));
    }
    let joint = predictor.joint(&new).unwrap();
    let explained = times(&transposed(&cross), &cross);
    for i in 0..5 {
        for j in 0..5 {
            assert_close(joint.cov[0][(i, j)], prior[(i, j)] - explained[(i, j)], 1e-8);
        }
    }
}

/// A posterior over `u` and the same over `v = L^-1 u`.
#[test]
fn unwhitened_posteriors_come_and_go() {
    for structure in ["full", "mean-field"] {
        let text = |whiten: bool| {
            let fields = format!("posterior = {{ structure = '{structure}', whiten = {whiten} }}");
            spec("type = 'robust-max', classes = 3", &fields, &[WEIGHTED, RBF])
        };
        let white = Setup::new(&text(true), 6, 11);
        let predictor = Predictor::new(&white.model, &Reference, &white.values).unwrap();
        let q = white.model.variational().slot();
        let exported = white.model.variational().unwhiten(q.of(&white.values), predictor.factors());
        let (model, _) = build(&text(false), white.data.images());
        let mut values = white.values.clone();
        q.of_mut(&mut values).copy_from_slice(&exported);
        let other = Predictor::new(&model, &Reference, &values).unwrap();
        let (found, expected) =
            (other.latents(white.data.images()).unwrap(), predictor.latents(white.data.images()).unwrap());
        assert_all_close(&found.mean, &expected.mean, 1e-9);
        assert_all_close(&found.var, &expected.var, 1e-9);
        let batch = white.full_batch();
        let (bound, gradient) = bound_and_gradient(&model, &values, &batch);
        let (expected, expected_gradient) = bound_and_gradient(&white.model, &white.values, &batch);
        assert_close(bound.elbo, expected.elbo, 1e-9);
        // Likelihood and posterior aside, gradients differ: another quantity is held fixed.
        assert!(gradient[0] != expected_gradient[0]);
        let imported = model.variational().whiten(&exported, other.factors());
        assert_all_close(&imported, q.of(&white.values), 1e-9);
    }
}

#[test]
fn component_predictions_add_up() {
    for structure in ["full", "mean-field"] {
        let fields = format!("posterior = {{ structure = '{structure}' }}");
        let text = spec("type = 'softmax', classes = 3", &fields, &[WEIGHTED, RBF, LOCATED]);
        let Setup { model, values, data } = Setup::new(&text, 8, 12);
        let predictor = Predictor::new(&model, &Reference, &values).unwrap();
        let whole = predictor.latents(data.images()).unwrap();
        let parts: Vec<_> = (0..3).map(|c| predictor.component_latents(c, data.images()).unwrap()).collect();
        let sum = |pick: fn(&convgp::likelihood::Marginals) -> &Vec<f64>| -> Vec<f64> {
            (0..24).map(|i| parts.iter().map(|p| pick(p)[i]).sum()).collect()
        };
        assert_all_close(&sum(|m| &m.mean), &whole.mean, 1e-12);
        if structure == "mean-field" {
            assert_all_close(&sum(|m| &m.var), &whole.var, 1e-12);
        }
        assert_eq!(predictor.means(data.images()).unwrap(), whole.mean);
    }
}

#[test]
fn the_diagonal_of_the_joint_is_the_marginals() {
    let located = format!("{LOCATED}white = 0.1\n");
    let text = spec("type = 'robust-max', classes = 3", "", &[WEIGHTED, &located]);
    let Setup { model, values, data } = Setup::new(&text, 5, 13);
    let predictor = Predictor::new(&model, &Reference, &values).unwrap();
    let (joint, marginals) =
        (predictor.joint(data.images()).unwrap(), predictor.latents(data.images()).unwrap());
    assert_all_close(&joint.mean, &marginals.mean, 1e-12);
    for n in 0..5 {
        for l in 0..3 {
            assert_close(joint.cov[l][(n, n)], marginals.var[n * 3 + l], 1e-12);
        }
    }
    // Moments of many draws: within five standard errors.
    let draws = joint.sample(20_000, &mut Rng::new(14)).unwrap();
    let average = |f: &dyn Fn(&[f64]) -> f64| draws.iter().map(|d| f(d)).sum::<f64>() / draws.len() as f64;
    for (i, j, l) in [(0, 0, 0), (1, 3, 2), (4, 2, 1)] {
        let (a, b) = (i * 3 + l, j * 3 + l);
        let (va, vb, cov) = (joint.cov[l][(i, i)], joint.cov[l][(j, j)], joint.cov[l][(i, j)]);
        let error = |spread: f64| 5.0 * (spread / draws.len() as f64).sqrt();
        assert!((average(&|d| d[a]) - joint.mean[a]).abs() < error(va));
        let product = average(&|d| (d[a] - joint.mean[a]) * (d[b] - joint.mean[b]));
        assert!((product - cov).abs() < error(va * vb + cov * cov), "{product} against {cov}");
    }
}

/// The average over a partition into minibatches is the full bound, and so is its gradient.
#[test]
fn minibatches_are_unbiased() {
    let Setup { model, values, data } =
        Setup::new(&spec("type = 'robust-max', classes = 3", "", &[WEIGHTED, RBF]), 9, 15);
    let mut ws = Workspace::<Reference>::default();
    let mut run = |rows: &[usize]| {
        let bound = model.elbo_and_grad(&Reference, &values, data.batch(rows).of(9), &mut ws).unwrap();
        (bound.elbo, ws.grad.clone())
    };
    let (whole, gradient) = run(&[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let parts = [run(&[0, 3, 6]), run(&[1, 4, 7]), run(&[8, 5, 2])];
    assert_close(parts.iter().map(|p| p.0 / 3.0).sum(), whole, 1e-12);
    let average: Vec<f64> = (0..values.len()).map(|i| parts.iter().map(|p| p.1[i] / 3.0).sum()).collect();
    assert_all_close(&average, &gradient, 1e-11);
}

/// An image's prediction does not depend on its company, to the bit, in either form of `q`.
#[test]
fn predictions_do_not_depend_on_the_chunk() {
    for structure in ["full", "mean-field"] {
        for form in [Form::Covariance, Form::Natural] {
            let fields = format!("posterior = {{ structure = '{structure}' }}");
            let components =
                [WEIGHTED.replace("count = 5", "count = 37"), RBF.replace("count = 4", "count = 19")];
            let text = spec("type = 'softmax', classes = 3", &fields, &[&components[0], &components[1]]);
            let mut setup = Setup::new(&text, 300, 16);
            setup.model.set_form(form, &mut setup.values).unwrap();
            let predictor = Predictor::new(&setup.model, &Reference, &setup.values).unwrap();
            let images = setup.data.images();
            let run = |rows: &[usize]| {
                let rows = images.select(rows).unwrap();
                let latents = predictor.latents(&rows).unwrap();
                let Predictive::Classes { probabilities, .. } = predictor.predict(&rows).unwrap() else {
                    unreachable!()
                };
                (latents.mean, latents.var, probabilities)
            };
            let all = run(&(0..300).collect::<Vec<_>>());
            let row = |n: usize, (mean, var, p): &(Vec<f64>, Vec<f64>, Vec<f64>)| {
                [mean, var, p].map(|v| v[3 * n..3 * n + 3].to_vec())
            };
            for n in (0..300).step_by(17) {
                assert_eq!(row(0, &run(&[n])), row(n, &all), "image {n} alone, {structure}, {form:?}");
            }
            let mut order: Vec<usize> = (0..300).collect();
            Rng::new(17).shuffle(&mut order);
            let shuffled = run(&order);
            for (place, &n) in order.iter().enumerate() {
                assert_eq!(
                    row(place, &shuffled),
                    row(n, &all),
                    "image {n} at {place}, {structure}, {form:?}"
                );
            }
        }
    }
}

/// Bound and gradient are the same bits for any number of threads.
#[test]
fn threads_do_not_change_bits() {
    for (structure, likelihood) in
        [("full", "type = 'softmax', classes = 4"), ("mean-field", "type = 'robust-max', classes = 4")]
    {
        let fields = format!("posterior = {{ structure = '{structure}' }}");
        let components =
            [WEIGHTED.replace("count = 5", "count = 70"), RBF.replace("count = 4", "count = 40")];
        let text = spec(likelihood, &fields, &[&components[0], &components[1]]);
        let mut setup = Setup::new(&text, 50, 18);
        for form in [Form::Covariance, Form::Natural] {
            setup.model.set_form(form, &mut setup.values).unwrap();
            let batch = setup.full_batch();
            let run = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| bound_and_gradient(&setup.model, &setup.values, &batch))
            };
            assert!(run(1) == run(2) && run(1) == run(3), "{structure}, {form:?}");
        }
    }
}
