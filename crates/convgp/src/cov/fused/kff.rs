//! `kff = sum_pq w_p w_q k(x[p], x[q])` of one image and all its derivatives, from one pass over half the pairs.

use super::cols::{Cols, Place, Rows, Tile};
use super::dense::add_weighted;
use super::micro::{Lane, TILE_ROWS, moments, row_sums, scale_rows};
use crate::kernel::Term;

/// What the pass over pairs leaves behind.
#[derive(Debug, Default, Clone)]
pub struct Pairs {
    /// `sum_pq w_p w_q k` per group of terms.
    pub groups: Vec<f64>,
    /// `sum_pq w_p w_q dk/dell` per parameter of the kernel (lengthscales only).
    pub theta: Vec<f64>,
    /// `sum_q w_q k(row, q)` per row; empty when no derivative in the weights is wanted.
    pub row_sums: Vec<f64>,
}

/// Buffers of the pass.
#[derive(Debug, Default)]
pub struct PairScratch<T> {
    /// The same rows as columns.
    cols: Cols<T>,
    lanes: Vec<T>,
    moments: Vec<T>,
    padded_weights: Vec<T>,
}

/// What to compute besides the value.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Derivatives in the kernel's parameters.
    pub theta: bool,
    /// Derivatives in the weights.
    pub weights: bool,
    /// Visit only half of the pairs.
    pub symmetric: bool,
}

/// Fills `out`. `row` gives the rows' views in double precision, `rows` the same scaled for `like`.
#[allow(clippy::too_many_arguments)]
pub fn pairs<'a, T: Lane>(
    fma: bool,
    like: &Cols<T>,
    terms: &[Term],
    theta: &[f64],
    rows: &Rows<T>,
    row: impl Fn(usize) -> &'a [f64],
    weights: &[T],
    wanted: Wanted,
    tile: &mut Tile<T>,
    s: &mut PairScratch<T>,
    out: &mut Pairs,
) {
    let count = rows.count;
    s.cols.fill(terms, theta, count, row, Some(like));
    let padded = s.cols.padded();
    s.padded_weights.clear();
    s.padded_weights.extend_from_slice(weights);
    s.padded_weights.resize(padded, T::default());
    s.lanes.clear();
    s.lanes.resize(if wanted.weights { count * T::NR } else { 0 }, T::default());
    s.moments.clear();
    s.moments.resize(if wanted.theta { s.cols.moments_len() } else { 0 }, T::default());
    out.groups.clear();
    out.groups.resize(s.cols.groups, 0.0);
    out.theta.clear();
    out.theta.resize(theta.len(), 0.0);
    out.row_sums.clear();
    out.row_sums.resize(if wanted.weights { count } else { 0 }, 0.0);
    // Squares in the moments need every ordered pair; ARD is rare enough not to be cleverer.
    let symmetric = wanted.symmetric && !s.cols.leaves().any(|(_, l)| l.leaf.ard);
    let mut ls = vec![0.0; s.cols.leaves().count()];
    for panel in 0..s.cols.panels {
        let diagonal = panel * T::NR;
        let above = if symmetric { diagonal } else { count };
        for row in (0..above).step_by(TILE_ROWS) {
            let at = Place { row, rows: TILE_ROWS.min(above - row), panel };
            visit(fma, rows, at, if symmetric { 2.0 } else { 1.0 }, symmetric, wanted, tile, s, out, &mut ls);
        }
        if symmetric {
            let at = Place { row: diagonal, rows: T::NR.min(count - diagonal), panel };
            visit(fma, rows, at, 1.0, false, wanted, tile, s, out, &mut ls);
        }
    }
    for (out, lanes) in out.row_sums.iter_mut().zip(s.lanes.chunks_exact(T::NR)) {
        *out += lanes.iter().map(|l| l.to_f64()).sum::<f64>();
    }
    if wanted.theta {
        finish(s, &ls, out);
    }
}

