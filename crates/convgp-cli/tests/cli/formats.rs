//! The same images give the same model, to the byte, whatever files they came from.

use crate::common::Desk;
use convgp::data::Dataset;
use convgp_data::{Colour, Fit, OpenOptions, Size, SplitKind, open, sample, write};

const RUN: &str = "--steps 3 -m 10 --batch 20 -q --no-report";

fn splits() -> [(SplitKind, Dataset); 2] {
    let (train, test) = sample::mnist();
    [(SplitKind::Train, train), (SplitKind::Test, test)]
}

#[test]
fn digits_through_every_format() {
    let desk = Desk::new();
    desk.idx_folder("idx");
    let both = splits();
    let dir = |name: &str| {
        let dir = desk.path(name);
        std::fs::create_dir(&dir).unwrap();
        dir
    };
    let (npy, csv, parquet) = (dir("npy"), dir("csv"), dir("parquet"));
    for (kind, data) in &both {
        write::npy(&npy, *kind, data).unwrap();
        write::csv(&csv.join(format!("{kind}.csv.gz")), data).unwrap();
        write::folder(&desk.path("folder"), *kind, data).unwrap();
        write::parquet(&parquet.join(format!("{kind}-0.parquet")), data).unwrap();
    }
    let pairs: Vec<(SplitKind, &Dataset)> = both.iter().map(|(kind, data)| (*kind, data)).collect();
    write::npz(&desk.path("all.npz"), &pairs).unwrap();
    write::metadata(&dir("metadata"), &pairs).unwrap();
    let sources = ["idx", "npy", "csv", "folder", "parquet", "all.npz", "metadata", "sample"];
    for (i, source) in sources.iter().enumerate() {
        desk.ok(&format!("train {source} {RUN}"));
        assert_eq!(
            desk.run_file(1, "model.safetensors"),
            desk.run_file(i + 1, "model.safetensors"),
            "{source}"
        );
    }
}

#[test]
fn colour_through_cifar_batches_and_a_folder() {
    let desk = Desk::new();
    let size = Some(Size { height: 32, width: 32, fit: Fit::Centre });
    let options = OpenOptions { size, colour: Colour::Rgb, limit: Some(60), ..Default::default() };
    let loaded = open(desk.idx_folder("idx"), &options).unwrap();
    std::fs::create_dir(desk.path("bin")).unwrap();
    write::cifar10(&desk.path("bin/data_batch_1.bin"), loaded.train().unwrap()).unwrap();
    let cifar = open(desk.path("bin"), &OpenOptions { colour: Colour::Rgb, ..Default::default() }).unwrap();
    write::folder(&desk.path("folder"), SplitKind::Train, cifar.train().unwrap()).unwrap();
    for source in ["bin", "folder --classes airplane,automobile,bird,cat,deer,dog,frog,horse,ship,truck"] {
        desk.ok(&format!("train {source} --colour rgb {RUN}"));
    }
    assert_eq!(desk.run_file(1, "model.safetensors"), desk.run_file(2, "model.safetensors"));
}
