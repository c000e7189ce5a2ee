//! Stationary kernels: a radial function of the scaled distance over some elements of a view.

use super::{Kernel, KernelError, Leaf, PairBar, RadialFn, Term};
use crate::params::{ParamInit, Transform};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Elements `start, start + step, ...` (`len` of them) of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dims {
    /// First element.
    pub start: usize,
    /// How many.
    pub len: usize,
    /// Distance between neighbours, 1 for a contiguous slice.
    #[serde(default = "one")]
    pub step: usize,
}

fn one() -> usize {
    1
}

impl Dims {
    /// The first `len` elements.
    pub fn all(len: usize) -> Self {
        Self { start: 0, len, step: 1 }
    }
    /// The indices.
    pub fn indices(self) -> impl Iterator<Item = usize> + Clone {
        (0..self.len).map(move |i| self.start + i * self.step)
    }
    /// Whether views of `len` numbers have these elements.
    pub fn check(self, len: usize) -> Result<(), KernelError> {
        if self.len == 0 || self.step == 0 {
            return Err(KernelError::NoDims);
        }
        let end = (self.len - 1).saturating_mul(self.step).saturating_add(self.start).saturating_add(1);
        if end > len { Err(KernelError::DimsOutOfRange { start: self.start, end, len }) } else { Ok(()) }
    }
}

/// `variance * phi(sum_i ((a_i - b_i) / lengthscale_i)^2)`.
///
/// ```
/// use convgp::kernel::{Dims, Kernel, Rbf, Stationary};
///
/// let kernel = Stationary::new(&Rbf, Dims::all(2), 3.0, 0.5);
/// assert_eq!(kernel.value(&[3.0, 0.5], &[1.0, 2.0], &[1.0, 2.0]), 3.0);
/// let apart = kernel.value(&[3.0, 0.5], &[1.0, 2.0], &[1.5, 2.0]);
/// assert!((apart - 3.0 * (-0.5f64).exp()).abs() < 1e-12);
/// ```
#[derive(Debug, Clone)]
pub struct Stationary {
    radial: &'static dyn RadialFn,
    dims: Dims,
    /// `None`: fixed at one and not a parameter (a factor of a product).
    variance: Option<f64>,
    /// One, or one per element.
    lengthscales: Vec<f64>,
}

impl Stationary {
    /// A kernel with one common lengthscale.
    pub fn new(radial: &'static dyn RadialFn, dims: Dims, variance: f64, lengthscale: f64) -> Self {
        Self { radial, dims, variance: Some(variance), lengthscales: vec![lengthscale] }
    }
    /// Without a variance of its own, for use as a factor.
    pub fn without_variance(mut self) -> Self {
        self.variance = None;
        self
    }
    /// One lengthscale per element.
    pub fn with_lengthscales(mut self, lengthscales: Vec<f64>) -> Result<Self, KernelError> {
        if lengthscales.len() != self.dims.len {
            return Err(KernelError::LengthscaleCount { found: lengthscales.len(), expected: self.dims.len });
        }
        self.lengthscales = lengthscales;
        Ok(self)
    }

    fn ard(&self) -> bool {
        self.lengthscales.len() > 1
    }
    fn leaf(&self) -> Leaf {
        Leaf {
            dims: self.dims,
            radial: self.radial,
            variance: self.variance.map(|_| 0),
            lengthscale: usize::from(self.variance.is_some()),
            ard: self.ard(),
        }
    }
}

impl Kernel for Stationary {
    fn parameters(&self) -> Vec<ParamInit> {
        let variance = self.variance.map(|v| ParamInit::positive("variance", v));
        let name = if self.ard() { "lengthscales" } else { "lengthscale" };
        let ell = ParamInit::array(name, Transform::Positive, self.lengthscales.clone());
        variance.into_iter().chain([ell]).collect()
    }

    fn check_len(&self, len: usize) -> Result<(), KernelError> {
        self.dims.check(len)
    }

    fn value(&self, theta: &[f64], a: &[f64], b: &[f64]) -> f64 {
        self.leaf().value(theta, a, b)
    }

    fn pullback(&self, theta: &[f64], a: &[f64], b: &[f64], g: f64, bar: &mut PairBar) {
        self.leaf().pullback(theta, a, b, g, bar);
    }

    fn terms(&self) -> Option<Vec<Term>> {
        Some(vec![Term { leaves: vec![self.leaf()] }])
    }
}

impl Leaf {
    /// The variance, one when it has none.
    pub fn variance(&self, theta: &[f64]) -> f64 {
        self.variance.map_or(1.0, |i| theta[i])
    }
    /// Lengthscale of its `i`-th element.
    pub fn lengthscale(&self, theta: &[f64], i: usize) -> f64 {
        theta[self.lengthscale + if self.ard { i } else { 0 }]
    }

    /// `s = sum_i ((a_i - b_i) / lengthscale_i)^2`.
    pub fn distance(&self, theta: &[f64], a: &[f64], b: &[f64]) -> f64 {
        self.dims
            .indices()
            .enumerate()
            .map(|(i, d)| ((a[d] - b[d]) / self.lengthscale(theta, i)).powi(2))
            .sum()
    }

    pub(super) fn value(&self, theta: &[f64], a: &[f64], b: &[f64]) -> f64 {
        self.variance(theta) * self.radial.at(self.distance(theta, a, b)).0
    }

    /// With `s_i = ((a_i - b_i) / ell_i)^2`: `dk/dell_i = -2 v phi' s_i / ell_i`, `dk/db_i = -2 v phi' (a_i - b_i) / ell_i^2`.
    pub(super) fn pullback(&self, theta: &[f64], a: &[f64], b: &[f64], g: f64, bar: &mut PairBar) {
        let (value, slope) = self.radial.at(self.distance(theta, a, b));
        if let Some(v) = self.variance {
            bar.theta[v] += g * value;
        }
        let c = -2.0 * g * self.variance(theta) * slope;
        for (i, d) in self.dims.indices().enumerate() {
            let ell = self.lengthscale(theta, i);
            let u = (a[d] - b[d]) / ell;
            bar.theta[self.lengthscale + if self.ard { i } else { 0 }] += c * u * u / ell;
            if let Some(b_bar) = bar.b.as_deref_mut() {
                b_bar[d] += c * u / ell;
            }
        }
    }
}
