//! Damaged files of every format: an error that names the file, no panic, and no more memory than allowed.

use std::path::Path;

use convgp_data::{Error, SplitKind, open, write};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

mod fixtures;

use fixtures::{FORMATS, check_memory, make, options, small, unpack};

/// The error must name the damaged file (or its folder).
#[track_caller]
fn fails(format: &str, what: &str, target: &Path, path: &Path) -> Error {
    match open(path, &options()) {
        Ok(loaded) => panic!("{format}, {what}: read {} images", loaded.splits[0].data.len()),
        Err(error) => {
            let folder = target.parent().unwrap().display().to_string();
            assert!(error.to_string().contains(&folder), "{format}, {what}: {error}");
            check_memory(&format!("{format}, {what}"));
            error
        }
    }
}

#[test]
fn whole_files_are_fine() {
    for format in FORMATS {
        let dir = tempfile::tempdir().unwrap();
        let (_, path) = make(format, dir.path());
        open(&path, &options()).unwrap_or_else(|e| panic!("{format}: {e}"));
    }
}

/// Cut after every byte of the first 200 and last 200, and every 13th between.
#[test]
fn truncated_at_every_boundary() {
    for format in FORMATS {
        let dir = tempfile::tempdir().unwrap();
        let (target, path) = make(format, dir.path());
        let whole = std::fs::read(&target).unwrap();
        let n = whole.len();
        for cut in (0..n).filter(|c| *c < 200 || *c + 200 > n || c % 13 == 0) {
            std::fs::write(&target, &whole[..cut]).unwrap();
            // A batch of whole CIFAR records has no header that could contradict it.
            if *format == "cifar" && cut > 0 && cut % 3073 == 0 {
                open(&path, &options()).unwrap();
                continue;
            }
            // The last bytes of a tar are padding; of a PNG, a checksum that decoders need not reach.
            let padding = (*format == "cifar-tar" && cut + 40 > n) || (*format == "png" && cut + 16 > n);
            if padding && open(&path, &options()).is_ok() {
                continue;
            }
            fails(format, &format!("cut at {cut} of {n}"), &target, &path);
        }
    }
}

#[test]
fn wrong_first_bytes() {
    for format in FORMATS.iter().filter(|f| !f.starts_with("cifar")) {
        let dir = tempfile::tempdir().unwrap();
        let (target, path) = make(format, dir.path());
        let mut bytes = std::fs::read(&target).unwrap();
        bytes[..4].copy_from_slice(b"oops");
        // A zip is found by its end: its start must be damaged by cutting the entry's header.
        if matches!(*format, "npz" | "zip") {
            bytes.drain(..4);
        }
        std::fs::write(&target, bytes).unwrap();
        fails(format, "wrong magic", &target, &path);
    }
}

#[test]
fn counts_that_disagree() {
    for format in ["idx", "npy"] {
        let dir = tempfile::tempdir().unwrap();
        let (_, path) = make(format, dir.path());
        let other = tempfile::tempdir().unwrap();
        let (labels, name) = match format {
            "idx" => {
                write::idx(other.path(), SplitKind::Train, &small().select(&[0, 1]).unwrap()).unwrap();
                let plain = other.path().join("train-labels-idx1-ubyte");
                unpack(&other.path().join("train-labels-idx1-ubyte.gz"), &plain);
                (plain, "train-labels-idx1-ubyte")
            }
            _ => {
                write::npy(other.path(), SplitKind::Train, &small().select(&[0, 1]).unwrap()).unwrap();
                (other.path().join("y_train.npy"), "y_train.npy")
            }
        };
        std::fs::copy(labels, dir.path().join(name)).unwrap();
        let error = open(&path, &options()).unwrap_err();
        assert!(matches!(error, Error::CountMismatch { images: 3, labels: 2, .. }), "{format}: {error}");
    }
}

