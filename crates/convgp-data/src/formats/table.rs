//! Tables of numbers, a row an image: CSV, or fields between blanks (amat), plain, gzipped or inside a zip.

use std::io::{BufRead, Read};
use std::path::Path;

use crate::error::{Error, Place, Result};
use crate::formats::archive::Zip;
use crate::formats::files_in;
use crate::formats::numbers::{Numbers, flat_shape, settle};
use crate::formats::table_columns::{Columns, Look};
use crate::formats::table_rows::{MAX_ROW, RowLimit, Rows, line_too_long};
use crate::loaded::{Format, Labels, Raw, RawSplit, SplitKind};
use crate::options::OpenOptions;
use crate::provenance::hash_files;
use crate::source::{Budget, Input, name_of, plain_name, read_failure};

/// A table that was read.
struct Table {
    kind: SplitKind,
    file: String,
    pixels_per_image: usize,
    numbers: Numbers,
    labels: Labels,
    note: Option<String>,
}

/// Whether a file name looks like a table.
pub(crate) fn is_table_name(path: &Path) -> bool {
    let name = plain_name(path);
    name != "metadata.csv" && [".csv", ".tsv", ".amat"].iter().any(|end| name.ends_with(end))
}

/// Reads one table, the tables of a folder, or those in a zip.
pub(crate) fn read(path: &Path, options: &OpenOptions, budget: &Budget) -> Result<Raw> {
    let files = match path.is_dir() {
        true => files_in(path)?.into_iter().filter(|p| is_table_name(p)).collect(),
        false => vec![path.to_path_buf()],
    };
    let mut tables: Vec<Table> = Vec::new();
    for file in &files {
        if plain_name(file).ends_with(".zip") {
            read_zip(file, options, budget, &mut tables)?;
        } else if options.wants(kind_of(&name_of(file))) {
            let columns = find_columns(Input::open(file)?, options)?;
            add(
                &mut tables,
                read_table(Input::open(file)?, kind_of(&name_of(file)), columns, options, budget)?,
            )?;
        }
    }
    let mut notes: Vec<String> = tables.iter().filter_map(|t| t.note.clone()).collect();
    notes.dedup();
    let mut raw = Raw::new(Format::Table, splits(tables, options)?, hash_files(&files)?);
    raw.notes = notes;
    Ok(raw)
}

fn kind_of(name: &str) -> SplitKind {
    SplitKind::from_name(name).unwrap_or(SplitKind::Train)
}

fn read_zip(path: &Path, options: &OpenOptions, budget: &Budget, tables: &mut Vec<Table>) -> Result<()> {
    let mut zip = Zip::open(path)?;
    let names: Vec<String> = zip.names().iter().filter(|n| is_table_name(Path::new(n))).cloned().collect();
    if names.is_empty() {
        let what = "a zip without .amat, .csv or .tsv tables".into();
        let hint = "Unpack it and name the folder";
        return Err(Error::Unsupported { file: path.display().to_string(), what, hint });
    }
    for name in names.iter().filter(|n| options.wants(kind_of(n))) {
        let columns = zip.read(name, |input| find_columns(input, options))?;
        let table = zip.read(name, |input| read_table(input, kind_of(name), columns, options, budget))?;
        add(tables, table)?;
    }
    Ok(())
}

fn add(tables: &mut Vec<Table>, table: Table) -> Result<()> {
    if let Some(other) = tables.iter().find(|t| t.kind == table.kind) {
        let (first, second) = (other.file.clone(), table.file);
        return Err(Error::Ambiguous { first, second, split: table.kind.to_string() });
    }
    tables.push(table);
    Ok(())
}

/// Streams one table; only the numbers are kept.
fn read_table(
    input: Input,
    kind: SplitKind,
    columns: Option<(Columns, String)>,
    options: &OpenOptions,
    budget: &Budget,
) -> Result<Table> {
    let file = input.file().to_owned();
    let (columns, note) = columns.unzip();
    let mut rows = Rows::new(&file, options, budget, columns);
    each_row(input, &mut rows)?;
    let (pixels_per_image, numbers, labels) = rows.finish()?;
    Ok(Table { kind, file, pixels_per_image, numbers, labels, note })
}

