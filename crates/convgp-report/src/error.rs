//! What can go wrong between numbers and pictures.

use std::path::PathBuf;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum ReportError {
    #[error("{}: {source}", path.display())]
    Access { path: PathBuf, source: std::io::Error },
    #[error("{}, line {line}: {what}", path.display())]
    Curves { path: PathBuf, line: u64, what: String },
    #[error("the evaluation has {images} images but {found} labels")]
    ImageCount { images: usize, found: usize },
    #[error(transparent)]
    Metrics(#[from] convgp::metrics::MetricsError),
    #[error(transparent)]
    Model(#[from] convgp::Error),
    #[error("drawing: {0}")]
    Draw(String),
}

impl<E: std::error::Error + Send + Sync> From<plotters::drawing::DrawingAreaErrorKind<E>> for ReportError {
    fn from(e: plotters::drawing::DrawingAreaErrorKind<E>) -> Self {
        ReportError::Draw(e.to_string())
    }
}
