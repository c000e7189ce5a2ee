//! Memory a training run will take, from the sizes of everything it allocates.

use crate::exit::memory as refuse;
use crate::source::Parts;
use anyhow::Result;
use convgp::Model;
use convgp::component::Component;
use convgp::data::{Dataset, Images, Pixels};
use convgp::train::{ExperimentSpec, QStep, TrainSpec};

/// Program, thread stacks and small buffers, and what the allocator keeps of freed blocks (both measured on Linux).
const BASE: u64 = 14 << 20;
const SLACK: f64 = 1.07;
/// Bytes of a double and a single.
const DOUBLE: u64 = 8;
const SINGLE: u64 = 4;
/// Columns of tiles come in multiples of this.
const LANES: u64 = 16;
/// Parts a batch's derivatives are summed in.
const PARTS: u64 = 8;
/// Rows of `Kuu` handled together.
const KUU_ROWS: u64 = 96;
/// The engine recomputes moments when they would take more than this.
const HANDOVER: u64 = 256 << 20;
/// Images predicted together.
const CHUNK: u64 = 128;

/// Bytes by purpose.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Images of all splits.
    pub data: u64,
    /// The most this process held while it read them.
    reading: u64,
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
    /// For training this model on these images, which this process has just read.
    pub fn new(model: &Model, train: &TrainSpec, parts: &Parts) -> Self {
        let sets = [Some(&parts.train), parts.validation.as_ref(), parts.test.as_ref()];
        let data: u64 = sets.into_iter().flatten().map(data_bytes).sum();
        let batch = train.batch_size.min(parts.train.len()) as u64;
        let sizes = Sizes::new(model, train, batch);
        let image = model.spec().image.len() as u64;
        Self {
            data: data + DOUBLE * batch * image,
            reading: peak().unwrap_or(0),
            parameters: sizes.parameters(),
            covariances: model.components().iter().map(|c| component(c, batch)).sum(),
            posterior: sizes.posterior(),
            saving: sizes.saving().max(predicting(model)),
        }
    }

    /// Everything, at the worst moment.
    pub fn total(&self) -> u64 {
        let training = self.parameters + self.covariances + self.posterior + self.saving;
        (BASE + self.data + (SLACK * training as f64) as u64).max(self.reading)
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

    /// Refuses what does not fit into `limit`, or into what the machine has left.
    pub fn check(&self, limit: Option<u64>, experiment: &ExperimentSpec) -> Result<()> {
        let Some(limit) = limit.or_else(|| available().map(|a| a + resident().unwrap_or(0))) else {
            return Ok(());
        };
        if self.total() <= limit {
            return Ok(());
        }
        Err(refuse(format!(
            "training would take about {}, more than {}. {}",
            self.text(),
            size_text(limit),
            self.advice(limit, experiment)
        )))
    }

    /// Settings that would fit. Posterior and parameters grow with the square of M, the rest at most linearly.
    fn advice(&self, limit: u64, experiment: &ExperimentSpec) -> String {
        let fixed = BASE + self.data;
        if fixed.max(self.reading) >= limit {
            return "The images alone do not fit: use --limit, or --size for smaller ones".into();
        }
        let current = experiment.model.components.iter().map(|c| c.inducing.count).max().unwrap_or(1);
        let squared = (self.parameters + self.posterior + self.saving) as f64;
        let linear = self.covariances as f64;
        let room = (limit - fixed) as f64 / SLACK;
        let fits = |f: f64| f * f * squared + f * linear <= room;
        let fraction = (1..100).rev().map(|i| f64::from(i) / 100.0).find(|&f| fits(f)).unwrap_or(0.01);
        let m = ((current as f64 * fraction) as usize).max(1);
        let batch = experiment.train.batch_size;
        format!(
            "-m {m} would fit (now {current}); a smaller --batch (now {batch}) helps where covariances dominate"
        )
    }
}