/// What the columns of a table without a header are, from a look at all of it, and why.
fn find_columns(input: Input, options: &OpenOptions) -> Result<Option<(Columns, String)>> {
    if options.label_column.is_some() {
        return Ok(None);
    }
    let mut look = Look::default();
    each_row(input, &mut look)?;
    Ok(look.decide(options))
}

/// Whoever takes the rows of a table.
pub(crate) trait TakeRow {
    fn take<'f>(&mut self, row: u64, fields: impl Iterator<Item = &'f [u8]> + Clone) -> Result<()>;
    /// Whether the rest is of no interest.
    fn has_seen_enough(&self) -> bool {
        false
    }
}

impl TakeRow for Rows<'_> {
    fn take<'f>(&mut self, row: u64, fields: impl Iterator<Item = &'f [u8]> + Clone) -> Result<()> {
        self.push(row, fields)
    }
}

fn each_row(mut input: Input, rows: &mut impl TakeRow) -> Result<()> {
    let file = input.file().to_owned();
    let first_line = input.peek()?.split(|&b| b == b'\n').next().unwrap_or_default();
    let delimiter = [b',', b';'].into_iter().find(|d| first_line.contains(d));
    match delimiter {
        Some(delimiter) => read_delimited(input.into_reader(), delimiter, &file, rows),
        None => read_blank_separated(input.into_reader(), &file, rows),
    }
}

fn read_blank_separated(mut reader: impl BufRead, file: &str, rows: &mut impl TakeRow) -> Result<()> {
    let mut line = Vec::new();
    let (mut number, mut offset) = (0, 0);
    loop {
        line.clear();
        let outcome = (&mut reader).take(MAX_ROW).read_until(b'\n', &mut line);
        let read = outcome.map_err(|e| read_failure(file, offset + line.len() as u64, "a row", e))?;
        if read == 0 || rows.has_seen_enough() {
            return Ok(());
        }
        number += 1;
        offset += read as u64;
        if read as u64 == MAX_ROW && line.last() != Some(&b'\n') {
            return Err(line_too_long(file, number));
        }
        rows.take(number, line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()))?;
    }
}

fn read_delimited(reader: impl Read, delimiter: u8, file: &str, rows: &mut impl TakeRow) -> Result<()> {
    let limit = RowLimit::default();
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(limit.wrap(reader));
    let mut record = csv::ByteRecord::new();
    loop {
        limit.next_row();
        let place = reader.position().clone();
        match reader.read_byte_record(&mut record) {
            Ok(false) => return Ok(()),
            Ok(true) if rows.has_seen_enough() => return Ok(()),
            Ok(true) => {
                let number = record.position().map_or(0, csv::Position::line);
                rows.take(number, record.iter().map(<[u8]>::trim_ascii))?;
            }
            Err(e) if limit.exceeded() => {
                drop(e);
                return Err(line_too_long(file, place.line()));
            }
            Err(e) => return Err(csv_failure(file, &place, e)),
        }
    }
}

/// Turns an error of the `csv` crate into ours.
pub(crate) fn csv_failure(file: &str, place: &csv::Position, error: csv::Error) -> Error {
    let reason = error.to_string();
    match error.into_kind() {
        csv::ErrorKind::Io(e) => read_failure(file, place.byte(), "a row", e),
        _ => Error::Damaged { file: file.into(), place: Place::Row(place.line()), reason },
    }
}

fn splits(tables: Vec<Table>, options: &OpenOptions) -> Result<Vec<RawSplit>> {
    let mut numbers = Vec::new();
    let mut rest = Vec::new();
    for table in tables {
        let shape = flat_shape(table.pixels_per_image, options, &table.file)?;
        numbers.push(table.numbers);
        rest.push((table.kind, shape, table.labels, table.file));
    }
    let join =
        |(pixels, (kind, shape, labels, file))| RawSplit { kind, shape, pixels, labels, names: None, file };
    Ok(settle(numbers).into_iter().zip(rest).map(join).collect())
}
