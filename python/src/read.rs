//! Data from files and generators.

use crate::failure::{Failure, Outcome};
use crate::pool::run;
use convgp::data::{Dataset, PixelView, Targets};
use convgp_data::{Colour, OpenOptions, Size};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use std::path::PathBuf;

/// Images, labels or values, class names.
type Arrays<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Vec<String>);

/// Outlines of rectangles, wide or tall: images, labels, class names.
#[pyfunction]
pub fn rectangles(py: Python<'_>, count: usize, seed: u64) -> Outcome<Arrays<'_>> {
    if count == 0 {
        return Err(Failure::Value("count is 0; at least one image is needed".into()));
    }
    let data = run(py, Some(1), || Ok(convgp_data::generate::rectangles(count, seed)))?;
    arrays(py, &data)
}

/// Reads a file or folder as the command line does: for every split its name and its arrays.
#[pyfunction]
#[pyo3(signature = (path, *, size=None, channels=None, limit=None))]
pub fn read(
    py: Python<'_>,
    path: PathBuf,
    size: Option<(usize, usize)>,
    channels: Option<usize>,
    limit: Option<usize>,
) -> Outcome<Vec<(&'static str, Arrays<'_>)>> {
    let colour = match channels {
        None => Colour::AsFound,
        Some(1) => Colour::Grey,
        Some(3) => Colour::Rgb,
        Some(n) => return Err(Failure::Value(format!("channels is {n}; it is 1 (grey), 3 (RGB) or None"))),
    };
    let size = size.map(|(height, width)| Size::new(height, width));
    let options = OpenOptions { size, colour, limit, ..OpenOptions::default() };
    let loaded = run(py, None, || Ok(convgp_data::open(&path, &options)?))?;
    loaded.splits.iter().map(|split| Ok((split.kind.name(), arrays(py, &split.data)?))).collect()
}

fn arrays<'py>(py: Python<'py>, data: &Dataset) -> Outcome<Arrays<'py>> {
    let shape = data.images().shape();
    let shape = [data.len(), shape.height(), shape.width(), shape.channels()];
    let pixels = match data.images().pixels().view() {
        PixelView::U8(v) => PyArray1::from_slice(py, v).reshape(shape)?.into_any(),
        PixelView::U16(v) => PyArray1::from_slice(py, v).reshape(shape)?.into_any(),
        PixelView::F32(v) => PyArray1::from_slice(py, v).reshape(shape)?.into_any(),
        PixelView::F64(v) => PyArray1::from_slice(py, v).reshape(shape)?.into_any(),
    };
    let targets = match data.targets() {
        Targets::Classes { labels, .. } => labels.clone().into_pyarray(py).into_any(),
        Targets::Real(values) => values.clone().into_pyarray(py).into_any(),
    };
    Ok((pixels, targets, data.class_names().to_vec()))
}
