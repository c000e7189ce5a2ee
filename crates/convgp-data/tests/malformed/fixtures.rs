//! Small whole files of every format, and a watch over memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use convgp::data::Dataset;
use convgp_data::{OpenOptions, SplitKind, generate, open, sample, write};

/// Enough for every file here, and little enough that a lie about sizes shows.
const CAP: u64 = 4 << 20;

/// Remembers the largest single allocation of this program.
struct Watching;
static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        unsafe { System.realloc(ptr, layout, size) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static WATCHING: Watching = Watching;

/// Whatever the files say, nothing was allocated that is much larger than the cap.
#[track_caller]
pub fn check_memory(what: &str) {
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest < 4 * CAP as usize, "{what}: allocated {largest} bytes at once");
}

pub fn options() -> OpenOptions {
    OpenOptions { memory_cap: CAP, strict: true, ..Default::default() }
}

pub fn small() -> Dataset {
    sample::mnist().0.select(&[0, 1, 2]).unwrap()
}

/// A folder with one small file of each format; returns the file to damage and the path to open.
pub fn make(format: &str, dir: &Path) -> (PathBuf, PathBuf) {
    let data = small();
    let at = |name: &str| (dir.join(name), dir.to_path_buf());
    match format {
        "idx" | "idx-labels" => {
            write::idx(dir, SplitKind::Train, &data).unwrap();
            for name in ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"] {
                unpack(&dir.join(format!("{name}.gz")), &dir.join(name));
            }
            at(if format == "idx" { "train-images-idx3-ubyte" } else { "train-labels-idx1-ubyte" })
        }
        "idx-gz" => {
            write::idx(dir, SplitKind::Train, &data).unwrap();
            at("train-images-idx3-ubyte.gz")
        }
        "cifar" => {
            write::cifar10(&dir.join("data_batch_1.bin"), &rgb32()).unwrap();
            at("data_batch_1.bin")
        }
        "cifar-tar" => {
            write::cifar10(&dir.join("data_batch_1.bin"), &rgb32()).unwrap();
            let packed = std::fs::File::create(dir.join("c.tar.gz")).unwrap();
            let mut tar =
                tar::Builder::new(flate2::write::GzEncoder::new(packed, flate2::Compression::default()));
            tar.append_path_with_name(dir.join("data_batch_1.bin"), "c/data_batch_1.bin").unwrap();
            tar.into_inner().unwrap().finish().unwrap();
            std::fs::remove_file(dir.join("data_batch_1.bin")).unwrap();
            at("c.tar.gz")
        }
        "npy" | "npy-labels" => {
            write::npy(dir, SplitKind::Train, &data).unwrap();
            at(if format == "npy" { "x_train.npy" } else { "y_train.npy" })
        }
        "npz" => {
            write::npz(&dir.join("d.npz"), &[(SplitKind::Train, &data)]).unwrap();
            at("d.npz")
        }
        "zip" => {
            write::csv(&dir.join("t.csv"), &data).unwrap();
            let mut zip = zip::ZipWriter::new(std::fs::File::create(dir.join("t.zip")).unwrap());
            zip.start_file("t_train.csv", zip::write::SimpleFileOptions::default()).unwrap();
            std::io::Write::write_all(&mut zip, &std::fs::read(dir.join("t.csv")).unwrap()).unwrap();
            zip.finish().unwrap();
            std::fs::remove_file(dir.join("t.csv")).unwrap();
            at("t.zip")
        }
        "png" => {
            write::folder(dir, SplitKind::Train, &data).unwrap();
            (dir.join("train/5/000000.png"), dir.to_path_buf())
        }
        #[cfg(feature = "parquet")]
        "parquet" => {
            write::parquet(&dir.join("train.parquet"), &data).unwrap();
            at("train.parquet")
        }
        other => panic!("{other}"),
    }
}

pub const FORMATS: &[&str] = &[
    "idx",
    "idx-labels",
    "idx-gz",
    "cifar",
    "cifar-tar",
    "npy",
    "npy-labels",
    "npz",
    "zip",
    "png",
    #[cfg(feature = "parquet")]
    "parquet",
];

pub fn unpack(from: &Path, to: &Path) {
    let mut out = Vec::new();
    let mut input = flate2::read::GzDecoder::new(std::fs::File::open(from).unwrap());
    std::io::Read::read_to_end(&mut input, &mut out).unwrap();
    std::fs::write(to, out).unwrap();
    std::fs::remove_file(from).unwrap();
}

/// Two 32x32 colour images.
fn rgb32() -> Dataset {
    let dir = tempfile::tempdir().unwrap();
    write::idx(dir.path(), SplitKind::Train, &generate::rectangles(2, 1)).unwrap();
    let size = Some(convgp_data::Size::new(32, 32));
    let options = OpenOptions {
        size,
        colour: convgp_data::Colour::Rgb,
        known_classes: vec!["0".into(), "1".into()],
        ..Default::default()
    };
    open(dir.path(), &options).unwrap().splits.remove(0).data
}
