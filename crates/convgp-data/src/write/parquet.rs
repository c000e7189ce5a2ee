//! Parquet in the form of the hub.

use std::path::Path;
use std::sync::Arc;

use ::parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use convgp::data::Dataset;

use super::images::{checked_shape, png};
use super::parts;
use crate::error::{Error, Result};

const SCHEMA: &str = "message schema {
    optional group image { optional binary bytes; optional binary path (UTF8); }
    optional int64 label;
}";

/// Writes PNG images as `image {bytes, path}` with an integer `label` whose names are stored in the file.
pub fn parquet(path: &Path, data: &Dataset) -> Result<()> {
    let (pixels, labels) = parts(path, data)?;
    let shape = checked_shape(path, data)?;
    let images: Vec<ByteArray> = pixels.chunks_exact(shape.len()).map(|p| png(p, shape).into()).collect();
    let names: Vec<ByteArray> =
        (0..images.len()).map(|i| format!("{i:06}.png").into_bytes().into()).collect();
    let labels: Vec<i64> = labels.iter().map(|&l| i64::from(l)).collect();
    let file = std::fs::File::create(path).map_err(|e| Error::io(path, "write", e))?;
    write(file, data.class_names(), &images, &names, &labels)
        .map_err(|e| Error::io(path, "write", std::io::Error::other(e)))
}

fn write(
    file: std::fs::File,
    class_names: &[String],
    images: &[ByteArray],
    names: &[ByteArray],
    labels: &[i64],
) -> std::result::Result<(), ParquetError> {
    let label = serde_json::json!({ "_type": "ClassLabel", "names": class_names });
    let features =
        serde_json::json!({ "info": { "features": { "image": { "_type": "Image" }, "label": label } } });
    let metadata = KeyValue::new("huggingface".into(), features.to_string());
    let properties = WriterProperties::builder()
        .set_compression(::parquet::basic::Compression::SNAPPY)
        .set_key_value_metadata(Some(vec![metadata]))
        .build();
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    let mut rows = writer.next_row_group()?;
    let (nested, flat) = (vec![2; images.len()], vec![1; images.len()]);
    for bytes in [images, names] {
        if let Some(mut column) = rows.next_column()? {
            column.typed::<ByteArrayType>().write_batch(bytes, Some(&nested), None)?;
            column.close()?;
        }
    }
    if let Some(mut column) = rows.next_column()? {
        column.typed::<Int64Type>().write_batch(labels, Some(&flat), None)?;
        column.close()?;
    }
    rows.close()?;
    writer.close().map(drop)
}
