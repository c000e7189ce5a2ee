//! Single columns of a Parquet file, without nesting into lists.

use ::parquet::basic::{Compression, Type as Physical};
use ::parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use ::parquet::data_type::DataType;
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::file::reader::FileReader;

use crate::error::{Error, Place, Result};
use crate::source::Budget;

/// Whether the codec that needs C code is built in.
const ZSTD: bool = cfg!(feature = "zstd");
/// Records decoded at a time.
const CHUNK: usize = 1024;

/// One value of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Null,
    Whole(i64),
    Real(f64),
    Bytes(Vec<u8>),
}

/// A leaf of the schema.
#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    pub index: usize,
    /// Names from the root, such as `image`, `bytes`.
    pub path: Vec<String>,
    pub physical: Physical,
}

/// Leaves that hold one value per row.
pub(crate) fn leaves(reader: &dyn FileReader) -> Vec<Leaf> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let leaf = |(index, column): (usize, &::parquet::schema::types::ColumnDescPtr)| Leaf {
        index,
        path: column.path().parts().to_vec(),
        physical: column.physical_type(),
    };
    schema.columns().iter().enumerate().filter(|(_, c)| c.max_rep_level() == 0).map(leaf).collect()
}

/// All values of a column, row by row. The sizes the file announces are charged before anything is decoded.
pub(crate) fn read_column(
    reader: &dyn FileReader,
    leaf: &Leaf,
    file: &str,
    budget: &Budget,
) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for group in 0..reader.num_row_groups() {
        let row = cells.len() as u64;
        let fail = |e| failure(file, row, e);
        let rows = reader.get_row_group(group).map_err(fail)?;
        let size = rows.metadata().column(leaf.index).uncompressed_size();
        let count = rows.metadata().num_rows();
        let (Ok(size), Ok(count)) = (u64::try_from(size), usize::try_from(count)) else {
            return Err(Error::unexpected(file, Place::Row(row), "a negative size", "a positive one"));
        };
        check_chunk(rows.metadata().column(leaf.index), file, row)?;
        budget.take(size.into(), file, &format!("column {}", leaf.path.join(".")))?;
        let levels = reader.metadata().file_metadata().schema_descr().column(leaf.index).max_def_level();
        let column = rows.get_column_reader(leaf.index).map_err(fail)?;
        let before = cells.len();
        read_typed(column, levels, &mut cells, leaf, file).map_err(|e| e.unwrap_or_else(fail))?;
        if cells.len() - before != count {
            let found = format!("{} values in row group {group}", cells.len() - before);
            return Err(Error::unexpected(file, Place::Row(row), found, format!("{count}")));
        }
    }
    Ok(cells)
}

/// The crate panics where a column is said to start before the file does, and calls a missing codec damage.
fn check_chunk(column: &ColumnChunkMetaData, file: &str, row: u64) -> Result<()> {
    let codec = column.compression();
    if matches!(codec, Compression::BROTLI(_) | Compression::LZO)
        || (!ZSTD && matches!(codec, Compression::ZSTD(_)))
    {
        let what = format!("{codec} compression in this build");
        let hint = "Write the file with snappy, or build convgp-data with the feature `zstd`";
        return Err(Error::Unsupported { file: file.into(), what, hint });
    }
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    match start >= 0 && column.data_page_offset() >= 0 && column.compressed_size() >= 0 {
        true => Ok(()),
        false => {
            Err(Error::unexpected(file, Place::Row(row), "a column at a negative offset", "a positive one"))
        }
    }
}

/// Either our error or one of the `parquet` crate that still lacks its place.
enum Failure {
    Ours(Error),
    Theirs(ParquetError),
}

impl Failure {
    fn unwrap_or_else(self, place: impl FnOnce(ParquetError) -> Error) -> Error {
        match self {
            Failure::Ours(e) => e,
            Failure::Theirs(e) => place(e),
        }
    }
}

fn read_typed(
    column: ColumnReader,
    levels: i16,
    cells: &mut Vec<Cell>,
    leaf: &Leaf,
    file: &str,
) -> std::result::Result<(), Failure> {
    match column {
        ColumnReader::BoolColumnReader(r) => drain(r, levels, cells, |v| Cell::Whole(i64::from(*v))),
        ColumnReader::Int32ColumnReader(r) => drain(r, levels, cells, |v| Cell::Whole(i64::from(*v))),
        ColumnReader::Int64ColumnReader(r) => drain(r, levels, cells, |v| Cell::Whole(*v)),
        ColumnReader::FloatColumnReader(r) => drain(r, levels, cells, |v| Cell::Real(f64::from(*v))),
        ColumnReader::DoubleColumnReader(r) => drain(r, levels, cells, |v| Cell::Real(*v)),
        ColumnReader::ByteArrayColumnReader(r) => drain(r, levels, cells, |v| Cell::Bytes(v.data().to_vec())),
        _ => {
            let what = format!("column {} of type {}", leaf.path.join("."), leaf.physical);
            let hint = "Images are byte arrays, labels integers, real numbers or text";
            return Err(Failure::Ours(Error::Unsupported { file: file.into(), what, hint }));
        }
    }
    .map_err(Failure::Theirs)
}

fn drain<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    max_level: i16,
    cells: &mut Vec<Cell>,
    convert: impl Fn(&T::T) -> Cell,
) -> std::result::Result<(), ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    loop {
        values.clear();
        levels.clear();
        let (records, ..) = reader.read_records(CHUNK, Some(&mut levels), None, &mut values)?;
        if records == 0 {
            return Ok(());
        }
        let mut next = values.iter();
        for i in 0..records {
            // Columns that may not be null have no levels.
            let present = max_level == 0 || levels.get(i) == Some(&max_level);
            cells.push(if present { next.next().map_or(Cell::Null, &convert) } else { Cell::Null });
        }
    }
}

pub(crate) fn failure(file: &str, row: u64, error: ParquetError) -> Error {
    match error {
        ParquetError::EOF(what) => Error::Truncated { file: file.into(), at: 0, what },
        other => Error::Damaged { file: file.into(), place: Place::Row(row), reason: other.to_string() },
    }
}
