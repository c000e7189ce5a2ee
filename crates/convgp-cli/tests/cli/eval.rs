//! How good, how honest, how strange.

use crate::common::{Desk, lines, photos};

#[test]
fn metrics_agree_with_predictions_and_strange_images_are_scored() {
    let desk = Desk::new();
    desk.ok("train sample -m 20 --steps 30 --batch 40 -q --name digits --no-report");
    let text = desk.ok("eval runs/0001-digits sample").out;
    for word in [
        "Brier score",
        "ECE, 15 equal widths",
        "ECE, 15 equal masses",
        "95 % interval",
        "risk-coverage",
        "error at 95 % coverage",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let line = "eval runs/0001-digits sample --limit 40 --json --out-of-distribution noise \
                --out-of-distribution blank --out-of-distribution rectangles --out-of-distribution sample";
    let eval = lines(&desk.ok(line).out).remove(0);
    let csv = desk.ok("predict runs/0001-digits sample --limit 40").out;
    let rows: Vec<csv::StringRecord> =
        csv::Reader::from_reader(csv.as_bytes()).records().map(|r| r.unwrap()).collect();
    let of_row = |row: &csv::StringRecord| -> f64 {
        let label: usize = row[1].parse().unwrap();
        (0..10).map(|k| (row[4 + k].parse::<f64>().unwrap() - f64::from(u8::from(k == label))).powi(2)).sum()
    };
    let brier = rows.iter().map(of_row).sum::<f64>() / 40.0;
    assert!((eval["brier"].as_f64().unwrap() - brier).abs() < 1e-12);
    for ece in ["ece_equal_width", "ece_equal_mass"] {
        let (null, interval) = (&eval[ece]["null"], &eval[ece]["interval"]);
        assert!(
            null["lower"].as_f64() < null["upper"].as_f64() && interval["upper"].as_f64() > Some(0.0),
            "{eval}"
        );
    }
    let largest =
        |row: &csv::StringRecord| (4..14).map(|i| row[i].parse::<f64>().unwrap()).fold(0.0, f64::max);
    let mut sorted: Vec<(f64, bool)> = rows.iter().map(|row| (largest(row), row[1] != row[2])).collect();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let wrong = sorted[..32].iter().filter(|(_, wrong)| *wrong).count();
    assert_eq!(eval["error_at_80"].as_f64(), Some(wrong as f64 / 32.0));

    let strange = eval["out_of_distribution"].as_array().unwrap();
    assert_eq!(strange.len(), 4 * 4, "four scores of four sets");
    let scores: Vec<&str> = strange[..4].iter().map(|row| row["score"].as_str().unwrap()).collect();
    assert_eq!(scores, ["maximum probability", "entropy", "mutual information", "variance ratio"]);
    for row in strange {
        let auroc = row["auroc"].as_f64().unwrap();
        match row["data"].as_str().unwrap() {
            // Against themselves, scores tell nothing.
            "sample" => {
                assert!((auroc - 0.5).abs() < 1e-12 && row["fpr_at_95"].as_f64() >= Some(0.95), "{row}")
            }
            _ => assert_eq!(row["images"], 40, "limited, or as many as were given"),
        }
    }
    // Nothing that was seen looks like noise: the variance stays near the prior's.
    let noise = strange.iter().find(|r| r["data"] == "noise" && r["score"] == "variance ratio").unwrap();
    assert!(noise["auroc"].as_f64().unwrap() > 0.9, "{noise}");
    photos(&desk.path("photos"), 4);
    let table = desk.ok("eval runs/0001-digits sample --limit 20 --out-of-distribution photos/red").out;
    assert!(table.contains("photos/red") && table.contains("AUROC"), "{table}");
    desk.fails("eval runs/0001-digits sample --out-of-distribution nowhere", 3, &["nowhere"]);
}
