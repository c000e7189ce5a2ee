//! Evidence, shares, prior draws and uncertainty: what must hold for every kind of model.

mod common;

use common::{Setup, assert_all_close, assert_close, noise_images, times, transposed};
use convgp::cov::Reference;
use convgp::data::{ImageShape, Images, Pixels};
use convgp::inspect::{Explainer, InspectError, MOST_VIEWS, prior_maps, uncertainty};
use convgp::linalg::Mat;
use convgp::model::Predictor;
use convgp::rng::Rng;
use convgp::variational::Form;

/// Name, channels, posterior, components; the image is 6 x 5.
const MODELS: &[(&str, usize, &str, &str)] = &[
    ("weighted", 1, "", "views = { type = 'patches', patch = [3, 2] }\nweights = 'learned'\nwhite = 0.1"),
    ("invariant", 1, "", "views = { type = 'patches', patch = [3, 2] }\nnormalise = true"),
    ("rbf", 1, "", "views = { type = 'image' }\nwhite = 0.2"),
    ("additive", 1, "", "views = { type = 'image' }\nkernel = { type = 'additive', lengthscale = 0.7 }"),
    (
        "located",
        1,
        "",
        "views = { type = 'patches', patch = 3, located = true }\nweights = 'learned'\nlocation = { type = 'matern32', lengthscale = 2.0 }",
    ),
    (
        "orbit",
        1,
        "",
        "views = { type = 'patches', patch = [3, 2], orbit = ['flip-horizontal', { shifts = 1 }] }\nweights = 'learned'",
    ),
    (
        "multi-channel",
        3,
        "",
        "views = { type = 'patches', patch = [3, 2], channels = 'each' }\nweights = 'learned'",
    ),
    (
        "colour patch",
        3,
        "",
        "views = { type = 'patches', patch = [3, 2], channels = 'all' }\nweights = 'learned'",
    ),
    ("pooled colour", 3, "", "views = { type = 'patches', patch = [3, 2], stride = 2 }\nweights = 'learned'"),
    ("unwhitened", 1, "whiten = false", "views = { type = 'patches', patch = [3, 2] }\nweights = 'learned'"),
    (
        "sum",
        1,
        "",
        "name = 'conv'\nviews = { type = 'patches', patch = [3, 2] }\nweights = 'learned'\nwhite = 0.1\n[[components]]\nname = 'rbf'\nviews = { type = 'image' }\ninducing = { count = 4, init = 'uniform' }",
    ),
    (
        "mean-field sum",
        3,
        "structure = 'mean-field'",
        "name = 'conv'\nviews = { type = 'patches', patch = [2, 3], channels = 'each' }\n[[components]]\nname = 'rbf'\nviews = { type = 'image' }\ninducing = { count = 4, init = 'uniform' }",
    ),
];

fn setup(&(name, channels, posterior, component): &(&str, usize, &str, &str)) -> Setup {
    let seed = name.bytes().map(u64::from).sum();
    let kernel =
        if component.contains("kernel") { "" } else { "kernel = { type = 'rbf', lengthscale = 1.5 }" };
    let text = format!(
        "image = {{ height = 6, width = 5, channels = {channels} }}\n\
         likelihood = {{ type = 'softmax', classes = 3 }}\n\
         posterior = {{ {posterior} }}\n\
         [[components]]\ninducing = {{ count = 5, init = 'uniform' }}\n{kernel}\n{}",
        component
            .replace("[[components]]", "[[components]]\nkernel = { type = 'matern52', lengthscale = 2.0 }")
    );
    Setup::new(&text, 4, seed)
}

#[test]
fn views_and_inducing_inputs_sum_to_the_latent_mean() {
    for kind in MODELS {
        let s = setup(kind);
        let predictor = Predictor::new(&s.model, &Reference, &s.values).unwrap();
        let explainer = Explainer::new(&predictor).unwrap();
        let latents = predictor.latents(s.data.images()).unwrap();
        for n in 0..s.data.len() {
            let evidence = explainer.evidence(s.data.images(), n).unwrap();
            let expected = &latents.mean[n * 3..(n + 1) * 3];
            assert_all_close(&evidence.latent_means(), expected, 1e-9);
            let by_inducing: Vec<f64> = (0..3)
                .map(|l| {
                    evidence.parts.iter().flat_map(|p| p.inducing.iter().skip(l).step_by(3)).sum::<f64>()
                })
                .collect();
            assert_all_close(&by_inducing, expected, 1e-9);
            let components: usize = s.model.components().iter().map(|c| c.responses().len()).sum();
            assert_eq!(evidence.parts.len(), components, "{}", kind.0);
        }
    }
}

