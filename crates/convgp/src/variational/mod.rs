//! The variational posterior over inducing outputs, its marginals, and their pullbacks.
//!
//! Per component `Kuu + jitter I = L L^T`; `A_b = L^{-1} Kuf_b` per response, stacked to `A` (`Mtot x B`). With
//! `u = L v` and `q(v_l) = N(m_l, S_l)`, `S_l = R_l R_l^T`:
//!
//! ```text
//! mean[n, l] = A[:, n]^T m_l
//! var[n, l]  = kff[n] - |A[:, n]|^2 + |R_l^T A[:, n]|^2
//! KL_l       = (|R_l|^2 + |m_l|^2 - Mtot) / 2 - sum_i log R_l[i, i]
//! ```

mod forward;
mod natural;
mod pullback;
mod shared;
mod unwhitened;

pub use crate::params::Form;
pub use forward::Indefinite;
pub use shared::Shared;

use crate::likelihood::Marginals;
use crate::linalg::{CholeskyScratch, Mat};
use crate::params::{Layout, ParamError, ParamInit, Slot, Transform, packed_column, packed_len};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Mutex;

/// Which posterior covariances between inducing outputs are represented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Structure {
    /// One dense covariance over all components.
    #[default]
    Full,
    /// Block diagonal: independent between components (and between responses of one component).
    MeanField,
    /// One dense covariance for all latents, set by the [closed-form solver](crate::closed_form).
    Shared,
}

/// The approximate posterior.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PosteriorSpec {
    /// Dense, or block diagonal between components.
    pub structure: Structure,
    /// Whether `q` is over whitened inducing outputs.
    pub whiten: bool,
    /// For a shared covariance: its difference from the prior has this rank, fewer numbers than a triangle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<usize>,
}

impl Default for PosteriorSpec {
    fn default() -> Self {
        Self { structure: Structure::Full, whiten: true, rank: None }
    }
}

/// Rows of the stacked inducing outputs that belong to one response of one component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Index of the component.
    pub component: usize,
    /// Index of the response within it.
    pub response: usize,
    /// Rows in the stack.
    pub rows: Range<usize>,
}

/// Rows sharing one dense covariance, and where its packed triangles (one per latent) are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Rows in the stack.
    pub rows: Range<usize>,
    /// `latents` packed lower triangles.
    pub slot: Slot,
}

impl Group {
    /// Rows of its triangles.
    pub fn order(&self) -> usize {
        self.rows.len()
    }
    /// The packed triangle of latent `l`.
    pub fn triangle<'a>(&self, values: &'a [f64], l: usize) -> &'a [f64] {
        let len = packed_len(self.order());
        &self.slot.of(values)[l * len..(l + 1) * len]
    }
}

/// Structure of `q`; its numbers live in the parameter vector.
#[derive(Debug, Clone, PartialEq)]
pub struct Variational {
    latents: usize,
    total: usize,
    blocks: Vec<Block>,
    groups: Vec<Group>,
    mean: Slot,
    whitened: bool,
    shared: Option<Shared>,
}

impl Variational {
    /// Registers `q = N(0, I)`. `sizes[c]` is `(M, responses)` of component `c`.
    pub fn register(
        latents: usize,
        sizes: &[(usize, usize)],
        posterior: PosteriorSpec,
        layout: &mut Layout,
        values: &mut Vec<f64>,
    ) -> Result<Self, ParamError> {
        let mut blocks = Vec::new();
        let mut total = 0;
        for (component, &(m, responses)) in sizes.iter().enumerate() {
            for response in 0..responses {
                blocks.push(Block { component, response, rows: total..total + m });
                total += m;
            }
        }
        let mean = ParamInit::array("mean", Transform::Real, vec![0.0; latents * total]);
        let mean = layout.add(values, "q", mean)?;
        let PosteriorSpec { structure, whiten: whitened, rank } = posterior;
        let shared = structure == Structure::Shared;
        let ranges = match structure {
            Structure::Shared if rank.is_some() => Vec::new(),
            Structure::Full | Structure::Shared => std::iter::once(0..total).collect(),
            Structure::MeanField => blocks.iter().map(|b| b.rows.clone()).collect::<Vec<_>>(),
        };
        let mut groups = Vec::new();
        for (i, rows) in ranges.iter().cloned().enumerate() {
            let name = if ranges.len() > 1 { format!("factor.{i}") } else { "factor".into() };
            let order = rows.len();
            let identities = identity_triangles(order, if shared { 1 } else { latents });
            let init = ParamInit::array(name, Transform::Lower { order }, identities);
            groups.push(Group { rows, slot: layout.add(values, "q", init)? });
        }
        let shared = match shared {
            true => Some(Shared::register(total, rank, layout, values)?),
            false => None,
        };
        Ok(Self { latents, total, blocks, groups, mean, whitened, shared })
    }

