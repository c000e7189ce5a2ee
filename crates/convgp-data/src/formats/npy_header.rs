//! The header of an NPY file: a magic number, a version, and a Python dictionary of three known keys.
//!
//! Parsed here rather than with the `npyz` crate: that one allocates whatever length the header announces and brings a
//! parser generator that alone takes a tenth of this crate's compile time.

use crate::error::{Error, Place, Result};
use crate::source::{Budget, Input};

/// Longest header accepted; real ones have 64 to 200 bytes.
const MAX_HEADER: u32 = 1 << 16;

/// What kind of numbers the elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    Unsigned,
    Signed,
    Float,
    /// UCS-4 text.
    Unicode,
    /// Byte text.
    Ascii,
}

/// Element type, order and shape of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NpyHeader {
    pub kind: Kind,
    /// Bytes per element.
    pub size: usize,
    pub big_endian: bool,
    /// Column-major order.
    pub fortran: bool,
    pub shape: Vec<usize>,
}

impl NpyHeader {
    /// Reads the header; the stream then stands at the first element.
    pub(crate) fn read(input: &mut Input) -> Result<Self> {
        let mut magic = [0; 8];
        input.fill(&mut magic, "the magic number")?;
        if &magic[..6] != b"\x93NUMPY" {
            let (file, expected) = (input.file().to_owned(), "an NPY header: 93 4e 55 4d 50 59");
            return Err(Error::BadMagic { file, found: magic[..6].to_vec(), expected });
        }
        let mut length = [0; 4];
        match magic[6] {
            1 => input.fill(&mut length[..2], "the header length")?,
            2 | 3 => input.fill(&mut length, "the header length")?,
            other => {
                let found = format!("NPY version {other}");
                return Err(Error::unexpected(input.file(), Place::Byte(6), found, "version 1, 2 or 3"));
            }
        }
        let length = u32::from_le_bytes(length);
        if length > MAX_HEADER {
            let expected = format!("at most {MAX_HEADER}");
            return Err(Error::unexpected(
                input.file(),
                Place::Byte(8),
                format!("a header of {length} bytes"),
                expected,
            ));
        }
        let text = input.bytes(length.into(), "the header", &Budget::new(MAX_HEADER.into()))?;
        Self::parse(&String::from_utf8_lossy(&text), input.file())
    }

    fn parse(text: &str, file: &str) -> Result<Self> {
        let bad = |what: &str| Error::unexpected(file, Place::Header, format!("{:?}", text.trim()), what);
        let (kind, size, big_endian) = element(text, file)?;
        let fortran = match value(text, "fortran_order") {
            Some(v) if v.starts_with("True") => true,
            Some(v) if v.starts_with("False") => false,
            _ => return Err(bad("'fortran_order' True or False")),
        };
        let shape =
            value(text, "shape").and_then(parse_shape).ok_or_else(|| bad("'shape' as a tuple of sizes"))?;
        Ok(Self { kind, size, big_endian, fortran, shape })
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> u128 {
        self.shape.iter().fold(1, |n: u128, &d| n.saturating_mul(d as u128))
    }
}

/// Text after a key and its colon.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let quoted = [format!("'{key}'"), format!("\"{key}\"")];
    let after = quoted.iter().find_map(|k| text.find(k.as_str()).map(|at| &text[at + k.len()..]))?;
    Some(after.trim_start().strip_prefix(':')?.trim_start())
}

fn parse_shape(text: &str) -> Option<Vec<usize>> {
    let inside = text.strip_prefix('(')?.split(')').next()?;
    let sizes = inside.split(',').map(|d| d.trim().trim_end_matches('L')).filter(|d| !d.is_empty());
    // Thirty-two dimensions are numpy's own limit.
    sizes.map(|d| d.parse().ok()).collect::<Option<Vec<usize>>>().filter(|dims| dims.len() <= 32)
}

/// Kind, size and byte order from a type such as `'<f4'`.
fn element(text: &str, file: &str) -> Result<(Kind, usize, bool)> {
    let unsupported = |what: String| Error::Unsupported {
        file: file.into(),
        what,
        hint: "Save images as uint8 or float32 and labels as integers or text",
    };
    let descr = value(text, "descr").unwrap_or_default();
    let quoted = descr.get(1..).and_then(|t| t.split(['\'', '"']).next()).unwrap_or_default();
    let order = quoted.chars().next().unwrap_or(' ');
    let (letter, digits) = (quoted.chars().nth(1).unwrap_or(' '), quoted.get(2..).unwrap_or_default());
    let size: usize = digits.parse().ok().filter(|n| *n <= 4096).unwrap_or(0);
    let kind = match (letter, size) {
        ('b', 1) => Kind::Bool,
        ('u', 1 | 2 | 4 | 8) => Kind::Unsigned,
        ('i', 1 | 2 | 4 | 8) => Kind::Signed,
        ('f', 2 | 4 | 8) => Kind::Float,
        ('U', 1..) => return Ok((Kind::Unicode, 4 * size, order == '>')),
        ('S', 1..) => Kind::Ascii,
        _ => {
            let start: String = descr.chars().take(40).collect();
            return Err(unsupported(format!("element type {start:?} in the header")));
        }
    };
    if !"<>|=".contains(order) || descr.starts_with('[') {
        return Err(unsupported(format!("element type {quoted:?} in the header")));
    }
    Ok((kind, size, order == '>'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<NpyHeader> {
        NpyHeader::parse(text, "x.npy")
    }

    #[test]
    fn headers_as_numpy_writes_them() {
        let h = parse("{'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }   \n").unwrap();
        assert_eq!((h.kind, h.size, h.big_endian, h.fortran), (Kind::Float, 4, false, false));
        assert_eq!((h.shape.clone(), h.len()), (vec![60000, 28, 28], 47_040_000));
        let h = parse("{'descr': '>i8', 'fortran_order': True, 'shape': (3,), }").unwrap();
        assert_eq!(
            (h.kind, h.size, h.big_endian, h.fortran, h.shape),
            (Kind::Signed, 8, true, true, vec![3])
        );
        assert_eq!(parse("{'descr': '<U5', 'fortran_order': False, 'shape': ()}").unwrap().size, 20);
    }

    #[test]
    fn bad_headers_are_errors() {
        for text in [
            "",
            "{}",
            "{'descr': '|O', 'fortran_order': False, 'shape': (3,)}",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': 'é', 'fortran_order': False, 'shape': (3,)}",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        let huge = "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 18446744073709551615, 9)}";
        assert_eq!(parse(huge).unwrap().len(), u128::MAX);
    }
}
