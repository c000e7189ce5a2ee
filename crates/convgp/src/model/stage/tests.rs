//! Responses of a first stage as images, and models of two stages.

use super::*;
use crate::closed_form::Options;
use crate::data::{Dataset, Targets};
use crate::fitted::FittedModel;
use crate::inspect::Explainer;
use crate::model::{Jitter, Model, ModelSpec, Predictor};
use crate::params::Params;
use crate::prepare::Preparation;
use crate::views::Augmentation;

const SIDE: usize = 7;

fn data(count: usize) -> Dataset {
    let shape = ImageShape::new(SIDE, SIDE, 1).unwrap();
    let (mut pixels, mut labels, rng) = (Vec::new(), Vec::new(), &mut Rng::new(4));
    for n in 0..count {
        labels.push((n % 3) as u32);
        pixels.extend((0..shape.len()).map(|i| rng.uniform() + f64::from(u8::from(i % 3 == n % 3))));
    }
    let images = Images::new(shape, Pixels::F64(pixels)).unwrap();
    Dataset::new(images, Targets::classes(labels, 3).unwrap()).unwrap()
}

fn spec(views: &str) -> ModelSpec {
    let text = format!(
        r#"
        image = {{ height = {SIDE}, width = {SIDE} }}
        likelihood = {{ type = "labels", classes = 3 }}
        posterior = {{ structure = "shared" }}
        [[components]]
        name = "second"
        views = {views}
        kernel = {{ type = "rbf", lengthscale = "median" }}
        inducing = {{ count = 30 }}
        [components.first_stage]
        views = {{ type = "patches", patch = 3, transform = {{ whiten = 0.1, unit = 1.0 }} }}
        pooling = {{ grid = [2, 2] }}
        image_norm = "nystrom"
        kernel = {{ type = "rbf", lengthscale = "median" }}
        inducing = {{ count = 4 }}
        "#
    );
    ModelSpec::from_toml(&text).unwrap()
}

fn fitted(views: &str, data: &Dataset) -> (Model, Params) {
    let (model, mut params) = Model::new(&spec(views), Some(data.images()), &mut Rng::new(0)).unwrap();
    let engine = Fused::<f64>::default();
    model
        .fit_closed_form(&engine, &mut params, data, &Options::default(), &mut |_, _| true)
        .unwrap()
        .unwrap();
    (model, params)
}

const WHOLE: &str = "{ type = \"image\" }";
const PATCHES: &str =
    "{ type = \"patches\", patch = [1, 2], channels = \"all\", transform = { whiten = 0.1 } }";

fn first(data: &Dataset) -> FirstStage {
    let spec = spec(WHOLE).components[0].first_stage.clone().unwrap();
    let (image, images) = (data.images().shape(), Some(data.images()));
    let source = Source { image, jitter: Jitter::default(), images, augmentation: None, saved: None };
    FirstStage::new(&spec, "s", source, &mut Rng::new(3)).unwrap()
}

#[test]
fn responses_are_the_whitened_covariances_divided_by_their_length() {
    let data = data(40);
    let stage = first(&data);
    assert_eq!(stage.shape(), ImageShape::new(2, 2, 4).unwrap());
    let mut image = vec![0.0; SIDE * SIDE];
    data.images().write_image(7, &mut image);
    let mut found = vec![0.0; 16];
    stage.write(&image, &mut found);
    let (c, theta) = (&stage.component, stage.component.theta(&stage.values));
    let all = views_of(c.responses()[0].views(), &image);
    let value = |m: usize, r: usize| -> f64 {
        let weights = c.responses()[r].weights(&stage.values);
        let views = all.chunks_exact(9).zip(weights);
        views.map(|(view, w)| w * c.kernel().value(theta, view, c.z(&stage.values, m))).sum()
    };
    let mut a = Mat::from_fn(4, 4, value);
    solve_lower(stage.factor.view(), a.view_mut());
    let length = norm_squared(a.data()).sqrt();
    for (found, a) in found.iter().zip(a.data()) {
        assert!((found - a / length).abs() < 1e-6, "{found} {}", a / length);
    }
}

#[test]
fn products_by_place_sum_to_the_products_of_responses() {
    let data = data(40);
    let stage = first(&data);
    let mut pixels = vec![0.0; 3 * SIDE * SIDE];
    pixels.chunks_exact_mut(SIDE * SIDE).enumerate().for_each(|(n, x)| data.images().write_image(n, x));
    let mut all = vec![0.0; 3 * 16];
    stage.write(&pixels, &mut all);
    let (layout, products) = stage.products(&pixels[..SIDE * SIDE], &all);
    assert_eq!((layout.count(), products.rows()), (25, 3));
    for m in 0..3 {
        let sum: f64 = (0..25).map(|p| products[(m, p)]).sum();
        assert!((sum - dot(&all[..16], &all[m * 16..(m + 1) * 16])).abs() < 1e-5);
    }
}