    /// Latent functions `L`.
    pub fn latents(&self) -> usize {
        self.latents
    }
    /// Stacked inducing outputs `Mtot`.
    pub fn total(&self) -> usize {
        self.total
    }
    /// Blocks of rows, in order.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }
    /// Groups of rows with a dense covariance, in order.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }
    /// Slot of the means, `L x Mtot`.
    pub fn mean_slot(&self) -> Slot {
        self.mean
    }
    /// Whether `q` is over `v` (`u = L v`) rather than `u`.
    pub fn whitened(&self) -> bool {
        self.whitened
    }
    /// The covariance that all latents share, if they do.
    pub fn shared(&self) -> Option<Shared> {
        self.shared
    }
    /// Mean (or natural parameter) of latent `l`.
    pub fn mean<'a>(&self, values: &'a [f64], l: usize) -> &'a [f64] {
        &self.mean.of(values)[l * self.total..(l + 1) * self.total]
    }
    /// All numbers of `q`: means, then triangles.
    pub fn slot(&self) -> Slot {
        let triangles: usize = self.groups.iter().map(|g| g.slot.len()).sum();
        self.mean.with_len(self.mean.len() + triangles + self.shared.map_or(0, Shared::len))
    }

    /// Sizes of the blocks inside a group, so that factorisations can go block by block.
    fn block_sizes(&self, group: &Group) -> Vec<usize> {
        let inside = |b: &&Block| b.rows.start >= group.rows.start && b.rows.end <= group.rows.end;
        self.blocks.iter().filter(inside).map(|b| b.rows.len()).collect()
    }
}

/// `count` packed identity matrices.
fn identity_triangles(order: usize, count: usize) -> Vec<f64> {
    let mut one = vec![0.0; packed_len(order)];
    (0..order).for_each(|j| one[packed_column(order, j)] = 1.0);
    one.repeat(count)
}

/// Buffers of the posterior algebra, owned by the caller and reused from step to step.
#[derive(Debug, Default)]
pub struct PosteriorScratch {
    /// `A`, `Mtot x B`.
    pub(crate) a: Mat,
    /// Its cotangent.
    a_bar: Mat,
    /// Per latent: `R^T A` (covariance form) or `C^{-1} A` (natural form); the pullback turns it into `2 S A diag(gv)`.
    products: Vec<Mat>,
    /// Natural form: per latent and group the factor `C` of the precision.
    factors: Vec<Vec<Mat>>,
    /// Whitened means, `Mtot x L`.
    means: Mat,
    /// Per latent `A[:, n]^T S_l A[:, n]` for every image.
    norms: Vec<Vec<f64>>,
    /// `kff[n] - |A[:, n]|^2`, not below zero.
    base: Vec<f64>,
    /// Whether `base[n]` had to be raised to zero.
    clamped: Vec<bool>,
    /// Whitened copy of `q` when it is stored unwhitened.
    whitened: Vec<f64>,
    pool: Pool,
}

impl PosteriorScratch {
    /// A square root's projection `T` with `T^T T = A^T S_l A` (for a shared covariance of low rank
    /// `A^T A - A^T S A`), valid right after [`Variational::marginals`].
    pub(crate) fn product(&self, latent: usize) -> &Mat {
        &self.products[latent.min(self.products.len() - 1)]
    }

    /// `A[:, n]^T S_l A[:, n]`: the part of a marginal variance that `q` decides, valid right after [`Variational::marginals`].
    pub(crate) fn variance_of_inducing(&self, latent: usize, image: usize) -> f64 {
        self.norms[latent][image]
    }
}

/// Scratch matrices that parallel tasks borrow; which task gets which does not matter.
#[derive(Debug, Default)]
struct Pool(Mutex<Vec<(Mat, Mat, CholeskyScratch)>>);

impl Pool {
    fn with<R>(&self, f: impl FnOnce(&mut Mat, &mut Mat, &mut CholeskyScratch) -> R) -> R {
        let lock = || self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let taken = lock().pop();
        let mut scratch = taken.unwrap_or_default();
        let result = f(&mut scratch.0, &mut scratch.1, &mut scratch.2);
        lock().push(scratch);
        result
    }
}

/// What the marginals' numerics looked like.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct VarianceReport {
    /// Images whose conditional prior variance `kff - |A|^2` came out negative and was set to zero.
    pub clamped: usize,
    /// The most negative one relative to `kff`.
    pub worst: f64,
}

impl Marginals {
    fn resize(&mut self, images: usize, latents: usize) {
        self.mean.resize(images * latents, 0.0);
        self.var.resize(images * latents, 0.0);
    }
}
