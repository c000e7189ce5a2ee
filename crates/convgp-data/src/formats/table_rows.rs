//! Rows of a table: which column is the label, and the numbers of the others.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use crate::error::{Error, Place, Result};
use crate::formats::numbers::{Numbers, is_image_size};
use crate::formats::table_columns::{Columns, is_unlabelled};
use crate::loaded::Labels;
use crate::options::OpenOptions;
use crate::source::Budget;

/// Longest row in bytes: a million pixels of 64 characters.
pub(crate) const MAX_ROW: u64 = 64 << 20;
/// Column names that mean the number of the row.
const INDEX_NAMES: [&str; 5] = ["", "index", "id", "unnamed: 0", "row"];
/// Column names that mean the label.
pub(crate) const LABEL_NAMES: [&str; 6] = ["label", "labels", "class", "target", "y", "category"];

/// Collects rows into pixels and labels.
pub(crate) struct Rows<'a> {
    file: &'a str,
    options: &'a OpenOptions,
    budget: &'a Budget,
    /// What the columns are, where a look at the whole table has told.
    columns: Option<Columns>,
    /// Fields per row and what they are, known from the first row.
    layout: Option<(usize, Columns)>,
    numbers: Numbers,
    labels: Vec<String>,
    rows: usize,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(
        file: &'a str,
        options: &'a OpenOptions,
        budget: &'a Budget,
        columns: Option<Columns>,
    ) -> Self {
        let (numbers, labels) = (Numbers::new(), Vec::new());
        Self { file, options, budget, columns, layout: None, numbers, labels, rows: 0 }
    }

    /// Takes one row; an empty one is passed over.
    pub(crate) fn push<'f>(
        &mut self,
        row: u64,
        fields: impl Iterator<Item = &'f [u8]> + Clone,
    ) -> Result<()> {
        let Some((width, Columns { label, index })) = self.layout else { return self.first(row, fields) };
        if fields.clone().all(<[u8]>::is_empty) {
            return Ok(());
        }
        let bytes = width as u128 * self.numbers.value_size() + 16;
        self.budget.take(bytes, self.file, "the rows so far and one more")?;
        let mut count = 0;
        for (i, field) in fields.enumerate() {
            count += 1;
            if Some(i) == label {
                self.labels.push(String::from_utf8_lossy(field).into_owned());
            } else if i < width && Some(i) != index {
                let value = self.number(row, i, field)?;
                self.numbers.push(value, self.file, self.budget)?;
            }
        }
        self.rows += 1;
        match count == width {
            true => Ok(()),
            false => Err(Error::RowWidth { file: self.file.into(), row, found: count, expected: width }),
        }
    }

    fn first<'f>(&mut self, row: u64, fields: impl Iterator<Item = &'f [u8]> + Clone) -> Result<()> {
        let all: Vec<&[u8]> = fields.clone().collect();
        if all.iter().all(|f| f.is_empty()) {
            return Ok(());
        }
        if all.len() < 2 {
            let found = format!("{} field(s)", all.len());
            return Err(Error::unexpected(self.file, Place::Row(row), found, "pixels and a label"));
        }
        let header =
            is_header(&all).then(|| all.iter().map(|f| String::from_utf8_lossy(f).into_owned()).collect());
        let columns = match self.columns {
            Some(columns) if header.is_none() => columns,
            _ => self.named_columns(all.len(), header.as_ref())?,
        };
        self.layout = Some((all.len(), columns));
        if header.is_some() { Ok(()) } else { self.push(row, fields) }
    }

    /// The label is the column asked for, else one with a telling name, else the last.
    fn named_columns(&self, width: usize, header: Option<&Vec<String>>) -> Result<Columns> {
        let missing = || Error::MissingColumn {
            file: self.file.into(),
            role: "label",
            columns: header.cloned().unwrap_or_else(|| vec![format!("0..{width} without names")]),
        };
        let named = |name: &str| header.and_then(|h| h.iter().position(|c| c.eq_ignore_ascii_case(name)));
        let index = INDEX_NAMES.into_iter().find_map(named);
        let label = match &self.options.label_column {
            Some(asked) => {
                named(asked).or_else(|| asked.parse().ok().filter(|&i| i < width)).ok_or_else(missing)?
            }
            None => match LABEL_NAMES.into_iter().find_map(named) {
                Some(label) => label,
                None if is_unlabelled(width, self.options) => {
                    return Ok(Columns { label: None, index: None });
                }
                None if index.is_some() && is_unlabelled(width - 1, self.options) => {
                    return Ok(Columns { label: None, index });
                }
                None => width - 1,
            },
        };
        let index = index.filter(|&i| i != label && is_image_size(width - 2, self.options));
        Ok(Columns { label: Some(label), index })
    }

    fn number(&self, row: u64, index: usize, field: &[u8]) -> Result<f32> {
        let value = parse(field).filter(|v| v.is_finite());
        value.ok_or_else(|| {
            let found = format!("{:?}", String::from_utf8_lossy(&field[..field.len().min(40)]));
            Error::unexpected(self.file, Place::Field { row, field: index + 1 }, found, "a finite number")
        })
    }

    /// Pixels per image, pixels, labels.
    pub(crate) fn finish(self) -> Result<(usize, Numbers, Labels)> {
        match self.layout {
            Some((width, Columns { label, index })) if self.rows > 0 => {
                let others = usize::from(label.is_some()) + usize::from(index.is_some());
                let labels = label.map_or(Labels::Absent(self.rows), |_| Labels::Text(self.labels));
                Ok((width - others, self.numbers, labels))
            }
            _ => Err(Error::Truncated { file: self.file.into(), at: 0, what: "the first row".into() }),
        }
    }
}

pub(crate) fn parse(field: &[u8]) -> Option<f32> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// A first row is a header if a column has a label's name or most fields are no numbers. A single bad number is not a
/// header but an error, which the caller then reports with its place.
pub(crate) fn is_header(fields: &[&[u8]]) -> bool {
    let words = fields.iter().filter(|f| parse(f).is_none()).count();
    let label = |f: &&[u8]| LABEL_NAMES.iter().any(|n| f.eq_ignore_ascii_case(n.as_bytes()));
    fields.iter().any(label) || 2 * words > fields.len()
}

/// Stops a CSV reader whose row never ends, before it fills the memory.
#[derive(Clone, Default)]
pub(crate) struct RowLimit {
    bytes: Rc<Cell<u64>>,
}

impl RowLimit {
    pub(crate) fn wrap<R: Read>(&self, reader: R) -> impl Read + use<R> {
        Limited { inner: reader, limit: self.clone() }
    }
    pub(crate) fn next_row(&self) {
        self.bytes.set(0);
    }
    pub(crate) fn exceeded(&self) -> bool {
        self.bytes.get() > MAX_ROW
    }
}

struct Limited<R> {
    inner: R,
    limit: RowLimit,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.limit.bytes.set(self.limit.bytes.get() + n as u64);
        if self.limit.exceeded() { Err(io::Error::other("row too long")) } else { Ok(n) }
    }
}

pub(crate) fn line_too_long(file: &str, row: u64) -> Error {
    Error::unexpected(file, Place::Row(row), format!("a row of more than {MAX_ROW} bytes"), "one image a row")
}
