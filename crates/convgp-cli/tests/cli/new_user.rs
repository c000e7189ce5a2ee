//! Data as people have it, one command, a model.

use crate::common::{Desk, lines, photos};
use convgp_data::{sample, write};

#[test]
fn original_gz_files_in_a_folder() {
    let desk = Desk::new();
    desk.idx_folder("digits");
    let ran = desk.ok("train digits --steps 60 -m 30 --batch 50 --validation 0.1 --evaluate-every 20");
    assert!(
        ran.out.contains("validation") && ran.out.contains("test") && ran.out.contains("NLPP"),
        "{}",
        ran.out
    );
    for word in ["chosen: model: located (images are grey)", "softmax (10 classes)", "memory:", "step 40"] {
        assert!(ran.err.contains(word), "{word}: {}", ran.err);
    }
    let run = desk.run_folder(1);
    assert!(run.ends_with("0001-digits-located"));
    for file in [
        "spec.toml",
        "run.json",
        "events.jsonl",
        "best.safetensors",
        "checkpoint.safetensors",
        "MODEL_CARD.md",
        "report/report.html",
    ] {
        assert!(run.join(file).is_file(), "{file}");
    }
    let results = String::from_utf8(desk.run_file(1, "results.csv")).unwrap();
    assert_eq!(results.lines().count(), 4, "{results}");
    // A few dozen steps on 270 digits are far better than guessing.
    let eval = desk.ok("eval runs/0001-digits-located digits --json");
    let error = lines(&eval.out)[0]["error"].as_f64().unwrap();
    assert!(error < 0.6, "{}", eval.out);
    let record: serde_json::Value = serde_json::from_slice(&desk.run_file(1, "run.json")).unwrap();
    assert_eq!(record["provenance"].as_array().unwrap().len(), 4);
    assert_eq!(record["images"], serde_json::json!([270, 30, 100]));
    // The spec that was written says everything: the same run from it gives the same model.
    desk.ok("train digits --spec runs/0001-digits-located/spec.toml --validation 0.1 -q --no-report");
    assert_eq!(desk.run_file(1, "model.safetensors"), desk.run_file(2, "model.safetensors"));
    assert_eq!(desk.run_file(1, "spec.toml"), desk.run_file(2, "spec.toml"));
}

#[test]
fn photos_of_mixed_sizes_by_class() {
    let desk = Desk::new();
    photos(&desk.path("photos"), 12);
    let ran = desk.ok("train photos --steps 40 -m 20 --no-report");
    for word in ["several sizes", "contrast+rbf", "probit (two classes)", "32x32x3"] {
        assert!(ran.err.contains(word), "{word}: {}", ran.err);
    }
    let run = desk.run_folder(1);
    let predicted = desk.ok(&format!("predict {} photos/red/00.jpg photos/blue/01.png", run.display()));
    let classes: Vec<&str> = predicted.out.lines().skip(1).map(|l| l.split(',').nth(1).unwrap()).collect();
    assert_eq!(classes, ["red", "blue"], "{}", predicted.out);
}

#[test]
fn a_parquet_file() {
    let desk = Desk::new();
    let (train, test) = sample::mnist();
    write::parquet(&desk.path("train.parquet"), &train).unwrap();
    write::parquet(&desk.path("other.parquet"), &test).unwrap();
    let ran = desk.ok("train train.parquet --steps 5 -m 20 --batch 50 --no-report");
    assert!(ran.out.contains("training"), "{}", ran.out);
    let eval = desk.ok("eval runs/0001-train-located/model.safetensors other.parquet");
    assert!(eval.out.contains("100"), "{}", eval.out);
}

/// However fast the machine: time is up, or the plan made from the measured speed is fulfilled.
#[test]
fn a_time_limit_ends_the_run() {
    let desk = Desk::new();
    let ran = desk.ok("train sample --time 2s -m 10 --limit 40 --batch 10 --json --no-report");
    let events = lines(&ran.out);
    let end = events.last().unwrap();
    assert_eq!((&end["event"], &end["ending"]), (&"end".into(), &"finished".into()));
    let planned = events.iter().rfind(|e| e["event"] == "plan").map(|e| e["total_steps"].as_u64());
    let time_is_up = end["seconds"].as_f64().unwrap() >= 2.0;
    assert!(time_is_up || planned == Some(end["step"].as_u64()), "{}", ran.out);
    desk.ok("eval runs/0001-sample-located sample");
}
