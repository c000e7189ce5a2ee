//! Predictions taken apart.

use crate::common::{Desk, photos};
use serde_json::Value;
use std::path::Path;

/// Sums of the columns of a table that start with `mean_`, in order.
fn sums(path: &Path) -> Vec<f64> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    let header = reader.headers().unwrap().clone();
    let means: Vec<usize> = (0..header.len()).filter(|&i| header[i].starts_with("mean_")).collect();
    let mut sums = vec![0.0; means.len()];
    for row in reader.records() {
        let row = row.unwrap();
        sums.iter_mut().zip(&means).for_each(|(sum, &i)| *sum += row[i].parse::<f64>().unwrap());
    }
    sums
}

fn explanation(dir: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(dir.join("explanation.json")).unwrap()).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

#[test]
fn exported_contributions_sum_to_the_latent_means() {
    let desk = Desk::new();
    desk.ok(
        "train sample --model weighted+rbf -m 15 --steps 20 --batch 40 --limit 100 -q --name a --no-report",
    );
    let ran = desk.ok("explain runs/0001-a sample --index 7 -o why");
    assert!(
        ran.out.starts_with("image 7, label") && ran.out.contains("conv") && ran.out.contains("rbf"),
        "{}",
        ran.out
    );
    let dir = desk.path("why");
    let json = explanation(&dir);
    let means: Vec<f64> =
        json["latents"].as_array().unwrap().iter().map(|l| l["mean"].as_f64().unwrap()).collect();
    assert_eq!(means.len(), 10);
    let close = |other: &[f64], what: &str| {
        assert_eq!(other.len(), 10);
        for (a, b) in means.iter().zip(other) {
            assert!((a - b).abs() < 1e-9, "{what}: {a} and {b}");
        }
    };
    close(&sums(&dir.join("contributions.csv")), "patches");
    close(&sums(&dir.join("inducing.csv")), "inducing inputs");
    let mut by_json = vec![0.0; 10];
    let (mut views, mut largest_sd) = (0, 0.0f64);
    for view in json["responses"].as_array().unwrap().iter().flat_map(|r| r["views"].as_array().unwrap()) {
        by_json.iter_mut().zip(numbers(&view["mean"])).for_each(|(sum, m)| *sum += m);
        largest_sd = numbers(&view["sd"]).into_iter().fold(largest_sd, f64::max);
        views += 1;
    }
    close(&by_json, "JSON");
    assert!(views == 24 * 24 + 1 && largest_sd > 0.0, "{views} views, {largest_sd}");
    // Ten latents, three to a figure.
    for i in 0..4 {
        for ending in ["svg", "png"] {
            assert!(dir.join(format!("evidence-{i}.{ending}")).is_file(), "{i} {ending}");
        }
    }
    // What predict says in single precision is the same to single precision.
    let csv = desk.ok("predict runs/0001-a sample").out;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let column = reader.headers().unwrap().iter().position(|h| h == "latent_mean_4").unwrap();
    let row = reader.records().nth(7).unwrap().unwrap();
    assert!((row[column].parse::<f64>().unwrap() - means[4]).abs() < 1e-3 * (1.0 + means[4].abs()));
    desk.fails("explain runs/0001-a sample --index 100", 3, &["100 images", "0 to 99"]);
}

#[test]
fn a_photo_of_two_classes_has_one_latent() {
    let desk = Desk::new();
    photos(&desk.path("photos"), 8);
    desk.ok("train photos --size 20x16 --steps 10 -m 10 --name a -q --no-report");
    desk.ok("explain runs/0001-a photos/red/01.png");
    let json = explanation(&desk.path("explanation"));
    assert_eq!((json["image"].as_str(), json["label"].as_str()), (Some("photos/red/01.png"), None));
    let latents = json["latents"].as_array().unwrap();
    assert_eq!((latents.len(), numbers(&json["probabilities"]).len()), (1, 2));
    let total: f64 = sums(&desk.path("explanation/contributions.csv")).iter().sum();
    assert!((total - latents[0]["mean"].as_f64().unwrap()).abs() < 1e-9);
}
