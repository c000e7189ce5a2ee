//! The real files, if they are on this machine: set `CONVGP_DATA` to a folder with `mnist/`, `cifar10/` and `rectangles/`.
//! Without it these tests pass and say so.
#![allow(clippy::print_stderr)]

use std::path::PathBuf;
use std::time::Instant;

use convgp_data::inspect::{contact_sheet, summary};
use convgp_data::{Loaded, OpenOptions, SplitKind, open, registry};

fn folder(name: &str) -> Option<PathBuf> {
    let found =
        std::env::var_os("CONVGP_DATA").map(|root| PathBuf::from(root).join(name)).filter(|p| p.is_dir());
    if found.is_none() {
        eprintln!("skipped: CONVGP_DATA has no {name}");
    }
    found
}

fn timed(what: &str, path: PathBuf) -> Loaded {
    let start = Instant::now();
    let loaded = open(path, &OpenOptions::default()).unwrap();
    eprintln!("{what}: {:.2} s\n{}", start.elapsed().as_secs_f64(), summary(&loaded));
    loaded
}

#[test]
fn mnist() {
    let Some(dir) = folder("mnist") else { return };
    let loaded = timed("mnist", dir);
    let sum = summary(&loaded);
    assert_eq!(sum.splits[0].class_counts, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]);
    assert_eq!(sum.splits[1].class_counts, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]);
    let (mean, std) = sum.splits[0].pixel_moments;
    assert!((mean - 0.1307).abs() < 5e-5 && (std - 0.3081).abs() < 5e-5);
    for file in registry::require("mnist").unwrap().files {
        assert!(
            loaded.provenance.iter().any(|p| p.name == file.name && Some(p.sha256.as_str()) == file.sha256)
        );
    }
    // The sample is the start of these files.
    let (train, _) = convgp_data::sample::mnist();
    assert_eq!(train.images().select(&[0]).unwrap(), loaded.train().unwrap().images().select(&[0]).unwrap());
    assert!(contact_sheet(loaded.train().unwrap(), 10, 20).len() > 10_000);
}

#[test]
fn cifar10() {
    let Some(dir) = folder("cifar10") else { return };
    let loaded = timed("cifar10", dir);
    let sum = summary(&loaded);
    assert_eq!(
        (sum.splits[0].class_counts.clone(), sum.splits[1].class_counts.clone()),
        (vec![5000; 10], vec![1000; 10])
    );
    assert_eq!(loaded.class_names[9], "truck");
    let data = loaded.train().unwrap();
    let mut image = vec![0.0; 3072];
    let mut means = [0.0; 3];
    for i in 0..data.len() {
        data.images().write_image(i, &mut image);
        image.iter().enumerate().for_each(|(j, x)| means[j % 3] += x);
    }
    for (mean, wanted) in means.iter().zip([0.4914, 0.4822, 0.4465]) {
        assert!((mean / (50_000.0 * 1024.0) - wanted).abs() < 5e-5);
    }
}

#[test]
fn rectangles_from_idx_and_from_the_original_zip() {
    let Some(dir) = folder("rectangles") else { return };
    let idx = timed("rectangles idx", dir.clone());
    let zip = timed("rectangles zip", dir.join("rectangles.zip"));
    assert_eq!(idx.splits, zip.splits);
    let counts = |kind| summary(&zip).splits.iter().find(|s| s.kind == kind).unwrap().class_counts.clone();
    assert_eq!((counts(SplitKind::Train), counts(SplitKind::Test)), (vec![589, 611], vec![25_015, 24_985]));
    let root = dir.parent().unwrap();
    let named = registry::open_named("rectangles", Some(root), &OpenOptions::default()).unwrap();
    assert_eq!(named.class_names, ["wide", "tall"]);
    // The generator draws the same distribution: every original image could have come from it.
    let images = named.test().unwrap().images().count();
    assert_eq!(images, 50_000);
}
