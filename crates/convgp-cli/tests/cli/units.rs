//! The units of pixels do not matter, and a model knows the units it was trained on.

use crate::common::{Desk, lines};
use convgp::data::{Pixels, Targets};
use convgp_data::sample;

/// Digits of 14x14 pixels in a table, every pixel multiplied and shifted.
fn table(desk: &Desk, name: &str, factor: f64, shift: f64) {
    let (train, _) = sample::mnist();
    let (Pixels::U8(pixels), Targets::Classes { labels, .. }) = (train.images().pixels(), train.targets())
    else {
        panic!()
    };
    let columns: Vec<String> = (0..196).map(|i| format!("p{i}")).collect();
    let mut text = format!("label,{}\n", columns.join(","));
    for (image, label) in pixels.chunks_exact(784).zip(labels).take(150) {
        let pixel = |i: usize| factor * f64::from(image[i / 14 * 56 + i % 14 * 2]) + shift;
        let row: Vec<String> = (0..196).map(|i| pixel(i).to_string()).collect();
        text += &format!("{label},{}\n", row.join(","));
    }
    std::fs::write(desk.path(name), text).unwrap();
}

fn probabilities(desk: &Desk, run: usize, source: &str) -> Vec<f64> {
    let ran = desk.ok(&format!("predict {} {source}", desk.run_folder(run).display()));
    let header: Vec<&str> = ran.out.lines().next().unwrap().split(',').collect();
    let wanted: Vec<usize> = (0..header.len()).filter(|&i| header[i].starts_with("p_")).collect();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        wanted.iter().map(|&i| fields[i].parse::<f64>().unwrap()).collect::<Vec<_>>()
    };
    ran.out.lines().skip(1).flat_map(row).collect()
}

#[test]
fn multiplied_and_shifted_pixels_give_the_same_predictions() {
    let desk = Desk::new();
    let units = [
        ("bytes.csv", 1.0, 0.0),
        ("wide.csv", 16.0, 0.0),
        ("shifted.csv", 255.0, -900.0),
        ("small.csv", 1e-3, 4.0),
    ];
    let mut run = 0;
    for solver in ["--model pooled", "--model weighted --steps 20 --batch 30"] {
        let mut first: Option<Vec<f64>> = None;
        for (name, factor, shift) in units {
            table(&desk, name, factor, shift);
            run += 1;
            desk.ok(&format!("train {name} {solver} -m 30 -q --no-report"));
            let p = probabilities(&desk, run, name);
            assert_eq!(p.len(), 1500);
            let expected = first.get_or_insert_with(|| p.clone());
            let worst = p.iter().zip(&*expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-4, "{solver} {name}: {worst}");
        }
    }
}

#[test]
fn fractions_and_bytes_give_the_same_predictions() {
    let desk = Desk::new();
    table(&desk, "unit.csv", 1.0 / 255.0, 0.0);
    table(&desk, "bytes.csv", 1.0, 0.0);
    for name in ["unit.csv", "bytes.csv"] {
        desk.ok(&format!("train {name} --model rbf --steps 2 -m 10 -q --no-report"));
    }
    let first = probabilities(&desk, 1, "unit.csv");
    for (run, source) in [(1, "bytes.csv"), (2, "unit.csv"), (2, "bytes.csv")] {
        let other = probabilities(&desk, run, source);
        let worst = other.iter().zip(&first).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-4, "{run} {source}: {worst}");
    }
}

/// The report reads the test images anew: on the scale of the training images, as the run did.
#[test]
fn a_report_made_later_has_the_figures_of_the_run() {
    let desk = Desk::new();
    table(&desk, "train.csv", 16.0 / 255.0, 0.0);
    let told = desk.ok("train train.csv --model rbf --steps 2 -m 10 --validation 0.3").out;
    let page = |desk: &Desk| String::from_utf8(desk.run_file(1, "report/report.html")).unwrap();
    let before = page(&desk);
    desk.ok(&format!("report {}", desk.run_folder(1).display()));
    let nlpp = |page: &str| {
        let at = page.find("NLPP").unwrap_or_else(|| panic!("{told}"));
        page[at..].chars().skip_while(|c| !c.is_ascii_digit()).take(6).collect::<String>()
    };
    assert_eq!(nlpp(&page(&desk)), nlpp(&before));
}

#[test]
fn images_in_other_units_are_refused() {
    let desk = Desk::new();
    for (name, factor) in [("unit.csv", 1.0 / 255.0), ("sixteen.csv", 16.0 / 255.0), ("bytes.csv", 1.0)] {
        table(&desk, name, factor, 0.0);
    }
    let train = |name: &str| desk.ok(&format!("train {name} --model rbf --steps 2 -m 10 --no-report"));
    let told = train("sixteen.csv").err;
    assert!(told.contains("data: pixels from 0 to 16, 0 becomes 0 and 16 becomes 1"), "{told}");
    train("unit.csv");
    train("bytes.csv");
    let sources = ["sixteen.csv", "unit.csv", "bytes.csv"];
    for run in 1..=3 {
        let model = desk.run_folder(run);
        for (i, source) in sources.iter().enumerate() {
            let line = format!("eval {} {source} --json", model.display());
            match (run, i) {
                (1, 0) | (2, 1) | (3, 2) => {
                    let ran = desk.ok(&line);
                    assert!(lines(&ran.out).len() == 1 && !ran.err.contains("note"), "{}", ran.err);
                }
                (2, 2) => {
                    assert!(desk.ok(&line).err.contains("note: bytes.csv: pixels from 0 to 255 were divided"))
                }
                (3, 1) => {
                    assert!(desk.ok(&line).err.contains("note: unit.csv: pixels from 0 to 1 were multiplied"))
                }
                _ => desk.fails(&line, 3, &[source, "another scale", "units of the training images"]),
            }
        }
    }
    assert!(desk.ok(&format!("inspect {}", desk.run_folder(1).display())).out.contains("16 becomes 1"));
}
