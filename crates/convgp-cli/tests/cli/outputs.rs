//! What eval, predict and inspect say about a trained model.

use crate::common::{Desk, lines, photos};
use parquet::file::reader::{FileReader, SerializedFileReader};

const TRAIN: &str = "train sample -m 20 --steps 30 --batch 40 -q --name digits --no-report";

#[test]
fn predictions_agree_in_every_form_and_with_eval() {
    let desk = Desk::new();
    desk.ok(TRAIN);
    let csv = desk.ok("predict runs/0001-digits sample").out;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().map(String::from).collect();
    assert_eq!(header[..5], ["image", "label", "class", "entropy", "p_0"]);
    assert_eq!(header[14..16], ["latent_mean_0", "latent_variance_0"]);
    let rows: Vec<csv::StringRecord> = reader.records().map(|r| r.unwrap()).collect();
    assert_eq!(rows.len(), 100);
    for row in &rows {
        let p: Vec<f64> = (4..14).map(|i| row[i].parse().unwrap()).collect();
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        let class: usize = row[2].parse().unwrap();
        assert!(p.iter().all(|&other| other <= p[class]));
        let entropy: f64 = p.iter().map(|p| -p * p.ln()).sum();
        assert!((entropy - row[3].parse::<f64>().unwrap()).abs() < 1e-9);
        assert!((15..34).step_by(2).all(|i| row[i].parse::<f64>().unwrap() > 0.0));
    }
    let wrong = rows.iter().filter(|r| r[1] != r[2]).count() as f64 / 100.0;
    let eval = lines(&desk.ok("eval runs/0001-digits sample --json").out);
    assert_eq!(eval[0]["error"].as_f64(), Some(wrong));
    desk.ok("predict runs/0001-digits sample -o out.jsonl");
    let json = lines(&std::fs::read_to_string(desk.path("out.jsonl")).unwrap());
    assert_eq!(
        json[7]["latent_mean_3"].as_f64().unwrap().to_string(),
        rows[7][header.iter().position(|h| h == "latent_mean_3").unwrap()]
    );
    desk.ok("predict runs/0001-digits sample -o out.parquet");
    let file = std::fs::File::open(desk.path("out.parquet")).unwrap();
    let table = SerializedFileReader::new(file).unwrap();
    assert_eq!(table.metadata().file_metadata().num_rows(), 100);
    let text = table.get_row_iter(None).unwrap().nth(7).unwrap().unwrap().to_string();
    assert!(text.contains(&format!("class: \"{}\"", &rows[7][2])) && text.contains(&rows[7][3]), "{text}");
    desk.fails("predict runs/0001-digits sample -o out.txt", 2, &[".parquet"]);
    desk.fails("predict runs/0001-digits sample --best", 3, &["--validation"]);
}

#[test]
fn files_are_read_as_they_were_for_training() {
    let desk = Desk::new();
    photos(&desk.path("photos"), 8);
    desk.ok("train photos --size 24x20 --fit stretch --colour grey --steps 3 -m 10 --name a -q --no-report");
    let by_set = desk.ok("predict runs/0001-a photos").out;
    let by_file = desk.ok("predict runs/0001-a/model.safetensors photos/blue photos/red").out;
    // Without names and labels the rows are the same, in some order.
    let rest = |text: &str, skip: usize| {
        let row = |l: &str| l.splitn(skip + 1, ',').last().unwrap().to_string();
        text.lines().skip(1).map(row).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(rest(&by_set, 2), rest(&by_file, 1));
    assert_eq!(rest(&by_set, 2).len(), 16);
    desk.fails("eval runs/0001-a sample", 3, &["which the model does not know"]);
    desk.fails("predict runs/0001-a photos/blue/00.jpg nothing.png", 2, &["nothing.png"]);
    std::fs::write(desk.path("broken.safetensors"), b"not a model").unwrap();
    desk.fails("eval broken.safetensors sample", 3, &["broken.safetensors"]);
    desk.fails("inspect missing.safetensors", 3, &["missing.safetensors"]);
}

#[test]
fn inspection_lists_parameters_and_shares() {
    let desk = Desk::new();
    desk.ok("train sample --model weighted+rbf -m 10 --steps 3 --limit 50 -q --name a --no-report");
    let text = desk.ok("inspect runs/0001-a --on sample").out;
    for word in [
        "conv.kernel.lengthscale",
        "rbf.white",
        "q.factor",
        "lower triangles",
        "share of conv",
        "divided by 255",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let report: serde_json::Value =
        serde_json::from_str(&desk.ok("inspect runs/0001-a --on sample --json").out).unwrap();
    let shares: Vec<f64> =
        report["shares"].as_array().unwrap().iter().map(|s| s["share"].as_f64().unwrap()).collect();
    assert!(
        (shares.iter().sum::<f64>() - 1.0).abs() < 1e-12 && shares.iter().all(|&s| s > 0.0),
        "{shares:?}"
    );
}
