//! The native half of the Python package `convgp`: a thin layer that hands arrays, settings and errors across the border.
//!
//! | module | what crosses |
//! |---|---|
//! | `data` | arrays, used where they lie, with their targets |
//! | `model`, `fit`, `update`, `predict`, `look` | a model: made, trained, changed, asked, looked into |
//! | `read` | data from files and generators |
//! | `research` | the bound, gradients, covariances and single steps |
//! | `report` | figures and the page |
//! | `failure`, `pool` | errors as exceptions; threads that survive a fork |

#![warn(missing_docs)]

mod arrays;
mod data;
mod failure;
mod fit;
mod look;
mod model;
mod pool;
mod predict;
mod read;
mod report;
mod research;
mod update;

use pyo3::prelude::*;

#[pymodule]
mod _convgp {
    #[pymodule_export]
    use crate::data::Data;
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::read::{read, rectangles};
    #[pymodule_export]
    use crate::report::Report;
    #[pymodule_export]
    use crate::research::Stepper;
    use pyo3::prelude::*;

    /// Version of the package.
    #[pymodule_export]
    #[allow(non_upper_case_globals)] // Python's name
    const __version__: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::failure::silence_panics();
        Ok(())
    }

    /// Names of the models that can be asked for, with a line about each.
    #[pyfunction]
    fn model_names() -> Vec<(&'static str, &'static str)> {
        convgp::preset::Named::ALL.map(|n| (n.name(), n.about())).into()
    }

    /// Names of the paper's experiments.
    #[pyfunction]
    fn paper_names() -> Vec<&'static str> {
        convgp_paper::catalog::all().map(|experiment| experiment.name).collect()
    }
}
