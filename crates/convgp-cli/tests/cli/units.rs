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
            match i + 1 == run {
                true => assert_eq!(lines(&desk.ok(&line).out).len(), 1),
                false => desk.fails(&line, 3, &[source, "another scale", "units of the training images"]),
            }
        }
    }
    assert!(desk.ok(&format!("inspect {}", desk.run_folder(1).display())).out.contains("16 becomes 1"));
}
