//! Base kernels `k_g` on view vectors.
//!
//! A kernel is a value and its pullback for one pair of views; that is all the reference engine needs. Kernels made of
//! radial pieces also describe themselves as [`Term`]s, a sum of products of radial leaves, which is what the fused
//! engine tiles and vectorises.

mod additive;
mod combine;
#[cfg(any(test, feature = "testing"))]
pub mod contract;
mod matern;
mod radial;
mod rbf;
mod spec;
mod stationary;

pub use additive::Additive;
pub use combine::{Product, Sum};
#[cfg(any(test, feature = "testing"))]
pub use contract::check_kernel;
pub use matern::{Matern12, Matern32, Matern52};
pub use radial::{Radial, RadialFn};
pub use rbf::Rbf;
pub use spec::{
    AdditiveSpec, ChannelsSpec, Family, KernelSpec, Lengthscale, Median, RadialSpec, TermsSpec, ViewDims,
};
pub use stationary::{Dims, Stationary};

use crate::params::ParamInit;

/// What is wrong with a kernel.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum KernelError {
    #[error("kernel reads elements {start}..{end} of a view, but views have {len} numbers")]
    DimsOutOfRange { start: usize, end: usize, len: usize },
    #[error("kernel reads no element: `dims` needs a positive length and step")]
    NoDims,
    #[error("{found} lengthscales for {expected} elements; give one, or one per element with `ard`")]
    LengthscaleCount { found: usize, expected: usize },
    #[error("`{kind}` kernel needs at least one entry in `terms`")]
    NoTerms { kind: &'static str },
    #[error(
        "`location` must be a kernel of a radial family, such as {{ type = \"matern32\", lengthscale = 3.0 }}"
    )]
    LocationNotRadial,
    #[error(
        "`location` has the field `{field}`, which does not apply: it is a factor over the places of views"
    )]
    LocationField { field: &'static str },
    #[error("lengthscale = \"median\" needs training data; give a number")]
    MedianWithoutData,
}

/// Where [`Kernel::pullback`] adds derivatives.
#[derive(Debug)]
pub struct PairBar<'a> {
    /// In the parameters.
    pub theta: &'a mut [f64],
    /// In the second view, if they are wanted.
    pub b: Option<&'a mut [f64]>,
}

/// A covariance function of two views. `theta` are the current values of [`Kernel::parameters`], in order.
pub trait Kernel: std::fmt::Debug + Send + Sync {
    /// The parameters, with names, constraints and initial values.
    fn parameters(&self) -> Vec<ParamInit>;

    /// Whether the kernel can read views of `len` numbers.
    fn check_len(&self, len: usize) -> Result<(), KernelError>;

    /// `k(a, b)`, symmetric.
    fn value(&self, theta: &[f64], a: &[f64], b: &[f64]) -> f64;

    /// Adds `g dk/dtheta` to `bar.theta` and, where it is wanted, `g dk/db` to `bar.b`.
    fn pullback(&self, theta: &[f64], a: &[f64], b: &[f64], g: f64, bar: &mut PairBar);

    /// The kernel as a sum of products of radial leaves, for engines that vectorise; `None` if it is not of that form,
    /// and then engines fall back on [`Kernel::value`].
    fn terms(&self) -> Option<Vec<Term>> {
        None
    }
}

/// A product of radial leaves.
#[derive(Debug, Clone)]
pub struct Term {
    /// The factors, at least one.
    pub leaves: Vec<Leaf>,
}

/// One radial factor: `variance * phi(|(a - b) / lengthscale|^2)` over some elements of the views.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// The elements it reads.
    pub dims: Dims,
    /// The function of the squared scaled distance.
    pub radial: &'static dyn RadialFn,
    /// Index of the variance in `theta`; `None` stands for one.
    pub variance: Option<usize>,
    /// Index of the first lengthscale in `theta`.
    pub lengthscale: usize,
    /// One lengthscale per element instead of a common one.
    pub ard: bool,
}

impl Leaf {
    fn shifted(mut self, by: usize) -> Self {
        self.variance = self.variance.map(|v| v + by);
        self.lengthscale += by;
        self
    }
}

/// Total number of parameter values.
pub fn parameter_count(kernel: &dyn Kernel) -> usize {
    kernel.parameters().iter().map(|p| p.values.len()).sum()
}
