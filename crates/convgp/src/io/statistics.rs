//! Statistics files: what a closed-form model was solved from, so that images can be added and removed later.

use super::tensors::{self, Tensor};
use super::{FORMAT_VERSION, check_version, format_error};
use crate::Result;
use crate::closed_form::statistics::{Columns, Sums};
use crate::closed_form::{Precision, Statistics, StatisticsError};
use crate::linalg::{Mat, pack_lower, unpack_lower};
use crate::model::Model;
use crate::params::packed_len;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The metadata key.
const KEY: &str = "convgp_statistics";

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    format_version: u32,
    outputs: usize,
    latents: usize,
    labels: bool,
    width: usize,
    precision: Precision,
    singles: usize,
    sums: bool,
    /// Identity of the kernels, whitenings and inducing inputs.
    model: String,
}

impl Statistics {
    /// Writes them beside a model; whoever reads the path meanwhile finds the old file or the new one, whole.
    pub fn save(&self, path: &Path) -> Result<()> {
        self.write_with(|header, tensors| tensors::write(path, KEY, header, tensors))
    }

    /// The bytes of that file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.write_with(|header, tensors| tensors::to_bytes(KEY, header, tensors))
    }

    /// Reads them back; refuses those of another model.
    pub fn load(path: &Path, model: &Model, values: &[f64]) -> Result<Self> {
        read_statistics(&tensors::File::read(path)?, model, values)
    }

    /// Reads the bytes of such a file.
    pub fn from_bytes(bytes: &[u8], model: &Model, values: &[f64]) -> Result<Self> {
        read_statistics(&tensors::File::of_bytes(bytes), model, values)
    }

    fn write_with<T>(&self, write: impl FnOnce(String, Vec<(String, Tensor<'_>)>) -> Result<T>) -> Result<T> {
        let header = Header {
            format_version: FORMAT_VERSION,
            outputs: self.outputs,
            latents: self.latents,
            labels: self.labels,
            width: self.width,
            precision: self.precision,
            singles: self.singles,
            sums: self.sums.is_some(),
            model: self.model.clone(),
        };
        let header = serde_json::to_string(&header).expect("a header has nothing JSON cannot hold");
        let mut packed = Vec::new();
        let mut arrays = vec![("ids".to_string(), Tensor::words(&self.ids))];
        arrays.extend(columns("few", &self.few));
        if let Some(sums) = &self.sums {
            packed.resize(packed_len(self.outputs), 0.0);
            pack_lower(sums.g.view(), 0.0, 1.0, &mut packed);
            arrays.push(("g".into(), Tensor::doubles(&packed)));
            arrays.push(("b".into(), Tensor::doubles(sums.b.data())));
            arrays.extend(columns("kept", &sums.kept));
            arrays.extend(columns("block", &sums.block));
            arrays.push(("chunk".into(), Tensor::singles(&sums.chunk)));
            arrays.push(("chunk_double".into(), Tensor::doubles(&sums.chunk_double)));
        }
        write(header, arrays)
    }
}

fn read_statistics(file: &tensors::File<'_>, model: &Model, values: &[f64]) -> Result<Statistics> {
    let path = file.path();
    let (text, arrays) = file.parse(KEY)?;
    check_version(path, &text)?;
    let header: Header = serde_json::from_str(&text).map_err(|e| format_error(path, e))?;
    let Header { outputs, latents, labels, width, precision, singles, .. } = header;
    if (outputs, latents) != (model.variational().total(), model.variational().latents())
        || header.model != model.identity(values)
    {
        let what = format!("{} was made with other kernels or inducing inputs", path.display());
        return Err(StatisticsError::OtherModel { what }.into());
    }
    let numbers = |name: &str, expected: usize| {
        let found = arrays.doubles(name)?;
        if found.len() == expected && found.iter().all(|x| x.is_finite()) {
            return Ok(found);
        }
        let what = format!("`{name}` has {} numbers, not {expected} finite ones", found.len());
        Err(format_error(path, what))
    };
    let columns = |name: &str| {
        let ids = arrays.words(&format!("{name}.ids"))?;
        let (a, y) = (ids.len() * outputs * width, ids.len() * latents);
        Ok::<_, crate::Error>(Columns {
            a: numbers(&format!("{name}.a"), a)?,
            y: numbers(&format!("{name}.y"), y)?,
            ids,
        })
    };
    let (ids, few) = (arrays.words("ids")?, columns("few")?);
    let mut read = Statistics {
        outputs,
        latents,
        labels,
        width,
        precision,
        singles,
        ids,
        few,
        sums: None,
        model: header.model,
    };
    if header.sums {
        let mut g = Mat::zeros(outputs, outputs);
        unpack_lower(&numbers("g", packed_len(outputs))?, g.view_mut());
        let b = Mat::from_columns(numbers("b", outputs * latents)?, outputs);
        let (kept, block) = (columns("kept")?, columns("block")?);
        let (chunk, chunk_double) = (arrays.singles("chunk")?, arrays.doubles("chunk_double")?);
        if !(chunk.len().is_multiple_of(outputs) && chunk_double.len().is_multiple_of(outputs)) {
            return Err(format_error(path, "`chunk` is not a whole number of images"));
        }
        read.sums = Some(Sums { g, b, kept, block, chunk, chunk_double });
    } else if read.few.ids != read.ids {
        return Err(format_error(path, "`ids` and `few.ids` differ"));
    }
    Ok(read)
}

fn columns<'a>(name: &str, columns: &'a Columns) -> [(String, Tensor<'a>); 3] {
    [
        (format!("{name}.ids"), Tensor::words(&columns.ids)),
        (format!("{name}.a"), Tensor::doubles(&columns.a)),
        (format!("{name}.y"), Tensor::doubles(&columns.y)),
    ]
}
