//! Memory a training run will take, from the sizes of everything it allocates.

use crate::Result;
use crate::closed_form::statistics::most_left_out;
use crate::component::Pooling;
use crate::data::{ImageShape, Images};
use crate::kernel::KernelSpec;
use crate::model::ComponentSpec;
use crate::train::{ExperimentSpec, QStep};
use crate::variational::Structure;
use crate::views::{Views, Whitening};
use std::sync::Arc;

/// Program, thread stacks and small buffers, and what the allocator keeps of freed blocks (both measured on Linux).
const BASE: u64 = 19 << 20;
const SLACK: f64 = 1.07;
/// Bytes of a double and a single.
const DOUBLE: u64 = 8;
const SINGLE: u64 = 4;
/// Columns of tiles come in multiples of this.
const LANES: u64 = 16;
/// Parts a batch's derivatives are summed in.
const PARTS: u64 = 8;
/// Columns whose derivatives one thread works on, of `Kuu` and of whole images.
const COLUMNS: u64 = 128;
/// The engine recomputes moments when they would take more than this.
const HANDOVER: u64 = 256 << 20;
/// Images predicted together.
const CHUNK: u64 = 128;
/// Images of a chunk in the closed-form solver.
const STATISTICS_CHUNK: u64 = 2048;

/// A run that would not fit.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("training would take about {need}, more than {have}")]
pub struct MemoryError {
    /// The plan, in words.
    pub need: String,
    /// What there is.
    pub have: String,
    /// What would fit.
    pub remedy: Remedy,
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Fewer inducing inputs.
    Inducing {
        /// The largest number that fits.
        fits: usize,
        /// The number asked for.
        now: usize,
    },
    /// No number would fit: fewer or smaller images.
    SmallerData,
}

/// Bytes by purpose.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Images of all splits.
    pub data: u64,
    /// The most this process ever held of anything.
    held: u64,
    /// Parameters, their copies, moments and gradient.
    pub parameters: u64,
    /// `Kuu`, `Kuf` and everything between them and the views.
    pub covariances: u64,
    /// The posterior's algebra.
    pub posterior: u64,
    /// The larger of saving and predicting, which come between steps.
    pub saving: u64,
}

impl Estimate {
    /// For training this model on the first of these sets of images, in a process that held so many bytes before. Nothing is
    /// built for it.
    pub fn new(experiment: &ExperimentSpec, sets: &[&Images], held: u64) -> Result<Self> {
        let count = sets.first().map_or(0, |images| images.count());
        let data: u64 = sets.iter().map(|images| data_bytes(images)).sum();
        let batch = experiment.train.batch_size.min(count) as u64;
        let image = experiment.model.image;
        let components =
            experiment.model.components.iter().map(|c| Sketch::new(c, image)).collect::<Result<Vec<_>>>()?;
        let sizes = Sizes::new(experiment, &components, batch, count as u64)?;
        Ok(Self {
            data: data + DOUBLE * batch * image.len() as u64,
            held,
            parameters: sizes.parameters(),
            covariances: components.iter().map(|c| c.covariances(batch)).sum(),
            posterior: sizes.posterior(),
            saving: sizes.saving().max(sizes.predicting(&components)),
        })
    }

    /// Everything, at the worst moment.
    pub fn total(&self) -> u64 {
        let training = self.parameters + self.covariances + self.posterior + self.saving;
        (BASE + self.data + (SLACK * training as f64) as u64).max(self.held)
    }

    /// For people.
    pub fn text(&self) -> String {
        format!(
            "{} (images {}, parameters {}, covariances {}, posterior {}, saving {})",
            size_text(self.total()),
            size_text(self.data),
            size_text(self.parameters),
            size_text(self.covariances),
            size_text(self.posterior),
            size_text(self.saving),
        )
    }
}

/// Refuses a run that does not fit into `limit`, or into what the machine has left, and says what would.
pub fn check(experiment: &ExperimentSpec, sets: &[&Images], held: u64, limit: Option<u64>) -> Result<()> {
    let plan = Estimate::new(experiment, sets, held)?;
    let left = || available().map(|a| a + resident().unwrap_or(0));
    let Some(limit) = limit.or_else(left).filter(|&limit| plan.total() > limit) else { return Ok(()) };
    let remedy = remedy(limit, experiment, sets, held)?;
    Err(MemoryError { need: plan.text(), have: size_text(limit), remedy }.into())
}

/// Memory for a run in a process that holds other things as well: what the machine can still give, and what these images
/// take already.
pub fn left_beside_others(sets: &[&Images]) -> Option<u64> {
    let own = BASE + sets.iter().map(|images| data_bytes(images)).sum::<u64>();
    available().map(|a| a + own.min(resident().unwrap_or(0)))
}

