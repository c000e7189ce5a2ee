//! One batch through the fused engine: images in parallel, every sum over images in a fixed order.

use super::cols::{Cols, Rows, Tile};
use super::kff::{self, PairScratch, Pairs};
use super::location_aware::LocationAware;
use super::merge::{Cutter, Merged};
use super::micro::Lane;
use super::single_view::{self, SingleView};
use super::{Optimizations, box_filter, dense, kuf, pooled};
use crate::component::{Component, Response};
use crate::cov::{Cov, Need};
use crate::data::Batch;
use crate::kernel::Term;
use rayon::prelude::*;
use std::sync::Mutex;

/// Moments are handed over while they take no more than this many bytes per response; beyond, the pullback recomputes.
const HANDOVER_BYTES: usize = 256 << 20;
/// Parts into which a batch's pullback is cut; fixed, so that bits do not depend on the number of threads.
const PARTS: usize = 8;

/// What the forward pass hands to the pullback for one component.
#[derive(Debug, Default)]
pub struct SavedImages<T: Lane> {
    cols: Cols<T>,
    /// `[response][image]`.
    images: Vec<Vec<SavedImage<T>>>,
    location: Vec<Option<LocationAware<T>>>,
    pool: Mutex<Vec<Scratch<T>>>,
    box_filter: box_filter::BoxScratch<T>,
    single_view: Vec<SingleView<T>>,
    parts: Vec<PartSums<T>>,
}

/// One image of one response.
#[derive(Debug, Default)]
struct SavedImage<T> {
    merged: Merged,
    /// `[group][padded column]`, only when derivatives follow.
    kuf: Vec<f64>,
    moments: Vec<T>,
    pairs: Pairs,
    by_box_filter: bool,
}

/// Buffers one task works in.
#[derive(Debug, Default)]
pub(super) struct Scratch<T> {
    pub cutter: Cutter,
    pub rows: Rows<T>,
    pub tile: Tile<T>,
    pairs: PairScratch<T>,
    row_weights: Vec<f64>,
    weights: Vec<T>,
    kuf: Vec<f64>,
    g: Vec<T>,
    rows_bar: Vec<f64>,
}

impl<T: Lane> Scratch<T> {
    /// Cuts out the views of an image and scales its merged rows.
    fn rows(&mut self, cols: &Cols<T>, response: &Response, image: &[f64], merged: &Merged) {
        let len = response.views().len();
        self.cutter.cut(response.views(), image);
        let cutter = &self.cutter;
        self.rows.fill(cols, merged.rows(), |r| cutter.view(merged.representatives[r] as usize, len));
    }
}

pub(super) fn with_scratch<T: Lane, R>(
    pool: &Mutex<Vec<Scratch<T>>>,
    f: impl FnOnce(&mut Scratch<T>) -> R,
) -> R {
    let lock = || pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let taken = lock().pop();
    let mut scratch = taken.unwrap_or_default();
    let result = f(&mut scratch);
    lock().push(scratch);
    result
}

/// How one response is to be treated.
struct Job<'a> {
    optimizations: Optimizations,
    fma: bool,
    terms: &'a [Term],
    theta: &'a [f64],
    response: &'a Response,
    weights: Vec<f64>,
    need: Need,
    handover: bool,
}

