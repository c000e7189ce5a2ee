//! Responses with a single view, such as whole images: the images themselves are the rows.

use super::cols::{Cols, Rows, Tile};
use super::dense;
use super::micro::Lane;
use crate::component::Component;
use crate::cov::{Cov, Need};
use crate::data::Batch;
use rayon::prelude::*;

/// Images handled together; fixed, so that bits do not depend on the number of threads.
const ROWS: usize = 36;

/// The rows of a batch, by groups of images, and buffers of each group.
#[derive(Debug, Default)]
pub struct SingleView<T> {
    rows: Vec<Rows<T>>,
    scratch: Vec<Scratch<T>>,
}

#[derive(Debug, Default)]
struct Scratch<T> {
    views: Vec<f64>,
    tile: Tile<T>,
    /// Kernel values, rows of padded columns.
    block: Vec<T>,
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
    saved: &mut SingleView<T>,
    cov: &mut Cov,
) {
    let (response, m, padded) = (&c.responses()[r], c.inducing(), cols.padded());
    let (w, len) = (response.weights(values)[0], response.views().len());
    let groups = batch.len().div_ceil(ROWS);
    saved.rows.resize_with(groups, Rows::default);
    saved.scratch.resize_with(groups, Scratch::default);
    let columns = cov.kuf[r].data_mut().par_chunks_mut(ROWS * m);
    let groups = saved.rows.par_iter_mut().zip(&mut saved.scratch).zip(columns);
    groups.enumerate().for_each(|(group, ((rows, s), out))| {
        let (first, count) = (group * ROWS, out.len() / m);
        s.views.resize(count * len, 0.0);
        response.views().write_many(batch.pixels(first..first + count), &mut s.views);
        let views = &s.views;
        rows.fill(cols, count, |i| &views[i * len..(i + 1) * len]);
        s.block.resize(count * padded, T::default());
        dense::values(fma, cols, 0..cols.panels, rows, &mut s.tile, &mut s.block, padded);
        for (out, row) in out.chunks_exact_mut(m).zip(s.block.chunks_exact(padded)) {
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
    saved: &SingleView<T>,
    cov_bar: &Cov,
    theta_bar: &mut [f64],
    grad: &mut [f64],
) {
    let response = &c.responses()[r];
    let w = response.weights(values)[0];
    let z_bar = c.z_slot().of_mut(grad);
    let mut scaled = vec![0.0; theta_bar.len()];
    let kuf_bar = &cov_bar.kuf[r];
    let mut groups = dense::pullback_by_columns(fma, cols, &saved.rows, kuf_bar, w, z_bar, &mut scaled);
    theta_bar.iter_mut().zip(scaled).for_each(|(t, s)| *t += w * s);
    let kff_bar: f64 = cov_bar.kff[r].iter().sum();
    let w_bar = groups.iter().sum::<f64>() + 2.0 * w * at_zero(cols) * kff_bar;
    groups.iter_mut().for_each(|g| *g *= w);
    for term in &cols.terms {
        groups[term.group] += kff_bar * w * w * term.coefficient.to_f64();
    }
    dense::finish_variances(cols, c.theta(values), &groups, theta_bar);
    response.add_weights_bar(&[w_bar], grad);
}
