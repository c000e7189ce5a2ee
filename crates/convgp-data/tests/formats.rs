//! The same images through every format give the same data set.

use std::path::Path;

use convgp::data::{Dataset, Pixels, Targets};
use convgp_data::{Colour, Fit, Format, Loaded, OpenOptions, Size, SplitKind, open, sample, write};

const KINDS: [SplitKind; 2] = [SplitKind::Train, SplitKind::Test];

fn splits() -> [(SplitKind, Dataset); 2] {
    let (train, test) = sample::mnist();
    [(KINDS[0], train), (KINDS[1], test)]
}

#[track_caller]
fn check(dir: &Path, format: Format) -> Loaded {
    let loaded = open(dir, &OpenOptions::default()).unwrap();
    let (train, test) = sample::mnist();
    assert_eq!(loaded.format, format);
    assert_eq!(loaded.train(), Some(&train));
    assert_eq!(loaded.test(), Some(&test));
    let expected = |note: &String| note.contains("no header");
    assert!(
        loaded.skipped.is_empty() && loaded.notes.iter().all(expected),
        "{:?} {:?}",
        loaded.skipped,
        loaded.notes
    );
    assert!(
        !loaded.provenance.is_empty()
            && loaded.provenance.iter().all(|p| p.sha256.len() == 64 && p.bytes > 0)
    );
    loaded
}

#[test]
fn idx() {
    let dir = tempfile::tempdir().unwrap();
    splits().iter().for_each(|(kind, data)| write::idx(dir.path(), *kind, data).unwrap());
    check(dir.path(), Format::Idx);
    // One file with its labels beside it.
    let one = open(dir.path().join("t10k-images-idx3-ubyte.gz"), &OpenOptions::default()).unwrap();
    assert_eq!(one.test(), Some(&splits()[1].1));
}

#[test]
fn npy_and_npz() {
    let dir = tempfile::tempdir().unwrap();
    splits().iter().for_each(|(kind, data)| write::npy(dir.path(), *kind, data).unwrap());
    check(dir.path(), Format::Npy);
    let one = open(dir.path().join("x_test.npy"), &OpenOptions::default()).unwrap();
    assert_eq!((one.splits.len(), one.test()), (1, Some(&splits()[1].1)));
    let [train, test] = &splits();
    let file = dir.path().join("all.npz");
    write::npz(&file, &[(train.0, &train.1), (test.0, &test.1)]).unwrap();
    check(&file, Format::Npz);
}

#[test]
fn csv_plain_and_gzipped() {
    for ending in ["csv", "csv.gz"] {
        let dir = tempfile::tempdir().unwrap();
        splits()
            .iter()
            .for_each(|(kind, data)| write::csv(&dir.path().join(format!("{kind}.{ending}")), data).unwrap());
        check(dir.path(), Format::Table);
    }
}

#[test]
fn blank_separated_tables_in_a_zip() {
    let dir = tempfile::tempdir().unwrap();
    let mut zip = zip::ZipWriter::new(std::fs::File::create(dir.path().join("digits.zip")).unwrap());
    for (kind, data) in &splits() {
        zip.start_file(format!("digits_{kind}.amat"), zip::write::SimpleFileOptions::default()).unwrap();
        let (Pixels::U8(pixels), Targets::Classes { labels, .. }) = (data.images().pixels(), data.targets())
        else {
            panic!()
        };
        for (image, label) in pixels.chunks_exact(784).zip(labels) {
            let row: String = image.iter().map(|&p| format!("   {:.7e}", f32::from(p))).collect();
            std::io::Write::write_all(&mut zip, format!("{row}   {label}\n").as_bytes()).unwrap();
        }
    }
    zip.finish().unwrap();
    check(dir.path(), Format::Table);
}

#[test]
fn folder_of_png() {
    let dir = tempfile::tempdir().unwrap();
    splits().iter().for_each(|(kind, data)| write::folder(dir.path(), *kind, data).unwrap());
    check(dir.path(), Format::Folder);
}

