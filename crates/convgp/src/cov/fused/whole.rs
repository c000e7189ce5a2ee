//! Responses with a single view, such as whole images: the images themselves are the rows.

use super::cols::{Cols, Rows, Tile};
use super::dense;
use super::micro::Lane;
use crate::component::{Component, Response};
use crate::cov::{Cov, Need};
use crate::data::Batch;
use rayon::prelude::*;

/// Images handled together; fixed, so that bits do not depend on the number of threads.
const ROWS: usize = 36;

/// Buffers of one group of images.
#[derive(Debug, Default)]
pub struct WholeScratch<T> {
    views: Vec<f64>,
    rows: Rows<T>,
    tile: Tile<T>,
    /// Kernel values or cotangents, rows of padded columns.
    block: Vec<T>,
    moments: Vec<T>,
    groups: Vec<f64>,
}

impl<T: Lane> WholeScratch<T> {
    fn load(&mut self, cols: &Cols<T>, response: &Response, batch: &Batch, first: usize) -> usize {
        let (views, len) = (response.views(), response.views().len());
        let count = ROWS.min(batch.len() - first);
        self.views.resize(count * len, 0.0);
        for (i, out) in self.views.chunks_exact_mut(len).enumerate() {
            views.write(batch.image(first + i), out);
        }
        let rows = &self.views;
        self.rows.fill(cols, count, |i| &rows[i * len..(i + 1) * len]);
        self.block.resize(count * cols.padded(), T::default());
        count
    }
}

/// `kuf[m, n] = w k(z_m, x_n)` and `kff[n] = w^2 k(0)`, white noise included.
#[allow(clippy::too_many_arguments)]
pub fn forward<T: Lane>(
    fma: bool,
    cols: &Cols<T>,
    c: &Component,
    r: usize,
    values: &[f64],
    batch: &Batch,
    need: Need,
    scratch: &mut Vec<WholeScratch<T>>,
    cov: &mut Cov,
) {
    let (response, m, padded) = (&c.responses()[r], c.inducing(), cols.padded());
    let w = response.weights(values)[0];
    scratch.resize_with(batch.len().div_ceil(ROWS), WholeScratch::default);
    let columns = cov.kuf[r].data_mut().par_chunks_mut(ROWS * m);
    scratch.par_iter_mut().zip(columns).enumerate().for_each(|(part, (s, out))| {
        s.load(cols, response, batch, part * ROWS);
        let WholeScratch { rows, tile, block, .. } = s;
        dense::values(fma, cols, rows, tile, block);
        for (out, row) in out.chunks_exact_mut(m).zip(block.chunks_exact(padded)) {
            out.iter_mut().zip(row).for_each(|(o, k)| *o = w * k.to_f64());
        }
    });
    if need != Need::Mean {
        cov.kff[r].fill(w * w * at_zero(cols) + c.white(values));
    }
}

/// `k(x, x)`: every radial function is one at zero.
fn at_zero<T: Lane>(cols: &Cols<T>) -> f64 {
    cols.terms.iter().map(|t| t.coefficient.to_f64()).sum()
}

/// Adds the pullback of [`forward`], without the white noise.
#[allow(clippy::too_many_arguments)]
pub fn pullback<T: Lane>(
    fma: bool,
    cols: &Cols<T>,
    c: &Component,
    r: usize,
    values: &[f64],
    batch: &Batch,
    scratch: &mut [WholeScratch<T>],
    cov_bar: &Cov,
    theta_bar: &mut [f64],
    grad: &mut [f64],
) {
    let (response, e, padded) = (&c.responses()[r], c.view_len(), cols.padded());
    let w = response.weights(values)[0];
    scratch.par_iter_mut().enumerate().for_each(|(part, s)| {
        let first = part * ROWS;
        let count = s.load(cols, response, batch, first);
        let WholeScratch { rows, tile, block, moments, groups, .. } = s;
        block.fill(T::default());
        for (i, row) in block.chunks_exact_mut(padded).take(count).enumerate() {
            let g = cov_bar.kuf[r].col(first + i);
            row.iter_mut().zip(g).for_each(|(b, &g)| *b = T::from_f64(g));
        }
        moments.clear();
        moments.resize(cols.moments_len(), T::default());
        groups.clear();
        groups.resize(cols.groups, 0.0);
        dense::pullback(fma, cols, rows, block, tile, moments, groups);
    });
    let (mut moments, mut groups) = (vec![0.0; cols.moments_len()], vec![0.0; cols.groups]);
    for s in scratch {
        moments.iter_mut().zip(&s.moments).for_each(|(a, b)| *a += w * b.to_f64());
        groups.iter_mut().zip(&s.groups).for_each(|(a, b)| *a += b);
    }
    let kff_bar: f64 = cov_bar.kff[r].iter().sum();
    let w_bar = groups.iter().sum::<f64>() + 2.0 * w * at_zero(cols) * kff_bar;
    groups.iter_mut().for_each(|g| *g *= w);
    for term in &cols.terms {
        groups[term.group] += kff_bar * w * w * term.coefficient.to_f64();
    }
    let z_bar = c.z_slot().of_mut(grad);
    dense::finish(cols, &moments, theta_bar, |m, k, g| z_bar[m * e + k] += g);
    dense::finish_variances(cols, c.theta(values), &groups, theta_bar);
    response.add_weights_bar(&[w_bar], grad);
}
