//! What a caller may ask for, and image folders as people have them.

use std::path::Path;

use convgp::data::{ImageShape, Pixels, Targets};
use convgp_data::{
    Colour, Error, Fit, OpenOptions, Size, SplitKind, TargetKind, open, read_images, sample, write,
};
use image::{DynamicImage, GrayImage, Rgb, RgbImage};

fn idx_sample() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (train, test) = sample::mnist();
    write::idx(dir.path(), SplitKind::Train, &train).unwrap();
    write::idx(dir.path(), SplitKind::Test, &test).unwrap();
    dir
}

fn save(path: &Path, image: DynamicImage) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    image.save(path).unwrap();
}

fn red(h: u32, w: u32) -> DynamicImage {
    DynamicImage::ImageRgb8(RgbImage::from_pixel(w, h, Rgb([250, 10, 20])))
}

fn grey(h: u32, w: u32) -> DynamicImage {
    DynamicImage::ImageLuma8(GrayImage::from_pixel(w, h, image::Luma([77])))
}

#[test]
fn classes_limit_splits_size_and_colour() {
    let dir = idx_sample();
    let options = OpenOptions {
        classes: vec!["7".into(), "1".into()],
        limit: Some(9),
        splits: vec![SplitKind::Train],
        size: Some(Size { height: 14, width: 10, fit: Fit::Stretch }),
        colour: Colour::Rgb,
        ..Default::default()
    };
    let loaded = open(dir.path(), &options).unwrap();
    assert_eq!((loaded.splits.len(), loaded.class_names.as_slice()), (1, &["7".to_owned(), "1".into()][..]));
    let train = loaded.train().unwrap();
    assert_eq!((train.len(), train.images().shape()), (9, ImageShape::new(14, 10, 3).unwrap()));
    let Targets::Classes { labels, classes: 2 } = train.targets() else { panic!() };
    assert_eq!(labels.iter().filter(|&&l| l == 0).count(), 5);
    assert_eq!(loaded, open(dir.path(), &options).unwrap());
    assert_ne!(loaded, open(dir.path(), &OpenOptions { seed: 1, ..options }).unwrap());
}

#[test]
fn wrong_wishes_are_errors() {
    let dir = idx_sample();
    let ask = |options: OpenOptions| open(dir.path(), &options).unwrap_err();
    let unknown = ask(OpenOptions { classes: vec!["cat".into(), "1".into()], ..Default::default() });
    assert!(matches!(unknown, Error::UnknownClass { .. }), "{unknown}");
    let none = ask(OpenOptions { splits: vec![SplitKind::Validation], ..Default::default() });
    assert!(matches!(none, Error::Missing { .. }), "{none}");
    let small = ask(OpenOptions { memory_cap: 100_000, ..Default::default() });
    assert!(matches!(small, Error::TooLarge { .. }), "{small}");
    let few = ask(OpenOptions { class_count: Some(5), ..Default::default() });
    assert!(matches!(few, Error::LabelOutOfRange { .. }), "{few}");
    let empty = ask(OpenOptions { size: Some(Size::new(0, 3)), ..Default::default() });
    assert!(matches!(empty, Error::Data { .. }), "{empty}");
}

#[test]
fn photos_of_mixed_sizes_and_formats() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for (i, ending) in ["png", "jpg", "bmp", "webp", "tiff"].into_iter().enumerate() {
        save(&root.join(format!("cat/{i}.{ending}")), red(20 + i as u32, 50));
        save(
            &root.join(format!("train/{i}.{ending}")),
            if ending == "webp" { red(9, 9) } else { grey(70, 40) },
        );
    }
    std::fs::write(root.join("cat/notes.txt"), "x").unwrap();
    std::fs::write(root.join("cat/broken.png"), b"\x89PNG\r\n\x1a\n rubbish").unwrap();
    let loaded = open(root, &OpenOptions::default()).unwrap();
    // `train` holds images, not folders: it is a class.
    assert_eq!(loaded.class_names, ["cat", "train"]);
    let train = loaded.train().unwrap();
    assert_eq!((train.len(), train.images().shape()), (10, ImageShape::new(32, 32, 3).unwrap()));
    assert_eq!(loaded.notes.len(), 1, "{:?}", loaded.notes);
    let skipped: Vec<&str> = loaded.skipped.iter().map(|s| s.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(skipped, ["notes.txt", "broken.png"]);
    let strict = open(root, &OpenOptions { strict: true, ..Default::default() }).unwrap_err();
    assert!(strict.to_string().contains("broken.png"), "{strict}");
    let options = OpenOptions { colour: Colour::Grey, size: Some(Size::new(5, 7)), ..Default::default() };
    let loaded = open(root, &options).unwrap();
    assert_eq!(loaded.train().unwrap().images().shape(), ImageShape::new(5, 7, 1).unwrap());
}

#[test]
fn the_built_files_are_lossless_where_the_format_is() {
    let dir = tempfile::tempdir().unwrap();
    for (i, ending) in ["png", "bmp", "webp", "tiff"].into_iter().enumerate() {
        save(&dir.path().join(format!("a/{i}.{ending}")), red(3, 4));
        save(&dir.path().join(format!("b/{i}.{ending}")), red(3, 4));
    }
    let loaded = open(dir.path(), &OpenOptions::default()).unwrap();
    let pixels = [250, 10, 20].repeat(12 * 8);
    assert_eq!(loaded.train().unwrap().images().pixels(), &Pixels::U8(pixels));
    let names = |l: &convgp_data::Loaded| l.provenance.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&loaded), ["train (8 files)"]);
}