/// Sizes that parameters and posterior depend on.
struct Sizes {
    /// Numbers in `q`.
    q: u64,
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
    fn new(model: &Model, train: &TrainSpec, batch: u64) -> Self {
        let v = model.variational();
        let q = v.slot().len() as u64;
        Self {
            q,
            rest: model.layout().len() as u64 - q,
            latents: v.latents() as u64,
            total: v.total() as u64,
            orders: v.groups().iter().map(|g| g.order() as u64).collect(),
            batch,
            natural: train.q == QStep::Natural,
            whitened: v.whitened(),
            threads: rayon::current_num_threads() as u64,
        }
    }

    fn moved(&self) -> u64 {
        self.rest + if self.natural { 0 } else { self.q }
    }

    /// Values and the last good ones, two moments, a gradient.
    fn parameters(&self) -> u64 {
        2 * DOUBLE * (self.q + self.rest) + (2 * SINGLE + DOUBLE) * self.moved()
    }

    fn posterior(&self) -> u64 {
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
        let widest = self.orders.iter().copied().max().unwrap_or(0);
        let forms =
            if self.natural { 3 * DOUBLE * self.threads.min(self.latents) * widest * widest } else { 0 };
        let model = values + forms.max(DOUBLE * self.q);
        let checkpoint = 2 * values + 2 * SINGLE * self.moved() + values;
        model.max(checkpoint)
    }
}

/// One component: its `Kuu` (values, factor, derivative, scratch), its `Kuf` and what is kept of every view.
fn component(c: &Component, batch: u64) -> u64 {
    let (m, e) = (c.inducing() as u64, c.view_len() as u64);
    let padded = m.div_ceil(LANES) * LANES;
    // Sums of rows and their distances, per leaf of the kernel.
    let leaves = c.kernel().terms().map_or(1, |t| t.iter().map(|t| t.leaves.len()).sum::<usize>()) as u64;
    let moments = padded * (e + 2 * leaves);
    let kuu = DOUBLE * (4 * m * m + m.div_ceil(KUU_ROWS) * moments);
    let responses = c.responses().iter().map(|r| {
        let count = r.views().count() as u64;
        let kuf = 2 * DOUBLE * m * batch;
        if count == 1 {
            return kuf
                + batch * (DOUBLE * e + SINGLE * (e + padded))
                + batch.div_ceil(36) * SINGLE * moments;
        }
        let handed_over = SINGLE * batch * moments;
        let handed_over = if handed_over <= HANDOVER { handed_over } else { 0 };
        let located = if r.views().coordinates() > 0 {
            SINGLE * ((PARTS + 2) * count * padded + 2 * count * count)
        } else {
            0
        };
        let per_image = batch * (DOUBLE * padded + (2 * SINGLE + DOUBLE) * count);
        kuf + handed_over + per_image + located + PARTS * DOUBLE * moments
    });
    kuu + responses.sum::<u64>()
}

/// A predictor's factors and one chunk of images.
fn predicting(model: &Model) -> u64 {
    let v = model.variational();
    let components = model.components().iter().map(|c| {
        let (m, responses) = (c.inducing() as u64, c.responses().len() as u64);
        DOUBLE * (2 * m * m + responses * m * CHUNK)
    });
    components.sum::<u64>() + DOUBLE * v.slot().len() as u64
}

/// Images and their targets.
fn data_bytes(data: &Dataset) -> u64 {
    pixel_bytes(data.images()) + DOUBLE * data.len() as u64
}

fn pixel_bytes(images: &Images) -> u64 {
    let width = match images.pixels() {
        Pixels::U8(_) => 1,
        Pixels::F32(_) => SINGLE,
        Pixels::F64(_) => DOUBLE,
    };
    width * images.count() as u64 * images.shape().len() as u64
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

/// `512M`, `4G`; a bare number is bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no size such as 512M or 4G");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1u64,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    if number > 0.0 { Ok((number * unit as f64) as u64) } else { Err(wrong()) }
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
    fn sizes_are_read_and_written() {
        for (text, bytes) in
            [("512M", 512 << 20), ("4G", 4 << 30), ("1.5k", 1536), ("7", 7), ("2GiB", 2 << 30)]
        {
            assert_eq!(parse_size(text).unwrap(), bytes);
        }
        for text in ["", "G", "-1G", "0", "5X"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
        assert_eq!((size_text(3 << 19), size_text(300 << 20)), ("1.5 MiB".into(), "300 MiB".into()));
    }
}
