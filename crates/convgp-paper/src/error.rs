use crate::Recipe;
use std::path::PathBuf;

/// What can go wrong with experiments and records.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum Error {
    #[error("no experiment is called {name}; there are {}", known.join(", "))]
    UnknownExperiment { name: String, known: Vec<&'static str> },
    #[error("there is no recipe `{name}`; there are fast, paper")]
    UnknownRecipe { name: String },
    #[error("{experiment} has no recipe `{recipe}`; it has `{other}`")]
    NoRecipe { experiment: &'static str, recipe: Recipe, other: Recipe },
    #[error(
        "{experiment}, recipe `{recipe}`, is L-BFGS on all images at once: `convgp reproduce {experiment} --recipe {recipe}`"
    )]
    FullBatch { experiment: &'static str, recipe: Recipe },
    #[error("model {model}: the paper has no settings for it on such images; it has some for {}", known.join(", "))]
    NotPublished { model: &'static str, known: Vec<String> },
    #[error("{}", path.display())]
    Access { path: PathBuf, source: std::io::Error },
    #[error("{}: no record of an experiment", path.display())]
    NotARecord { path: PathBuf, source: serde_json::Error },
    #[error("a record is of classes, and the model predicts numbers")]
    NoClasses,
    #[error(transparent)]
    Csv(#[from] csv::Error),
    #[error(transparent)]
    Report(#[from] convgp_report::ReportError),
    #[error(transparent)]
    Library(#[from] convgp::Error),
}

impl Error {
    /// Whether it is about a name that was asked for, not about a file.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Error::UnknownExperiment { .. }
                | Error::UnknownRecipe { .. }
                | Error::NoRecipe { .. }
                | Error::FullBatch { .. }
                | Error::NotPublished { .. }
        )
    }
}
