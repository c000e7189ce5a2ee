//! IDX, CIFAR, NPY/NPZ and CSV.

use std::io::{self, Write};
use std::path::Path;

use convgp::data::Dataset;
use zip::write::{SimpleFileOptions, ZipWriter};

use super::{label_bytes, make_folder, parts, to_file, unsupported};
use crate::error::Result;
use crate::loaded::SplitKind;

/// Writes `<prefix>-images-idx3-ubyte.gz` and `<prefix>-labels-idx1-ubyte.gz` into a folder; the prefix is that of MNIST
/// (`train`, `t10k`, `validation`).
pub fn idx(dir: &Path, kind: SplitKind, data: &Dataset) -> Result<()> {
    make_folder(dir)?;
    let (pixels, labels) = parts(dir, data)?;
    let labels = label_bytes(dir, labels)?;
    let shape = data.images().shape();
    let prefix = if kind == SplitKind::Test { "t10k" } else { kind.name() };
    let mut dims = vec![data.len() as u32, shape.height() as u32, shape.width() as u32];
    if shape.channels() > 1 {
        dims.push(shape.channels() as u32);
    }
    let images = dir.join(format!("{prefix}-images-idx{}-ubyte.gz", dims.len()));
    to_file(&images, |out| idx_array(out, &dims, pixels))?;
    to_file(&dir.join(format!("{prefix}-labels-idx1-ubyte.gz")), |out| idx_array(out, &dims[..1], &labels))
}

fn idx_array(out: &mut dyn Write, dims: &[u32], bytes: &[u8]) -> io::Result<()> {
    out.write_all(&[0, 0, 8, dims.len() as u8])?;
    dims.iter().try_for_each(|d| out.write_all(&d.to_be_bytes()))?;
    out.write_all(bytes)
}

/// Writes CIFAR-10 records; images must be 32x32 RGB with at most ten classes.
pub fn cifar10(path: &Path, data: &Dataset) -> Result<()> {
    let (pixels, labels) = parts(path, data)?;
    let shape = data.images().shape();
    if (shape.height(), shape.width(), shape.channels()) != (32, 32, 3) || labels.iter().any(|&l| l > 9) {
        return Err(unsupported(path, &format!("{shape} images as CIFAR-10")));
    }
    to_file(path, |out| {
        for (image, &label) in pixels.chunks_exact(shape.len()).zip(labels) {
            let planes: Vec<u8> = (0..3).flat_map(|c| image.iter().skip(c).step_by(3).copied()).collect();
            out.write_all(&[label as u8])?;
            out.write_all(&planes)?;
        }
        Ok(())
    })
}

/// Writes a table with a header: pixels, then the label.
pub fn csv(path: &Path, data: &Dataset) -> Result<()> {
    let (pixels, labels) = parts(path, data)?;
    let len = data.images().shape().len();
    to_file(path, |out| {
        (0..len).try_for_each(|i| write!(out, "pixel{i},"))?;
        writeln!(out, "label")?;
        for (image, label) in pixels.chunks_exact(len).zip(labels) {
            image.iter().try_for_each(|p| write!(out, "{p},"))?;
            writeln!(out, "{label}")?;
        }
        Ok(())
    })
}

/// Writes `x_<split>.npy` and `y_<split>.npy` into a folder.
pub fn npy(dir: &Path, kind: SplitKind, data: &Dataset) -> Result<()> {
    make_folder(dir)?;
    for (name, bytes) in npy_files(dir, kind, data)? {
        to_file(&dir.join(name), |out| out.write_all(&bytes))?;
    }
    Ok(())
}

/// Writes splits as `x_<split>` and `y_<split>` into one NPZ file.
pub fn npz(path: &Path, splits: &[(SplitKind, &Dataset)]) -> Result<()> {
    let failed = |e: io::Error| crate::Error::io(path, "write", e);
    let mut zip = ZipWriter::new(std::fs::File::create(path).map_err(failed)?);
    for (kind, data) in splits {
        for (name, bytes) in npy_files(path, *kind, data)? {
            zip.start_file(name, SimpleFileOptions::default()).map_err(|e| failed(e.into()))?;
            zip.write_all(&bytes).map_err(failed)?;
        }
    }
    zip.finish().map(drop).map_err(|e| failed(e.into()))
}

/// Names and contents of the two arrays of a split.
fn npy_files(path: &Path, kind: SplitKind, data: &Dataset) -> Result<[(String, Vec<u8>); 2]> {
    let (pixels, labels) = parts(path, data)?;
    let shape = data.images().shape();
    let (n, h, w) = (data.len(), shape.height(), shape.width());
    let dims = match shape.channels() {
        1 => format!("({n}, {h}, {w})"),
        c => format!("({n}, {h}, {w}, {c})"),
    };
    let labels: Vec<u8> = labels.iter().flat_map(|&l| i64::from(l).to_le_bytes()).collect();
    let images = npy_array("|u1", &dims, pixels);
    Ok([
        (format!("x_{kind}.npy"), images),
        (format!("y_{kind}.npy"), npy_array("<i8", &format!("({n},)"), &labels)),
    ])
}

fn npy_array(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // The elements start at a multiple of 64 bytes.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10;
    header.push_str(&" ".repeat(padded - header.len() - 1));
    header.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.bytes());
    out.extend(data);
    out
}
