//! kff of stride-1 windows by box filters: for a fixed offset between two windows the squared distance is a box filter
//! of `(image - shifted image)^2`, so its cost per pair does not grow with the patch.
//!
//! A vector holds the same pixel of `NR` images, so every operation is plain arithmetic on whole vectors.

use super::kff::{Pairs, Wanted};
use super::micro::{Lane, kernel};
use crate::component::Response;
use crate::data::Batch;
use crate::kernel::{Leaf, Term};
use crate::real::Real;
use crate::views::{Channels, Views, Windows};
use rayon::prelude::*;

/// Parts into which the offsets are cut, for threads; fixed, so that bits do not depend on their number.
const SLICES: usize = 4;

/// One response of one batch.
#[derive(Debug)]
pub struct BoxJob<'a> {
    /// Whether AVX2 and FMA may be used.
    pub fma: bool,
    /// The kernel on the windows.
    pub leaf: &'a Leaf,
    /// Its parameters.
    pub theta: &'a [f64],
    /// The windows.
    pub response: &'a Response,
    /// Their effective weights.
    pub weights: &'a [f64],
    /// What to compute.
    pub wanted: Wanted,
    /// A factor of the kernel that depends on the offset.
    pub place: Option<&'a Leaf>,
}

/// Whether the kernel and the views allow box filters.
pub fn applies(terms: &[Term], response: &Response, location_aware: bool, place: Option<&Leaf>) -> bool {
    let [term] = terms else { return false };
    let ([leaf], Some(windows)) = (&term.leaves[..], response.views().windows()) else { return false };
    let all = leaf.dims.start == 0 && leaf.dims.step == 1 && leaf.dims.len == windows.offsets().len();
    let placed = place.is_some() || (!location_aware && response.views().coordinates() == 0);
    all && placed && !leaf.ard && windows.stride() == (1, 1) && windows.count() > 1
}

/// Whether box filters over all windows cost less than a product over `rows` merged ones. The constants are nanoseconds
/// per pair, the fused limits that `cargo xtask bench --sections limits` measures.
pub fn cheaper(rows: usize, views: &dyn Views) -> bool {
    let (rows, count) = (rows as f64, views.count() as f64);
    let pixels = (views.len() - views.coordinates()) as f64;
    rows * rows * (0.4 + 0.02 * pixels) > count * count * (0.58 + 0.008 * pixels)
}

/// Buffers, one set per task.
#[derive(Debug, Default)]
pub struct BoxScratch<T> {
    planes: Vec<Vec<T>>,
    tasks: Vec<Task<T>>,
}

/// Sums of one slice of offsets for `NR` images.
#[derive(Debug, Default)]
struct Task<T> {
    /// `sum_q w_q k` per window and lane.
    rows: Vec<T>,
    ring: Vec<T>,
    column: Vec<T>,
    s: Vec<T>,
    value: Vec<T>,
    slope: Vec<T>,
    total: Vec<f64>,
    distance: Vec<f64>,
    place: Vec<f64>,
}

/// Two planes of windows and the offset from a window of the first to one of the second.
#[derive(Debug, Clone, Copy)]
struct Offset {
    planes: (usize, usize),
    dy: isize,
    dx: isize,
}

/// Fills `out[i]` for image `images[i]`.
pub fn pairs<T: Lane>(
    job: &BoxJob<'_>,
    batch: &Batch,
    images: &[usize],
    s: &mut BoxScratch<T>,
    out: &mut [&mut Pairs],
) {
    let Some(windows) = job.response.views().windows() else { return };
    if images.is_empty() {
        return;
    }
    let offsets = offsets(windows);
    let groups: Vec<&[usize]> = images.chunks(T::NR).collect();
    s.planes.resize_with(groups.len(), Vec::new);
    let inverse = 1.0 / job.leaf.lengthscale(job.theta, 0);
    s.planes
        .par_iter_mut()
        .zip(&groups)
        .for_each(|(planes, images)| interleave(batch, images, inverse, planes));
    s.tasks.resize_with(groups.len() * SLICES, Task::default);
    let planes = &s.planes;
    s.tasks.par_iter_mut().enumerate().for_each(|(i, task)| {
        let slice = offsets.iter().skip(i % SLICES).step_by(SLICES);
        task.run(job, windows, &planes[i / SLICES], slice);
    });
    let diagonal: f64 = job.weights.iter().map(|w| w * w).sum();
    for (i, out) in out.iter_mut().enumerate() {
        let tasks = &s.tasks[i / T::NR * SLICES..][..SLICES];
        collect(job, tasks, i % T::NR, diagonal, out);
    }
}

