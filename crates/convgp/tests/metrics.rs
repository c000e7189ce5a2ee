//! Metrics against values from scikit-learn, torchmetrics and SciPy; `fixtures/metrics.py` computes them.

mod common;

use common::{assert_all_close, assert_close};
use convgp::metrics::{Binning, Classified, Reliability, RiskCoverage, separation, upper_error_limit};
use serde_json::Value;

fn fixture() -> Value {
    serde_json::from_str(include_str!("fixtures/metrics.json")).unwrap()
}

fn number(v: &Value) -> f64 {
    v.as_f64().unwrap_or_else(|| panic!("{v} is not a number"))
}

fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(number).collect()
}

fn predictions(f: &Value) -> (Vec<f64>, Vec<u32>) {
    (numbers(&f["probabilities"]), numbers(&f["labels"]).iter().map(|l| *l as u32).collect())
}

#[test]
fn classification_agrees_with_scikit_learn() {
    let f = fixture();
    let (probabilities, labels) = predictions(&f);
    let c = Classified::new(&probabilities, &labels, 4).unwrap();
    assert_close(c.error(), number(&f["error"]), 1e-14);
    assert_close(c.nlpp(), number(&f["nlpp"]), 1e-13);
    assert_close(c.brier(), number(&f["brier"]), 1e-13);
    assert_all_close(&c.entropies(), &numbers(&f["entropy"]), 1e-13);
    let confusion: Vec<f64> = c.confusion().iter().map(|n| *n as f64).collect();
    assert_eq!(confusion, numbers(&f["confusion"]));
}

#[test]
fn calibration_agrees_with_torchmetrics_and_scikit_learn() {
    let f = fixture();
    let (probabilities, labels) = predictions(&f);
    let c = Classified::new(&probabilities, &labels, 4).unwrap();
    let error = |binning| Reliability::new(&c.confidences(), &c.correct(), binning).unwrap().error();
    // torchmetrics sums in single precision.
    assert_close(error(Binning::EqualWidth(15)), number(&f["ece_equal_width"]), 1e-6);
    assert_close(error(Binning::EqualMass(15)), number(&f["ece_equal_mass"]), 1e-13);
}

#[test]
fn selective_answers_agree_with_scikit_learn_and_scipy() {
    let f = fixture();
    let (probabilities, labels) = predictions(&f);
    let c = Classified::new(&probabilities, &labels, 4).unwrap();
    let curve = RiskCoverage::new(&c.confidences(), &c.correct()).unwrap();
    assert_close(curve.area(), number(&f["aurc"]), 1e-13);
    for (coverage, error) in f["error_at"].as_object().unwrap() {
        assert_close(curve.error_at(coverage.parse().unwrap()), number(error), 1e-13);
    }
    for line in f["upper_limits"].as_array().unwrap() {
        let [wrong, answers, limit] = numbers(line)[..] else { panic!("three numbers") };
        assert_close(upper_error_limit(wrong as usize, answers as usize, 0.95), limit, 1e-10);
    }
}

#[test]
fn separation_agrees_with_scikit_learn() {
    let f = fixture();
    let s = separation(&numbers(&f["ordinary"]), &numbers(&f["outliers"])).unwrap();
    assert_close(s.auroc, number(&f["auroc"]), 1e-13);
    assert_close(s.aupr, number(&f["aupr"]), 1e-13);
    assert_close(s.fpr_at_95, number(&f["fpr_at_95"]), 1e-13);
}
