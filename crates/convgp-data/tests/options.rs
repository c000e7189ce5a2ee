//! What a caller may ask for, and image folders as people have them.

use std::path::Path;

use convgp::data::{ImageShape, Pixels, Targets};
use convgp_data::{
    Colour, Error, Fit, OpenOptions, Opened, Size, SplitKind, TargetKind, open, open_any, read_images,
    sample, write,
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
    assert!(reals.notes.iter().any(|n| n.contains("regression")), "{:?}", reals.notes);
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
    says("1,2,3,4,5\n1,2,3,4,5\n", &["label \"5\"", "--label-column"]);
    let many: String = (0..300).map(|i| format!("1,2,3,4,{}\n", 3 * i)).collect();
    says(&many, &["300 different labels", "--targets real"]);
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

#[test]
fn classes_are_the_distinct_labels() {
    let names = |labels: &[&str]| {
        let text: String = labels.iter().map(|l| format!("1,2,3,4,{l}\n")).collect();
        let loaded = table("a.csv", &text, OpenOptions::default()).unwrap();
        let Targets::Classes { labels, .. } = loaded.train().unwrap().targets().clone() else { panic!() };
        (loaded.class_names, labels)
    };
    assert_eq!(
        names(&["907", "7", "107", "7"]),
        (["7", "107", "907"].map(String::from).to_vec(), vec![2, 0, 1, 0])
    );
    assert_eq!(names(&["1", "-1", "-1"]), (["-1", "1"].map(String::from).to_vec(), vec![1, 0, 0]));
    assert_eq!(names(&["3", "1", "2"]), (["1", "2", "3"].map(String::from).to_vec(), vec![2, 0, 1]));
    let known =
        OpenOptions { known_classes: ["0", "1", "2"].map(String::from).to_vec(), ..Default::default() };
    let one = table("a.csv", "1,2,3,4,1\n5,6,7,8,1\n", known).unwrap();
    assert_eq!(one.class_names, ["1", "0", "2"], "a model's classes, where the data have one of them");
}

/// Rows of digits with the label in front or at the end, and columns people add.
fn digit_rows(row: impl Fn(usize, u32, &str) -> String) -> String {
    let (train, _) = sample::mnist();
    let (Pixels::U8(pixels), Targets::Classes { labels, .. }) = (train.images().pixels(), train.targets())
    else {
        panic!()
    };
    let text = |image: &[u8]| image.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
    let all = pixels.chunks_exact(784).zip(labels).enumerate();
    all.map(|(i, (image, label))| row(i, *label, &text(image)) + "\n").collect()
}

#[test]
fn the_label_is_found_by_what_columns_hold() {
    let wanted = sample::mnist().0;
    let read = |text: &str, says: &str| {
        let loaded = table("a.csv", text, OpenOptions::default()).unwrap();
        assert_eq!(loaded.train(), Some(&wanted), "{says}");
        assert!(loaded.notes.iter().any(|n| n.contains(says)), "{:?}", loaded.notes);
    };
    read(&digit_rows(|_, label, pixels| format!("{label},{pixels}")), "the label is the first column");
    read(&digit_rows(|_, label, pixels| format!("{pixels},{label}")), "the label is the last column");
    read(&digit_rows(|i, label, pixels| format!("{i},{label},{pixels}")), "the label is the second column");
    read(&digit_rows(|i, label, pixels| format!("{},{pixels},{label}", i + 1)), "numbers the rows");
    let header: Vec<String> = (0..784).map(|i| format!("p{i}")).collect();
    let named =
        format!(",label,{}\n", header.join(",")) + &digit_rows(|i, label, p| format!("{i},{label},{p}"));
    assert_eq!(table("a.csv", &named, OpenOptions::default()).unwrap().train(), Some(&wanted));
    let words = digit_rows(|_, label, pixels| format!("digit {label},{pixels}"));
    assert_eq!(table("a.csv", &words, OpenOptions::default()).unwrap().class_names[3], "digit 3");
    let reals = digit_rows(|i, label, pixels| format!("{pixels},{}", f64::from(label) + 0.25 * i as f64));
    assert!(matches!(
        table("a.csv", &reals, OpenOptions::default()).unwrap().train().unwrap().targets(),
        Targets::Real(_)
    ));
}

#[test]
fn the_array_that_was_named_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let (train, test) = sample::mnist();
    write::npz(&dir.path().join("other.npz"), &[(SplitKind::Train, &train)]).unwrap();
    write::npy(dir.path(), SplitKind::Train, &train).unwrap();
    let more = tempfile::tempdir().unwrap();
    write::npy(more.path(), SplitKind::Train, &test).unwrap();
    for (from, to) in [("x_train.npy", "images.npy"), ("y_train.npy", "labels.npy")] {
        std::fs::copy(more.path().join(from), dir.path().join(to)).unwrap();
    }
    let read = |name: &str| open(dir.path().join(name), &OpenOptions::default());
    let images = |name: &str| read(name).unwrap().train().unwrap().len();
    assert_eq!((images("x_train.npy"), images("images.npy"), images("labels.npy")), (300, 100, 100));
    std::fs::rename(dir.path().join("images.npy"), dir.path().join("only.npy")).unwrap();
    let both = read("only.npy").unwrap_err().to_string();
    assert!(both.contains("labels.npy") && both.contains("y_train.npy"), "{both}");
    std::fs::remove_file(dir.path().join("labels.npy")).unwrap();
    std::fs::remove_file(dir.path().join("y_train.npy")).unwrap();
    let none = read("only.npy").unwrap_err().to_string();
    assert!(none.contains("only.npy") && none.contains("labels"), "{none}");
}

