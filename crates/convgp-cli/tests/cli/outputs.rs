//! What eval, predict and inspect say about a trained model.

use crate::common::{Desk, lines, photos};
use convgp::data::Pixels;
use convgp_data::{SplitKind, sample, write};
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

/// A model of two classes of digits, 3 and 5.
fn small_model(desk: &Desk) {
    desk.ok("train sample --classes 3,5 --model rbf -m 10 --steps 3 --batch 20 -q --no-report");
}

fn column(out: &str, name: &str) -> Vec<String> {
    let mut reader = csv::Reader::from_reader(out.as_bytes());
    let at = reader.headers().unwrap().iter().position(|h| h == name).unwrap_or_else(|| panic!("{out}"));
    reader.records().map(|row| row.unwrap()[at].to_string()).collect()
}

#[test]
fn images_without_labels_are_predicted_from_every_format() {
    let desk = Desk::new();
    small_model(&desk);
    let (_, test) = sample::mnist();
    let some = test.select(&(0..6).collect::<Vec<_>>()).unwrap();
    let Pixels::U8(pixels) = some.images().pixels() else { panic!() };
    let run = desk.run_folder(1).display().to_string();
    write::idx(&desk.path(""), SplitKind::Train, &some).unwrap();
    write::npy(&desk.path(""), SplitKind::Train, &some).unwrap();
    std::fs::remove_file(desk.path("train-labels-idx1-ubyte.gz")).unwrap();
    std::fs::remove_file(desk.path("y_train.npy")).unwrap();
    std::fs::rename(desk.path("x_train.npy"), desk.path("new.npy")).unwrap();
    let rows =
        pixels.chunks_exact(784).map(|row| row.iter().map(u8::to_string).collect::<Vec<_>>().join(","));
    let rows = rows.collect::<Vec<_>>().join("\n");
    let header: Vec<String> = (0..784).map(|i| format!("p{i}")).collect();
    std::fs::write(desk.path("plain.csv"), &rows).unwrap();
    std::fs::write(desk.path("named.csv"), format!("{}\n{rows}", header.join(","))).unwrap();
    let numbered: Vec<String> = rows.lines().enumerate().map(|(i, row)| format!("{i},{row}")).collect();
    std::fs::write(desk.path("numbered.csv"), format!("id,{}\n{}", header.join(","), numbered.join("\n")))
        .unwrap();
    let idx = "train-images-idx3-ubyte.gz";
    let first = desk.ok(&format!("predict {run} {idx}")).out;
    assert_eq!(column(&first, "image"), ["0", "1", "2", "3", "4", "5"]);
    assert!(!first.contains("label"), "{first}");
    for source in ["new.npy", "plain.csv", "named.csv", "numbered.csv"] {
        assert_eq!(desk.ok(&format!("predict {run} {source}")).out, first, "{source}");
    }
    desk.fails(&format!("eval {run} {idx}"), 3, &["label file"]);
    desk.fails(&format!("train {idx}"), 3, &["label file"]);
    desk.fails("train new.npy", 3, &["array of labels"]);
}

#[test]
fn images_in_folders_keep_their_names() {
    let desk = Desk::new();
    small_model(&desk);
    let run = desk.run_folder(1).display().to_string();
    let (_, test) = sample::mnist();
    let both = convgp_data::subset_classes(&test, &[3, 5]).unwrap();
    write::folder(&desk.path("digits"), SplitKind::Test, &both).unwrap();
    let files = |out: &str| {
        let names = column(out, "image");
        assert!(names.iter().all(|name| desk.path(name).is_file()), "{names:?}");
        names
    };
    let labelled = desk.ok(&format!("predict {run} digits")).out;
    let names = files(&labelled);
    for (name, label) in names.iter().zip(column(&labelled, "label")) {
        assert!(name.starts_with(&format!("digits/test/{label}/")), "{name} {label}");
    }
    assert_eq!(names.len(), both.len());
    // Folders that are no classes of the model, and deeper ones.
    std::fs::create_dir_all(desk.path("new/2024/may")).unwrap();
    for (i, name) in names.iter().take(4).enumerate() {
        let to = ["new/a.png", "new/2024/b.png", "new/2024/may/c.png", "new/2024/may/d.png"][i];
        std::fs::copy(desk.path(name), desk.path(to)).unwrap();
    }
    for (source, count) in [("new", 4), ("new/2024", 3)] {
        let out = desk.ok(&format!("predict {run} {source}")).out;
        assert_eq!(files(&out).len(), count, "{out}");
        assert!(!out.contains("label"), "{out}");
        let deep = column(&out, "image").iter().position(|name| name.ends_with("c.png")).unwrap();
        let known = names.iter().position(|name| *name == names[2]).unwrap();
        assert_eq!(column(&out, "p_3")[deep], column(&labelled, "p_3")[known]);
    }
    let why = desk.ok(&format!("explain {run} digits --index 1"));
    assert!(why.out.starts_with(&format!("image {}, label", names[1])), "{}", why.out);
    desk.ok(&format!("report {run} --on digits"));
    let page = String::from_utf8(desk.run_file(1, "report/report.html")).unwrap();
    let listed = page.split("The images, row by row:").nth(1).unwrap();
    let first = listed.split(',').next().unwrap().trim();
    assert!(desk.path("digits").join(first).is_file(), "{first}");
}
