//! Reading bytes: decompression, offsets for messages, and a cap on memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use crate::error::{Error, Place, Result};

const BUFFER: usize = 256 << 10;

/// Bytes of decoded data that may still be kept.
#[derive(Debug)]
pub(crate) struct Budget {
    left: AtomicU64,
}

impl Budget {
    pub(crate) fn new(cap: u64) -> Self {
        Self { left: AtomicU64::new(cap) }
    }

    /// Reserves memory before it is allocated. `bytes` is wide so that products of dimensions cannot overflow.
    pub(crate) fn take(&self, bytes: u128, file: &str, what: &str) -> Result<()> {
        let wanted = u64::try_from(bytes).ok();
        let take = |left: u64| left.checked_sub(wanted?);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(left) => Err(Error::TooLarge { file: file.into(), what: what.into(), bytes, left }),
        }
    }

    pub(crate) fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }
}

/// A forward-only stream that knows its name and offset.
pub(crate) struct Input<'a> {
    file: String,
    reader: Box<dyn BufRead + 'a>,
    offset: u64,
}

impl<'a> Input<'a> {
    /// Opens a file; gzip is recognised by its first bytes, whatever the name.
    pub(crate) fn open(path: &Path) -> Result<Input<'static>> {
        let file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
        Input::from_reader(path.display().to_string(), file)
    }

    /// Wraps a stream, decompressing it if it is gzip.
    pub(crate) fn from_reader(file: String, reader: impl Read + 'a) -> Result<Self> {
        let mut buffered = BufReader::with_capacity(BUFFER, reader);
        let start =
            buffered.fill_buf().map_err(|source| Error::Io { file: file.clone(), action: "read", source })?;
        let reader: Box<dyn BufRead + 'a> = if start.starts_with(&[0x1f, 0x8b]) {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(buffered)))
        } else {
            Box::new(buffered)
        };
        Ok(Self { file, reader, offset: 0 })
    }

    pub(crate) fn file(&self) -> &str {
        &self.file
    }
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next bytes without consuming them; empty at the end.
    pub(crate) fn peek(&mut self) -> Result<&[u8]> {
        self.reader.fill_buf().map_err(|e| read_failure(&self.file, self.offset, "the first bytes", e))
    }

    /// The stream itself, for parsers of other crates.
    pub(crate) fn into_reader(self) -> Box<dyn BufRead + 'a> {
        self.reader
    }

    /// Fills `out` or says where the file ends.
    pub(crate) fn fill(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        if self.fill_or_end(out, what)? { Ok(()) } else { Err(self.truncated(what)) }
    }

    /// Fills `out`; `false` if the stream ended before its first byte.
    pub(crate) fn fill_or_end(&mut self, out: &mut [u8], what: &str) -> Result<bool> {
        let mut done = 0;
        while done < out.len() {
            match self.reader.read(&mut out[done..]) {
                Ok(0) if done == 0 => return Ok(false),
                Ok(0) => return Err(self.truncated(what)),
                Ok(n) => {
                    done += n;
                    self.offset += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.failure(e, what)),
            }
        }
        Ok(true)
    }

    /// Reads exactly `count` bytes. The buffer grows with what is really there, so a lying header costs nothing.
    pub(crate) fn bytes(&mut self, count: u128, what: &str, budget: &Budget) -> Result<Vec<u8>> {
        budget.take(count, &self.file, what)?;
        let mut out = Vec::new();
        let outcome = (&mut self.reader).take(count as u64).read_to_end(&mut out);
        self.offset += out.len() as u64;
        match outcome {
            Err(e) => Err(self.failure(e, what)),
            Ok(_) if (out.len() as u128) < count => Err(self.truncated(what)),
            Ok(_) => Ok(out),
        }
    }

    /// Fails if anything is left. For gzip this also verifies the checksum at its end.
    pub(crate) fn expect_end(&mut self) -> Result<()> {
        let mut one = [0];
        match self.fill_or_end(&mut one, "the end")? {
            false => Ok(()),
            true => Err(Error::TrailingData { file: self.file.clone(), at: self.offset - 1 }),
        }
    }

    pub(crate) fn truncated(&self, what: &str) -> Error {
        Error::Truncated { file: self.file.clone(), at: self.offset, what: what.into() }
    }

    fn failure(&self, error: io::Error, what: &str) -> Error {
        read_failure(&self.file, self.offset, what, error)
    }
}

/// Sorts a failed read into cut short, damaged and truly unreadable.
pub(crate) fn read_failure(file: &str, at: u64, what: &str, error: io::Error) -> Error {
    let file = file.to_owned();
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::Truncated { file, at, what: what.into() },
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
            Error::Damaged { file, place: Place::Byte(at), reason: error.to_string() }
        }
        _ => Error::Io { file, action: "read", source: error },
    }
}

/// File name as text, for detection and messages.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Lower-case file name without `.gz`.
pub(crate) fn plain_name(path: &Path) -> String {
    let name = name_of(path).to_lowercase();
    name.strip_suffix(".gz").unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn gz(data: &[u8]) -> Vec<u8> {
        let mut e = GzEncoder::new(Vec::new(), Compression::default());
        e.write_all(data).unwrap();
        e.finish().unwrap()
    }

    #[test]
    fn gzip_is_recognised_and_cut_short_is_told_apart_from_too_long() {
        let packed = gz(b"hello world");
        let budget = Budget::new(100);
        let mut input = Input::from_reader("x".into(), &packed[..]).unwrap();
        assert_eq!(input.bytes(11, "text", &budget).unwrap(), b"hello world");
        input.expect_end().unwrap();
        let mut input = Input::from_reader("x".into(), &packed[..]).unwrap();
        assert!(matches!(input.bytes(12, "text", &budget), Err(Error::Truncated { at: 11, .. })));
        let mut input = Input::from_reader("x".into(), &packed[..]).unwrap();
        input.bytes(5, "text", &budget).unwrap();
        assert!(matches!(input.expect_end(), Err(Error::TrailingData { at: 5, .. })));
        for cut in 2..packed.len() {
            let mut input = Input::from_reader("x".into(), &packed[..cut]).unwrap();
            let outcome = input.bytes(11, "text", &Budget::new(100)).and_then(|_| input.expect_end());
            assert!(matches!(outcome, Err(Error::Truncated { .. })), "{cut}: {outcome:?}");
        }
    }

    #[test]
    fn the_budget_is_spent_once_and_cannot_overflow() {
        let budget = Budget::new(10);
        budget.take(6, "f", "a").unwrap();
        assert!(matches!(budget.take(5, "f", "b"), Err(Error::TooLarge { left: 4, .. })));
        assert!(budget.take(u128::MAX, "f", "c").is_err());
        budget.take(4, "f", "d").unwrap();
    }
}
