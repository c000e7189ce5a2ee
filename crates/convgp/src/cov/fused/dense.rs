//! Rows against columns without any sum over views: `Kuu`, whole images, and the tables of location-aware kernels.

use super::cols::{Cols, Rows, TermCols, Tile, places};
use super::micro::{Lane, moments, scale_elements, weighted_sum};
use crate::linalg::Mat;
use rayon::prelude::*;
use std::ops::Range;

/// `out[row][column] = k(row, column)` for the columns of some panels. Rows of `out` hold `stride` numbers, with or
/// without the padding of the last panel.
pub fn values<T: Lane>(
    fma: bool,
    cols: &Cols<T>,
    panels: Range<usize>,
    rows: &Rows<T>,
    tile: &mut Tile<T>,
    out: &mut [T],
    stride: usize,
) {
    for at in places(rows.count, panels) {
        let mut first = 0;
        for (t, term) in cols.terms.iter().enumerate() {
            tile.evaluate(fma, term, first, rows, at, false);
            for (r, v) in tile.value(term).chunks_exact(T::NR).take(at.rows).enumerate() {
                let column = at.panel * T::NR;
                let out = &mut out[(at.row + r) * stride..][column..stride.min(column + T::NR)];
                for (o, &v) in out.iter_mut().zip(v) {
                    let k = term.coefficient * v;
                    *o = if t == 0 { k } else { *o + k };
                }
            }
            first += term.leaves.len();
        }
    }
}

/// Columns that one task of [`pullback_by_columns`] owns, in panels; fixed, so that bits do not depend on the number of
/// threads.
const PANELS: usize = 8;

/// Adds `scale` times the derivatives of `sum g k` in the columns to `z_bar` (`M x e`) and those in the lengthscales, not
/// scaled, to `theta_bar`; returns `sum g k` per group of terms. `g.col(r)` belongs to row `r` of all `rows` in turn.
/// Threads own columns, so nothing is summed between them.
#[allow(clippy::too_many_arguments)]
pub fn pullback_by_columns<T: Lane>(
    fma: bool,
    cols: &Cols<T>,
    rows: &[Rows<T>],
    g: &Mat,
    scale: f64,
    z_bar: &mut [f64],
    theta_bar: &mut [f64],
) -> Vec<f64> {
    let e = z_bar.len() / cols.count;
    let task = |(i, z_bar): (usize, &mut [f64])| {
        let panels = i * PANELS..cols.panels.min((i + 1) * PANELS);
        let columns = panels.start * T::NR..cols.count.min(panels.end * T::NR);
        let (stride, mut tile, mut block) = (panels.len() * T::NR, Tile::default(), Vec::new());
        let mut moments = vec![T::default(); cols.moments_len_of(panels.len())];
        let (mut groups, mut theta_bar) = (vec![0.0; cols.groups], vec![0.0; theta_bar.len()]);
        let mut first = 0;
        for rows in rows {
            block.clear();
            block.resize(rows.count * stride, T::default());
            for (r, out) in block.chunks_exact_mut(stride).enumerate() {
                let g = &g.col(first + r)[columns.clone()];
                out.iter_mut().zip(g).for_each(|(o, &g)| *o = T::from_f64(g));
            }
            pullback(fma, cols, panels.clone(), rows, &block, &mut tile, &mut moments, &mut groups);
            first += rows.count;
        }
        let moments: Vec<f64> = moments.iter().map(|m| m.to_f64()).collect();
        finish(cols, panels, &moments, &mut theta_bar, |m, k, bar| {
            z_bar[(m - columns.start) * e + k] += scale * bar;
        });
        (theta_bar, groups)
    };
    let parts: Vec<_> = z_bar.par_chunks_mut(PANELS * T::NR * e).enumerate().map(task).collect();
    let mut groups = vec![0.0; cols.groups];
    for (theta, part) in parts {
        theta_bar.iter_mut().zip(theta).for_each(|(t, p)| *t += p);
        groups.iter_mut().zip(part).for_each(|(g, p)| *g += p);
    }
    groups
}