#[test]
fn sixteen_bits_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    for class in ["a", "b"] {
        let pixel = |x: u32, y: u32| image::Luma([(x * 300 + y) as u16]);
        let image = DynamicImage::ImageLuma16(image::ImageBuffer::from_fn(4, 4, pixel));
        save(&dir.path().join(class).join("0.png"), image);
    }
    let loaded = open(dir.path(), &OpenOptions::default()).unwrap();
    let Pixels::U16(pixels) = loaded.train().unwrap().images().pixels().clone() else { panic!() };
    assert_eq!(pixels[..8], [0, 300, 600, 900, 1, 301, 601, 901]);
    assert!(loaded.notes.iter().any(|n| n.contains("16 bits")), "{:?}", loaded.notes);
    let options =
        OpenOptions { size: Some(Size { height: 2, width: 2, fit: Fit::Centre }), ..Default::default() };
    let cut = open(dir.path(), &options).unwrap();
    assert_eq!(cut.train().unwrap().images().pixels(), &Pixels::U16([301, 601, 302, 602].repeat(2)));
}

#[test]
fn grey_stored_as_colour_is_grey() {
    let dir = tempfile::tempdir().unwrap();
    for class in ["a", "b"] {
        let pixel = |x: u32, y: u32| Rgb([(x * 10 + y) as u8; 3]);
        save(&dir.path().join(class).join("0.png"), DynamicImage::ImageRgb8(RgbImage::from_fn(4, 4, pixel)));
    }
    let loaded = open(dir.path(), &OpenOptions::default()).unwrap();
    let images = loaded.train().unwrap().images();
    assert_eq!(images.shape(), ImageShape::new(4, 4, 1).unwrap());
    assert_eq!(
        images.pixels(),
        &Pixels::U8([0, 10, 20, 30, 1, 11, 21, 31, 2, 12, 22, 32, 3, 13, 23, 33].repeat(2))
    );
    assert!(loaded.notes.iter().any(|n| n.contains("grey stored as RGB")), "{:?}", loaded.notes);
    let rgb = OpenOptions { colour: Colour::Rgb, ..Default::default() };
    assert_eq!(
        open(dir.path(), &rgb).unwrap().train().unwrap().images().shape(),
        ImageShape::new(4, 4, 3).unwrap()
    );
    save(&dir.path().join("b/1.png"), red(4, 4));
    assert_eq!(
        open(dir.path(), &OpenOptions::default()).unwrap().train().unwrap().images().shape().channels(),
        3
    );
}

#[test]
fn the_built_in_digits_have_a_name() {
    let all = open("sample", &OpenOptions::default()).unwrap();
    assert_eq!(
        (all.train().cloned(), all.test().cloned()),
        (Some(sample::mnist().0), Some(sample::mnist().1))
    );
    let real = OpenOptions { targets: TargetKind::Real, limit: Some(20), ..Default::default() };
    assert!(
        matches!(open("sample", &real).unwrap().train().unwrap().targets(), Targets::Real(y) if y.len() == 20)
    );
}

