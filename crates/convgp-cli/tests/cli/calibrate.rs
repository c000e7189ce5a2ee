//! Answers that are withheld.

use crate::common::{Desk, lines};

#[test]
fn training_images_are_warned_of() {
    let desk = Desk::new();
    desk.ok("train sample --model weighted -m 20 --steps 40 --batch 50 -q --name digits --no-report");
    let calibrate = |options: &str| {
        desk.ok(&format!("calibrate runs/0001-digits sample --risk 0.5 -o safe.safetensors {options}")).err
    };
    assert!(calibrate("--split train").contains("warning: sample: the model was trained on these images"));
    assert_eq!(calibrate(""), "");
}

#[test]
fn what_cannot_be_written_is_a_failure() {
    let desk = Desk::new();
    desk.ok("train sample --model weighted -m 20 --steps 40 --batch 50 -q --name digits --no-report");
    desk.fails(
        "calibrate runs/0001-digits sample --risk 0.5 -o no/where.safetensors",
        1,
        &["no/where.safetensors", "cannot be written"],
    );
    desk.fails("predict runs/0001-digits sample -o no/where.csv", 1, &["no/where.csv", "cannot be written"]);
}

#[test]
fn a_calibrated_model_says_unknown_and_keeps_the_risk() {
    let desk = Desk::new();
    desk.ok("train sample --model weighted -m 20 --steps 40 --batch 50 -q --name digits --no-report");
    let plain = desk.run_file(1, "model.safetensors");
    let rule = lines(&desk.ok("calibrate runs/0001-digits sample --risk 0.2 -o safe.safetensors --json").out)
        .remove(0);
    assert_eq!(desk.run_file(1, "model.safetensors"), plain, "-o leaves the original alone");
    let number = |v: &serde_json::Value, key: &str| v[key].as_f64().unwrap_or_else(|| panic!("{key}: {v}"));
    assert_eq!((number(&rule, "risk"), number(&rule, "images")), (0.2, 100.0));
    assert!(number(&rule, "error") <= 0.2 && number(&rule, "upper_error") > number(&rule, "error"));

    let csv = desk.ok("predict safe.safetensors sample").out;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let rows: Vec<csv::StringRecord> = reader.records().map(|r| r.unwrap()).collect();
    let threshold = number(&rule, "threshold");
    let (mut answered, mut wrong) = (0.0, 0.0);
    for row in &rows {
        let p: Vec<f64> = (4..14).map(|i| row[i].parse().unwrap()).collect();
        let largest = p.iter().copied().fold(0.0, f64::max);
        assert_eq!(&row[2] == "unknown", largest < threshold, "{row:?}");
        if &row[2] != "unknown" {
            answered += 1.0;
            wrong += f64::from(u8::from(row[1] != row[2]));
        }
    }
    assert!(answered < 100.0, "the model is not that good");
    assert_eq!((answered / 100.0, wrong / answered), (number(&rule, "coverage"), number(&rule, "error")));

    let eval = lines(&desk.ok("eval safe.safetensors sample --json").out).remove(0);
    for key in ["threshold", "coverage", "error"] {
        assert_eq!(number(&eval["answered"], key), number(&rule, key), "{key}");
    }
    assert!(number(&eval, "error") > number(&rule, "error"), "all answers, the withheld ones too");
    assert!(desk.ok("eval safe.safetensors sample").out.contains("answered"));
    assert!(desk.ok("inspect safe.safetensors").out.contains("risk of 0.2 on 100 images"));
    assert!(!desk.ok("inspect runs/0001-digits").out.contains("risk"));

    // Without -o the model file itself learns it; more risk, more answers.
    let told = desk.ok("calibrate runs/0001-digits sample --risk 0.5").out;
    assert!(told.contains("model: runs/0001-digits/model.safetensors"), "{told}");
    let looser = lines(&desk.ok("eval runs/0001-digits sample --json").out).remove(0);
    assert!(number(&looser["answered"], "coverage") >= number(&rule, "coverage"));
    desk.fails("calibrate runs/0001-digits sample --risk 1.5", 2, &["--risk", "below 1"]);
    desk.fails("calibrate runs/0001-digits sample", 2, &["--risk"]);
}
