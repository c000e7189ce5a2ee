//! Numbers on their way to numpy.

use convgp::linalg::Mat;
use numpy::npyffi::NPY_ORDER;
use numpy::{IntoPyArray, PyArray1, PyArrayDyn, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

/// An array of any number of dimensions.
pub type Array<'py> = Bound<'py, PyArrayDyn<f64>>;

/// Row-major numbers in a shape.
pub fn array<'py>(py: Python<'py>, numbers: Vec<f64>, shape: &[usize]) -> PyResult<Array<'py>> {
    numbers.into_pyarray(py).reshape(shape.to_vec())
}

/// A matrix.
pub fn matrix<'py>(py: Python<'py>, m: &Mat) -> PyResult<Array<'py>> {
    let columns = PyArray1::from_slice(py, m.data());
    columns.reshape_with_order(vec![m.rows(), m.cols()], NPY_ORDER::NPY_FORTRANORDER)
}

/// A flat JSON object as a dictionary.
pub fn dictionary<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (key, value) in value.as_object().into_iter().flatten() {
        match value {
            Value::Number(n) if n.is_f64() => out.set_item(key, n.as_f64())?,
            Value::Number(n) => out.set_item(key, n.as_u64())?,
            Value::String(s) => out.set_item(key, s)?,
            _ => out.set_item(key, py.None())?,
        }
    }
    Ok(out)
}