#[test]
fn files_for_prediction_need_no_labels() {
    let dir = tempfile::tempdir().unwrap();
    save(&dir.path().join("b.png"), grey(6, 6));
    save(&dir.path().join("a.png"), grey(6, 6));
    std::fs::write(dir.path().join("c.png"), b"no").unwrap();
    let files = read_images(&[dir.path().to_path_buf()], &OpenOptions::default()).unwrap();
    assert_eq!((files.images.count(), files.images.shape()), (2, ImageShape::new(6, 6, 1).unwrap()));
    assert!(files.paths[0].ends_with("a.png") && files.skipped.len() == 1);
    let err = read_images(&[dir.path().join("c.png")], &OpenOptions::default()).unwrap_err();
    assert!(matches!(err, Error::NothingReadable { .. }), "{err}");
}

fn table(name: &str, text: &str, options: OpenOptions) -> Result<convgp_data::Loaded, Error> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(name), text).unwrap();
    open(dir.path().join(name), &options)
}

#[test]
fn tables_with_and_without_header() {
    let pixels = |l: &convgp_data::Loaded| l.train().unwrap().images().pixels().clone();
    let default = OpenOptions::default;
    let plain = table("a.csv", "1,2,3,4,0\n5,6,7,8,1\n\n", default()).unwrap();
    assert_eq!(pixels(&plain), Pixels::U8(vec![1, 2, 3, 4, 5, 6, 7, 8]));
    let kaggle = table("a.csv", "label,p0,p1,p2,p3\ncat,1,2,3,4\ndog,5,6,7,8\n", default()).unwrap();
    assert_eq!((pixels(&kaggle), kaggle.class_names), (pixels(&plain), vec!["cat".into(), "dog".into()]));
    let drawing = table("a.amat", "  0.0e+00 1.0 0 1 \t 1.0e0\n1 1 1 1 0.0\r\n", default()).unwrap();
    assert_eq!(pixels(&drawing), Pixels::U8(vec![0, 255, 0, 255, 255, 255, 255, 255]));
    assert_eq!(drawing.train().unwrap().targets(), &Targets::classes(vec![1, 0], 2).unwrap());
    let reals = table("a.csv", "0.5;0.25;0;1;2.5\n1;1;1;1;-3\n", default()).unwrap();
    assert_eq!(reals.train().unwrap().targets(), &Targets::Real(vec![2.5, -3.0]));
    assert_eq!(reals.notes.len(), 1);
    let first = OpenOptions { label_column: Some("0".into()), targets: TargetKind::Real, ..default() };
    let first = table("a.csv", "9,1,2,3,4\n8,1,2,3,4\n", first).unwrap();
    assert_eq!(first.train().unwrap().targets(), &Targets::Real(vec![9.0, 8.0]));
    let shaped = OpenOptions { image_shape: Some(ImageShape::new(1, 2, 3).unwrap()), ..default() };
    let shaped = table("a.csv", "1,2,3,4,5,6,0\n1,2,3,4,5,6,1\n", shaped).unwrap();
    assert_eq!(shaped.train().unwrap().images().shape(), ImageShape::new(1, 2, 3).unwrap());
}

#[test]
fn table_errors_name_row_and_field() {
    let says = |text: &str, parts: &[&str]| {
        let err = table("a.csv", text, OpenOptions::default()).unwrap_err().to_string();
        assert!(parts.iter().all(|p| err.contains(p)) && err.contains("a.csv"), "{err}");
    };
    says("1,2,3,4,0\n1,2,x,4,1\n", &["row 2, field 3", "\"x\"", "a finite number"]);
    says("1,2,3,4,0\n1,2,nan,4,1\n", &["row 2, field 3"]);
    says("1,2,3,4,0\n1,2,3,1\n", &["row 2 has 4 fields", "have 5"]);
    says("1,2,3,0\n1,2,3,1\n", &["3 pixels per image"]);
    says("1,2,3,4,0\n1,2,3,4,-1\n", &["image 1", "label -1"]);
    says("1,2,3,4,0\n1,2,3,4,70000\n", &["image 1", "label 70000"]);
    says("", &["first row"]);
    says("p0,p1,label\n", &["first row"]);
}

#[test]
fn unrecognised_paths_say_what_is_known() {
    let dir = tempfile::tempdir().unwrap();
    let err = open(dir.path(), &OpenOptions::default()).unwrap_err().to_string();
    assert!(err.contains("the folder is empty") && err.contains("Parquet"), "{err}");
    std::fs::write(dir.path().join("x.doc"), "hello world").unwrap();
    let err = open(dir.path().join("x.doc"), &OpenOptions::default()).unwrap_err().to_string();
    assert!(err.contains("starts with"), "{err}");
    let err = open(dir.path().join("nothing"), &OpenOptions::default()).unwrap_err().to_string();
    assert!(err.contains("cannot open"), "{err}");
}
