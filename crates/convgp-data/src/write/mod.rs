//! Writers for the formats that can be read, for tests and for carrying data elsewhere.
//!
//! Each takes one split; a data set of several splits is several calls. Pixels must be bytes, targets classes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use convgp::data::{Dataset, Pixels, Targets};

use crate::error::{Error, Result};

mod arrays;
mod images;
#[cfg(feature = "parquet")]
mod parquet;

pub use arrays::{cifar10, csv, idx, npy, npz};
pub use images::{folder, metadata};
#[cfg(feature = "parquet")]
pub use parquet::parquet;

/// Bytes and labels of a data set, or an error that says what is wanted.
fn parts<'a>(path: &Path, data: &'a Dataset) -> Result<(&'a [u8], &'a [u32])> {
    match (data.images().pixels(), data.targets()) {
        (Pixels::U8(pixels), Targets::Classes { labels, .. }) => Ok((pixels, labels)),
        _ => Err(unsupported(path, "other than 8-bit images with classes")),
    }
}

fn unsupported(path: &Path, what: &str) -> Error {
    let hint = "Writers take 8-bit images of a suitable shape and class labels below 256";
    Error::Unsupported { file: path.display().to_string(), what: format!("writing {what}"), hint }
}

/// Labels as bytes.
fn label_bytes(path: &Path, labels: &[u32]) -> Result<Vec<u8>> {
    let byte = |&l: &u32| u8::try_from(l).map_err(|_| unsupported(path, &format!("label {l}")));
    labels.iter().map(byte).collect()
}

/// Writes a file through a buffer; a path that ends in `.gz` is compressed.
fn to_file(path: &Path, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<()> {
    let failed = |e| Error::io(path, "write", e);
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    if path.extension().is_some_and(|e| e == "gz") {
        let mut packed = flate2::write::GzEncoder::new(&mut file, flate2::Compression::default());
        fill(&mut packed).and_then(|()| packed.finish().map(drop)).map_err(failed)?;
    } else {
        fill(&mut file).map_err(failed)?;
    }
    file.flush().map_err(failed)
}

fn make_folder(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|e| Error::io(dir, "create", e))
}
