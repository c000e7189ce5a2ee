//! Every free parameter of every kind of model against central differences of the bound.
//!
//! The measure: with `d` the fourth-order central difference and `g` the gradient, both in the *free* coordinates an
//! optimiser moves in, `|g - d| <= 1e-7 max(|d|, 1e-3 D)`, where `D` is the largest difference within the same parameter
//! array. Single numbers (a variance, a lengthscale) are thus held to a relative error of 1e-7. The floor `1e-6 F`, `F` the
//! largest difference of all, admits parameters on which the bound does not depend.
//!
//! Images and patches are not square, weights and lengthscales are random, `N / B` is not one.

mod common;

use common::Setup;
use convgp::cov::Reference;
use convgp::data::Batch;
use convgp::model::Workspace;
use convgp::variational::Form;

const TOLERANCE: f64 = 1e-7;

/// A parameter array and the worst error in it.
type Errors = Vec<(String, f64)>;

fn errors(setup: &Setup, batch: &Batch, num_data: usize) -> Errors {
    let Setup { model, values, .. } = setup;
    let mut ws = Workspace::<Reference>::default();
    let bound = model.elbo_and_grad(&Reference, values, batch.of(num_data).at_draw(5), &mut ws).unwrap();
    assert_eq!((bound.variances.clamped, bound.jitter_raised), (0, 0), "a special point");
    let gradient = ws.grad.clone();
    assert_eq!(
        model.elbo(&Reference, values, batch.of(num_data).at_draw(5), &mut ws).unwrap().elbo,
        bound.elbo
    );
    let mut at = |entry: &convgp::params::Entry, i: usize, step: f64| {
        let mut values = values.clone();
        let mut delta = vec![0.0; entry.slot.len()];
        delta[i] = step;
        entry.transform.shift(entry.slot.of_mut(&mut values), &delta);
        model.elbo(&Reference, &values, batch.of(num_data).at_draw(5), &mut ws).unwrap().elbo
    };
    let h = 7e-4;
    let entries = model.layout().entries();
    let differences: Vec<Vec<f64>> = entries
        .iter()
        .map(|e| {
            (0..e.slot.len())
                .map(|i| {
                    let near = at(e, i, h) - at(e, i, -h);
                    let far = at(e, i, 2.0 * h) - at(e, i, -2.0 * h);
                    (8.0 * near - far) / (12.0 * h)
                })
                .collect()
        })
        .collect();
    let largest = |v: &[f64]| v.iter().fold(0.0_f64, |a, x| a.max(x.abs()));
    let overall = differences.iter().map(|d| largest(d)).fold(0.0, f64::max);
    let worst = |(e, differences): (&convgp::params::Entry, &Vec<f64>)| {
        let mut found = e.slot.of(&gradient).to_vec();
        e.transform.pull_to_free(e.slot.of(values), &mut found);
        let floor = (1e-3 * largest(differences)).max(1e-6 * overall);
        let error = |(g, d): (&f64, &f64)| (g - d).abs() / d.abs().max(floor);
        // A NaN counts as infinite.
        let worst =
            found.iter().zip(differences).map(error).map(|e| if e.is_nan() { f64::INFINITY } else { e });
        (e.name.clone(), worst.fold(0.0, f64::max))
    };
    entries.iter().zip(&differences).map(worst).collect()
}

/// All parameters, on a batch of three images and on a batch of one; returns the worst error.
#[allow(clippy::print_stdout)]
fn check(name: &str, text: &str) {
    let setup = Setup::new(text, 9, 17);
    for rows in [&[1, 4, 8][..], &[6][..]] {
        let mut errors = errors(&setup, &setup.data.batch(rows), 9);
        errors.sort_by(|a, b| b.1.total_cmp(&a.1));
        println!("{name}, batch of {}: worst {:.1e} in {}", rows.len(), errors[0].1, errors[0].0);
        assert!(errors[0].1 <= TOLERANCE, "{name}, batch of {}: {errors:?}", rows.len());
    }
}

/// A spec: image, likelihood, further fields, components.
fn spec(image: &str, likelihood: &str, fields: &str, components: &[&str]) -> String {
    let components: Vec<String> = components.iter().map(|c| format!("[[components]]\n{c}\n")).collect();
    format!(
        "image = {{ {image} }}\nlikelihood = {{ {likelihood} }}\njitter = {{ relative = 1e-6 }}\n{fields}\n{}",
        components.concat()
    )
}