#[allow(clippy::too_many_arguments)]
pub fn forward<T: Lane>(
    optimizations: Optimizations,
    fma: bool,
    terms: &[Term],
    c: &Component,
    values: &[f64],
    batch: &Batch,
    need: Need,
    saved: &mut SavedImages<T>,
    cov: &mut Cov,
) {
    let theta = c.theta(values);
    cov.resize(c.responses().len(), c.inducing(), batch.len());
    saved.images.resize_with(c.responses().len(), Vec::new);
    saved.location.resize_with(c.responses().len(), || None);
    saved.single_view.resize_with(c.responses().len(), SingleView::default);
    for (r, response) in c.responses().iter().enumerate() {
        if pooled::applies(c, r, need) {
            if r.is_multiple_of(c.windows()) {
                saved.cols.fill(terms, theta, c.inducing(), |m| c.z(values, m), None);
                let (cols, pool) = (&saved.cols, &saved.pool);
                pooled::forward(optimizations, fma, terms, cols, pool, c, r, values, batch, need, cov);
            }
            continue;
        }
        if response.views().count() == 1 {
            saved.cols.fill(terms, theta, c.inducing(), |m| c.z(values, m), None);
            single_view::forward(fma, &saved.cols, c, r, values, batch, need, &mut saved.single_view[r], cov);
            continue;
        }
        let weights = response.weights(values);
        let location = LocationAware::new(terms, c, r, values, &weights, fma, need, saved.location[r].take());
        let pixel_terms = location.as_ref().map_or(terms, |l| l.pixel_terms());
        saved.cols.fill(pixel_terms, theta, c.inducing(), |m| c.z(values, m), None);
        let bytes = batch.len() * saved.cols.moments_len() * size_of::<T>();
        let handover = optimizations.handover && need == Need::Gradient && bytes <= HANDOVER_BYTES;
        let job = Job { optimizations, fma, terms: pixel_terms, theta, response, weights, need, handover };
        let images = &mut saved.images[r];
        images.resize_with(batch.len(), SavedImage::default);
        let (cols, pool) = (&saved.cols, &saved.pool);
        images
            .par_iter_mut()
            .zip(cov.kuf[r].data_mut().par_chunks_mut(c.inducing()))
            .zip(&mut cov.kff[r])
            .enumerate()
            .for_each(|(n, ((image, kuf), kff))| {
                with_scratch(pool, |s| {
                    image.forward(&job, cols, location.as_ref(), batch.image(n), s, kuf);
                    *kff = image.pairs.groups.iter().sum();
                });
            });
        if need != Need::Mean {
            let marked: Vec<usize> = (0..batch.len()).filter(|&n| images[n].by_box_filter).collect();
            let mut results: Vec<&mut Pairs> =
                images.iter_mut().filter(|i| i.by_box_filter).map(|i| &mut i.pairs).collect();
            box_filter::pairs(
                &job.as_box_job(location.as_ref()),
                batch,
                &marked,
                &mut saved.box_filter,
                &mut results,
            );
            marked.iter().zip(results).for_each(|(&n, pairs)| cov.kff[r][n] = pairs.groups.iter().sum());
            let white = c.white(values);
            cov.kff[r].iter_mut().for_each(|k| *k += white);
        }
        saved.location[r] = location;
    }
}

impl<'a> Job<'a> {
    fn pairs_wanted(&self) -> kff::Wanted {
        let gradient = self.need == Need::Gradient;
        kff::Wanted {
            theta: gradient,
            weights: gradient && self.response.weights_slot().is_some(),
            symmetric: self.optimizations.symmetric,
        }
    }

    fn as_box_job<T: Lane>(&'a self, location: Option<&'a LocationAware<T>>) -> box_filter::BoxJob<'a> {
        box_filter::BoxJob {
            fma: self.fma,
            leaf: &self.terms[0].leaves[0],
            theta: self.theta,
            response: self.response,
            weights: &self.weights,
            wanted: self.pairs_wanted(),
            place: location.and_then(|l| l.place_leaf()),
        }
    }

    /// Whether box filters would be cheaper than a product over the merged rows.
    fn prefers_box_filter<T: Lane>(&self, rows: usize, location: Option<&LocationAware<T>>) -> bool {
        let place = location.and_then(|l| l.place_leaf());
        self.optimizations.box_filter
            && box_filter::applies(self.terms, self.response, location.is_some(), place)
            && box_filter::cheaper(rows, self.response.views())
    }
}

