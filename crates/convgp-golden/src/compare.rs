//! Differences between arrays, and the condition of a matrix.

use crate::GoldenError;
use crate::node::Node;
use crate::report::Quantity;
use convgp::linalg::{self, Cholesky, Mat};

/// The comparisons made so far.
#[derive(Debug, Default)]
pub struct Found(pub Vec<Quantity>);

impl Found {
    /// Compares the file's array, which must have this shape, with ours (last index fastest).
    pub fn compare(
        &mut self,
        kind: &'static str,
        node: &Node,
        shape: &[usize],
        ours: &[f64],
    ) -> Result<(), GoldenError> {
        self.push(kind, node.path(), &node.array(shape)?, ours);
        Ok(())
    }

    /// Compares two arrays.
    pub fn push(&mut self, kind: &'static str, field: &str, expected: &[f64], ours: &[f64]) {
        self.0.push(Quantity { kind, field: field.into(), error: relative_error(expected, ours) });
    }
}

/// `max |ours - expected| / max |expected|`; infinite for arrays that cannot be compared. An array of zeros is
/// compared absolutely.
fn relative_error(expected: &[f64], ours: &[f64]) -> f64 {
    if expected.len() != ours.len() || ours.iter().any(|x| !x.is_finite()) {
        return f64::INFINITY;
    }
    let scale = expected.iter().fold(0.0, |top: f64, x| top.max(x.abs()));
    let worst = expected.iter().zip(ours).fold(0.0, |top: f64, (a, b)| top.max((a - b).abs()));
    if scale > 0.0 { worst / scale } else { worst }
}

/// The elements of a matrix, row by row.
pub fn by_rows(m: &Mat) -> Vec<f64> {
    (0..m.rows()).flat_map(|i| (0..m.cols()).map(move |j| m[(i, j)])).collect()
}

/// Elementwise sum of arrays of one length.
pub fn sum<'a>(arrays: impl Iterator<Item = &'a [f64]>) -> Vec<f64> {
    let mut out = Vec::new();
    for array in arrays {
        out.resize(array.len(), 0.0);
        out.iter_mut().zip(array).for_each(|(o, x)| *o += x);
    }
    out
}

/// Condition number of a symmetric matrix in the 1-norm; infinite if it is not positive definite.
pub fn condition(k: Mat) -> f64 {
    let (m, norm) = (k.rows(), one_norm(&k));
    let Ok(factor) = Cholesky::new(k) else { return f64::INFINITY };
    let (mut lower, mut inverse) = (Mat::zeros(m, m), Mat::zeros(m, m));
    linalg::invert_lower(lower.view_mut(), factor.lower().view());
    linalg::gemm(inverse.view_mut(), linalg::Accumulate::Set, 1.0, lower.view().transpose(), lower.view());
    norm * one_norm(&inverse)
}

fn one_norm(m: &Mat) -> f64 {
    (0..m.cols()).map(|j| m.col(j).iter().map(|x| x.abs()).sum::<f64>()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_relative_to_the_largest_element_and_never_hide() {
        assert_eq!(relative_error(&[4.0, 0.0], &[4.0, 1.0]), 0.25);
        assert_eq!(relative_error(&[0.0], &[0.5]), 0.5);
        assert_eq!(relative_error(&[1.0, 2.0], &[f64::NAN, 2.0]), f64::INFINITY);
        assert_eq!(relative_error(&[1.0], &[1.0, 2.0]), f64::INFINITY);
    }

    #[test]
    fn condition_of_known_matrices() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9 * b;
        assert!(near(condition(Mat::from_fn(3, 3, |i, j| if i == j { 4.0 } else { 0.0 })), 1.0));
        // [[1, r], [r, 1]] has eigenvalues 1 +- r, and the 1-norm agrees.
        let r = 0.99;
        assert!(near(condition(Mat::from_fn(2, 2, |i, j| if i == j { 1.0 } else { r })), 1.99 / 0.01));
        assert_eq!(condition(Mat::from_fn(2, 2, |i, j| if i == j { 1.0 } else { 2.0 })), f64::INFINITY);
    }
}
