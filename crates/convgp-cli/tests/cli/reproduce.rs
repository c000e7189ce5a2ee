//! Experiments on small copies of the original files.

use crate::common::Desk;
use convgp::data::{Dataset, Pixels, Targets};
use convgp_data::{SplitKind, generate, sample, write};
use serde_json::Value;
use std::path::Path;

const SMALL: &str = "--set model.components.0.inducing.count=8 --set train.batch_size=20 -q --no-report";

/// Rectangles as the original tables have them: 784 pixels and the label, 16 characters each.
fn amat(path: &Path, data: &Dataset) {
    let (Pixels::U8(pixels), Targets::Classes { labels, .. }) = (data.images().pixels(), data.targets())
    else {
        panic!("rectangles are bytes with classes")
    };
    let field = |on: bool| format!("   {}.0000000e+00", u8::from(on));
    let row = |(image, label): (&[u8], &u32)| {
        let pixels: String = image.iter().map(|p| field(*p > 0)).collect();
        format!("{pixels}{}\n", field(*label == 1))
    };
    let text: String = pixels.chunks_exact(784).zip(labels).map(row).collect();
    std::fs::write(path, text).unwrap();
}

fn rectangles(desk: &Desk) {
    std::fs::create_dir_all(desk.path("data/rectangles")).unwrap();
    amat(&desk.path("data/rectangles/rectangles_train.amat"), &generate::rectangles(48, 0));
    amat(&desk.path("data/rectangles/rectangles_test.amat"), &generate::rectangles(30, 1));
}