impl<T: Lane> SavedImage<T> {
    fn forward(
        &mut self,
        job: &Job<'_>,
        cols: &Cols<T>,
        location: Option<&LocationAware<T>>,
        image: &[f64],
        s: &mut Scratch<T>,
        kuf_out: &mut [f64],
    ) {
        let views = job.response.views();
        let (len, pixels) = (views.len(), views.len() - views.coordinates());
        s.cutter.cut(views, image);
        let compare = if location.is_some() { pixels } else { len };
        s.cutter.merge(len, compare, job.optimizations.merge, &mut self.merged);
        if let Some(location) = location {
            location.split_background(&mut self.merged);
        }
        let (cutter, merged) = (&s.cutter, &self.merged);
        s.rows.fill(cols, merged.rows(), |r| cutter.view(merged.representatives[r] as usize, len));
        merged.sum_into_rows(&job.weights, &mut s.row_weights);
        s.weights.clear();
        s.weights.extend(s.row_weights.iter().map(|&w| T::from_f64(w)));
        s.kuf.clear();
        s.kuf.resize(cols.groups * cols.padded(), 0.0);
        self.moments.clear();
        self.moments.resize(if job.handover { cols.moments_len() } else { 0 }, T::default());
        let moments = job.handover.then_some(&mut self.moments[..]);
        match location {
            None => kuf::forward(job.fma, cols, &s.rows, &s.weights, &mut s.tile, &mut s.kuf, moments),
            Some(l) => l.kuf(job.fma, cols, &s.rows, merged, &mut s.tile, &mut s.kuf, moments),
        }
        for (m, out) in kuf_out.iter_mut().enumerate() {
            *out = s.kuf.iter().skip(m).step_by(cols.padded()).sum();
        }
        if job.need == Need::Gradient {
            self.kuf.clone_from(&s.kuf);
        }
        self.by_box_filter = job.prefers_box_filter(merged.rows(), location);
        if job.need == Need::Mean || self.by_box_filter {
            self.pairs.groups.clear();
            return;
        }
        match location {
            None => kff::pairs(
                job.fma,
                cols,
                job.terms,
                job.theta,
                &s.rows,
                |r| cutter.view(merged.representatives[r] as usize, len),
                &s.weights,
                job.pairs_wanted(),
                &mut s.tile,
                &mut s.pairs,
                &mut self.pairs,
            ),
            Some(l) => l.pairs(
                job.fma,
                cols,
                job.theta,
                &s.rows,
                |p| cutter.view(p, len),
                merged,
                job.pairs_wanted(),
                &mut s.tile,
                &mut s.pairs,
                &mut self.pairs,
            ),
        }
    }
}

/// Sums over the images of one part of a batch.
#[derive(Debug, Default)]
struct PartSums<T> {
    moments: Vec<f64>,
    groups: Vec<f64>,
    weights: Vec<f64>,
    theta: Vec<f64>,
    table: Vec<T>,
    background: Vec<f64>,
}

