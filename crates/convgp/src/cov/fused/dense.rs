//! Rows against columns without any sum over views: `Kuu`, whole images, and the tables of located kernels.

use super::cols::{Cols, Rows, TermCols, Tile, places};
use super::micro::{Lane, moments, scale_elements, weighted_sum};

/// `out[row][column] = k(row, column)`, rows of `cols.padded()` numbers.
pub fn values<T: Lane>(fma: bool, cols: &Cols<T>, rows: &Rows<T>, tile: &mut Tile<T>, out: &mut [T]) {
    let padded = cols.padded();
    for at in places(rows.count, cols.panels) {
        let mut first = 0;
        for (t, term) in cols.terms.iter().enumerate() {
            tile.evaluate(fma, term, first, rows, at, false);
            for (r, v) in tile.value(term).chunks_exact(T::NR).take(at.rows).enumerate() {
                let start = (at.row + r) * padded + at.panel * T::NR;
                let out = &mut out[start..start + T::NR];
                for (o, &v) in out.iter_mut().zip(v) {
                    let k = term.coefficient * v;
                    *o = if t == 0 { k } else { *o + k };
                }
            }
            first += term.leaves.len();
        }
    }
}

/// Moments of `g` times the kernel's slopes, added to `moments_out` (laid out like [`Cols::moments_len`]), and per group
/// of terms `sum g k` without the coefficient's variances divided out.
pub fn pullback<T: Lane>(
    fma: bool,
    cols: &Cols<T>,
    rows: &Rows<T>,
    g: &[T],
    tile: &mut Tile<T>,
    moments_out: &mut [T],
    groups: &mut [f64],
) {
    let padded = cols.padded();
    for at in places(rows.count, cols.panels) {
        let (mut first, mut offset) = (0, 0);
        let g = &g[at.row * padded + at.panel * T::NR..];
        for term in &cols.terms {
            tile.evaluate(fma, term, first, rows, at, true);
            groups[term.group] += weighted_total(term, tile, g, padded, at.rows);
            for (i, leaf) in term.leaves.iter().enumerate() {
                let per_panel = (leaf.width() + 1) * T::NR;
                let out = &mut moments_out[offset + at.panel * per_panel..][..per_panel];
                let leaf_tile = &mut tile.leaves[i];
                let rows = &rows.leaves[first + i];
                let (sums, distance) = out.split_at_mut(leaf.width() * T::NR);
                // SAFETY: a tile of `at.rows` rows; `g` has that many rows of stride `padded`; `out` a panel's moments.
                unsafe {
                    let t = leaf_tile.slope.as_mut_ptr();
                    let s = leaf_tile.s.as_ptr();
                    scale_elements(fma, at.rows, g.as_ptr(), padded, t, s, distance.as_mut_ptr());
                    let y = rows.data[at.row * rows.width..].as_ptr();
                    moments(fma, at.rows, rows.width, y, rows.width, t, sums.as_mut_ptr());
                }
                offset += leaf.moments_len(cols.panels);
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

/// Turns summed moments of one leaf into derivatives: with `t` the weights of the slopes, `sums` holds `sum t y`
/// (`y` = scaled rows times the row factor), for ARD `sum t x^2`, and `sum t`; `distance` holds `sum t s`.
///
/// `dk/dz_e = -2 phi' (x_e - z_e) / ell_e`, `dk/dell = -2 phi' s / ell`, both in scaled elements.
pub fn finish<T: Lane>(
    cols: &Cols<T>,
    moments: &[f64],
    theta_bar: &mut [f64],
    mut z_bar: impl FnMut(usize, usize, f64),
) {
    let mut offset = 0;
    for (term, leaf) in cols.leaves() {
        let (d, width) = (leaf.depth(), leaf.width());
        let c = -2.0 * term.coefficient.to_f64();
        for m in 0..cols.count {
            let base = offset + (m / T::NR) * (width + 1) * T::NR + m % T::NR;
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
        offset += leaf.moments_len(cols.panels);
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
