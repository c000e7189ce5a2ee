//! The elements of an NPY array, read in chunks and kept small.

use crate::error::{Error, Place, Result};
use crate::formats::npy_header::{Kind, NpyHeader};
use crate::formats::numbers::Numbers;
use crate::loaded::Labels;
use crate::source::{Budget, Input};

/// Bytes converted at a time.
const CHUNK: usize = 1 << 18;

/// Shape and values of an image array, in C order.
pub(crate) fn numbers(input: &mut Input, budget: &Budget) -> Result<(Vec<usize>, Numbers)> {
    let header = NpyHeader::read(input)?;
    let values = match (header.kind, header.size) {
        (Kind::Bool | Kind::Unsigned, 1) => {
            Numbers::Bytes(input.bytes(header.len(), &wanted(&header), budget)?)
        }
        (Kind::Float, 8) => {
            let mut out = Vec::new();
            elements(input, &header, 8, budget, |bytes| {
                out.push(real(&header, bytes));
                Ok(())
            })?;
            Numbers::from_doubles(out)
        }
        (Kind::Unicode | Kind::Ascii, _) => {
            return Err(Error::unexpected(input.file(), Place::Header, "text", "numbers for the images"));
        }
        _ => {
            let (mut out, file) = (Numbers::new(), input.file().to_owned());
            elements(input, &header, 1, budget, |bytes| {
                out.push(real(&header, bytes) as f32, &file, budget)
            })?;
            out
        }
    };
    input.expect_end()?;
    let values = if header.fortran { to_c_order(values, &header.shape) } else { values };
    Ok((header.shape, values))
}

/// Labels: a list, or a column of one.
pub(crate) fn labels(input: &mut Input, budget: &Budget) -> Result<Labels> {
    let header = NpyHeader::read(input)?;
    if !matches!(header.shape[..], [_] | [_, 1]) {
        let (found, expected) =
            (format!("shape {:?}", header.shape), "a list; for one-hot rows save their argmax");
        return Err(Error::unexpected(input.file(), Place::Header, found, expected));
    }
    let mut out = match header.kind {
        Kind::Float => Labels::Real(Vec::new()),
        Kind::Unicode | Kind::Ascii => Labels::Text(Vec::new()),
        Kind::Bool | Kind::Unsigned | Kind::Signed => Labels::Index(Vec::new()),
    };
    let size = header.size.max(8);
    elements(input, &header, size, budget, |bytes| {
        match &mut out {
            Labels::Real(v) => v.push(real(&header, bytes)),
            Labels::Text(v) => v.push(text(&header, bytes)),
            Labels::Index(v) => v.push(whole(&header, bytes)),
            Labels::Absent(_) => {}
        }
        Ok(())
    })?;
    input.expect_end()?;
    Ok(out)
}

fn wanted(header: &NpyHeader) -> String {
    format!("the elements of a {:?} array", header.shape)
}

/// Calls `take` with the bytes of every element, after reserving `kept` bytes for each.
fn elements(
    input: &mut Input,
    header: &NpyHeader,
    kept: usize,
    budget: &Budget,
    mut take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let what = wanted(header);
    budget.take(header.len().saturating_mul(kept as u128), input.file(), &what)?;
    let mut left = header.len();
    let at_once = (CHUNK / header.size).max(1);
    let mut buffer = vec![0; at_once * header.size];
    while left > 0 {
        let now = (at_once as u128).min(left) as usize;
        let bytes = &mut buffer[..now * header.size];
        input.fill(bytes, &what)?;
        bytes.chunks_exact(header.size).try_for_each(&mut take)?;
        left -= now as u128;
    }
    Ok(())
}

/// The element's bytes as an integer, least significant byte first, sign-extended if signed.
fn whole(header: &NpyHeader, bytes: &[u8]) -> i64 {
    let fold = |n: u64, b: &u8| n << 8 | u64::from(*b);
    let raw = if header.big_endian { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) };
    let unused = 64 - 8 * bytes.len() as u32;
    match header.kind {
        Kind::Signed => ((raw << unused) as i64) >> unused,
        // A label beyond i64 is out of any range; keep it so.
        _ => i64::try_from(raw).unwrap_or(i64::MAX),
    }
}