#[allow(clippy::too_many_arguments)]
pub fn pullback<T: Lane>(
    fma: bool,
    c: &Component,
    values: &[f64],
    batch: &Batch,
    saved: &mut SavedImages<T>,
    cov_bar: &Cov,
    grad: &mut [f64],
) {
    let (e, theta) = (c.view_len(), c.theta(values));
    let mut theta_bar = vec![0.0; theta.len()];
    for (r, response) in c.responses().iter().enumerate() {
        if let Some(white) = c.white_slot() {
            white.of_mut(grad)[0] += cov_bar.kff[r].iter().sum::<f64>();
        }
        if response.views().count() == 1 {
            let single_view = &saved.single_view[r];
            single_view::pullback(fma, &saved.cols, c, r, values, single_view, cov_bar, &mut theta_bar, grad);
            continue;
        }
        let location = saved.location[r].as_ref();
        let task = PullTask {
            fma,
            cols: &saved.cols,
            response,
            weights: response.weights(values),
            location,
            kuf_bar: &cov_bar.kuf[r],
            kff_bar: &cov_bar.kff[r],
            theta_len: theta.len(),
        };
        let size = batch.len().div_ceil(PARTS);
        saved.parts.resize_with(batch.len().div_ceil(size), PartSums::default);
        saved.parts.par_iter_mut().zip(saved.images[r].par_chunks(size)).enumerate().for_each(
            |(part, (sums, images))| {
                with_scratch(&saved.pool, |s| task.part(part * size, images, batch, s, sums));
            },
        );
        let Some((sums, others)) = saved.parts.split_first_mut() else { continue };
        others.iter().for_each(|part| sums.add(part));
        let z_bar = c.z_slot().of_mut(grad);
        let all = 0..saved.cols.panels;
        dense::finish(&saved.cols, all, &sums.moments, &mut theta_bar, |m, k, g| z_bar[m * e + k] += g);
        dense::finish_variances(&saved.cols, theta, &sums.groups, &mut theta_bar);
        theta_bar.iter_mut().zip(&sums.theta).for_each(|(t, s)| *t += s);
        if let Some(location) = location {
            location.finish(
                fma,
                &sums.table,
                &sums.background,
                &mut sums.weights,
                &mut theta_bar,
                |m, k, g| {
                    z_bar[m * e + k] += g;
                },
            );
        }
        response.add_weights_bar(&sums.weights, grad);
    }
    c.theta_slot().of_mut(grad).iter_mut().zip(&theta_bar).for_each(|(g, t)| *g += t);
}

impl<T: Lane> PartSums<T> {
    fn add(&mut self, other: &Self) {
        for (a, b) in [
            (&mut self.moments, &other.moments),
            (&mut self.groups, &other.groups),
            (&mut self.weights, &other.weights),
            (&mut self.theta, &other.theta),
            (&mut self.background, &other.background),
        ] {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
        }
        self.table.iter_mut().zip(&other.table).for_each(|(a, b)| *a += *b);
    }
}

/// The pullback of one response.
struct PullTask<'a, T: Lane> {
    fma: bool,
    cols: &'a Cols<T>,
    response: &'a Response,
    weights: Vec<f64>,
    location: Option<&'a LocationAware<T>>,
    kuf_bar: &'a crate::linalg::Mat,
    kff_bar: &'a [f64],
    theta_len: usize,
}