#[test]
fn painted_evidence_keeps_its_sum() {
    for kind in MODELS {
        let s = setup(kind);
        let predictor = Predictor::new(&s.model, &Reference, &s.values).unwrap();
        let evidence = Explainer::new(&predictor).unwrap().evidence(s.data.images(), 1).unwrap();
        for part in &evidence.parts {
            let planes = 0..part.layout.planes.len();
            let painted = |k| part.paint(k, 2, s.data.images().shape()).iter().sum::<f64>();
            assert_close(planes.map(painted).sum(), part.total(2), 1e-12);
        }
    }
}

#[test]
fn natural_form_gives_the_same_evidence() {
    let mut s = setup(&MODELS[0]);
    let of = |s: &Setup| {
        let predictor = Predictor::new(&s.model, &Reference, &s.values).unwrap();
        Explainer::new(&predictor).unwrap().evidence(s.data.images(), 0).unwrap().parts.remove(0)
    };
    let before = of(&s);
    s.model.set_form(Form::Natural, &mut s.values).unwrap();
    let after = of(&s);
    assert_all_close(&after.mean, &before.mean, 1e-8);
    assert_all_close(&after.sd, &before.sd, 1e-8);
}

#[test]
fn the_only_view_with_a_weight_has_the_whole_variance() {
    let mut s =
        setup(&("one weight", 1, "", "views = { type = 'patches', patch = [3, 2] }\nweights = 'learned'"));
    let slot = s.model.components()[0].responses()[0].weights_slot().unwrap();
    slot.of_mut(&mut s.values).fill(0.0);
    slot.of_mut(&mut s.values)[7] = -1.7;
    let predictor = Predictor::new(&s.model, &Reference, &s.values).unwrap();
    let part = Explainer::new(&predictor).unwrap().evidence(s.data.images(), 2).unwrap().parts.remove(0);
    let latents = predictor.latents(s.data.images()).unwrap();
    for l in 0..3 {
        assert_close(part.sd[7 * 3 + l].powi(2), latents.var[2 * 3 + l], 1e-10);
        assert!((0..16).all(|p| p == 7 || part.sd[p * 3 + l] == 0.0));
    }
}

#[test]
fn carriers_are_the_largest_in_either_direction() {
    let s = setup(&MODELS[0]);
    let predictor = Predictor::new(&s.model, &Reference, &s.values).unwrap();
    let part = Explainer::new(&predictor).unwrap().evidence(s.data.images(), 0).unwrap().parts.remove(0);
    let top = part.carriers(1, 3);
    let least = top.iter().fold(f64::INFINITY, |a, t| a.min(t.1.abs()));
    for m in 0..5 {
        let value = part.inducing[m * 3 + 1];
        let listed = top.contains(&(m, value));
        assert!(listed || value.abs() <= least);
    }
    assert!(top.len() == 3 && top[0].1.abs() >= top[1].1.abs());
}

#[test]
fn inducing_means_are_the_posterior_means_of_the_inducing_outputs() {
    for (kind, whitened) in [(&MODELS[0], true), (&MODELS[9], false)] {
        let s = setup(kind);
        let predictor = Predictor::new(&s.model, &Reference, &s.values).unwrap();
        let found = Explainer::new(&predictor).unwrap().inducing_means().unwrap().remove(0);
        let stored = Mat::from_fn(5, 3, |m, l| s.model.variational().mean(&s.values, l)[m]);
        let mut factor = predictor.factors()[0].clone();
        factor.zero_upper();
        let expected = if whitened { times(&factor, &stored) } else { stored };
        assert_all_close(&found, transposed(&expected).data(), 1e-9);
    }
}

#[test]
fn shares_are_fractions_of_a_whole() {
    let s = setup(&MODELS[11]);
    let predictor = Predictor::new(&s.model, &Reference, &s.values).unwrap();
    let shares = Explainer::new(&predictor).unwrap().shares(s.data.images()).unwrap();
    let names: Vec<_> = shares.iter().map(|s| (s.component.as_str(), s.response)).collect();
    assert_eq!(names, [("conv", 0), ("conv", 1), ("conv", 2), ("rbf", 0)]);
    assert_close(shares.iter().map(|s| s.prior).sum(), 1.0, 1e-12);
    assert_close(shares.iter().map(|s| s.explained).sum(), 1.0, 1e-9);
    assert!(shares.iter().all(|s| s.prior > 0.0));
}