/// The largest number of inducing inputs that would fit, as a fraction of the one asked for: by percents, then by halves.
fn remedy(limit: u64, experiment: &ExperimentSpec, sets: &[&Images], held: u64) -> Result<Remedy> {
    let most = experiment.model.components.iter().map(|c| c.inducing.count).max().unwrap_or(1) as f64;
    let halves = std::iter::successors(Some(0.5), |percent| Some(percent / 2.0));
    let percents = (1..100).rev().map(f64::from).chain(halves);
    for percent in percents.take_while(|percent| percent * most >= 50.0) {
        let mut smaller = experiment.clone();
        let counts = smaller.model.components.iter_mut().map(|c| &mut c.inducing.count);
        counts.for_each(|m| *m = ((*m as f64 * percent / 100.0) as usize).max(1));
        if Estimate::new(&smaller, sets, held)?.total() <= limit {
            let count = |e: &ExperimentSpec| e.model.components.iter().map(|c| c.inducing.count).min();
            let (fits, now) = (count(&smaller).unwrap_or(1), count(experiment).unwrap_or(1));
            return Ok(Remedy::Inducing { fits, now });
        }
    }
    Ok(Remedy::SmallerData)
}

/// Sizes that parameters and posterior depend on.
struct Sizes {
    /// Numbers in `q`.
    q: u64,
    /// Bytes of the closed-form solver.
    statistics: u64,
    /// All other numbers.
    rest: u64,
    latents: u64,
    /// Stacked inducing outputs.
    total: u64,
    /// Orders of the dense groups.
    orders: Vec<u64>,
    batch: u64,
    natural: bool,
    whitened: bool,
    threads: u64,
}

impl Sizes {
    fn new(experiment: &ExperimentSpec, components: &[Sketch], batch: u64, images: u64) -> Result<Self> {
        let posterior = experiment.model.posterior;
        let latents = experiment.model.likelihood.build()?.latents() as u64;
        let blocks: Vec<u64> = components.iter().flat_map(|c| c.views.iter().map(|_| c.m)).collect();
        let total: u64 = blocks.iter().sum();
        let orders = match posterior.structure {
            Structure::Full => vec![total],
            Structure::MeanField => blocks,
            Structure::Shared => Vec::new(),
        };
        let shared = posterior.structure == Structure::Shared;
        let triangle = posterior.rank.map_or(total * (total + 1) / 2, |rank| rank as u64 * total);
        let q = if shared {
            latents * total + triangle
        } else {
            latents * (total + orders.iter().map(|o| o * (o + 1) / 2).sum::<u64>())
        };
        // Statistics, features of a chunk and of the images left out; or those of all images and their products.
        let width = 1 + experiment.model.augmentation.map_or(0, |a| a.copies) as u64;
        let statistics = match (shared, posterior.rank) {
            (false, _) => 0,
            (true, None) => {
                let left_out = (most_left_out(width as usize) as u64).min(images) * width;
                DOUBLE * total * (total + 3 * left_out)
                    + SINGLE * total * STATISTICS_CHUNK.min(images * width)
            }
            (true, Some(rank)) => {
                let (rank, columns) = (rank as u64, rank as u64 * width);
                DOUBLE * (total * (columns + 2 * rank) + 3 * columns * columns)
            }
        };
        Ok(Self {
            q,
            statistics,
            rest: components.iter().map(|c| c.m * c.e + c.weights).sum(),
            latents,
            total,
            orders,
            batch,
            natural: experiment.train.q == QStep::Natural,
            whitened: posterior.whiten,
            threads: rayon::current_num_threads() as u64,
        })
    }

    fn moved(&self) -> u64 {
        self.rest + if self.natural { 0 } else { self.q }
    }

    /// Values and the last good ones, two moments, a gradient.
    fn parameters(&self) -> u64 {
        if self.statistics > 0 {
            return DOUBLE * (self.q + self.rest);
        }
        2 * DOUBLE * (self.q + self.rest) + (2 * SINGLE + DOUBLE) * self.moved()
    }

    fn posterior(&self) -> u64 {
        if self.statistics > 0 {
            return self.statistics;
        }
        let square: u64 = self.orders.iter().map(|o| o * o).sum();
        let widest = self.orders.iter().copied().max().unwrap_or(0);
        let projected = (2 + self.latents) * self.total * self.batch;
        let factors = if self.natural { self.latents * square } else { 0 };
        let whitened = if self.whitened { 0 } else { self.q };
        // Per thread: a panel or an inverse, a weighted copy of the projections, and the factorisation's own.
        let inverse = if self.natural { widest * widest } else { 64 * widest };
        let pool = self.threads.min(self.latents) * (inverse + widest * self.batch + 64 * widest);
        DOUBLE * (projected + factors + whitened + pool)
    }

    /// A model file needs a copy of the values and one array as bytes; a checkpoint a copy of the trainer's state.
    fn saving(&self) -> u64 {
        let values = DOUBLE * (self.q + self.rest);
        if self.statistics > 0 {
            return 2 * values;
        }
        let widest = self.orders.iter().copied().max().unwrap_or(0);
        let forms =
            if self.natural { 3 * DOUBLE * self.threads.min(self.latents) * widest * widest } else { 0 };
        let model = values + forms.max(DOUBLE * self.q);
        let checkpoint = 2 * values + 2 * SINGLE * self.moved() + values;
        model.max(checkpoint)
    }