/// Half of all ordered pairs of different windows: each is visited once and counted twice.
fn offsets(windows: &Windows) -> Vec<Offset> {
    let (rows, cols) = windows.grid();
    let (rows, cols) = (rows as isize, cols as isize);
    let mut out = Vec::new();
    for a in 0..windows.planes() {
        for b in a..windows.planes() {
            for dy in if a == b { 0 } else { 1 - rows }..rows {
                for dx in 1 - cols..cols {
                    if a < b || dy > 0 || dx > 0 {
                        out.push(Offset { planes: (a, b), dy, dx });
                    }
                }
            }
        }
    }
    out
}

/// `[channel][row][col][lane]`, scaled; missing images are zero.
fn interleave<T: Lane>(batch: &Batch, images: &[usize], scale: f64, out: &mut Vec<T>) {
    let shape = batch.shape();
    let (channels, pixels) = (shape.channels(), shape.height() * shape.width());
    out.clear();
    out.resize(shape.len() * T::NR, T::default());
    for (lane, &n) in images.iter().enumerate() {
        let image = batch.image(n);
        for c in 0..channels {
            for i in 0..pixels {
                out[(c * pixels + i) * T::NR + lane] = T::from_f64(image[i * channels + c] * scale);
            }
        }
    }
}

fn collect<T: Lane>(job: &BoxJob<'_>, tasks: &[Task<T>], lane: usize, diagonal: f64, out: &mut Pairs) {
    let sum = |f: &dyn Fn(&Task<T>) -> f64| tasks.iter().map(f).sum::<f64>();
    let c = job.leaf.variance(job.theta);
    out.groups.clear();
    out.groups.push(c * (diagonal + 2.0 * sum(&|t| t.total[lane])));
    out.theta.clear();
    out.theta.resize(job.theta.len(), 0.0);
    let ell = job.leaf.lengthscale(job.theta, 0);
    out.theta[job.leaf.lengthscale] += -4.0 * c / ell * sum(&|t| t.distance[lane]);
    if let Some(place) = job.place {
        out.theta[place.lengthscale] += 2.0 * c * sum(&|t| t.place[lane]);
    }
    out.row_sums.clear();
    if job.wanted.weights {
        out.row_sums.extend(
            job.weights
                .iter()
                .enumerate()
                .map(|(p, w)| c * (w + sum(&|t| t.rows[p * T::NR + lane].to_f64()))),
        );
    }
}