/// One tile of pairs; `mirror` adds its transpose to the row sums of the columns.
#[allow(clippy::too_many_arguments)]
fn visit<T: Lane>(
    fma: bool,
    rows: &Rows<T>,
    at: Place,
    multiplicity: f64,
    mirror: bool,
    wanted: Wanted,
    tile: &mut Tile<T>,
    s: &mut PairScratch<T>,
    out: &mut Pairs,
    ls: &mut [f64],
) {
    let PairScratch { cols, lanes, moments: all_moments, padded_weights } = s;
    let column = at.panel * T::NR;
    let row_weights = &padded_weights[at.row..at.row + at.rows];
    let column_weights = &padded_weights[column..column + T::NR];
    let (mut first, mut offset) = (0, 0);
    for term in &cols.terms {
        tile.evaluate(fma, term, first, rows, at, wanted.theta);
        let mut sum = [T::default(); 16];
        add_weighted(fma, term, tile, row_weights, &mut sum);
        let c = term.coefficient.to_f64();
        let dot = |sum: &[T]| -> f64 {
            sum.iter().zip(column_weights).map(|(s, w)| s.to_f64() * w.to_f64()).sum::<f64>() * multiplicity
        };
        out.groups[term.group] += c * dot(&sum);
        if wanted.weights {
            let mut scaled = [T::default(); 16];
            scaled.iter_mut().zip(column_weights).for_each(|(s, &w)| *s = term.coefficient * w);
            // SAFETY: a tile of `at.rows` rows, and lanes for every row.
            unsafe {
                let lanes = lanes[at.row * T::NR..].as_mut_ptr();
                row_sums(fma, at.rows, scaled.as_ptr(), tile.value(term).as_ptr(), lanes);
            }
            if mirror {
                let sums = &mut out.row_sums[column..];
                sums.iter_mut().zip(&sum[..T::NR]).for_each(|(o, s)| *o += c * s.to_f64());
            }
        }
        for (i, leaf) in term.leaves.iter().enumerate() {
            if wanted.theta {
                let leaf_tile = &mut tile.leaves[i];
                let (t, distance) = (leaf_tile.slope.as_mut_ptr(), &mut [T::default(); 16]);
                // SAFETY: a tile and weights of `at.rows` rows.
                unsafe {
                    let (w, s) = (row_weights.as_ptr(), leaf_tile.s.as_ptr());
                    scale_rows(fma, at.rows, w, t, s, distance.as_mut_ptr());
                    ls[first + i] += c * dot(&distance[..]);
                    if leaf.leaf.ard {
                        let per_panel = (leaf.width() + 1) * T::NR;
                        let out = all_moments[offset + at.panel * per_panel..].as_mut_ptr();
                        let rows = &rows.leaves[first + i];
                        let y = rows.data[at.row * rows.width..].as_ptr();
                        moments(fma, at.rows, rows.width, y, rows.width, t, out);
                    }
                }
            }
            offset += leaf.moments_len(cols.panels);
        }
        first += term.leaves.len();
    }
}

/// `dk/dell = -2 phi' s / ell`, per element for ARD.
fn finish<T: Lane>(s: &PairScratch<T>, ls: &[f64], out: &mut Pairs) {
    let mut offset = 0;
    for ((term, leaf), total) in s.cols.leaves().zip(ls) {
        if leaf.leaf.ard {
            let (d, width) = (leaf.depth(), leaf.width());
            let c = -2.0 * term.coefficient.to_f64();
            for m in 0..s.cols.count {
                let w = s.padded_weights[m].to_f64();
                let base = offset + (m / T::NR) * (width + 1) * T::NR + m % T::NR;
                let at = |row: usize| s.moments[base + row * T::NR].to_f64();
                for i in 0..d {
                    let (first, z) = (at(i) / leaf.row_factor(), leaf.column(m, i));
                    let second = at(d + i) - 2.0 * z * first + z * z * at(width - 1);
                    out.theta[leaf.leaf.lengthscale + i] += w * c * leaf.inverse[i] * second;
                }
            }
        } else {
            out.theta[leaf.leaf.lengthscale] += -2.0 * leaf.inverse[0] * total;
        }
        offset += leaf.moments_len(s.cols.panels);
    }
}
