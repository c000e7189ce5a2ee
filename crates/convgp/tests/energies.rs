//! Energies of EP kind: limits that are known in another way, and derivatives against differences.

mod common;

use common::{Setup, assert_close, factor, log_normal, times, transposed};
use convgp::collapsed::Collapsed;
use convgp::cov::{Cov, Engine, Fused, Need, Reference};
use convgp::data::Targets;
use convgp::exact::ExactGp;
use convgp::linalg::{Mat, solve_lower};
use convgp::model::Workspace;
use convgp::objective::Objective;
use convgp::params::{Entry, Params};
use convgp::train::{TrainSpec, Trainer};

const HEAD: &str = "image = { height = 5, width = 4 }\njitter = { absolute = 1e-6 }\n";
const RBF: &str = "[[components]]\nname = 'rbf'\nviews = { type = 'image' }\nkernel = { type = 'rbf' }\ninducing = { count = 4 }\n";
const WEIGHTED: &str = "[[components]]\nname = 'conv'\nviews = { type = 'patches', patch = [3, 2] }\nweights = 'learned'\n\
                        kernel = { type = 'rbf' }\nwhite = 0.1\ninducing = { count = 3 }\n";
const POOLED: &str = "[[components]]\nname = 'pooled'\nviews = { type = 'patches', patch = 2 }\npooling = { grid = [2, 1] }\n\
                      kernel = { type = 'rbf' }\ninducing = { count = 3 }\n";

fn setup(likelihood: &str, components: &[&str], count: usize) -> Setup {
    Setup::new(&format!("likelihood = {{ {likelihood} }}\n{HEAD}{}", components.concat()), count, 7)
}

fn regression(components: &[&str], count: usize) -> Setup {
    setup("type = 'gaussian', variance = 0.3", components, count)
}

const OBJECTIVES: [Objective; 5] = [
    Objective::Bound {},
    Objective::TightenedBound {},
    Objective::PowerEp { alpha: 1e-5 },
    Objective::PowerEp { alpha: 0.5 },
    Objective::PowerEp { alpha: 1.0 },
];

fn collapsed(s: &Setup, objective: Objective) -> f64 {
    let collapsed = Collapsed::new(&s.model, &Reference, &s.values, &s.data).unwrap();
    collapsed.with_objective(objective).unwrap().value(&s.values).unwrap()
}

/// Differences of `value` in the free coordinates of every entry that `of` admits, against `grad`.
fn check_gradient(
    s: &Setup,
    grad: &[f64],
    mut value: impl FnMut(&Params) -> f64,
    of: impl Fn(&Entry) -> bool,
) {
    let h = 7e-4;
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    for e in s.model.layout().entries().iter().filter(|e| of(e)) {
        let mut pulled = e.slot.of(grad).to_vec();
        e.transform.pull_to_free(e.slot.of(&s.values), &mut pulled);
        found.extend(pulled);
        for i in 0..e.slot.len() {
            let mut at = |step: f64| {
                let (mut values, mut delta) = (s.values.clone(), vec![0.0; e.slot.len()]);
                delta[i] = step;
                e.transform.shift(e.slot.of_mut(&mut values), &delta);
                value(&values)
            };
            let (near, far) = (at(h) - at(-h), at(2.0 * h) - at(-2.0 * h));
            expected.push((8.0 * near - far) / (12.0 * h));
        }
    }
    common::assert_all_close(&found, &expected, 1e-8);
}

#[test]
fn a_small_power_is_the_bound() {
    let s = regression(&[RBF, WEIGHTED, POOLED], 9);
    let bound = collapsed(&s, Objective::default());
    // The difference is linear in the power, down to powers where the printed formulas would have lost all digits.
    let [near, nearer] =
        [1e-6, 1e-9].map(|alpha| (collapsed(&s, Objective::PowerEp { alpha }) - bound) / alpha);
    assert_close(nearer, near, 1e-2);
    assert!((near * 1e-9).abs() < 1e-7 * bound.abs(), "{near}, {bound}");
}

/// FITC written out: `N(y; 0, Q + diag(K - Q) + s2 I)`.
#[test]
fn the_whole_power_is_fitc() {
    let s = regression(&[RBF, WEIGHTED, POOLED], 9);
    let (batch, n) = (s.full_batch(), s.data.len());
    let mut k = Mat::zeros(n, n);
    for c in s.model.components() {
        let (mut kuu, mut cov) = (Mat::default(), Cov::default());
        Reference.kuu(c, &s.values, &mut kuu);
        Reference.images(c, &s.values, &batch, Need::Value, &mut Default::default(), &mut cov);
        let l = factor(&kuu, 1e-6);
        for (kuf, kff) in cov.kuf.iter().zip(&cov.kff) {
            let mut a = kuf.clone();
            solve_lower(l.view(), a.view_mut());
            let q = times(&transposed(&a), &a);
            (0..n).for_each(|i| (0..n).for_each(|j| k[(i, j)] += if i == j { kff[i] } else { q[(i, j)] }));
        }
    }
    let noise = s.model.likelihood_theta(&s.values)[0];
    (0..n).for_each(|i| k[(i, i)] += noise);
    let Targets::Real(y) = s.data.targets() else { unreachable!() };
    assert_close(collapsed(&s, Objective::PowerEp { alpha: 1.0 }), log_normal(&k, y), 1e-11);
}