#[test]
fn metadata() {
    let dir = tempfile::tempdir().unwrap();
    let [train, test] = &splits();
    write::metadata(dir.path(), &[(train.0, &train.1), (test.0, &test.1)]).unwrap();
    check(dir.path(), Format::Metadata);
    check(&dir.path().join("metadata.csv"), Format::Metadata);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for (kind, split) in &splits() {
        write::parquet(&data.join(format!("{kind}-00000-of-00001.parquet")), split).unwrap();
    }
    check(dir.path(), Format::Parquet);
}

/// CIFAR has one shape only: compare with the digits brought to that shape.
#[test]
fn cifar() {
    let dir = tempfile::tempdir().unwrap();
    let (idx, bin) = (dir.path().join("idx"), dir.path().join("bin"));
    splits().iter().for_each(|(kind, data)| write::idx(&idx, *kind, data).unwrap());
    let size = Some(Size { height: 32, width: 32, fit: Fit::Centre });
    let options = OpenOptions { size, colour: Colour::Rgb, ..Default::default() };
    let wanted = open(&idx, &options).unwrap();
    std::fs::create_dir(&bin).unwrap();
    let train = wanted.train().unwrap();
    // The order of batches is that of their names, whatever the order of the files.
    let (first, second): (Vec<usize>, Vec<usize>) = ((0..100).collect(), (100..300).collect());
    write::cifar10(&bin.join("data_batch_2.bin"), &train.select(&second).unwrap()).unwrap();
    write::cifar10(&bin.join("data_batch_1.bin.gz"), &train.select(&first).unwrap()).unwrap();
    write::cifar10(&bin.join("test_batch.bin"), wanted.test().unwrap()).unwrap();
    let rgb = OpenOptions { colour: Colour::Rgb, ..Default::default() };
    let from_files = open(&bin, &rgb).unwrap();
    assert_eq!(from_files.class_names[3], "cat");
    for kind in KINDS {
        let (found, wanted) = (from_files.get(kind).unwrap(), wanted.get(kind).unwrap());
        assert_eq!((found.images(), found.targets()), (wanted.images(), wanted.targets()));
    }
    // The same in a tar, entries in another order.
    let tar_path = dir.path().join("cifar-10-binary.tar.gz");
    let packed =
        flate2::write::GzEncoder::new(std::fs::File::create(&tar_path).unwrap(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(packed);
    for name in ["test_batch.bin", "data_batch_2.bin", "data_batch_1.bin.gz"] {
        tar.append_path_with_name(bin.join(name), format!("cifar-10-batches-bin/{name}")).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap();
    let from_tar = open(&tar_path, &rgb).unwrap();
    assert_eq!(from_tar.splits, from_files.splits);
}

/// Layouts of arrays that other tools write.
#[test]
fn float_arrays_and_channel_first_arrays() {
    let dir = tempfile::tempdir().unwrap();
    let npy = |name: &str, descr: &str, shape: &str, data: Vec<u8>| {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend((header.len() as u16).to_le_bytes());
        out.extend(header.bytes());
        out.extend(data);
        std::fs::write(dir.path().join(name), out).unwrap();
    };
    // Two images, three channels, 1 x 2 pixels.
    let values: Vec<f32> = (0..12).map(|i| i as f32 / 16.0).collect();
    npy("images.npy", "<f4", "(2, 3, 1, 2)", values.iter().flat_map(|v| v.to_le_bytes()).collect());
    npy("labels.npy", "|u1", "(2, 1)", vec![1, 0]);
    let loaded = open(dir.path(), &OpenOptions::default()).unwrap();
    let data = loaded.train().unwrap();
    let order = [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11];
    let wanted = order.iter().map(|&i| i as f32 / 16.0).collect();
    assert_eq!(data.images().pixels(), &Pixels::F32(wanted));
    assert_eq!(data.targets(), &Targets::classes(vec![1, 0], 2).unwrap());
}
