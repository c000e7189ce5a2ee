//! What can be wrong with a golden file.

/// Why a golden file could not be compared. Every message names the field.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum GoldenError {
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    #[error("is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("field `{field}` is missing")]
    Missing { field: String },
    #[error("field `{field}` {problem}")]
    Field { field: String, problem: String },
    #[error("field `{field}`: {source}")]
    Refused {
        field: String,
        #[source]
        source: Box<convgp::Error>,
    },
}

impl GoldenError {
    /// A field that is there but wrong.
    pub(crate) fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field { field: field.into(), problem: problem.into() }
    }
}

/// Attaches the field that the library refused.
pub(crate) trait At<T> {
    fn at(self, field: &str) -> Result<T, GoldenError>;
}

impl<T, E: Into<convgp::Error>> At<T> for Result<T, E> {
    fn at(self, field: &str) -> Result<T, GoldenError> {
        self.map_err(|e| GoldenError::Refused { field: field.into(), source: Box::new(e.into()) })
    }
}