impl<T: Lane> PullTask<'_, T> {
    fn part(
        &self,
        first: usize,
        images: &[SavedImage<T>],
        batch: &Batch,
        s: &mut Scratch<T>,
        sums: &mut PartSums<T>,
    ) {
        let (count, padded) = (self.response.views().count(), self.cols.padded());
        let table = self.location.map_or(0, |_| count * padded);
        for (sums, len) in [
            (&mut sums.moments, self.cols.moments_len()),
            (&mut sums.groups, self.cols.groups),
            (&mut sums.weights, count),
            (&mut sums.theta, self.theta_len),
            (&mut sums.background, if table > 0 { padded } else { 0 }),
        ] {
            sums.clear();
            sums.resize(len, 0.0);
        }
        sums.table.clear();
        sums.table.resize(table, T::default());
        for (i, image) in images.iter().enumerate() {
            let n = first + i;
            s.g.clear();
            s.g.extend(self.kuf_bar.col(n).iter().map(|&g| T::from_f64(g)));
            s.g.resize(padded, T::default());
            self.add_kuf(n, image, batch, s, sums);
            self.add_kff(n, image, sums);
        }
    }

    fn add_kuf(
        &self,
        n: usize,
        image: &SavedImage<T>,
        batch: &Batch,
        s: &mut Scratch<T>,
        sums: &mut PartSums<T>,
    ) {
        let g = self.kuf_bar.col(n);
        for (group, kuf) in sums.groups.iter_mut().zip(image.kuf.chunks_exact(self.cols.padded())) {
            *group += g.iter().zip(kuf).map(|(g, k)| g * k).sum::<f64>();
        }
        let handover = !image.moments.is_empty();
        let weighted = self.response.weights_slot().is_some();
        if handover {
            contract(self.cols, &image.moments, g, &mut sums.moments);
        }
        if handover && !weighted && self.location.is_none() {
            return;
        }
        s.rows(self.cols, self.response, batch.image(n), &image.merged);
        if let Some(location) = self.location {
            let Scratch { rows, tile, g, .. } = s;
            location.kuf_bar(
                self.fma,
                self.cols,
                rows,
                &image.merged,
                g,
                tile,
                &mut sums.table,
                &mut sums.background,
            );
        } else if weighted {
            let Scratch { rows, tile, g, rows_bar, .. } = s;
            rows_bar.resize(image.merged.rows(), 0.0);
            kuf::weights_bar(self.fma, self.cols, rows, g, tile, rows_bar);
            for (bar, &row) in sums.weights.iter_mut().zip(&image.merged.row_of) {
                *bar += rows_bar[row as usize];
            }
        }
        if !handover {
            self.moments_again(image, s, sums);
        }
    }

    /// Moments with the cotangent inside, for batches whose moments are too large to hand over.
    fn moments_again(&self, image: &SavedImage<T>, s: &mut Scratch<T>, sums: &mut PartSums<T>) {
        image.merged.sum_into_rows(&self.weights, &mut s.row_weights);
        s.weights.clear();
        s.weights.extend(s.row_weights.iter().map(|&w| T::from_f64(w)));
        let mut moments = vec![T::default(); self.cols.moments_len()];
        s.kuf.clear();
        s.kuf.resize(self.cols.groups * self.cols.padded(), 0.0);
        let Scratch { rows, tile, weights, kuf: unused, .. } = s;
        match self.location {
            None => kuf::forward(self.fma, self.cols, rows, weights, tile, unused, Some(&mut moments)),
            Some(l) => l.kuf(self.fma, self.cols, rows, &image.merged, tile, unused, Some(&mut moments)),
        }
        let g: Vec<f64> = s.g.iter().map(|g| g.to_f64()).collect();
        contract(self.cols, &moments, &g, &mut sums.moments);
    }

    /// `dw_p = 2 g sum_q w_q k_pq`; variances and lengthscales likewise, scaled by the image's cotangent.
    fn add_kff(&self, n: usize, image: &SavedImage<T>, sums: &mut PartSums<T>) {
        let g = self.kff_bar[n];
        sums.groups.iter_mut().zip(&image.pairs.groups).for_each(|(s, p)| *s += g * p);
        sums.theta.iter_mut().zip(&image.pairs.theta).for_each(|(s, p)| *s += g * p);
        let rows = &image.pairs.row_sums;
        if rows.is_empty() {
            return;
        }
        if rows.len() == sums.weights.len() {
            sums.weights.iter_mut().zip(rows).for_each(|(w, r)| *w += 2.0 * g * r);
        } else {
            for (bar, &row) in sums.weights.iter_mut().zip(&image.merged.row_of) {
                *bar += 2.0 * g * rows[row as usize];
            }
        }
    }
}

/// `out[.., m] += g[m] moments[.., m]`.
fn contract<T: Lane>(cols: &Cols<T>, moments: &[T], g: &[f64], out: &mut [f64]) {
    let mut offset = 0;
    for (_, leaf) in cols.leaves() {
        let per_panel = (leaf.width() + 1) * T::NR;
        for panel in 0..cols.panels {
            let mut lanes = [0.0; 16];
            let start = panel * T::NR;
            lanes.iter_mut().zip(&g[start..g.len().min(start + T::NR)]).for_each(|(l, g)| *l = *g);
            let range = offset + panel * per_panel..offset + (panel + 1) * per_panel;
            let rows = out[range.clone()].chunks_exact_mut(T::NR).zip(moments[range].chunks_exact(T::NR));
            for (out, row) in rows {
                for j in 0..T::NR {
                    out[j] += lanes[j] * row[j].to_f64();
                }
            }
        }
        offset += leaf.moments_len(cols.panels);
    }
}
