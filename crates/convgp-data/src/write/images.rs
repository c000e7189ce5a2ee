//! Folders of PNG files.

use std::io::Cursor;
use std::path::Path;

use convgp::data::{Dataset, ImageShape};
use image::ImageFormat;

use super::{make_folder, parts, to_file, unsupported};
use crate::error::{Error, Result};
use crate::loaded::SplitKind;
use crate::transform::Depth;

/// Writes `<split>/<class name>/<number>.png` below a folder.
pub fn folder(root: &Path, kind: SplitKind, data: &Dataset) -> Result<()> {
    let (pixels, labels) = parts(root, data)?;
    let shape = checked_shape(root, data)?;
    let split = root.join(kind.name());
    data.class_names().iter().try_for_each(|name| make_folder(&split.join(name)))?;
    for (i, (image, &label)) in pixels.chunks_exact(shape.len()).zip(labels).enumerate() {
        let path = split.join(&data.class_names()[label as usize]).join(format!("{i:06}.png"));
        to_file(&path, |out| out.write_all(&png(image, shape)))?;
    }
    Ok(())
}

/// Writes `images/<split>-<number>.png` and `metadata.csv` with all splits below a folder.
pub fn metadata(root: &Path, splits: &[(SplitKind, &Dataset)]) -> Result<()> {
    make_folder(&root.join("images"))?;
    let mut lines = vec!["file_name,label,split".to_owned()];
    for (kind, data) in splits {
        let (pixels, labels) = parts(root, data)?;
        let shape = checked_shape(root, data)?;
        for (i, (image, &label)) in pixels.chunks_exact(shape.len()).zip(labels).enumerate() {
            let name = format!("images/{kind}-{i:06}.png");
            to_file(&root.join(&name), |out| out.write_all(&png(image, shape)))?;
            lines.push(format!("{name},{},{kind}", quoted(&data.class_names()[label as usize])));
        }
    }
    let path = root.join("metadata.csv");
    std::fs::write(&path, lines.join("\n") + "\n").map_err(|e| Error::io(&path, "write", e))
}

fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

pub(super) fn checked_shape(path: &Path, data: &Dataset) -> Result<ImageShape> {
    let shape = data.images().shape();
    match shape.channels() {
        1 | 3 => Ok(shape),
        _ => Err(unsupported(path, &format!("{shape} images as PNG"))),
    }
}

/// One image as PNG.
pub(super) fn png(pixels: &[u8], shape: ImageShape) -> Vec<u8> {
    let mut out = Cursor::new(Vec::new());
    u8::image(pixels, shape)
        .write_to(&mut out, ImageFormat::Png)
        .expect("a PNG of bytes into memory cannot fail");
    out.into_inner()
}
