//! `kuf[m] = sum_p w_p k(z_m, x[p])` of one image, its moments, and the derivative in the weights.

use super::cols::{Cols, Rows, Tile, places};
use super::dense::add_weighted;
use super::micro::{Lane, TILE_ROWS, moments, row_sums, scale_rows};

/// Adds one image's `kuf`, per group of terms `[group][column]`, to `out`; with `moments_out`, also adds the moments of
/// weighted slopes, from which derivatives in `z` and the lengthscales follow without seeing the views again.
pub fn forward<T: Lane>(
    fma: bool,
    cols: &Cols<T>,
    rows: &Rows<T>,
    weights: &[T],
    tile: &mut Tile<T>,
    out: &mut [f64],
    mut moments_out: Option<&mut [T]>,
) {
    let padded = cols.padded();
    for at in places(rows.count, 0..cols.panels) {
        let (mut first, mut offset) = (0, 0);
        let weights = &weights[at.row..at.row + at.rows];
        for term in &cols.terms {
            tile.evaluate(fma, term, first, rows, at, moments_out.is_some());
            // Each tile's sum starts anew in single precision and is added up in double precision.
            let mut sum = [T::default(); 16];
            add_weighted(fma, term, tile, weights, &mut sum);
            let out = &mut out[term.group * padded + at.panel * T::NR..];
            let c = term.coefficient.to_f64();
            out.iter_mut().zip(&sum[..T::NR]).for_each(|(o, s)| *o += c * s.to_f64());
            for (i, leaf) in term.leaves.iter().enumerate() {
                if let Some(all) = moments_out.as_deref_mut() {
                    let per_panel = (leaf.width() + 1) * T::NR;
                    let out = &mut all[offset + at.panel * per_panel..][..per_panel];
                    let (sums, distance) = out.split_at_mut(leaf.width() * T::NR);
                    let (rows, leaf_tile) = (&rows.leaves[first + i], &mut tile.leaves[i]);
                    // SAFETY: a tile and weights of `at.rows` rows, a panel's moments in `out`.
                    unsafe {
                        let (t, s) = (leaf_tile.slope.as_mut_ptr(), leaf_tile.s.as_ptr());
                        scale_rows(fma, at.rows, weights.as_ptr(), t, s, distance.as_mut_ptr());
                        let y = rows.data[at.row * rows.width..].as_ptr();
                        moments(fma, at.rows, rows.width, y, rows.width, t, sums.as_mut_ptr());
                    }
                }
                offset += leaf.moments_len(cols.panels);
            }
            first += term.leaves.len();
        }
    }
}

/// `out[row] = sum_m g[m] k(z_m, row)`: the derivative in the rows' weights. `g` has `cols.padded()` numbers.
pub fn weights_bar<T: Lane>(
    fma: bool,
    cols: &Cols<T>,
    rows: &Rows<T>,
    g: &[T],
    tile: &mut Tile<T>,
    out: &mut [f64],
) {
    let mut lanes = [T::default(); TILE_ROWS * 16];
    for at in places(rows.count, 0..cols.panels) {
        if at.panel == 0 {
            lanes.fill(T::default());
        }
        let mut first = 0;
        for term in &cols.terms {
            tile.evaluate(fma, term, first, rows, at, false);
            let mut scaled = [T::default(); 16];
            let g = &g[at.panel * T::NR..][..T::NR];
            scaled.iter_mut().zip(g).for_each(|(s, &g)| *s = term.coefficient * g);
            // SAFETY: a tile and lanes of TILE_ROWS rows, NR scaled cotangents.
            unsafe {
                row_sums(fma, at.rows, scaled.as_ptr(), tile.value(term).as_ptr(), lanes.as_mut_ptr());
            }
            first += term.leaves.len();
        }
        if at.panel + 1 == cols.panels {
            for (r, lanes) in lanes.chunks_exact(T::NR).take(at.rows).enumerate() {
                out[at.row + r] = lanes.iter().map(|l| l.to_f64()).sum();
            }
        }
    }
}