impl<T: Lane> Task<T> {
    fn run<'a>(
        &mut self,
        job: &BoxJob<'_>,
        windows: &Windows,
        planes: &[T],
        offsets: impl Iterator<Item = &'a Offset>,
    ) {
        let count = windows.count();
        self.rows.clear();
        self.rows.resize(if job.wanted.weights { count * T::NR } else { 0 }, T::default());
        for sums in [&mut self.total, &mut self.distance, &mut self.place] {
            sums.clear();
            sums.resize(T::NR, 0.0);
        }
        let weights: Vec<T> = job.weights.iter().map(|&w| T::from_f64(w)).collect();
        for offset in offsets {
            self.offset(job, windows, planes, &weights, *offset);
        }
    }

    fn offset(&mut self, job: &BoxJob<'_>, windows: &Windows, planes: &[T], weights: &[T], o: Offset) {
        let shape = windows.image_shape();
        let ((rows, cols), (ph, pw)) = (windows.grid(), windows.patch());
        let (width, pixels) = (shape.width(), shape.height() * shape.width());
        // Windows (y, x) of the first plane whose partner (y + dy, x + dx) exists.
        let first = |d: isize| d.min(0).unsigned_abs();
        let (y0, x0) = (first(o.dy), first(o.dx));
        let (ny, nx) = (rows - o.dy.unsigned_abs(), cols - o.dx.unsigned_abs());
        let strip = (nx + pw - 1) * T::NR;
        self.ring.clear();
        self.ring.resize(ph * strip, T::default());
        self.column.clear();
        self.column.resize(strip, T::default());
        for buffer in [&mut self.s, &mut self.value, &mut self.slope] {
            buffer.resize(nx * T::NR, T::default());
        }
        let (factor, factor_slope) = place_factor(job, o);
        let proportional = job.leaf.radial.slope_per_value();
        let slope_factor = factor * proportional.unwrap_or(1.0);
        let fast = T::from_f64(factor);
        let (mut total, mut distance) = ([T::default(); 16], [T::default(); 16]);
        let moved = |i: usize, d: isize| i.wrapping_add_signed(d);
        for i in 0..ny + ph - 1 {
            let a = (y0 + i) * width + x0;
            let b = moved(y0 + i, o.dy) * width + moved(x0, o.dx);
            let ring = &mut self.ring[(i % ph) * strip..][..strip];
            let (channels_a, channels_b) = (channels(windows, o.planes.0), channels(windows, o.planes.1));
            let channel_count = channels_a.len();
            // SAFETY: strips of nx + pw - 1 pixels lie inside the planes by the choice of y0, x0, ny and nx.
            unsafe {
                let at = |c: usize, i: usize| planes[(c * pixels + i) * T::NR..].as_ptr();
                let (pa, pb) = (at(channels_a.start, a), at(channels_b.start, b));
                let stride = pixels * T::NR;
                let (ring, column, s) = (ring.as_mut_ptr(), self.column.as_mut_ptr(), self.s.as_mut_ptr());
                add_strip(job.fma, nx, pw, channel_count, stride, pa, pb, ring, column, s);
            }
            if i + 1 < ph {
                continue;
            }
            let y = y0 + i + 1 - ph;
            let p = (o.planes.0 * rows + y) * cols + x0;
            let q = (o.planes.1 * rows + moved(y, o.dy)) * cols + moved(x0, o.dx);
            let slope = (job.wanted.theta && proportional.is_none()).then_some(&mut self.slope[..]);
            T::radial(job.leaf.radial, &self.s, &mut self.value, slope, job.fma);
            // SAFETY: rows p.. and q.. hold nx windows each; buffers hold nx vectors.
            unsafe {
                let (wp, wq) = (weights[p..].as_ptr(), weights[q..].as_ptr());
                let (v, s) = (self.value.as_ptr(), self.s.as_ptr());
                let d = if proportional.is_some() { v } else { self.slope.as_ptr() };
                let rows = self.rows.as_mut_ptr();
                let (rp, rq) = (rows.wrapping_add(p * T::NR), rows.wrapping_add(q * T::NR));
                let (total, distance) = (total.as_mut_ptr(), distance.as_mut_ptr());
                let Wanted { weights, theta, .. } = job.wanted;
                let f = &raw const fast;
                accumulate(job.fma, nx, weights, theta, wp, wq, f, v, s, d, rp, rq, total, distance);
            }
        }
        for lane in 0..T::NR {
            self.total[lane] += factor * total[lane].to_f64();
            self.place[lane] += factor_slope * total[lane].to_f64();
            self.distance[lane] += slope_factor * distance[lane].to_f64();
        }
    }
}

/// Channels whose pixels a window of this plane holds.
fn channels(windows: &Windows, plane: usize) -> std::ops::Range<usize> {
    match windows.channels() {
        Channels::Pooled => plane..plane + 1,
        Channels::Only(c) => c..c + 1,
        Channels::All => 0..windows.image_shape().channels(),
    }
}

/// The place factor at an offset, and its derivative in the lengthscale.
fn place_factor(job: &BoxJob<'_>, o: Offset) -> (f64, f64) {
    let Some(place) = job.place else { return (1.0, 0.0) };
    let ell = place.lengthscale(job.theta, 0);
    let s = (o.dy * o.dy + o.dx * o.dx) as f64 / (ell * ell);
    let (value, slope) = place.radial.at(s);
    (value, -2.0 * slope * s / ell)
}

