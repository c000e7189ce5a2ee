//! Every golden file of the project, and that a changed one would be noticed.

use convgp::cov::{Engine, Fused, Reference};
use convgp_golden::{Precision, Report, check_file, check_text, golden_files};
use std::path::{Path, PathBuf};

fn files() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    golden_files(&directory).expect("the project has a directory of fixtures")
}

fn text(name: &str) -> String {
    let file = files().into_iter().find(|f| f.file_stem().is_some_and(|s| s == name)).expect("a known file");
    std::fs::read_to_string(file).expect("fixtures are readable")
}

fn check(text: &str) -> Report {
    check_text(text, &Reference, Precision::Double).expect("a well-formed file")
}

fn agrees_with_every_file<E: Engine>(engine: &E, precision: Precision) {
    let files = files();
    assert!(files.len() >= 54, "only {} golden files found", files.len());
    let mut failures = Vec::new();
    for file in &files {
        match check_file(file, engine, precision) {
            Ok(report) if report.passed() => {}
            Ok(report) => failures.push(format!("{}: {report}", file.display())),
            Err(error) => failures.push(format!("{}: {error}", file.display())),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} files failed\n{}",
        failures.len(),
        files.len(),
        failures.join("\n")
    );
}

#[test]
fn reference_engine_agrees_with_every_file() {
    agrees_with_every_file(&Reference, Precision::Double);
}

#[test]
fn fused_engine_in_double_precision_agrees_with_every_file() {
    agrees_with_every_file(&Fused::<f64>::default(), Precision::Double);
}

#[test]
fn fused_engine_in_single_precision_agrees_with_every_file() {
    agrees_with_every_file(&Fused::<f32>::default(), Precision::Single);
}

/// A part in a million more on the first number of a field must not pass.
#[test]
fn a_perturbed_file_fails() {
    for (pointer, kind) in [
        ("/outputs/Kuf/0/0/0", "Kuf"),
        ("/outputs/KL", "KL"),
        ("/grads/components/0/weights/0", "grad weights"),
        ("/grads/q_sqrt/0/1/0", "grad q_sqrt"),
        ("/natural_gradient_step/q_mu/0/0", "step q_mu"),
    ] {
        let mut file: serde_json::Value = serde_json::from_str(&text("wconv_probit")).unwrap();
        let number = file.pointer_mut(pointer).expect("the field exists");
        *number = (number.as_f64().unwrap() * (1.0 + 1e-6)).into();
        let report = check(&file.to_string());
        let failed: Vec<_> = report.failures().map(|q| q.kind).collect();
        assert_eq!(failed, [kind], "{pointer}: {report}");
    }
    for (name, pointer, kind) in [
        ("pooling_grey", "/outputs/phi/0/0", "phi"),
        ("normalise_nystrom", "/grads/inducing/0/0/0", "grad Z"),
        ("transform_contrast_whiten", "/components/0/transform/whiten/matrix/0/0", "whitening"),
        ("labels_three", "/outputs/loo_prob/0/0", "loo_prob"),
        ("labels_two", "/outputs/test/variance_scaled/0", "variance"),
        ("energy_pooled", "/outputs/energies/1/adjoints/A/0/0", "bar A"),
        ("energy_image", "/outputs/bounds/tightened/grads/s2", "grad s2"),
        ("energy_exact", "/outputs/energies/3/log_Z", "value"),
        ("power_scalar", "/cases/1/outputs/powers/0/d_var_weighted/0/0", "d_var_weighted"),
        ("power_classes", "/cases/0/outputs/powers/2/d_mean/0/0", "d_mean"),
    ] {
        let mut file: serde_json::Value = serde_json::from_str(&text(name)).unwrap();
        let number = file.pointer_mut(pointer).expect("the field exists");
        *number = (number.as_f64().unwrap() * (1.0 + 1e-6) + 1e-7).into();
        let report = check(&file.to_string());
        assert!(report.failures().any(|q| q.kind == kind), "{name}{pointer}: {report}");
    }
    // A perturbed input changes nearly everything.
    let mut file: serde_json::Value = serde_json::from_str(&text("wconv_probit")).unwrap();
    file["kernels"][0]["lengthscale"] = 1.3.into();
    assert!(check(&file.to_string()).failures().count() > 10);
}

