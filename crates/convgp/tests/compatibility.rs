//! Files of version 0.1 load, predict the same numbers, and resumed runs end where they would have ended then.
//!
//! `fixtures/v0_1` was written by that version: models and checkpoints of three small runs, each at its ninth step of sixteen,
//! and in `expected.json` the bits (as hexadecimal) of predictions and of the parameters at the end, all with [`Reference`].

use convgp::FittedModel;
use convgp::cov::{Engine, Fused, Reference};
use convgp::data::{Dataset, ImageShape, Images, Pixels, Targets};
use convgp::io::Checkpoint;
use convgp::likelihood::Predictive;
use convgp::prepare::Fit;
use convgp::train::Trainer;
use serde_json::Value;
use std::path::PathBuf;

const SOFTMAX: &str = "softmax-natural";
const PROBIT: &str = "probit-adam";
/// `adam.kernel` and `adam.z` are zero in its spec.
const GAUSSIAN: &str = "gaussian-zero-rates";

fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/fixtures/v0_1", name].iter().collect()
}

fn pixel(n: usize, i: usize) -> u8 {
    let bright = if i / 21 == n % 3 { 120 } else { 0 };
    ((n * 91 + i * 37 + (n * i) % 53 + i * i % 7) % 130 + bright) as u8
}

/// The images `first..first + count` of the run's kind.
fn data(run: &str, first: usize, count: usize) -> Dataset {
    let shape = ImageShape::new(8, 8, 1).unwrap();
    let numbers = first..first + count;
    let pixels = numbers.clone().flat_map(|n| (0..64).map(move |i| pixel(n, i))).collect();
    let label = |n: usize| (n % 3) as u32;
    let targets = match run {
        SOFTMAX => Targets::classes(numbers.map(label).collect(), 3),
        PROBIT => Targets::classes(numbers.map(|n| label(n) / 2).collect(), 2),
        _ => Targets::real(numbers.map(|n| f64::from(label(n)) - 0.7 + 0.1 * (n % 5) as f64).collect()),
    };
    Dataset::new(Images::new(shape, Pixels::U8(pixels)).unwrap(), targets.unwrap()).unwrap()
}

/// What was recorded at a path of `expected.json`.
fn expected(path: &[&str]) -> Vec<f64> {
    let text = std::fs::read_to_string(fixture("expected.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let list = path.iter().fold(&file, |value, key| &value[key]).as_array().unwrap();
    let number = |v: &Value| f64::from_bits(u64::from_str_radix(v.as_str().unwrap(), 16).unwrap());
    list.iter().map(number).collect()
}

/// Whether this machine rounds as the one the numbers are from: products of matrices depend on its instructions.
fn same_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

fn assert_close(what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{what}, number {i}: {a}, then {b}");
    }
}

/// The same bits, or close where instructions differ.
fn assert_same(what: &str, found: &[f64], expected: &[f64]) {
    if same_instructions() {
        assert!(found == expected, "{what}: {found:?}, then {expected:?}");
    }
    assert_close(what, found, expected, 1e-7);
}

fn predictions<E: Engine>(saved: &FittedModel, engine: &E, data: &Dataset) -> [(&'static str, Vec<f64>); 4] {
    let predictor = saved.predictor(engine).unwrap();
    let latents = predictor.latents(data.images()).unwrap();
    let predictive = match predictor.predict(data.images()).unwrap() {
        Predictive::Classes { probabilities, .. } => probabilities,
        Predictive::Real { mean, var } => [mean, var].concat(),
    };
    [
        ("latent_mean", latents.mean),
        ("latent_var", latents.var),
        ("predictive", predictive),
        ("log_density", predictor.log_density(data).unwrap()),
    ]
}

#[test]
fn models_predict_the_same() {
    for run in [SOFTMAX, PROBIT, GAUSSIAN] {
        let saved = FittedModel::load(&fixture(&format!("{run}.model.safetensors"))).unwrap();
        let data = data(run, 100, 7);
        for (what, found) in predictions(&saved, &Reference, &data) {
            assert_same(&format!("{run}: {what}"), &found, &expected(&["models", run, what]));
        }
        for (what, found) in predictions(&saved, &Fused::<f32>::default(), &data) {
            assert_close(&format!("{run}: {what}"), &found, &expected(&["models", run, what]), 1e-4);
        }
    }
}

#[test]
fn everything_beside_the_numbers_is_read() {
    let saved = FittedModel::load(&fixture(&format!("{SOFTMAX}.model.safetensors"))).unwrap();
    assert_eq!(
        (saved.class_names, saved.preparation.fit),
        (["a", "b", "c"].map(String::from).to_vec(), Fit::Stretch)
    );
    let rule = saved.answer_rule.unwrap();
    assert_eq!((rule.risk, rule.images, rule.threshold.threshold), (0.01, 200, 0.6));
    assert!(!saved.params.layout().entry("conv.kernel.lengthscale").unwrap().trainable);
    assert!(saved.params.layout().entry("conv.z").unwrap().trainable);
}

#[test]
fn resumed_runs_end_where_they_would_have_ended() {
    for run in [SOFTMAX, PROBIT, GAUSSIAN] {
        let Checkpoint { experiment, values, state, .. } =
            Checkpoint::load(&fixture(&format!("{run}.checkpoint.safetensors"))).unwrap();
        assert_eq!(state.step, 9);
        let data = data(run, 0, 24);
        let (model, _) = experiment.initial_model(&data).unwrap();
        let mut trainer =
            Trainer::resume(&model, &Reference, &data, &experiment.train, values, state).unwrap();
        while trainer.steps_taken() < trainer.total_steps() {
            trainer.step().unwrap();
        }
        let (found, expected) = (trainer.into_params(), expected(&["runs", run]));
        if run == GAUSSIAN {
            // A rate of zero moved positive numbers by the rounding of their logarithms; frozen ones do not move at all.
            assert_close(run, &found, &expected, 1e-9);
        } else {
            assert_same(run, &found, &expected);
        }
    }
}
