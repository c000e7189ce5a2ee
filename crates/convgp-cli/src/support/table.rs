//! A table by columns, and the files it can become.

use crate::support::exit::usage;
use anyhow::Result;
use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;

/// A file format for tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object per line.
    JsonLines,
    /// Parquet.
    Parquet,
}

impl Format {
    /// By the ending of a file's name.
    pub fn of(path: &Path) -> Result<Self> {
        match path.extension().map(|e| e.to_string_lossy().to_lowercase()).as_deref() {
            Some("csv") => Ok(Format::Csv),
            Some("jsonl" | "ndjson") => Ok(Format::JsonLines),
            Some("parquet") => Ok(Format::Parquet),
            _ => Err(usage(format!("{}: the name must end in .csv, .jsonl or .parquet", path.display()))),
        }
    }
}

/// Equally long named columns.
#[derive(Debug)]
pub struct Table {
    rows: usize,
    columns: Vec<(String, Column)>,
}

#[derive(Debug)]
enum Column {
    Words(Vec<String>),
    Numbers(Vec<f64>),
}

impl Table {
    /// With a first column of words.
    pub fn new(name: &str, words: Vec<String>) -> Self {
        let rows = words.len();
        Self { rows, columns: vec![(name.into(), Column::Words(words))] }
    }

    /// Adds a column of words.
    pub fn words(&mut self, name: &str, words: Vec<String>) {
        self.columns.push((name.into(), Column::Words(words)));
    }

    /// Adds a column of numbers.
    pub fn numbers(&mut self, name: &str, numbers: Vec<f64>) {
        self.columns.push((name.into(), Column::Numbers(numbers)));
    }

    /// The file's contents.
    pub fn to_bytes(&self, format: Format) -> Result<Vec<u8>> {
        match format {
            Format::Csv => self.csv(),
            Format::JsonLines => self.json_lines(),
            Format::Parquet => self.parquet(),
        }
    }

    fn csv(&self) -> Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns.iter().map(|(name, _)| name))?;
        for row in 0..self.rows {
            writer.write_record(self.columns.iter().map(|(_, column)| match column {
                Column::Words(v) => v[row].clone(),
                Column::Numbers(v) => v[row].to_string(),
            }))?;
        }
        Ok(writer.into_inner()?)
    }

    fn json_lines(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        for row in 0..self.rows {
            let cell = |column: &Column| match column {
                Column::Words(v) => Value::from(v[row].as_str()),
                Column::Numbers(v) => Value::from(v[row]),
            };
            let object: Map<String, Value> =
                self.columns.iter().map(|(name, column)| (name.clone(), cell(column))).collect();
            serde_json::to_writer(&mut out, &object)?;
            out.push(b'\n');
        }
        Ok(out)
    }

    fn parquet(&self) -> Result<Vec<u8>> {
        let field = |(name, column): &(String, Column)| {
            let (physical, converted) = match column {
                Column::Words(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
                Column::Numbers(_) => (Physical::DOUBLE, ConvertedType::NONE),
            };
            let field = Type::primitive_type_builder(name, physical).with_converted_type(converted);
            field.with_repetition(Repetition::REQUIRED).build().map(Arc::new)
        };
        let fields = self.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder("predictions").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut out = Vec::new();
        let mut writer = SerializedFileWriter::new(&mut out, Arc::new(schema), Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for (_, column) in &self.columns {
            let Some(mut file) = group.next_column()? else { break };
            match column {
                Column::Words(v) => {
                    let bytes: Vec<ByteArray> = v.iter().map(|w| w.as_str().into()).collect();
                    file.typed::<ByteArrayType>().write_batch(&bytes, None, None)?;
                }
                Column::Numbers(v) => {
                    file.typed::<DoubleType>().write_batch(v, None, None)?;
                }
            }
            file.close()?;
        }
        group.close()?;
        writer.close()?;
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};

    fn table() -> Table {
        let mut table = Table::new("image", vec!["a, b.png".into(), "c".into()]);
        table.words("class", vec!["cat".into(), "dog".into()]);
        table.numbers("p_cat \"x\"", vec![0.1 + 0.2, 1e-300]);
        table
    }

    #[test]
    fn csv_and_json_keep_every_digit() {
        let text = String::from_utf8(table().to_bytes(Format::Csv).unwrap()).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<_> = reader.records().map(|r| r.unwrap()).collect();
        assert_eq!((&rows[0][0], rows[0][2].parse::<f64>().unwrap()), ("a, b.png", 0.1 + 0.2));
        let text = String::from_utf8(table().to_bytes(Format::JsonLines).unwrap()).unwrap();
        let second: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
        assert_eq!((&second["class"], second["p_cat \"x\""].as_f64()), (&Value::from("dog"), Some(1e-300)));
    }

    #[test]
    fn parquet_comes_back() {
        let bytes = table().to_bytes(Format::Parquet).unwrap();
        let file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut &file, &bytes).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<String> = reader.get_row_iter(None).unwrap().map(|r| r.unwrap().to_string()).collect();
        assert_eq!(rows.len(), 2);
        assert!(rows[0].contains("\"a, b.png\"") && rows[0].contains("0.30000000000000004"), "{rows:?}");
    }

    #[test]
    fn endings_choose_the_format() {
        assert_eq!(Format::of(Path::new("a.CSV")).unwrap(), Format::Csv);
        assert_eq!(Format::of(Path::new("a.b.jsonl")).unwrap(), Format::JsonLines);
        assert!(Format::of(Path::new("a.txt")).is_err() && Format::of(Path::new("a")).is_err());
    }
}
