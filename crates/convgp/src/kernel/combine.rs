//! Sums and products of kernels, each reading its own elements of a view.

use super::{Kernel, KernelError, Leaf, PairBar, Term, parameter_count};
use crate::params::ParamInit;
use std::sync::Arc;

/// `k(a, b) = sum_i k_i(a, b)`.
///
/// ```
/// use convgp::kernel::{Dims, Kernel, Matern32, Rbf, Stationary, Sum};
/// use std::sync::Arc;
///
/// let rbf = Stationary::new(&Rbf, Dims::all(2), 1.0, 0.5);
/// let matern = Stationary::new(&Matern32, Dims::all(2), 2.0, 4.0);
/// let sum = Sum::new(vec![Arc::new(rbf), Arc::new(matern)])?;
/// assert_eq!(sum.parameters()[2].name, "1.variance");
/// assert_eq!(sum.value(&[1.0, 0.5, 2.0, 4.0], &[0.0; 2], &[0.0; 2]), 3.0);
/// # Ok::<(), convgp::kernel::KernelError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sum(Parts);

/// `k(a, b) = prod_i k_i(a, b)`.
#[derive(Debug, Clone)]
pub struct Product(Parts);

#[derive(Debug, Clone)]
struct Parts {
    kernels: Vec<Arc<dyn Kernel>>,
    /// Where each part's parameters start, and the end of the last.
    starts: Vec<usize>,
}

impl Sum {
    /// At least one part is needed.
    pub fn new(kernels: Vec<Arc<dyn Kernel>>) -> Result<Self, KernelError> {
        Parts::new(kernels, "sum").map(Self)
    }
}

impl Product {
    /// At least one part is needed.
    pub fn new(kernels: Vec<Arc<dyn Kernel>>) -> Result<Self, KernelError> {
        Parts::new(kernels, "product").map(Self)
    }
}

impl Parts {
    fn new(kernels: Vec<Arc<dyn Kernel>>, kind: &'static str) -> Result<Self, KernelError> {
        if kernels.is_empty() {
            return Err(KernelError::NoTerms { kind });
        }
        let mut starts = vec![0];
        for k in &kernels {
            starts.push(starts[starts.len() - 1] + parameter_count(k.as_ref()));
        }
        Ok(Self { kernels, starts })
    }

    fn theta<'a>(&self, i: usize, theta: &'a [f64]) -> &'a [f64] {
        &theta[self.starts[i]..self.starts[i + 1]]
    }
    fn value(&self, i: usize, theta: &[f64], a: &[f64], b: &[f64]) -> f64 {
        self.kernels[i].value(self.theta(i, theta), a, b)
    }
    fn pullback(&self, i: usize, theta: &[f64], a: &[f64], b: &[f64], g: f64, bar: &mut PairBar) {
        let part = &mut bar.theta[self.starts[i]..self.starts[i + 1]];
        let mut bar = PairBar { theta: part, b: bar.b.as_deref_mut() };
        self.kernels[i].pullback(self.theta(i, theta), a, b, g, &mut bar);
    }

    /// Parameters of part `i` are named `i.name`.
    fn parameters(&self) -> Vec<ParamInit> {
        let named = |(i, k): (usize, &Arc<dyn Kernel>)| {
            k.parameters().into_iter().map(move |p| ParamInit { name: format!("{i}.{}", p.name), ..p })
        };
        self.kernels.iter().enumerate().flat_map(named).collect()
    }

    fn terms(&self, i: usize) -> Option<Vec<Term>> {
        let shift = |t: Term| Term {
            leaves: t.leaves.into_iter().map(|l: Leaf| l.shifted(self.starts[i])).collect(),
        };
        Some(self.kernels[i].terms()?.into_iter().map(shift).collect())
    }
}

impl Kernel for Sum {
    fn parameters(&self) -> Vec<ParamInit> {
        self.0.parameters()
    }
    fn check_len(&self, len: usize) -> Result<(), KernelError> {
        self.0.kernels.iter().try_for_each(|k| k.check_len(len))
    }
    fn value(&self, theta: &[f64], a: &[f64], b: &[f64]) -> f64 {
        (0..self.0.kernels.len()).map(|i| self.0.value(i, theta, a, b)).sum()
    }
    fn pullback(&self, theta: &[f64], a: &[f64], b: &[f64], g: f64, bar: &mut PairBar) {
        for i in 0..self.0.kernels.len() {
            self.0.pullback(i, theta, a, b, g, bar);
        }
    }
    fn terms(&self) -> Option<Vec<Term>> {
        let parts: Option<Vec<_>> = (0..self.0.kernels.len()).map(|i| self.0.terms(i)).collect();
        Some(parts?.into_iter().flatten().collect())
    }
}

impl Kernel for Product {
    fn parameters(&self) -> Vec<ParamInit> {
        self.0.parameters()
    }
    fn check_len(&self, len: usize) -> Result<(), KernelError> {
        self.0.kernels.iter().try_for_each(|k| k.check_len(len))
    }
    fn value(&self, theta: &[f64], a: &[f64], b: &[f64]) -> f64 {
        (0..self.0.kernels.len()).map(|i| self.0.value(i, theta, a, b)).product()
    }
    fn pullback(&self, theta: &[f64], a: &[f64], b: &[f64], g: f64, bar: &mut PairBar) {
        let values: Vec<f64> = (0..self.0.kernels.len()).map(|i| self.0.value(i, theta, a, b)).collect();
        for i in 0..values.len() {
            // The product of the others, not value / values[i]: a factor may be zero.
            let others: f64 = values.iter().enumerate().filter(|&(j, _)| j != i).map(|(_, v)| v).product();
            self.0.pullback(i, theta, a, b, g * others, bar);
        }
    }
    /// Multiplies out: `(a + b)(c + d)` has four terms.
    fn terms(&self) -> Option<Vec<Term>> {
        let mut product = vec![Term { leaves: Vec::new() }];
        for i in 0..self.0.kernels.len() {
            let part = self.0.terms(i)?;
            product = product
                .iter()
                .flat_map(|p| {
                    part.iter().map(|q| Term { leaves: p.leaves.iter().chain(&q.leaves).cloned().collect() })
                })
                .collect();
        }
        Some(product)
    }
}