#[test]
fn inducing_inputs_at_the_images_give_the_evidence_whatever_the_power() {
    let component = RBF.replace("count = 4", "count = 9");
    let text = format!("likelihood = {{ type = 'gaussian' }}\n{HEAD}{component}").replace("1e-6", "1e-12");
    let mut s = Setup::new(&text, 9, 9);
    let batch = s.full_batch();
    let pixels: Vec<f64> = (0..9).flat_map(|n| batch.image(n).to_vec()).collect();
    s.model.layout().set(&mut s.values, "rbf.z", &pixels).unwrap();
    let evidence = ExactGp::new(&s.model, &s.values, &s.data).unwrap().log_evidence();
    for objective in OBJECTIVES {
        assert_close(collapsed(&s, objective), evidence, 1e-9);
    }
}

#[test]
fn the_tightened_bound_lies_between_the_bound_and_the_evidence() {
    for count in 4..12 {
        let s = regression(&[RBF, WEIGHTED], count);
        let [bound, tight] = [OBJECTIVES[0], OBJECTIVES[1]].map(|o| collapsed(&s, o));
        let evidence = ExactGp::new(&s.model, &s.values, &s.data).unwrap().log_evidence();
        assert!(bound < tight && tight < evidence, "{bound}, {tight}, {evidence}");
    }
}

#[test]
fn collapsed_derivatives_match_differences() {
    let s = regression(&[RBF, WEIGHTED, POOLED], 7);
    for objective in OBJECTIVES {
        let reference = Collapsed::new(&s.model, &Reference, &s.values, &s.data).unwrap();
        let reference = reference.with_objective(objective).unwrap();
        let (value, grad) = reference.value_and_grad(&s.values).unwrap();
        assert_eq!(value, reference.value(&s.values).unwrap());
        let engine = Fused::<f64>::default();
        let fused = Collapsed::new(&s.model, &engine, &s.values, &s.data).unwrap();
        let (fast, fast_grad) = fused.with_objective(objective).unwrap().value_and_grad(&s.values).unwrap();
        assert_close(fast, value, 1e-11);
        common::assert_all_close(&fast_grad, &grad, 1e-9);
        check_gradient(&s, &grad, |v| reference.value(v).unwrap(), |e| !e.name.starts_with("q."));
    }
}

/// Every likelihood and every parameter, on a minibatch.
#[test]
fn energies_of_every_likelihood_have_exact_derivatives() {
    for likelihood in [
        "type = 'gaussian'",
        "type = 'probit', link_jitter = 1e-3",
        "type = 'probit'",
        "type = 'logit'",
        "type = 'robust-max', classes = 3, learn_epsilon = true",
        "type = 'softmax', classes = 3, derivative = 'pathwise'",
    ] {
        for alpha in [1e-4, 0.5, 1.0] {
            let s = setup(likelihood, &[RBF, POOLED], 5);
            let (batch, mut ws) = (s.full_batch(), Workspace::default());
            let mut at = |values: &Params| {
                let energy =
                    s.model.energy_and_grad(&Reference, values, batch.of(12).at_draw(3), alpha, &mut ws);
                (energy.unwrap().elbo, ws.grad.clone())
            };
            let grad = at(&s.values).1;
            check_gradient(&s, &grad, |v| at(v).0, |_| true);
        }
    }
}

#[test]
fn bad_powers_are_named() {
    let s = regression(&[RBF], 4);
    let new = || Collapsed::new(&s.model, &Reference, &s.values, &s.data).unwrap();
    for alpha in [0.0, -1.0, 1.1, f64::NAN] {
        let error = new().with_objective(Objective::PowerEp { alpha }).unwrap_err().to_string();
        assert!(error.contains(&format!("`objective.alpha` is {alpha}")), "{error}");
    }
}

/// Training maximises what its spec names.
#[test]
fn training_follows_the_objective() {
    let s = setup("type = 'probit'", &[WEIGHTED], 8);
    let spec: TrainSpec =
        toml::from_str("q = 'adam'\nbatch_size = 8\nobjective = { type = 'power-ep', alpha = 1.0 }").unwrap();
    let energy = |values: &Params| {
        let (batch, mut ws) = (s.data.batch(&[0, 1, 2, 3, 4, 5, 6, 7]), Workspace::default());
        s.model.energy_and_grad(&Reference, values, batch.of(8), 1.0, &mut ws).unwrap().elbo
    };
    let (start, values) = (energy(&s.values), s.values.clone());
    let mut trainer = Trainer::new(&s.model, &Reference, &s.data, &spec, values).unwrap();
    let first = trainer.step().unwrap().bound.unwrap().elbo().unwrap();
    assert_close(first, start, 1e-12);
    let last = (0..200).map(|_| trainer.step().unwrap().bound.unwrap().elbo().unwrap()).last().unwrap();
    assert!(last > start, "{last} after {start}");
}