fn real(header: &NpyHeader, bytes: &[u8]) -> f64 {
    let raw = whole(&NpyHeader { kind: Kind::Signed, shape: Vec::new(), ..*header }, bytes);
    match (header.kind, header.size) {
        (Kind::Float, 2) => half(raw as u16),
        (Kind::Float, 4) => f64::from(f32::from_bits(raw as u32)),
        (Kind::Float, _) => f64::from_bits(raw as u64),
        _ => whole(header, bytes) as f64,
    }
}

/// A number of 1 sign, 5 exponent and 10 fraction bits.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let size = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 0 { size } else { -size }
}

fn text(header: &NpyHeader, bytes: &[u8]) -> String {
    let text = match header.kind {
        Kind::Ascii => String::from_utf8_lossy(bytes).into_owned(),
        _ => bytes.chunks_exact(4).map(|c| char::from_u32(ucs4(header, c)).unwrap_or('\u{fffd}')).collect(),
    };
    text.trim_end_matches('\0').to_owned()
}

fn ucs4(header: &NpyHeader, bytes: &[u8]) -> u32 {
    let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
    if header.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

/// From column-major to row-major order.
fn to_c_order(values: Numbers, shape: &[usize]) -> Numbers {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = 1;
    for &d in shape {
        strides.push(stride);
        stride *= d;
    }
    values.reorder(|mut i| {
        let mut from = 0;
        for (&d, &s) in shape.iter().zip(&strides).rev() {
            from += i % d * s;
            i /= d;
        }
        from
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend((header.len() as u16).to_le_bytes());
        out.extend(header.bytes());
        out.extend(data);
        out
    }

    fn input(bytes: &[u8]) -> Input<'_> {
        Input::from_reader("x.npy".into(), bytes).unwrap()
    }

    #[test]
    fn every_element_type_is_understood() {
        let budget = Budget::new(1 << 20);
        let label =
            |descr, data: &[u8]| labels(&mut input(&file(descr, "False", "(2,)", data)), &budget).unwrap();
        assert_eq!(label("<i4", &[1, 0, 0, 0, 255, 255, 255, 255]), Labels::Index(vec![1, -1]));
        assert_eq!(label(">i2", &[0, 7, 255, 254]), Labels::Index(vec![7, -2]));
        assert_eq!(label("|u1", &[200, 3]), Labels::Index(vec![200, 3]));
        assert_eq!(label("<u8", &[255; 16]), Labels::Index(vec![i64::MAX; 2]));
        assert_eq!(label("<f4", &[0, 0, 0, 63, 0, 0, 128, 191]), Labels::Real(vec![0.5, -1.0]));
        assert_eq!(label("<f2", &[0, 0x3e, 1, 0x80]), Labels::Real(vec![1.5, -2f64.powi(-24)]));
        assert_eq!(label("|S3", b"catno\0"), Labels::Text(vec!["cat".into(), "no".into()]));
        assert_eq!(label("<U1", &[233, 0, 0, 0, 97, 0, 0, 0]), Labels::Text(vec!["é".into(), "a".into()]));
    }

    #[test]
    fn column_major_arrays_are_turned() {
        let bytes = file("|u1", "True", "(2, 3)", &[1, 4, 2, 5, 3, 6]);
        let (shape, values) = numbers(&mut input(&bytes), &Budget::new(100)).unwrap();
        assert_eq!(shape, [2, 3]);
        assert!(matches!(values, Numbers::Bytes(v) if v == [1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn absurd_shapes_are_refused_before_allocating() {
        let bytes = file("<f8", "False", "(4000000000, 4000000000, 4000000000)", &[0; 64]);
        assert!(matches!(numbers(&mut input(&bytes), &Budget::new(1 << 30)), Err(Error::TooLarge { .. })));
        let bytes = file("<f8", "False", "(100000, 10)", &[0; 64]);
        assert!(matches!(numbers(&mut input(&bytes), &Budget::new(1 << 30)), Err(Error::Truncated { .. })));
    }
}
