//! Errors of the library as Python exceptions.

use convgp::Error;
use convgp::data::DataError;
use convgp::io::FileError;
use convgp::memory::{MemoryError, Remedy};
use convgp::metrics::MetricsError;
use convgp_report::ReportError;
use pyo3::exceptions::{PyMemoryError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::import_exception;
use pyo3::prelude::*;
use std::any::Any;
use std::path::Path;

import_exception!(convgp._errors, NumericalError);

/// Anything that ends a call.
#[derive(Debug)]
pub enum Failure {
    /// The library said no.
    Library(Error),
    /// So did a reader.
    Data(convgp_data::Error),
    /// So did the report.
    Report(ReportError),
    /// So did Python.
    Python(PyErr),
    /// A mistake in what was handed over.
    Value(String),
    /// A mistake of ours.
    Bug(String),
}

/// Results of calls from Python.
pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// From a caught panic.
    pub fn of_panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        Self::Bug(text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message").into())
    }
}

/// A panic becomes an exception; nothing is written to standard error besides.
pub fn silence_panics() {
    std::panic::set_hook(Box::new(|_| {}));
}

macro_rules! from {
    ($($source:ty => $wrap:expr),* $(,)?) => {
        $(impl From<$source> for Failure {
            fn from(error: $source) -> Self {
                $wrap(error)
            }
        })*
    };
}

from! {
    Error => Failure::Library,
    DataError => |e| Failure::Library(Error::Data(e)),
    MetricsError => |e| Failure::Library(Error::Metrics(e)),
    convgp::params::ParamError => |e| Failure::Library(Error::Param(e)),
    convgp::train::TrainError => |e| Failure::Library(Error::Train(e)),
    convgp::preset::PresetError => |e| Failure::Library(Error::Preset(e)),
    ReportError => Failure::Report,
    convgp_paper::Error => |e| match e {
        convgp_paper::Error::Library(e) => Failure::Library(e),
        e => Failure::Value(e.to_string()),
    },
    convgp_data::Error => Failure::Data,
    PyErr => Failure::Python,
    serde_json::Error => |e: serde_json::Error| Failure::Value(format!("model spec: {e}")),
    toml::de::Error => |e| Failure::Library(Error::Toml(e)),
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Library(e) | Failure::Report(ReportError::Model(e)) => library(e),
            Failure::Report(ReportError::Access { path, source }) => access(&path, &source),
            Failure::Report(e) => PyValueError::new_err(e.to_string()),
            Failure::Data(convgp_data::Error::Io { file, source, .. }) => access(Path::new(&file), &source),
            Failure::Data(e) => PyValueError::new_err(e.to_string()),
            Failure::Python(e) => e,
            Failure::Value(what) => PyValueError::new_err(what),
            Failure::Bug(what) => {
                PyRuntimeError::new_err(format!("a bug in convgp, please report it: {what}"))
            }
        }
    }
}

fn library(error: Error) -> PyErr {
    match error {
        Error::Numerical(e) => NumericalError::new_err(e.to_string()),
        Error::Memory(e) => PyMemoryError::new_err(format!("{e}. {}", advice(&e))),
        Error::File(FileError::Access { path, source } | FileError::Write { path, source }) => {
            access(&path, &source)
        }
        other => PyValueError::new_err(other.to_string()),
    }
}

/// What would fit, in the words of the estimators.
fn advice(error: &MemoryError) -> String {
    match error.remedy {
        Remedy::Inducing { fits, now } => {
            format!(
                "inducing={fits} would fit (now {now}); a smaller batch_size helps where covariances dominate"
            )
        }
        Remedy::SmallerData => "No number of inducing inputs would fit: use fewer or smaller images".into(),
    }
}

/// `OSError`, or the kind of it that the number stands for.
fn access(path: &Path, source: &std::io::Error) -> PyErr {
    match source.raw_os_error() {
        Some(code) => {
            let text = source.to_string();
            let text = text.split(" (os error").next().unwrap_or_default().to_string();
            PyOSError::new_err((code, text, path.as_os_str().to_os_string()))
        }
        None => std::io::Error::new(source.kind(), format!("{}: {source}", path.display())).into(),
    }
}
