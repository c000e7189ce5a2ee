//! The additive kernel of the paper's section 2.3: one function per element, sharing variance and lengthscale.

use super::{Dims, Kernel, KernelError, Leaf, PairBar, RadialFn, Term};
use crate::params::ParamInit;

/// `variance * sum_i phi(((a_i - b_i) / lengthscale)^2)`.
///
/// ```
/// use convgp::kernel::{Additive, Dims, Kernel, Rbf};
///
/// let kernel = Additive::new(&Rbf, Dims::all(3), 2.0, 1.0);
/// assert_eq!(kernel.value(&[2.0, 1.0], &[0.0; 3], &[0.0; 3]), 6.0);
/// ```
#[derive(Debug, Clone)]
pub struct Additive {
    radial: &'static dyn RadialFn,
    dims: Dims,
    variance: f64,
    lengthscale: f64,
}

impl Additive {
    /// Over the given elements.
    pub fn new(radial: &'static dyn RadialFn, dims: Dims, variance: f64, lengthscale: f64) -> Self {
        Self { radial, dims, variance, lengthscale }
    }

    fn leaves(&self) -> impl Iterator<Item = Leaf> + '_ {
        self.dims.indices().map(|start| Leaf {
            dims: Dims { start, len: 1, step: 1 },
            radial: self.radial,
            variance: Some(0),
            lengthscale: 1,
            ard: false,
        })
    }
}

impl Kernel for Additive {
    fn parameters(&self) -> Vec<ParamInit> {
        vec![
            ParamInit::positive("variance", self.variance),
            ParamInit::positive("lengthscale", self.lengthscale),
        ]
    }
    fn check_len(&self, len: usize) -> Result<(), KernelError> {
        self.dims.check(len)
    }
    fn value(&self, theta: &[f64], a: &[f64], b: &[f64]) -> f64 {
        self.leaves().map(|l| l.value(theta, a, b)).sum()
    }
    fn pullback(&self, theta: &[f64], a: &[f64], b: &[f64], g: f64, bar: &mut PairBar) {
        for leaf in self.leaves() {
            leaf.pullback(theta, a, b, g, bar);
        }
    }
    fn terms(&self) -> Option<Vec<Term>> {
        Some(self.leaves().map(|l| Term { leaves: vec![l] }).collect())
    }
}