kernel!(
    /// One more row of squared differences, `d = sum over channels (a - b)^2` at `n + width - 1` pixels:
    /// `column += d - ring; ring = d`, and `s[x] = sum_{k < width} column[x + k]`, not below zero.
    add_strip, add_strip_body, add_strip_fma,
    (n: usize, width: usize, channels: usize, stride: usize, a: read, b: read, ring: write, column: write, s: write)
);

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn add_strip_body<T: Real, const NR: usize>(
    n: usize,
    width: usize,
    channels: usize,
    stride: usize,
    a: *const T,
    b: *const T,
    ring: *mut T,
    column: *mut T,
    s: *mut T,
) {
    /// The column sums at one pixel. A function, because closures are not compiled for the caller's processor features.
    #[inline(always)]
    unsafe fn next<T: Real, const NR: usize>(
        channels: usize,
        stride: usize,
        a: *const T,
        b: *const T,
        ring: *mut T,
        column: *mut T,
    ) -> [T; NR] {
        // SAFETY: the caller's contract.
        unsafe {
            let mut d = [T::default(); NR];
            for c in 0..channels {
                let (a, b) = (*a.add(c * stride).cast::<[T; NR]>(), *b.add(c * stride).cast::<[T; NR]>());
                for j in 0..NR {
                    let e = a[j] - b[j];
                    d[j] = e.mul_add(e, d[j]);
                }
            }
            let (ring, column) = (ring.cast::<[T; NR]>(), column.cast::<[T; NR]>());
            let (old, mut sum) = (*ring, *column);
            for j in 0..NR {
                sum[j] += d[j] - old[j];
            }
            *column = sum;
            *ring = d;
            sum
        }
    }
    // SAFETY: the caller's contract.
    unsafe {
        let mut sum = [T::default(); NR];
        for x in 0..width - 1 {
            let i = x * NR;
            let new: [T; NR] = next(channels, stride, a.add(i), b.add(i), ring.add(i), column.add(i));
            for j in 0..NR {
                sum[j] += new[j];
            }
        }
        for x in 0..n {
            let i = (x + width - 1) * NR;
            let new: [T; NR] = next(channels, stride, a.add(i), b.add(i), ring.add(i), column.add(i));
            let old = *column.add(x * NR).cast::<[T; NR]>();
            let mut out = [T::default(); NR];
            for j in 0..NR {
                sum[j] += new[j];
                out[j] = sum[j].max(T::default());
                sum[j] = sum[j] - old[j];
            }
            *s.add(x * NR).cast::<[T; NR]>() = out;
        }
    }
}

kernel!(
    /// `total += sum_x w_p w_q v`; with `weights` `rows_p[x] += f w_q[x] v[x]`, then `rows_q[x] += f w_p[x] v[x]`, which
    /// may overlap; with `slopes` `distance += sum_x w_p w_q d s`.
    accumulate, accumulate_body, accumulate_fma,
    (n: usize, weights: bool, slopes: bool, wp: read, wq: read, factor: read, v: read, s: read, d: read,
     rows_p: write, rows_q: write, total: write, distance: write)
);

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn accumulate_body<T: Real, const NR: usize>(
    n: usize,
    weights: bool,
    slopes: bool,
    wp: *const T,
    wq: *const T,
    factor: *const T,
    v: *const T,
    s: *const T,
    d: *const T,
    rows_p: *mut T,
    rows_q: *mut T,
    total: *mut T,
    distance: *mut T,
) {
    // SAFETY: the caller's contract.
    unsafe {
        let (total, distance) = (total.cast::<[T; NR]>(), distance.cast::<[T; NR]>());
        let (mut t, mut e) = (*total, *distance);
        for x in 0..n {
            let (wp, wq) = (*wp.add(x), *wq.add(x));
            let v = *v.add(x * NR).cast::<[T; NR]>();
            for j in 0..NR {
                t[j] = (wp * wq).mul_add(v[j], t[j]);
            }
            if slopes {
                let (s, d) = (*s.add(x * NR).cast::<[T; NR]>(), *d.add(x * NR).cast::<[T; NR]>());
                for j in 0..NR {
                    e[j] = (wp * wq * d[j]).mul_add(s[j], e[j]);
                }
            }
            if weights {
                for (rows, w) in [(rows_p, wq * *factor), (rows_q, wp * *factor)] {
                    let rows = rows.add(x * NR).cast::<[T; NR]>();
                    let mut sum = *rows;
                    for j in 0..NR {
                        sum[j] = w.mul_add(v[j], sum[j]);
                    }
                    *rows = sum;
                }
            }
        }
        *total = t;
        *distance = e;
    }
}