#[test]
fn pullbacks_agree_with_differences() {
    let data = data(40);
    let views = Staged {
        first: Arc::new(first(&data)),
        views: Arc::new(crate::views::Windows::image(ImageShape::new(2, 2, 4).unwrap())),
    };
    let rng = &mut Rng::new(8);
    let mut image = vec![0.0; SIDE * SIDE];
    data.images().write_image(2, &mut image);
    let bar: Vec<f64> = (0..16).map(|_| rng.normal()).collect();
    let direction: Vec<f64> = (0..image.len()).map(|_| rng.normal()).collect();
    let mut image_bar = vec![0.0; image.len()];
    views.pullback(&image, &bar, &mut image_bar);
    let at = |step: f64| -> f64 {
        let moved: Vec<f64> = image.iter().zip(&direction).map(|(x, d)| x + step * d).collect();
        dot(&views_of(&views, &moved), &bar)
    };
    // Responses are computed in single precision, so steps cannot be small.
    let slope = (8.0 * (at(0.01) - at(-0.01)) - (at(0.02) - at(-0.02))) / 0.12;
    let expected = dot(&image_bar, &direction);
    assert!((slope - expected).abs() < 1e-3 * (1.0 + expected.abs()), "{slope} {expected}");
}

#[test]
fn two_stages_tell_classes_apart_and_survive_a_file() {
    let data = data(60);
    for views in [WHOLE, PATCHES] {
        let (model, params) = fitted(views, &data);
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let saved = FittedModel::new(model, params, names, Preparation::default()).unwrap();
        let again = FittedModel::from_bytes(&saved.to_bytes().unwrap()).unwrap();
        let latents =
            |m: &FittedModel| m.predictor(&Fused::<f32>::default()).unwrap().latents(data.images()).unwrap();
        let (before, after) = (latents(&saved), latents(&again));
        assert_eq!(before, after);
        let right = |n: &usize| (0..3).all(|l| before.mean[n * 3 + l] <= before.mean[n * 3 + n % 3]);
        let count = (0..60).filter(right).count();
        assert!(count > 40, "{views}: {count}");
        assert!(before.var.iter().all(|v| *v > 0.0));
    }
}

#[test]
fn evidence_lies_on_the_places_of_the_first_stage_and_sums_to_the_latents() {
    let data = data(60);
    for (views, places) in [(WHOLE, 25), (PATCHES, 1)] {
        let (model, params) = fitted(views, &data);
        let engine = Fused::<f64>::default();
        let predictor = Predictor::new(&model, &engine, &params).unwrap();
        let latents = predictor.latents(data.images()).unwrap();
        let evidence = Explainer::new(&predictor).unwrap().evidence(data.images(), 5).unwrap();
        for (l, mean) in latents.mean[15..18].iter().enumerate() {
            let part = &evidence.parts[0];
            assert_eq!(part.layout.count(), places);
            assert!((part.total(l) - mean).abs() < 1e-8, "{} {mean}", part.total(l));
            let painted: f64 = part.paint(0, l, data.images().shape()).iter().sum();
            assert!((painted - mean).abs() < 1e-8);
            assert!(part.sd.iter().all(|sd| sd.is_finite() && *sd >= 0.0));
        }
    }
}

#[test]
fn copies_of_images_are_inducing_images_too() {
    let data = data(20);
    let mut spec = spec(WHOLE);
    let build = |spec: &ModelSpec| Model::new(spec, Some(data.images()), &mut Rng::new(0));
    let message = build(&spec).unwrap_err().to_string();
    assert!(message.contains("only 20 distinct views"), "{message}");
    let none = Augmentation { copies: 0, rotation: 0.0, shift: 0.0, scaling: 0.0, shear: 0.0, mirror: false };
    spec.augmentation = Some(Augmentation { copies: 1, rotation: 20.0, ..none });
    let (model, params) = build(&spec).unwrap();
    assert_eq!(model.components()[0].inducing(), 30);
    // The images themselves come first.
    let c = &model.components()[0];
    let mut image = vec![0.0; SIDE * SIDE];
    for n in 0..20 {
        data.images().write_image(n, &mut image);
        let own = views_of(c.responses()[0].views(), &image);
        let at = (0..30).position(|m| c.z(&params, m) == own);
        assert!(at.is_some_and(|m| m < 20), "{n}: {at:?}");
    }
}

#[test]
fn a_first_stage_that_would_learn_is_refused() {
    let data = data(20);
    let mut learned = spec(WHOLE);
    learned.components[0].first_stage.as_mut().unwrap().weights = Weights::Learned;
    let message = Model::new(&learned, Some(data.images()), &mut Rng::new(0)).unwrap_err().to_string();
    assert!(message.contains("second.first") && message.contains("remove `weights`"), "{message}");
}