fn record(desk: &Desk, name: &str) -> Value {
    let path = desk.path("results").join(name);
    let text = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn a_record_a_curve_and_a_row() {
    let desk = Desk::new();
    rectangles(&desk);
    let run = "reproduce rectangles-weighted --data data --steps 8 --seed 3 --evaluate-every 2";
    let ran = desk.ok(&format!("{run} {SMALL}"));
    assert!(ran.out.contains("rectangles-weighted*  fast    1") && ran.out.contains("0.005"), "{}", ran.out);
    let record = record(&desk, "rectangles-weighted-fast-s3.json");
    assert_eq!(
        (&record["steps"], &record["seed"], &record["training_images"]),
        (&8.into(), &3.into(), &48.into())
    );
    assert_eq!(record["results"][0]["on"], "test");
    assert_eq!(record["results"][0]["images"], 30);
    assert!(record["results"][0]["ece"].is_f64() && record.get("trend").is_some(), "{record}");
    assert_eq!(record["shares"][0]["explained"], 1.0);
    assert!(record["parameters"]["conv.kernel.variance"].as_f64().unwrap() > 0.0);
    let curve =
        std::fs::read_to_string(desk.path("results").join(record["curve"].as_str().unwrap())).unwrap();
    let rows: Vec<&str> = curve.lines().collect();
    assert_eq!((rows[0], rows.len()), ("step,seconds,bound,error,nlpp", 5), "{curve}");
    assert!(rows[4].starts_with("8,") && rows[4].split(',').all(|cell| !cell.is_empty()), "{curve}");
    assert!(!desk.run_folder(1).join("best.safetensors").exists(), "test images choose no model");

    let table = desk.ok("reproduce --table --markdown --from results").out;
    assert!(table.contains("| rectangles-weighted* | fast | 1 |"), "{table}");
    assert!(table.contains("| rectangles-rbf | paper |  | not run |  |  |  | 5.0 % | 0.258 |"), "{table}");
    assert!(table.contains("other settings"), "{table}");
}

#[test]
fn validation_never_opens_the_test_images() {
    let desk = Desk::new();
    let (train, _) = sample::mnist();
    write::idx(&desk.path("data/mnist"), SplitKind::Train, &train).unwrap();
    desk.fails(&format!("reproduce mnist-small --data data {SMALL}"), 3, &["no test images", "--validation"]);
    let ran = desk.ok(&format!("reproduce mnist-small --data data --validation --steps 4 {SMALL}"));
    assert!(ran.out.contains("25 validation"), "{}", ran.out);
    let record = record(&desk, "mnist-small-fast-s0-validation.json");
    assert_eq!((&record["training_images"], &record["results"][0]["images"]), (&275.into(), &25.into()));
    let table = desk.ok("reproduce --table --from results").out;
    assert!(!table.contains("mnist-small*"), "settings may be chosen by it, results not: {table}");
}

#[test]
fn an_interrupted_experiment_is_resumed_to_the_same_record() {
    let desk = Desk::new();
    desk.idx_folder("data/mnist");
    let run = format!("reproduce mnist01 --data data --steps 7 {SMALL}");
    desk.ok(&format!("{run} --out whole"));
    desk.ok(&format!("{run} --stop-after 3"));
    assert!(!desk.path("results").exists(), "no record before the end");
    desk.ok(&format!("train --resume {} -q --no-report", desk.run_folder(2).display()));
    assert_eq!(desk.run_file(1, "model.safetensors"), desk.run_file(2, "model.safetensors"));
    let whole = std::fs::read(desk.path("whole/mnist01-fast-s0.json")).unwrap();
    let whole: Value = serde_json::from_slice(&whole).unwrap();
    let resumed = record(&desk, "mnist01-fast-s0.json");
    for field in ["results", "steps", "spec", "shares", "parameters", "training_images"] {
        assert_eq!(whole[field], resumed[field], "{field}");
    }
    assert_eq!(resumed["training_images"], 60, "zeros and ones only");
}

#[test]
fn the_published_solver_on_all_images_at_once() {
    let desk = Desk::new();
    rectangles(&desk);
    desk.ok("reproduce rectangles-rbf --recipe paper --data data --steps 25 -q --no-report");
    let record = record(&desk, "rectangles-rbf-paper-s0.json");
    assert!(record["full_batch"].is_object() && record["steps"].as_u64().unwrap() <= 25, "{record}");
    let inducing = record["spec"]["model"]["components"][0]["inducing"]["count"].as_u64().unwrap();
    assert!((40..=48).contains(&inducing), "all distinct images, not {inducing}");
    let curve = std::fs::read_to_string(desk.path("results/rectangles-rbf-paper-s0.csv")).unwrap();
    let bounds: Vec<f64> =
        curve.lines().skip(1).map(|row| row.split(',').nth(2).unwrap().parse().unwrap()).collect();
    assert!(bounds.len() == 2 && bounds[1] >= bounds[0], "{curve}");
}

#[test]
fn published_settings_are_the_same_by_train_and_by_reproduce() {
    let desk = Desk::new();
    desk.idx_folder("data/mnist");
    desk.ok("reproduce mnist-weighted --recipe paper --data data --steps 1 -q --no-report");
    desk.ok("train data/mnist --spec mnist-weighted --recipe paper --steps 1 -q --no-report");
    desk.ok("train data/mnist --model weighted --recipe paper --steps 1 -q --no-report");
    let [reproduced, by_spec, by_name] = [1, 2, 3].map(|run| desk.run_file(run, "spec.toml"));
    assert!(String::from_utf8_lossy(&reproduced).contains("every = 30000"));
    assert!(reproduced == by_spec && reproduced == by_name);
}

#[test]
fn wrong_wishes_are_explained() {
    let desk = Desk::new();
    desk.fails("reproduce", 2, &["NAME"]);
    desk.fails("reproduce mnist", 2, &["no experiment", "mnist-weighted", "cifar-best"]);
    desk.fails("reproduce mnist-located --recipe paper", 2, &["mnist-located", "recipe `paper`", "`fast`"]);
    desk.fails("reproduce rectangles-rbf --recipe paper --stop-after 3", 2, &["--stop-after"]);
    desk.fails("train sample --spec rectangles-rbf --recipe paper", 2, &["L-BFGS", "convgp reproduce"]);
    desk.fails("train sample --model located --recipe paper", 2, &["located", "weighted+rbf"]);
    desk.fails("reproduce rectangles-weighted --data nowhere", 3, &["nowhere", "convgp data get rectangles"]);
    desk.fails("reproduce --table --from nowhere", 3, &["nowhere"]);
    std::fs::write(desk.path("x.json"), "{}").unwrap();
    desk.fails("reproduce --table --from .", 3, &["x.json", "no record"]);
    let list = desk.ok("reproduce --list").out;
    assert!(list.contains("cifar-multichannel") && list.contains("3000 steps"), "{list}");
}