#[test]
fn labels_out_of_range() {
    let dir = tempfile::tempdir().unwrap();
    let (target, path) = make("cifar", dir.path());
    let mut bytes = std::fs::read(&target).unwrap();
    bytes[3073] = 10;
    std::fs::write(&target, bytes).unwrap();
    let error = fails("cifar", "label 10", &target, &path);
    assert!(error.to_string().contains("byte 3073: label 10"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let (_, path) = make("idx", dir.path());
    std::fs::write(dir.path().join("classes.txt"), "zero\none\ntwo\n").unwrap();
    let error = open(&path, &options()).unwrap_err();
    assert!(matches!(error, Error::LabelOutOfRange { classes: 3, .. }), "{error}");
}

#[test]
fn absurd_dimensions_are_refused_before_allocating() {
    let dir = tempfile::tempdir().unwrap();
    let (target, path) = make("idx", dir.path());
    std::fs::write(&target, [&[0, 0, 8, 3][..], &[0xff; 12], &[1; 50]].concat()).unwrap();
    let error = fails("idx", "2^96 bytes", &target, &path);
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let (target, path) = make("npy", dir.path());
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999, 99999999999, 9999999), }";
    let start = [&b"\x93NUMPY\x01\x00"[..], &(header.len() as u16).to_le_bytes(), header.as_bytes()].concat();
    std::fs::write(&target, start).unwrap();
    assert!(matches!(fails("npy", "huge", &target, &path), Error::TooLarge { .. }));
    // A PNG that announces 65,000 x 65,000 pixels; the checksum of its header is right.
    let dir = tempfile::tempdir().unwrap();
    let (target, path) = make("png", dir.path());
    let mut bytes = std::fs::read(&target).unwrap();
    bytes[16..20].copy_from_slice(&65_000u32.to_be_bytes());
    bytes[20..24].copy_from_slice(&65_000u32.to_be_bytes());
    let mut crc = flate2::Crc::new();
    crc.update(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&crc.sum().to_be_bytes());
    std::fs::write(&target, bytes).unwrap();
    fails("png", "65000x65000", &target, &path);
}

#[test]
fn entries_that_escape() {
    let dir = tempfile::tempdir().unwrap();
    let zipped = dir.path().join("evil.zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&zipped).unwrap());
    zip.start_file("../evil_train.csv", zip::write::SimpleFileOptions::default()).unwrap();
    std::io::Write::write_all(&mut zip, b"1,2,3,4,0\n").unwrap();
    zip.finish().unwrap();
    assert!(matches!(open(&zipped, &options()), Err(Error::UnsafeEntry { .. })));
    let tarred = dir.path().join("evil.tar");
    let mut header = tar::Header::new_gnu();
    header.set_size(3);
    header.as_gnu_mut().unwrap().name[..20].copy_from_slice(b"../../data_batch.bin");
    header.set_cksum();
    let mut tar = tar::Builder::new(std::fs::File::create(&tarred).unwrap());
    tar.append(&header, &b"abc"[..]).unwrap();
    tar.finish().unwrap();
    assert!(matches!(open(&tarred, &options()), Err(Error::UnsafeEntry { .. })));
    std::fs::write(dir.path().join("metadata.csv"), "file_name,label\n../../etc/x.png,a\n").unwrap();
    let error = open(dir.path().join("metadata.csv"), &options()).unwrap_err();
    assert!(matches!(error, Error::UnsafeEntry { .. }), "{error}");
}

/// A gzip of much more than the cap is stopped on the way.
#[test]
fn bombs_stop_at_the_cap() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bomb_train.csv.gz");
    let mut packed =
        flate2::write::GzEncoder::new(std::fs::File::create(&path).unwrap(), flate2::Compression::best());
    let row = "7,".repeat(400) + "1\n";
    (0..40_000).for_each(|_| std::io::Write::write_all(&mut packed, row.as_bytes()).unwrap());
    packed.finish().unwrap();
    let error = open(&path, &options()).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(40),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..Default::default()
    })]

    /// Bytes changed anywhere: either an error or some data set, never a panic.
    #[test]
    fn flipped_bytes_never_panic(seed in any::<[u16; 4]>(), value in any::<u8>()) {
        for format in FORMATS {
            let dir = tempfile::tempdir().unwrap();
            let (target, path) = make(format, dir.path());
            let mut bytes = std::fs::read(&target).unwrap();
            // Two places anywhere, two near the start, where the headers are.
            let n = bytes.len();
            for (i, s) in seed.iter().enumerate() {
                let at = *s as usize % if i < 2 { n } else { n.min(96) };
                bytes[at] ^= value | 1;
            }
            std::fs::write(&target, bytes).unwrap();
            let _ = open(&path, &options());
            check_memory(format);
        }
    }

    /// Rubbish under every name that is recognised.
    #[test]
    fn rubbish_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let names = ["t-images-idx3-ubyte", "data_batch_1.bin", "a.tar", "x.npy", "a.npz", "a.zip", "a.csv", "a.amat",
            "metadata.csv", "a.parquet", "train.bin"];
        for name in names {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join(name), &bytes).unwrap();
            if name == "x.npy" || name.starts_with("t-images") {
                std::fs::write(dir.path().join(name.replace("x.", "y.").replace("images", "labels")), &bytes).unwrap();
            }
            let _ = open(dir.path().join(name), &options());
            check_memory(name);
        }
    }
}