    /// A predictor's factors, its copy of the values and one chunk of images.
    fn predicting(&self, components: &[Sketch]) -> u64 {
        let factors: u64 = components.iter().map(|c| 2 * c.m * c.m).sum();
        DOUBLE * (factors + self.total * CHUNK + self.q + self.rest)
    }
}

/// What of a component decides its size.
struct Sketch {
    m: u64,
    /// Numbers in a view.
    e: u64,
    /// Radial factors of the kernel, with those of places.
    leaves: u64,
    weights: u64,
    views: Vec<Arc<dyn Views>>,
}

impl Sketch {
    fn new(c: &ComponentSpec, image: ImageShape) -> Result<Self> {
        let views = c
            .views
            .build_with(image, &mut |views| Ok(Whitening::fit(&[], views.len() - views.coordinates(), 1.0)));
        let views = views?;
        let windows = c.pooling.map_or(1, Pooling::windows);
        let e = views[0].len() as u64;
        let places = u64::from(c.location.is_some());
        let weights: usize = views.iter().map(|v| c.weights.count(v.as_ref())).sum();
        Ok(Self {
            m: c.inducing.count as u64,
            e,
            leaves: leaves(&c.kernel, e, image) + places,
            weights: weights as u64,
            views: views.into_iter().flat_map(|v| std::iter::repeat_n(v, windows)).collect(),
        })
    }

    /// Its `Kuu` (values, factor, derivative), its `Kuf` and what is kept of every view.
    fn covariances(&self, batch: u64) -> u64 {
        let Sketch { m, e, .. } = *self;
        let padded = m.div_ceil(LANES) * LANES;
        // Sums of rows and their distances, per leaf of the kernel.
        let moments = padded * (e + 2 * self.leaves);
        // Inducing inputs as rows and as columns; sums of the columns being worked on.
        let columns = rayon::current_num_threads() as u64 * COLUMNS.min(padded) * (e + 2 * self.leaves);
        let kuu = DOUBLE * (3 * m * m + 2 * m * e) + (SINGLE + DOUBLE) * columns;
        let responses = self.views.iter().map(|views| {
            let count = views.count() as u64;
            let kuf = 2 * DOUBLE * m * batch;
            if count == 1 {
                let rows = batch * (DOUBLE * e + SINGLE * (e + padded));
                return kuf + rows;
            }
            let handed_over = Some(SINGLE * batch * moments).filter(|&h| h <= HANDOVER).unwrap_or(0);
            let tables = (PARTS + 2) * count * padded + 2 * count * count;
            let located = if views.coordinates() > 0 { SINGLE * tables } else { 0 };
            let per_image = batch * (DOUBLE * padded + (2 * SINGLE + DOUBLE) * count);
            kuf + handed_over + per_image + located + PARTS * DOUBLE * moments
        });
        kuu + responses.sum::<u64>()
    }
}

fn leaves(kernel: &KernelSpec, e: u64, image: ImageShape) -> u64 {
    match kernel {
        KernelSpec::Sum(parts) | KernelSpec::Product(parts) => {
            parts.terms.iter().map(|t| leaves(t, e, image)).sum()
        }
        KernelSpec::Additive(_) => e,
        KernelSpec::Channels(_) => image.channels() as u64,
        _ => 1,
    }
}

/// Images and their targets.
fn data_bytes(images: &Images) -> u64 {
    let numbers = images.count() as u64 * images.shape().len() as u64;
    images.pixels().view().width() as u64 * numbers + DOUBLE * images.count() as u64
}

/// A line of a `/proc` file given in kB, in bytes.
fn proc_bytes(path: &str, field: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|l| l.starts_with(field))?;
    Some(1024 * line.split_whitespace().nth(1)?.parse::<u64>().ok()?)
}

/// Memory the machine can still give, where it says so.
pub fn available() -> Option<u64> {
    proc_bytes("/proc/meminfo", "MemAvailable:")
}

/// Memory this process holds already.
fn resident() -> Option<u64> {
    proc_bytes("/proc/self/status", "VmRSS:")
}

/// The most this process ever held.
pub fn peak() -> Option<u64> {
    proc_bytes("/proc/self/status", "VmHWM:")
}

/// Bytes for people.
pub fn size_text(bytes: u64) -> String {
    match bytes {
        b if b < 10 << 20 => format!("{:.1} MiB", b as f64 / f64::from(1 << 20)),
        b if b < 10 << 30 => format!("{} MiB", b >> 20),
        b => format!("{:.1} GiB", b as f64 / f64::from(1 << 30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written() {
        assert_eq!((size_text(3 << 19), size_text(300 << 20)), ("1.5 MiB".into(), "300 MiB".into()));
    }
}