const GREY: &str = "height = 5, width = 4";
const COLOUR: &str = "height = 4, width = 5, channels = 3";
const PROBIT: &str = "type = 'probit'";

const RBF: &str = "
    views = { type = 'image' }
    kernel = { type = 'rbf', variance = 1.2, lengthscale = 1.9 }
    inducing = { count = 4 }";
const CONV: &str = "
    views = { type = 'patches', patch = [3, 2] }
    kernel = { type = 'rbf', variance = 0.9, lengthscale = 1.1 }
    inducing = { count = 5 }";
const WEIGHTED: &str = "
    views = { type = 'patches', patch = [3, 2] }
    weights = 'learned'
    kernel = { type = 'rbf', variance = 0.9, lengthscale = 1.1 }
    inducing = { count = 5 }";
const LOCATED: &str = "
    views = { type = 'patches', patch = [2, 3], located = true }
    weights = 'learned'
    kernel = { type = 'rbf', lengthscale = 1.1 }
    location = { type = 'matern32', lengthscale = 2.0 }
    inducing = { count = 4 }";
const MULTI_CHANNEL: &str = "
    views = { type = 'patches', patch = [2, 3], channels = 'each' }
    weights = 'learned'
    kernel = { type = 'rbf', lengthscale = 1.1 }
    inducing = { count = 3 }";

/// The first table of docs/maths.md, row by row.
#[test]
fn every_row_of_the_table() {
    let grey = [
        ("rbf", RBF),
        (
            "rbf, ard",
            "
            views = { type = 'image' }
            kernel = { type = 'rbf', ard = true, lengthscale = 2.3 }
            inducing = { count = 4 }",
        ),
        (
            "additive over pixels",
            "
            views = { type = 'image' }
            kernel = { type = 'additive', lengthscale = 0.7 }
            inducing = { count = 4 }",
        ),
        (
            "pixels as views",
            "
            views = { type = 'pixels' }
            weights = 'learned'
            kernel = { type = 'rbf', lengthscale = 0.3 }
            inducing = { count = 3 }",
        ),
        ("invariant conv", CONV),
        ("weighted conv", WEIGHTED),
        (
            "orbit of flips",
            "
            views = { type = 'image', orbit = ['flip-horizontal', 'flip-vertical'] }
            weights = 'learned'
            kernel = { type = 'rbf', lengthscale = 1.9 }
            inducing = { count = 4 }",
        ),
        (
            "patches under rotations",
            "
            views = { type = 'patches', patch = [3, 2], stride = [2, 1], orbit = [{ rotations = [12.0] }] }
            kernel = { type = 'rbf', lengthscale = 1.1 }
            inducing = { count = 4 }",
        ),
        ("location-aware", LOCATED),
    ];
    for (name, component) in grey {
        check(name, &spec(GREY, PROBIT, "", &[component]));
    }
    check("weighted conv + rbf", &spec(GREY, PROBIT, "", &[WEIGHTED, RBF]));
}

#[test]
fn every_kind_of_colour() {
    let pooled = WEIGHTED;
    let patch = &WEIGHTED.replace("[3, 2]", "[2, 3], channels = 'all'");
    let channels = &patch.replace("type = 'rbf', variance", "type = 'channels', variance");
    let located = &MULTI_CHANNEL
        .replace("'each'", "'each', located = true")
        .replace("inducing", "location = { type = 'rbf', lengthscale = 2.0 }\ninducing");
    for (name, component) in [
        ("colour, weighted baseline", pooled),
        ("colour-patch", patch),
        ("additive colour", channels),
        ("multi-channel", MULTI_CHANNEL),
        ("multi-channel, located", located),
    ] {
        check(name, &spec(COLOUR, PROBIT, "", &[component]));
    }
    let mean_field = "posterior = { structure = 'mean-field' }";
    check("multi-channel, mean-field", &spec(COLOUR, PROBIT, mean_field, &[MULTI_CHANNEL]));
}

