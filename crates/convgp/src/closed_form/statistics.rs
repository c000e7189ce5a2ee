//! What the solution needs to know of the images: sums over them, and the features of some of them.

use super::features::Features;
use crate::Result;
use crate::cov::Engine;
use crate::data::{Dataset, Targets, extend_id};
use crate::likelihood::TargetUnits;
use crate::linalg::{Accumulate, Mat, MatRef, gemm, syrk_double, syrk_single};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Images whose targets are multiplied together.
const BLOCK: usize = 256;
/// Images whose products are summed in single precision before they are added up in double precision. Blocks and chunks
/// are counted from the first image on, so bits depend on neither threads nor how images are handed over.
const CHUNK: usize = 2048;
/// Images left out to choose the noise, where there are more columns than inducing outputs: at most so many, or so many
/// columns of them and their copies, and not too few of them.
const LEFT_OUT: usize = 3000;
const LEFT_OUT_COLUMNS: usize = 3000;
const LEFT_OUT_FEW: usize = 300;

/// Images left out where each has so many columns.
pub(crate) fn most_left_out(width: usize) -> usize {
    LEFT_OUT.min((LEFT_OUT_COLUMNS / width).max(LEFT_OUT_FEW))
}

/// Images whose features are kept: some more than are left out, so that some can be removed.
fn most_kept(width: usize) -> usize {
    most_left_out(width) * 11 / 10
}

/// Statistics that do not fit what is asked of them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum StatisticsError {
    #[error("image {image} cannot be removed: no image with its pixels and its target was ever added")]
    NeverAdded { image: usize },
    #[error("the model is for statistics of {rank} images, these are of {found}; resize the model first")]
    Rank { rank: usize, found: usize },
    #[error("the statistics are of another model: {what}")]
    OtherModel { what: String },
    #[error("the model was trained in steps; only closed-form models can be updated")]
    Steps,
    #[error("no image would be left; nothing was changed")]
    NothingLeft,
}

/// Precision of the products in `G`. Whatever it is, sums over chunks of images are in double precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Good to noise of `1e-8` of the sum of squares, and twice as fast.
    #[default]
    Single,
    /// Exact to rounding of doubles: for statistics that images will be added to and removed from.
    Double,
}

/// Features and targets of single images.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Columns {
    pub ids: Vec<u64>,
    /// `D` numbers for each and each of its copies.
    pub a: Vec<f64>,
    /// `L` numbers for each.
    pub y: Vec<f64>,
}

impl Columns {
    fn len(&self) -> usize {
        self.ids.len()
    }

    fn push(&mut self, id: u64, a: &[f64], y: &[f64]) {
        self.ids.push(id);
        self.a.extend_from_slice(a);
        self.y.extend_from_slice(y);
    }

    /// Overwrites image `i`.
    fn replace(&mut self, i: usize, id: u64, a: &[f64], y: &[f64]) {
        self.ids[i] = id;
        self.a[i * a.len()..(i + 1) * a.len()].copy_from_slice(a);
        self.y[i * y.len()..(i + 1) * y.len()].copy_from_slice(y);
    }

    /// Drops image `i`; the others keep their order.
    fn remove(&mut self, i: usize) {
        let (a, y) = (self.a.len() / self.len(), self.y.len() / self.len());
        self.ids.remove(i);
        self.a.drain(i * a..(i + 1) * a);
        self.y.drain(i * y..(i + 1) * y);
    }

    fn clear(&mut self) {
        self.ids.clear();
        self.a.clear();
        self.y.clear();
    }

    /// Targets of every column, `L x n`: copies have those of their image.
    pub fn targets(&self, width: usize) -> Mat {
        let latents = self.y.len() / self.len().max(1);
        Mat::from_fn(latents, self.len() * width, |l, n| self.y[n / width * latents + l])
    }
}

/// Sums over images, where they are more than inducing outputs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sums {
    /// `G = A A^T`, the lower triangle.
    pub g: Mat,
    /// `b = A Y`, `D x L`.
    pub b: Mat,
    /// The images with the smallest ids: a choice that depends on neither order nor history.
    pub kept: Columns,
    /// Images that wait for a block to be full.
    pub block: Columns,
    /// Features that wait for a chunk to be full.
    pub chunk: Vec<f32>,
    pub chunk_double: Vec<f64>,
}

