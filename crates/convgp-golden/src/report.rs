//! The outcome of a comparison.

use std::fmt;

/// Arithmetic of the engine under test, which decides what error is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    /// Double precision throughout.
    Double,
    /// Kernel values in single precision.
    Single,
}

/// `Kuu` counts as badly conditioned above this condition number (of `Kuu + jitter I`, in the 1-norm).
const ILL_CONDITIONED: f64 = 1e3;

impl Precision {
    /// The largest relative error allowed, as the schema suggests it.
    pub fn tolerance(self, condition: f64) -> f64 {
        match self {
            Precision::Single => 1e-4,
            Precision::Double if condition > ILL_CONDITIONED => 1e-7,
            Precision::Double => 1e-9,
        }
    }
}

/// One array of the file and how far ours is from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantity {
    /// Column of the printed table, shared by arrays of one kind: `Kuu`, `grad weights`.
    pub kind: &'static str,
    /// Path of the array in the file.
    pub field: String,
    /// Largest difference over the largest element of the file's array; infinite if ours is not finite.
    pub error: f64,
}

/// All comparisons of one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// What was compared, in order.
    pub quantities: Vec<Quantity>,
    /// Worst condition number of the components' `Kuu`.
    pub condition: f64,
    /// The largest error allowed.
    pub tolerance: f64,
}

impl Report {
    /// Whether every error is within the tolerance.
    pub fn passed(&self) -> bool {
        self.failures().next().is_none()
    }

    /// The arrays that are too far off.
    pub fn failures(&self) -> impl Iterator<Item = &Quantity> {
        self.quantities.iter().filter(|q| q.error > self.tolerance)
    }

    /// The array that is farthest off.
    pub fn worst(&self) -> Option<&Quantity> {
        self.quantities.iter().max_by(|a, b| a.error.total_cmp(&b.error))
    }

    /// The worst error of each kind, in order of appearance.
    pub fn by_kind(&self) -> Vec<(&'static str, f64)> {
        let mut kinds: Vec<(&'static str, f64)> = Vec::new();
        for q in &self.quantities {
            match kinds.iter_mut().find(|(kind, _)| *kind == q.kind) {
                Some((_, error)) => *error = error.max(q.error),
                None => kinds.push((q.kind, q.error)),
            }
        }
        kinds
    }
}

/// Kinds on one line of the printed table.
const PER_LINE: usize = 6;

impl fmt::Display for Report {
    /// The worst error, the verdict, then a table of worst errors by kind, then every array that is too far off.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(worst) = self.worst() {
            write!(f, "worst {:.1e} ({})", worst.error, worst.field)?;
        }
        write!(f, ", allowed {:.0e}, condition {:.1e}", self.tolerance, self.condition)?;
        for line in self.by_kind().chunks(PER_LINE) {
            let cells: Vec<String> =
                line.iter().map(|(kind, error)| format!("{:<24}", format!("{kind} {error:.1e}"))).collect();
            write!(f, "\n    {}", cells.concat().trim_end())?;
        }
        for q in self.failures() {
            write!(f, "\n    too far off: `{}` by {:.2e}", q.field, q.error)?;
        }
        Ok(())
    }
}