#[test]
fn every_kernel() {
    for kernel in [
        "type = 'matern12', lengthscale = 1.4",
        "type = 'matern32', lengthscale = 1.4",
        "type = 'matern52', lengthscale = 1.4",
        "type = 'rbf', lengthscale = [0.9, 1.4, 2.0, 1.1, 3.0, 0.8]",
        "type = 'additive', of = 'matern52'",
        "type = 'sum', terms = [{ type = 'rbf', lengthscale = 0.8, dims = { start = 0, len = 3 } }, { type = 'matern32', dims = { start = 3, len = 3 } }]",
        "type = 'product', terms = [{ type = 'rbf', dims = { start = 0, len = 3 } }, { type = 'matern52', ard = true, dims = { start = 2, len = 4 } }]",
    ] {
        let component = format!(
            "views = {{ type = 'patches', patch = [3, 2] }}\nweights = 'learned'\nkernel = {{ {kernel} }}\ninducing = {{ count = 4 }}"
        );
        check(kernel, &spec(GREY, PROBIT, "", &[&component]));
    }
}

#[test]
fn every_likelihood() {
    for likelihood in [
        "type = 'gaussian', variance = 0.4",
        "type = 'probit'",
        "type = 'probit', link_jitter = 1e-3",
        "type = 'logit'",
        "type = 'robust-max', classes = 3",
        "type = 'robust-max', classes = 3, epsilon = 0.1, learn_epsilon = true",
        "type = 'softmax', classes = 3, samples = 8, derivative = 'pathwise'",
    ] {
        check(likelihood, &spec(GREY, likelihood, "", &[WEIGHTED, RBF]));
    }
}

/// All combinations of posterior structure and whitening, for one component, several, and several responses.
#[test]
fn every_posterior() {
    let softmax = "type = 'softmax', classes = 3, samples = 8, derivative = 'pathwise'";
    for structure in ["full", "mean-field"] {
        for whiten in [true, false] {
            let fields = format!("posterior = {{ structure = '{structure}', whiten = {whiten} }}");
            for (name, components) in [
                ("one component", &[WEIGHTED][..]),
                ("multi-channel + rbf", &[MULTI_CHANNEL, RBF][..]),
                ("three components", &[WEIGHTED, RBF, LOCATED][..]),
            ] {
                let name = format!("{name}, {structure}, whitened {whiten}");
                check(&name, &spec("height = 4, width = 3, channels = 2", softmax, &fields, components));
            }
        }
    }
}

#[test]
fn noise_normalisation_and_jitter() {
    let extras = format!("white = 0.2\nnormalise = true\n{WEIGHTED}");
    let other = format!("white = 0.05\n{RBF}");
    for jitter in ["relative = 1e-3", "absolute = 1e-3"] {
        let text = spec(GREY, PROBIT, "", &[&extras, &other]).replace("relative = 1e-6", jitter);
        check(&format!("white noise, normalised, jitter {jitter}"), &text);
    }
}

/// In natural form the gradient of everything but `q` is the same.
#[test]
fn natural_form_has_the_same_gradient() {
    for (structure, likelihood) in [("full", "type = 'robust-max', classes = 3"), ("mean-field", PROBIT)] {
        let fields = format!("posterior = {{ structure = '{structure}' }}");
        let mut setup = Setup::new(&spec(GREY, likelihood, &fields, &[WEIGHTED, RBF, LOCATED]), 6, 3);
        let batch = setup.data.batch(&[0, 2, 5]);
        let mut ws = Workspace::<Reference>::default();
        let before = setup.model.elbo_and_grad(&Reference, &setup.values, batch.of(6), &mut ws).unwrap();
        let expected = ws.grad.clone();
        setup.model.set_form(Form::Natural, &mut setup.values).unwrap();
        let after = setup.model.elbo_and_grad(&Reference, &setup.values, batch.of(6), &mut ws).unwrap();
        common::assert_close(after.elbo, before.elbo, 1e-11);
        common::assert_close(after.kl, before.kl, 1e-11);
        for e in setup.model.layout().entries() {
            if e.name.starts_with("q.") {
                assert!(e.slot.range().start >= ws.grad.len(), "{} has a gradient", e.name);
            } else {
                common::assert_all_close(e.slot.of(&ws.grad), e.slot.of(&expected), 1e-9);
            }
        }
        setup.model.set_form(Form::Covariance, &mut setup.values).unwrap();
        let back = setup.model.elbo_and_grad(&Reference, &setup.values, batch.of(6), &mut ws).unwrap();
        common::assert_close(back.elbo, before.elbo, 1e-11);
        common::assert_all_close(&ws.grad, &expected, 1e-9);
    }
}