/// Statistics of images under a model: sums, so images can be added and removed in any order.
///
/// Up to `D` images are remembered one by one, since a matrix of their size is smaller than one of `D`.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    pub(crate) outputs: usize,
    pub(crate) latents: usize,
    /// Whether targets are labels.
    pub(crate) labels: bool,
    /// Columns of features of an image: its own and those of its copies.
    pub(crate) width: usize,
    pub(crate) precision: Precision,
    /// Columns that are remembered one by one before they are summed.
    pub(crate) singles: usize,
    /// An id for every image, by its pixels and its target.
    pub(crate) ids: Vec<u64>,
    pub(crate) few: Columns,
    pub(crate) sums: Option<Sums>,
    /// Identity of the kernels, whitenings and inducing inputs.
    pub(crate) model: String,
}

impl Statistics {
    /// Of no image yet, for the model of this identity: `outputs` is `D`, `latents` the number of targets of an image.
    /// Memory is planned for `expected` images.
    #[allow(clippy::too_many_arguments)] // all of them are plain numbers
    pub(crate) fn new(
        model: String,
        outputs: usize,
        latents: usize,
        labels: bool,
        width: usize,
        precision: Precision,
        singles: usize,
        expected: usize,
    ) -> Self {
        let (ids, few) = (Vec::new(), Columns::default());
        let mut new =
            Self { outputs, latents, labels, width, precision, singles, ids, few, sums: None, model };
        if expected * width > singles {
            new.begin_sums();
        } else {
            new.few.a.reserve_exact(outputs * expected * width);
        }
        new
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.ids.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
    /// Rank of the posterior's difference from the prior, where it is less than `D`.
    pub fn rank(&self) -> Option<usize> {
        self.sums.is_none().then_some(self.len())
    }

    /// Adds the images of a data set from number `first` on, in order. Stops where `progress` says false, and returns
    /// whether it came to the end.
    pub fn read<E: Engine>(
        &mut self,
        features: &Features<'_, E>,
        data: &Dataset,
        first: usize,
        progress: super::Progress<'_>,
    ) -> Result<bool> {
        features.for_each(data.images(), first, |indices, ids, a| {
            let y = targets_of(data.targets(), indices, features.target_units());
            let groups = a.data().chunks_exact(self.outputs * self.width);
            for (n, group) in groups.enumerate() {
                self.add(with_target(ids[n], y.col(n)), group, y.col(n));
            }
            Ok(progress(indices[indices.len() - 1] + 1, data.len()))
        })
    }

    /// Takes the images of a data set out again. Nothing is changed if one of them was never added.
    pub fn remove<E: Engine>(&mut self, features: &Features<'_, E>, data: &Dataset) -> Result<()> {
        let mut left = HashMap::<u64, usize>::new();
        self.ids.iter().for_each(|&id| *left.entry(id).or_default() += 1);
        let mut gone = Columns::default();
        features.for_each(data.images(), 0, |indices, ids, a| {
            let y = targets_of(data.targets(), indices, features.target_units());
            let groups = a.data().chunks_exact(self.outputs * self.width);
            for (n, (&image, group)) in indices.iter().zip(groups).enumerate() {
                let id = with_target(ids[n], y.col(n));
                match left.get_mut(&id).filter(|count| **count > 0) {
                    Some(count) => *count -= 1,
                    None => return Err(StatisticsError::NeverAdded { image }.into()),
                }
                gone.push(id, group, y.col(n));
            }
            Ok(true)
        })?;
        self.flush();
        for id in &gone.ids {
            let find = |ids: &[u64]| ids.iter().rposition(|x| x == id);
            let i = find(&self.ids).expect("was counted");
            self.ids.remove(i);
            match &mut self.sums {
                Some(sums) => {
                    if let Some(i) = find(&sums.kept.ids) {
                        sums.kept.remove(i);
                    }
                }
                None => self.few.remove(i),
            }
        }
        if let Some(Sums { g, b, .. }) = &mut self.sums {
            let y = gone.targets(self.width);
            let a = MatRef::from_column_major_slice(&gone.a, self.outputs, y.cols());
            gemm(b.view_mut(), Accumulate::Add, -1.0, a, y.view().transpose());
            syrk_double(g, -1.0, a);
        }
        Ok(())
    }

    /// Adds one image: its features, those of its copies, and its targets.
    fn add(&mut self, id: u64, a: &[f64], y: &[f64]) {
        self.ids.push(id);
        if self.sums.is_none() && self.ids.len() * self.width > self.singles {
            self.begin_sums();
        }
        match &mut self.sums {
            Some(sums) => sums.add(self.precision, self.width, id, a, y),
            None => self.few.push(id, a, y),
        }
    }

    /// From single images to sums; the same sums as if it had begun with them.
    pub(crate) fn begin_sums(&mut self) {
        if self.sums.is_some() {
            return;
        }
        let (d, l) = (self.outputs, self.latents);
        let mut sums = Sums {
            g: Mat::zeros(d, d),
            b: Mat::zeros(d, l),
            kept: Columns::default(),
            block: Columns::default(),
            chunk: Vec::new(),
            chunk_double: Vec::new(),
        };
        let few = std::mem::take(&mut self.few);
        for (i, &id) in few.ids.iter().enumerate() {
            let a = &few.a[i * d * self.width..(i + 1) * d * self.width];
            sums.add(self.precision, self.width, id, a, &few.y[i * l..(i + 1) * l]);
        }
        self.sums = Some(sums);
    }

    /// Adds what waits for a block or chunk to be full.
    pub(crate) fn flush(&mut self) {
        if let Some(sums) = &mut self.sums {
            sums.end_block(self.precision, self.width);
            sums.end_chunk();
        }
    }
}

impl Sums {
    fn add(&mut self, precision: Precision, width: usize, id: u64, a: &[f64], y: &[f64]) {
        self.keep(most_kept(width), id, a, y);
        self.block.push(id, a, y);
        if self.block.len() * width >= BLOCK {
            self.end_block(precision, width);
            if self.chunk.len() + self.chunk_double.len() >= CHUNK * self.g.rows() {
                self.end_chunk();
            }
        }
    }

