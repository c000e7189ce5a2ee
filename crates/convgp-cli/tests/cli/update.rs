//! Images added to a closed-form model, and removed again.

use crate::common::Desk;

const TRAIN: &str = "train sample --limit 60 -m 12 --name kept --keep-statistics -q --no-report";

#[test]
fn adding_and_removing_the_same_images_changes_nothing() {
    let desk = Desk::new();
    desk.ok(TRAIN);
    let run = desk.run_folder(1).display().to_string();
    let predicted = |name: &str| {
        desk.ok(&format!("predict {run} sample --limit 20 -o {name}"));
        std::fs::read_to_string(desk.path(name)).unwrap()
    };
    let before = predicted("before.csv");
    let out = desk.ok(&format!("update {run} --add sample --split test --limit 30")).out;
    assert!(out.contains("30 images added, 0 removed, 90 in all") && out.contains("leave-one-out"), "{out}");
    assert_ne!(predicted("between.csv"), before);
    desk.ok(&format!("update {run} --remove sample --split test --limit 30"));
    let numbers = |text: &str| -> Vec<f64> {
        text.split([',', '\n']).filter_map(|cell| cell.parse::<f64>().ok()).collect()
    };
    let (before, after) = (numbers(&before), numbers(&predicted("after.csv")));
    assert!(before.len() > 100 && before.len() == after.len());
    let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5 * (1.0 + b.abs());
    assert!(before.iter().zip(&after).all(close), "{before:?}\n{after:?}");
}

#[test]
fn what_cannot_be_updated_is_said() {
    let desk = Desk::new();
    desk.ok(TRAIN);
    let run = desk.run_folder(1).display().to_string();
    desk.fails(&format!("update {run}"), 2, &["--add", "--remove"]);
    let file = desk.run_file(1, "statistics.safetensors");
    desk.fails(&format!("update {run} --remove sample --split test"), 3, &["was ever added"]);
    assert_eq!(desk.run_file(1, "statistics.safetensors"), file, "nothing is changed");
    std::fs::remove_file(desk.run_folder(1).join("statistics.safetensors")).unwrap();
    desk.fails(&format!("update {run} --add sample"), 3, &["statistics.safetensors", "--keep-statistics"]);
    desk.ok("train sample --limit 60 -m 12 --steps 3 -q --no-report");
    let stepped = desk.run_folder(2).display().to_string();
    desk.fails(&format!("update {stepped} --add sample"), 3, &["trained in steps"]);
}
