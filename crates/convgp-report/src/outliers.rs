//! How well out-of-distribution images are told from ordinary ones, by several scores.

use crate::ReportError;
use convgp::inspect::Uncertainty;
use convgp::metrics::{Separation, separation};

/// A score of uncertainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Score {
    /// One minus the largest probability.
    MaximumProbability,
    /// Entropy of the probabilities.
    Entropy,
    /// Mutual information of answer and latents.
    MutualInformation,
    /// Posterior over prior variance.
    VarianceRatio,
}

impl Score {
    /// All of them, in the order of tables.
    pub const ALL: [Score; 4] =
        [Score::MaximumProbability, Score::Entropy, Score::MutualInformation, Score::VarianceRatio];

    /// As written in tables.
    pub fn name(self) -> &'static str {
        match self {
            Score::MaximumProbability => "maximum probability",
            Score::Entropy => "entropy",
            Score::MutualInformation => "mutual information",
            Score::VarianceRatio => "variance ratio",
        }
    }

    fn of(self, u: &Uncertainty) -> &[f64] {
        match self {
            Score::MaximumProbability => &u.doubt,
            Score::Entropy => &u.entropy,
            Score::MutualInformation => &u.mutual_information,
            Score::VarianceRatio => &u.variance_ratio,
        }
    }
}

/// One out-of-distribution data set against the ordinary one.
#[derive(Debug, Clone, PartialEq)]
pub struct Outliers {
    /// What the out-of-distribution images are.
    pub name: String,
    /// Every score's separation.
    pub rows: Vec<(Score, Separation)>,
}

impl Outliers {
    /// Compares the scores of out-of-distribution images with those of ordinary ones.
    pub fn new(name: &str, ordinary: &Uncertainty, unusual: &Uncertainty) -> Result<Self, ReportError> {
        let row = |s: Score| Ok((s, separation(s.of(ordinary), s.of(unusual))?));
        Ok(Self {
            name: name.into(),
            rows: Score::ALL.into_iter().map(row).collect::<Result<_, ReportError>>()?,
        })
    }
}