    /// Keeps the image if its id is among the smallest.
    fn keep(&mut self, most: usize, id: u64, a: &[f64], y: &[f64]) {
        if self.kept.len() < most {
            return self.kept.push(id, a, y);
        }
        let largest = (0..most).max_by_key(|&i| self.kept.ids[i]).expect("some are kept");
        if id < self.kept.ids[largest] {
            self.kept.replace(largest, id, a, y);
        }
    }

    fn end_block(&mut self, precision: Precision, width: usize) {
        if self.block.len() > 0 {
            let y = self.block.targets(width);
            let a = MatRef::from_column_major_slice(&self.block.a, self.g.rows(), y.cols());
            gemm(self.b.view_mut(), Accumulate::Add, 1.0, a, y.view().transpose());
        }
        match precision {
            Precision::Single => self.chunk.extend(self.block.a.iter().map(|x| *x as f32)),
            Precision::Double => self.chunk_double.extend_from_slice(&self.block.a),
        }
        self.block.clear();
    }

    fn end_chunk(&mut self) {
        let d = self.g.rows();
        if !self.chunk.is_empty() {
            syrk_single(&mut self.g, &self.chunk);
        }
        if !self.chunk_double.is_empty() {
            let n = self.chunk_double.len() / d;
            syrk_double(&mut self.g, 1.0, MatRef::from_column_major_slice(&self.chunk_double, d, n));
        }
        self.chunk.clear();
        self.chunk_double.clear();
    }
}

/// An id of an image with its targets.
fn with_target(id: u64, y: &[f64]) -> u64 {
    y.iter().fold(id, |id, y| extend_id(id, *y))
}

/// Targets of some images, `L x n`: `e_c - 1 / C` for labels.
pub(crate) fn targets_of(targets: &Targets, indices: &[usize], units: TargetUnits) -> Mat {
    match targets {
        Targets::Classes { labels, classes } => {
            let share = 1.0 / *classes as f64;
            let is = |l: usize, n: usize| f64::from(u8::from(labels[indices[n]] as usize == l));
            Mat::from_fn(*classes, indices.len(), |l, n| is(l, n) - share)
        }
        Targets::Real(y) => Mat::from_fn(1, indices.len(), |_, n| units.standardise(y[indices[n]])),
    }
}
