//! Arrays on their way into a safetensors file, and back.

use super::{FileError, access, format_error, replace_file};
use crate::Result;
use safetensors::tensor::{Dtype, SafeTensors, View};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

/// What stands for the path of a file that is none.
const IN_MEMORY: &str = "model in memory";

/// Numbers that become bytes only while they are written, so that a file costs one array's memory and not two of all.
pub(super) struct Tensor<'a> {
    pub shape: Vec<usize>,
    pub numbers: Numbers<'a>,
}

pub(super) enum Numbers<'a> {
    Double(&'a [f64]),
    Single(&'a [f32]),
    Words(&'a [u64]),
}

impl<'a> Tensor<'a> {
    /// A flat array of doubles.
    pub fn doubles(numbers: &'a [f64]) -> Self {
        Self { shape: vec![numbers.len()], numbers: Numbers::Double(numbers) }
    }
    /// A flat array of singles.
    pub fn singles(numbers: &'a [f32]) -> Self {
        Self { shape: vec![numbers.len()], numbers: Numbers::Single(numbers) }
    }
    /// A flat array of 64-bit words.
    pub fn words(numbers: &'a [u64]) -> Self {
        Self { shape: vec![numbers.len()], numbers: Numbers::Words(numbers) }
    }
}

impl View for Tensor<'_> {
    fn dtype(&self) -> Dtype {
        match self.numbers {
            Numbers::Double(_) => Dtype::F64,
            Numbers::Single(_) => Dtype::F32,
            Numbers::Words(_) => Dtype::U64,
        }
    }
    fn shape(&self) -> &[usize] {
        &self.shape
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(match self.numbers {
            Numbers::Double(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Numbers::Single(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Numbers::Words(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
        })
    }
    fn data_len(&self) -> usize {
        match self.numbers {
            Numbers::Double(v) => size_of_val(v),
            Numbers::Single(v) => size_of_val(v),
            Numbers::Words(v) => size_of_val(v),
        }
    }
}

/// Writes arrays and one metadata entry. (One, because the order of several is not fixed and equal contents are to give
/// equal bytes.)
pub(super) fn write(
    path: &Path,
    key: &str,
    header: String,
    tensors: Vec<(String, Tensor<'_>)>,
) -> Result<()> {
    let metadata = HashMap::from([(key.to_string(), header)]);
    replace_file(path, |temporary| {
        // What follows makes files that only their owner can read; a model is as readable as any other file.
        let usual = std::fs::File::create(temporary)?.metadata()?.permissions();
        safetensors::serialize_to_file(tensors, Some(metadata), temporary).map_err(std::io::Error::other)?;
        std::fs::set_permissions(temporary, usual)
    })
}

/// The bytes [`write`] puts into a file.
pub(super) fn to_bytes(key: &str, header: String, tensors: Vec<(String, Tensor<'_>)>) -> Result<Vec<u8>> {
    let metadata = HashMap::from([(key.to_string(), header)]);
    safetensors::serialize(tensors, Some(metadata)).map_err(|e| format_error(Path::new(IN_MEMORY), e))
}

/// A file read whole.
pub(super) struct File<'a> {
    path: &'a Path,
    bytes: Cow<'a, [u8]>,
}

impl<'a> File<'a> {
    pub fn read(path: &'a Path) -> Result<Self> {
        Ok(Self { path, bytes: std::fs::read(path).map_err(|e| access(path, e))?.into() })
    }

    /// A file that is already in memory.
    pub fn of_bytes(bytes: &'a [u8]) -> Self {
        Self { path: Path::new(IN_MEMORY), bytes: bytes.into() }
    }

    /// Where it was.
    pub fn path(&self) -> &Path {
        self.path
    }

    /// The metadata entry `key` and the arrays.
    pub fn parse(&self, key: &str) -> Result<(String, Arrays<'_>)> {
        let tensors = SafeTensors::deserialize(&self.bytes).map_err(|e| format_error(self.path, e))?;
        let (_, metadata) =
            SafeTensors::read_metadata(&self.bytes).map_err(|e| format_error(self.path, e))?;
        let text = metadata.metadata().as_ref().and_then(|m| m.get(key)).cloned();
        let text = text.ok_or_else(|| format_error(self.path, format!("its metadata lack `{key}`")))?;
        Ok((text, Arrays { path: self.path, tensors }))
    }
}

/// The arrays of a file.
pub(super) struct Arrays<'a> {
    path: &'a Path,
    tensors: SafeTensors<'a>,
}

impl Arrays<'_> {
    fn bytes(&self, name: &str, wanted: Dtype) -> Result<&[u8]> {
        let tensor = self.tensors.tensor(name).map_err(|e| format_error(self.path, e))?;
        if tensor.dtype() != wanted {
            let what = format!("tensor `{name}` is {:?}, not {wanted:?}", tensor.dtype());
            return Err(FileError::Format { path: self.path.into(), what }.into());
        }
        Ok(tensor.data())
    }

    pub fn doubles(&self, name: &str) -> Result<Vec<f64>> {
        let numbers = self.bytes(name, Dtype::F64)?.chunks_exact(8);
        Ok(numbers.map(|b| f64::from_le_bytes(b.try_into().expect("eight bytes"))).collect())
    }

    pub fn singles(&self, name: &str) -> Result<Vec<f32>> {
        let numbers = self.bytes(name, Dtype::F32)?.chunks_exact(4);
        Ok(numbers.map(|b| f32::from_le_bytes(b.try_into().expect("four bytes"))).collect())
    }

    pub fn words(&self, name: &str) -> Result<Vec<u64>> {
        let numbers = self.bytes(name, Dtype::U64)?.chunks_exact(8);
        Ok(numbers.map(|b| u64::from_le_bytes(b.try_into().expect("eight bytes"))).collect())
    }
}