#[test]
fn prior_draws_are_equal_on_equal_views_and_have_the_kernels_variance() {
    let s = setup(&MODELS[0]);
    let shape = s.data.images().shape();
    let blank = Images::new(shape, Pixels::F64(vec![0.0; shape.len()])).unwrap();
    let weights = s.model.components()[0].responses()[0].weights(&s.values);
    let draws = prior_maps(&s.model, &s.values, (0, 0), &blank, 3, &mut Rng::new(1)).unwrap();
    for map in &draws {
        let g = map[0] / weights[0];
        let expected: Vec<f64> = weights.iter().map(|w| w * g).collect();
        assert_all_close(map, &expected, 1e-4);
    }
    let draws = prior_maps(&s.model, &s.values, (0, 0), s.data.images(), 4000, &mut Rng::new(2)).unwrap();
    let kernel = s.model.components()[0].kernel();
    let theta = s.model.components()[0].theta(&s.values);
    let variance = kernel.value(theta, &[0.0; 6], &[0.0; 6]);
    for p in [0, 7] {
        let mean_square = draws.iter().map(|d| d[p] * d[p]).sum::<f64>() / 4000.0;
        assert_close(mean_square / (weights[p] * weights[p] * variance), 1.0, 0.1);
    }
}

#[test]
fn prior_draws_refuse_what_is_not_there_or_too_large() {
    let s = setup(&MODELS[0]);
    let err = prior_maps(&s.model, &s.values, (0, 1), s.data.images(), 1, &mut Rng::new(1)).unwrap_err();
    assert!(matches!(err, convgp::Error::Inspect(InspectError::NoResponse { component: 0, response: 1 })));
    let text = "image = { height = 65, width = 64 }\nlikelihood = { type = 'probit' }\n[[components]]\n\
                views = { type = 'pixels' }\nkernel = { type = 'rbf' }\n\
                inducing = { count = 2, init = 'uniform' }";
    let wide = Setup::new(text, 2, 1);
    let err = prior_maps(&wide.model, &wide.values, (0, 0), wide.data.images(), 1, &mut Rng::new(1));
    let Err(convgp::Error::Inspect(InspectError::TooManyViews { views, .. })) = err else { panic!() };
    assert!(views > MOST_VIEWS);
}

#[test]
fn uncertainty_of_an_untrained_model_is_complete_whatever_the_image() {
    let mut s = setup(&MODELS[1]);
    let (model, start) = convgp::Model::new(s.model.spec(), Some(s.data.images()), &mut Rng::new(3)).unwrap();
    (s.model, s.values) = (model, start);
    let shape = ImageShape::new(6, 5, 1).unwrap();
    let mut pixels = vec![0.0; 30];
    let Pixels::F64(noise) = noise_images(shape, 2, &mut Rng::new(5)).pixels().clone() else { panic!() };
    pixels.extend(noise);
    let images = Images::new(shape, Pixels::F64(pixels)).unwrap();
    let predictor = Predictor::new(&s.model, &Reference, &s.values).unwrap();
    let u = uncertainty(&predictor, &images, 200, &mut Rng::new(1)).unwrap();
    assert_all_close(&u.variance_ratio, &[1.0; 3], 1e-9);
    for n in 0..3 {
        assert_close(u.entropy[n], 3f64.ln(), 0.01);
        assert!(u.mutual_information[n] > 0.0 && u.mutual_information[n] < u.entropy[n]);
        assert_close(u.doubt[n], 2.0 / 3.0, 0.02);
    }
}

#[test]
fn a_blank_image_under_weights_that_cancel_counts_as_unknown() {
    let mut s = setup(&MODELS[0]);
    let c = &s.model.components()[0];
    c.white_slot().unwrap().of_mut(&mut s.values)[0] = 1e-12;
    let slot = c.responses()[0].weights_slot().unwrap();
    slot.of_mut(&mut s.values)
        .iter_mut()
        .enumerate()
        .for_each(|(p, w)| *w = if p % 2 == 0 { 1.0 } else { -1.0 });
    let shape = s.data.images().shape();
    let blank = Images::new(shape, Pixels::F64(vec![0.0; shape.len()])).unwrap();
    let predictor = Predictor::new(&s.model, &Reference, &s.values).unwrap();
    let u = uncertainty(&predictor, &blank, 10, &mut Rng::new(1)).unwrap();
    assert_close(u.variance_ratio[0], 1.0, 1e-3);
}

#[test]
fn scores_of_classes_refuse_regression() {
    let text = "image = { height = 6, width = 5 }\nlikelihood = { type = 'gaussian' }\n[[components]]\n\
                views = { type = 'image' }\nkernel = { type = 'rbf' }\ninducing = { count = 2, init = 'uniform' }";
    let s = Setup::new(text, 3, 1);
    let predictor = Predictor::new(&s.model, &Reference, &s.values).unwrap();
    let err = uncertainty(&predictor, s.data.images(), 5, &mut Rng::new(1)).unwrap_err();
    assert!(matches!(err, convgp::Error::Inspect(InspectError::NotClasses)));
    let err = Explainer::new(&predictor).unwrap().evidence(s.data.images(), 3).unwrap_err();
    assert_eq!(err.to_string(), "image 3 asked for, but there are only 3");
}