/// Moments of `g` times the kernel's slopes for the columns of some panels, added to `moments_out` (laid out like
/// [`Cols::moments_len_of`] so many panels), and per group of terms `sum g k` without the coefficient's variances divided
/// out. Rows of `g` hold the columns of these panels.
#[allow(clippy::too_many_arguments)]
pub fn pullback<T: Lane>(
    fma: bool,
    cols: &Cols<T>,
    panels: Range<usize>,
    rows: &Rows<T>,
    g: &[T],
    tile: &mut Tile<T>,
    moments_out: &mut [T],
    groups: &mut [f64],
) {
    let stride = panels.len() * T::NR;
    for at in places(rows.count, panels.clone()) {
        let (mut first, mut offset) = (0, 0);
        let panel = at.panel - panels.start;
        let g = &g[at.row * stride + panel * T::NR..];
        for term in &cols.terms {
            tile.evaluate(fma, term, first, rows, at, true);
            groups[term.group] += weighted_total(term, tile, g, stride, at.rows);
            for (i, leaf) in term.leaves.iter().enumerate() {
                let per_panel = (leaf.width() + 1) * T::NR;
                let out = &mut moments_out[offset + panel * per_panel..][..per_panel];
                let leaf_tile = &mut tile.leaves[i];
                let rows = &rows.leaves[first + i];
                let (sums, distance) = out.split_at_mut(leaf.width() * T::NR);
                // SAFETY: a tile of `at.rows` rows; `g` has that many rows of `stride`; `out` a panel's moments.
                unsafe {
                    let t = leaf_tile.slope.as_mut_ptr();
                    let s = leaf_tile.s.as_ptr();
                    scale_elements(fma, at.rows, g.as_ptr(), stride, t, s, distance.as_mut_ptr());
                    let y = rows.data[at.row * rows.width..].as_ptr();
                    moments(fma, at.rows, rows.width, y, rows.width, t, sums.as_mut_ptr());
                }
                offset += leaf.moments_len(panels.len());
            }
            first += term.leaves.len();
        }
    }
}

fn weighted_total<T: Lane>(term: &TermCols<T>, tile: &Tile<T>, g: &[T], stride: usize, rows: usize) -> f64 {
    let mut total = 0.0;
    for (r, v) in tile.value(term).chunks_exact(T::NR).take(rows).enumerate() {
        let mut sum = T::default();
        for (g, &v) in g[r * stride..r * stride + T::NR].iter().zip(v) {
            sum += *g * v;
        }
        total += sum.to_f64();
    }
    total * term.coefficient.to_f64()
}

/// `out[j] += sum_r w[r] value[r][j]` for the term just evaluated.
pub fn add_weighted<T: Lane>(fma: bool, term: &TermCols<T>, tile: &Tile<T>, w: &[T], out: &mut [T]) {
    debug_assert!(out.len() >= T::NR && w.len() * T::NR <= tile.value(term).len());
    // SAFETY: sizes as asserted.
    unsafe { weighted_sum(fma, w.len(), w.as_ptr(), tile.value(term).as_ptr(), out.as_mut_ptr()) };
}

/// Turns summed moments of some panels' columns into derivatives: with `t` the weights of the slopes, `sums` holds `sum t y`
/// (`y` = scaled rows times the row factor), for ARD `sum t x^2`, and `sum t`; `distance` holds `sum t s`.
///
/// `dk/dz_e = -2 phi' (x_e - z_e) / ell_e`, `dk/dell = -2 phi' s / ell`, both in scaled elements.
pub fn finish<T: Lane>(
    cols: &Cols<T>,
    panels: Range<usize>,
    moments: &[f64],
    theta_bar: &mut [f64],
    mut z_bar: impl FnMut(usize, usize, f64),
) {
    let mut offset = 0;
    for (term, leaf) in cols.leaves() {
        let (d, width) = (leaf.depth(), leaf.width());
        let c = -2.0 * term.coefficient.to_f64();
        for m in panels.start * T::NR..cols.count.min(panels.end * T::NR) {
            let base = offset + (m / T::NR - panels.start) * (width + 1) * T::NR + m % T::NR;
            let at = |row: usize| moments[base + row * T::NR];
            let total = at(width - 1);
            for (i, e) in leaf.leaf.dims.indices().enumerate() {
                let (first, z) = (at(i) / leaf.row_factor(), leaf.column(m, i));
                z_bar(m, e, c * leaf.inverse[i] * (first - z * total));
                if leaf.leaf.ard {
                    let second = at(d + i) - 2.0 * z * first + z * z * total;
                    theta_bar[leaf.leaf.lengthscale + i] += c * leaf.inverse[i] * second;
                }
            }
            if !leaf.leaf.ard {
                theta_bar[leaf.leaf.lengthscale] += c * leaf.inverse[0] * at(width);
            }
        }
        offset += leaf.moments_len(panels.len());
    }
}

/// Adds the derivatives in the variances, from `sum g k` per group.
pub fn finish_variances<T: Lane>(cols: &Cols<T>, theta: &[f64], groups: &[f64], theta_bar: &mut [f64]) {
    for (g, total) in groups.iter().enumerate() {
        if let Some(term) = cols.terms.iter().find(|t| t.group == g) {
            for v in term.leaves.iter().filter_map(|l| l.leaf.variance) {
                theta_bar[v] += total / theta[v];
            }
        }
    }
}