#[test]
fn malformed_files_are_named_not_panicked_on() {
    let good: serde_json::Value = serde_json::from_str(&text("wconv_plus_rbf_full_robustmax")).unwrap();
    type Change = fn(&mut serde_json::Value);
    let cases: [(Change, &str); 9] = [
        (|f| f["X"][1] = serde_json::json!([0.0]), "field `X[1]` has 1 elements; expected 42"),
        (|f| f["components"][1]["kernel"] = 7.into(), "field `components[1].kernel` is 7"),
        (|f| f["components"][0]["views"]["patch"] = serde_json::json!([9, 9]), "components[0].views"),
        (|f| f["kernels"][0]["type"] = "cubic".into(), "field `kernels[0].type` is `cubic`"),
        (|f| f["kernels"][1]["variance"] = (-1.0).into(), "parameter `component-1.kernel.variance` is -1"),
        (|f| f["q_sqrt"][0][0][0] = 0.0.into(), "field `q_sqrt` [0] has 0 on its diagonal"),
        (|f| f["Y"][0] = 3.into(), "field `Y`: label 3 of image 0"),
        (|f| f["grads"]["components"] = serde_json::Value::Null, "field `grads.components` is missing"),
        (|f| f["outputs"]["Kuu"][0] = 1.into(), "field `outputs.Kuu[0]` should be a list but is a number"),
    ];
    for (change, message) in cases {
        let mut file = good.clone();
        change(&mut file);
        let outcome = check_text(&file.to_string(), &Reference, Precision::Double);
        let error = outcome.expect_err(message).to_string();
        assert!(error.contains(message), "`{error}` does not contain `{message}`");
    }
    assert!(
        check_text("{", &Reference, Precision::Double).unwrap_err().to_string().starts_with("is not JSON")
    );
}

/// What the schema of the closed form allows but no file here has: no windows, no transform, transformed whole images.
#[test]
fn other_files_of_the_closed_form_are_read() {
    type Change = fn(&mut serde_json::Value);
    let cases: [(&str, Change, &[&str]); 3] = [
        (
            "pooling_edge",
            |f| f["components"][0]["pooling"] = serde_json::Value::Null,
            &["field `outputs.phi"],
        ),
        ("labels_two", |f| f["components"][0]["transform"] = serde_json::Value::Null, &[]),
        (
            "energy_image",
            |f| f["components"][0]["transform"]["contrast"] = 0.1.into(),
            &["A", "Kff", "Kuf", "value"],
        ),
    ];
    for (name, change, wrong) in cases {
        let mut file: serde_json::Value = serde_json::from_str(&text(name)).unwrap();
        change(&mut file);
        match check_text(&file.to_string(), &Reference, Precision::Double) {
            Ok(report) => {
                let failed: Vec<_> = report.failures().map(|q| q.kind).collect();
                assert!(wrong.iter().all(|kind| failed.contains(kind)), "{name}: {report}");
                assert_eq!(failed.is_empty(), wrong.is_empty(), "{name}: {report}");
            }
            Err(error) => assert!(error.to_string().contains(wrong[0]), "{name}: {error}"),
        }
    }
    let bad = text("pooling_edge").replace("\"covariance\"", "\"variance\"");
    let error = check_text(&bad, &Reference, Precision::Double).unwrap_err().to_string();
    assert!(error.contains("field `kind` is `variance`; expected `covariance`"), "{error}");
}

/// Components that share a kernel but not the inducing inputs, and the other way round, beside a pair that shares both.
#[test]
fn sharing_does_not_change_the_sums() {
    let joined = check(&text("multichannel_full_robustmax"));
    let mut file: serde_json::Value = serde_json::from_str(&text("multichannel_full_robustmax")).unwrap();
    // The same model with a copy of the inducing inputs for the middle channel: its gradient moves to the copy.
    let copy = file["inducing"][0].clone();
    file["inducing"].as_array_mut().unwrap().push(copy);
    file["components"][1]["inducing"] = 1.into();
    let zeros = file["grads"]["inducing"][0].clone();
    file["grads"]["inducing"].as_array_mut().unwrap().push(zeros);
    let split = check(&file.to_string());
    assert!(joined.passed(), "{joined}");
    let failed: Vec<_> = split.failures().map(|q| q.kind).collect();
    assert_eq!(failed, ["grad Z", "grad Z"], "only the two shares of Z differ from the sum\n{split}");
}