#[test]
fn folders_that_are_no_data_sets_say_why() {
    let says = |files: &[&str], words: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            let folder = if file.ends_with('/') { path.as_path() } else { path.parent().unwrap() };
            std::fs::create_dir_all(folder).unwrap();
            if !file.ends_with('/') {
                std::fs::write(path, b"x").unwrap();
            }
        }
        let error = open(dir.path(), &OpenOptions::default()).unwrap_err().to_string();
        assert!(words.iter().all(|w| error.contains(w)), "{error}");
    };
    says(&["1.png", "2.jpg"], &["its 2 images lie in one folder", "one folder per class"]);
    says(&["cat/1.gif", "dog/2.gif"], &["ends like an image", "1.gif", "webp"]);
    says(&["cat/", "dog/"], &["folders (cat, dog) hold no files"]);
}

/// Copies one array of an NPZ file into another.
fn images_alone(from: &std::path::Path, to: &std::path::Path) {
    use std::io::Write;
    let mut all = zip::ZipArchive::new(std::fs::File::open(from).unwrap()).unwrap();
    let mut x = Vec::new();
    std::io::copy(&mut all.by_name("x_train.npy").unwrap(), &mut x).unwrap();
    let mut alone = zip::ZipWriter::new(std::fs::File::create(to).unwrap());
    alone.start_file("x_train.npy", zip::write::SimpleFileOptions::default()).unwrap();
    alone.write_all(&x).unwrap();
    alone.finish().unwrap();
}

#[test]
fn errors_name_the_archive_and_the_member() {
    let dir = tempfile::tempdir().unwrap();
    let (train, test) = sample::mnist();
    let mut mixed = zip::ZipWriter::new(std::fs::File::create(dir.path().join("mixed.npz")).unwrap());
    for (name, data) in [("x_train", &train), ("y_train", &test)] {
        let one = dir.path().join(format!("{name}.npz"));
        write::npz(&one, &[(SplitKind::Train, data)]).unwrap();
        let mut archive = zip::ZipArchive::new(std::fs::File::open(&one).unwrap()).unwrap();
        let entry = format!("{name}.npy");
        mixed.start_file(&entry, zip::write::SimpleFileOptions::default()).unwrap();
        std::io::copy(&mut archive.by_name(&entry).unwrap(), &mut mixed).unwrap();
    }
    mixed.finish().unwrap();
    let error = open(dir.path().join("mixed.npz"), &OpenOptions::default()).unwrap_err().to_string();
    assert!(error.contains("mixed.npz: x_train") && error.contains("mixed.npz: y_train"), "{error}");
}

#[test]
fn images_without_labels_are_read_where_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let (train, _) = sample::mnist();
    write::npz(&dir.path().join("all.npz"), &[(SplitKind::Train, &train)]).unwrap();
    let new = dir.path().join("new.npz");
    images_alone(&dir.path().join("all.npz"), &new);
    let options = OpenOptions { limit: Some(7), ..Default::default() };
    let Opened::Unlabelled(found) = open_any(&new, &options).unwrap() else { panic!() };
    assert_eq!(found.images, train.select(&(0..7).collect::<Vec<_>>()).unwrap().images().clone());
    assert!(matches!(open(&new, &options), Err(Error::Missing { .. })));
    let with_labels = open_any(dir.path().join("all.npz"), &OpenOptions::default()).unwrap();
    let Opened::Labelled(loaded) = with_labels else { panic!() };
    assert_eq!(loaded.train(), Some(&train));
    let classes = OpenOptions { classes: vec!["3".into()], ..Default::default() };
    assert!(open_any(&new, &classes).unwrap_err().to_string().contains("to choose classes by"));
}

#[test]
fn images_of_folders_have_names() {
    let dir = tempfile::tempdir().unwrap();
    let (train, _) = sample::mnist();
    write::folder(dir.path(), SplitKind::Train, &train).unwrap();
    let options = OpenOptions { classes: vec!["7".into(), "2".into()], limit: Some(9), ..Default::default() };
    let loaded = open(dir.path(), &options).unwrap();
    let data = loaded.train().unwrap();
    let Targets::Classes { labels, .. } = data.targets() else { panic!() };
    for (name, &label) in data.image_names().unwrap().iter().zip(labels) {
        assert!(name.starts_with(&format!("train/{}/", ["7", "2"][label as usize])), "{name}");
        assert!(dir.path().join(name).is_file(), "{name}");
    }
    let unknown = OpenOptions { known_classes: vec!["7".into(), "2".into()], ..Default::default() };
    let Opened::Unlabelled(found) = open_any(dir.path(), &unknown).unwrap() else { panic!() };
    assert_eq!((found.images.count(), found.names.unwrap().len()), (train.len(), train.len()));
}
