//! kff of location-aware views: the pass over pairs with the background split off.

use super::LocationAware;
use crate::cov::fused::cols::{Cols, Place, Rows, Tile, places};
use crate::cov::fused::kff::{self, Pairs};
use crate::cov::fused::merge::Merged;
use crate::cov::fused::micro::{Lane, TILE_ROWS};
use crate::cov::fused::tables::{PairTile, dot, pair_tile};
use crate::kernel::Leaf;
use rayon::prelude::*;

/// `k_place(p, q)` and its derivative in the lengthscale, `P x P`, with their weighted sums.
#[derive(Debug)]
pub(super) struct PairTables<T> {
    pub(super) leaf: Leaf,
    value: Vec<T>,
    slope: Vec<T>,
    /// `sum_q w_q value_pq` and `sum_q w_q slope_pq`.
    row_value: Vec<f64>,
    row_slope: Vec<f64>,
}

impl<T: Lane> PairTables<T> {
    pub(super) fn new(leaf: &Leaf, theta: &[f64], blank: &[f64], len: usize, weights: &[f64]) -> Self {
        let count = weights.len();
        let ell = leaf.lengthscale(theta, 0);
        let place = |p: usize| &blank[p * len..(p + 1) * len];
        let squared = |p: usize, q: usize| -> f64 {
            leaf.dims.indices().map(|d| (place(p)[d] - place(q)[d]).powi(2)).sum()
        };
        let evaluate = |squared: f64| {
            let s = squared / (ell * ell);
            let (value, slope) = leaf.radial.at(s);
            (value, -2.0 * slope * s / ell)
        };
        // Places are usually whole pixels, so few squared distances occur: one evaluation each.
        let farthest = (0..count).map(|p| squared(0, p).max(squared(count - 1, p))).fold(0.0, f64::max);
        let known: Vec<(f64, f64)> = (0..=farthest as usize).map(|s| evaluate(s as f64)).collect();
        let at = |s: f64| match known.get(s as usize) {
            Some(&pair) if s.fract() == 0.0 => pair,
            _ => evaluate(s),
        };
        let (mut value, mut slope) = (vec![T::default(); count * count], vec![T::default(); count * count]);
        let (mut row_value, mut row_slope) = (vec![0.0; count], vec![0.0; count]);
        value
            .par_chunks_mut(count)
            .zip(slope.par_chunks_mut(count))
            .zip(row_value.par_iter_mut().zip(&mut row_slope))
            .enumerate()
            .for_each(|(p, ((value, slope), (row_value, row_slope)))| {
                for q in 0..count {
                    let (v, d) = at(squared(p, q));
                    value[q] = T::from_f64(v);
                    slope[q] = T::from_f64(d);
                    *row_value += weights[q] * v;
                    *row_slope += weights[q] * d;
                }
            });
        Self { leaf: leaf.clone(), value, slope, row_value, row_slope }
    }
}

/// The pass over pairs with the background split off.
pub(super) struct SplitPairs<'a, T: Lane> {
    pub(super) fma: bool,
    pub(super) like: &'a Cols<T>,
    pub(super) location: &'a LocationAware<T>,
    pub(super) tables: &'a PairTables<T>,
    pub(super) theta: &'a [f64],
    pub(super) merged: &'a Merged,
    pub(super) wanted: kff::Wanted,
}

/// Sums over pairs of views that are not background.
#[derive(Default)]
struct SplitSums {
    value: f64,
    place: f64,
    distance: f64,
    rows: Vec<f64>,
}

impl<T: Lane> SplitPairs<'_, T> {
    pub(super) fn run<'a>(
        &self,
        rows: &Rows<T>,
        row: impl Fn(usize) -> &'a [f64],
        tile: &mut Tile<T>,
        out: &mut Pairs,
    ) {
        let (terms, w) = (&self.location.pixel_terms, &self.location.weights);
        let singles = LocationAware::<T>::singles(self.merged);
        let split = singles < rows.count;
        let places = &self.merged.representatives[..singles];
        let mut cols = Cols::default();
        cols.fill(terms, self.theta, singles, &row, Some(self.like));
        // Values and distance slopes against the background; zero when there is none, and then c_pq = k_pq.
        let (kb, eb) =
            if split { self.against_background(rows, row(singles), tile) } else { Default::default() };
        let at_zero = f64::from(u8::from(split));
        let sums = self.sum_pairs(&cols, rows, places, &kb, &eb, at_zero, tile);
        let c = cols.terms[0].coefficient.to_f64();
        let leaf = &cols.terms[0].leaves[0];
        let (mut value, mut place, mut distance) = (sums.value, sums.place, sums.distance);
        if split {
            for (r, &p) in places.iter().enumerate() {
                let p = p as usize;
                let k = kb[r].to_f64() - 1.0;
                value += 2.0 * w[p] * self.tables.row_value[p] * k;
                place += 2.0 * w[p] * self.tables.row_slope[p] * k;
                distance += 2.0 * w[p] * self.tables.row_value[p] * eb[r].to_f64();
            }
            let total = |rows: &[f64]| rows.iter().zip(w).map(|(r, w)| r * w).sum::<f64>();
            value += total(&self.tables.row_value);
            place += total(&self.tables.row_slope);
        }
        out.groups.clear();
        out.groups.push(c * value);
        out.theta.clear();
        out.theta.resize(self.theta.len(), 0.0);
        out.theta[leaf.leaf.lengthscale] += -2.0 * c * leaf.inverse[0] * distance;
        out.theta[self.tables.leaf.lengthscale] += c * place;
        self.row_sums(&sums.rows, places, &kb, split, c, out);
    }

    /// `phi(s)` and `phi'(s) s` of every row against the background, padded to whole panels.
    fn against_background(&self, rows: &Rows<T>, background: &[f64], tile: &mut Tile<T>) -> (Vec<T>, Vec<T>) {
        let mut cols = Cols::default();
        cols.fill(&self.location.pixel_terms, self.theta, 1, |_| background, Some(self.like));
        let padded = rows.count.div_ceil(T::NR) * T::NR + TILE_ROWS;
        let (mut k, mut e) = (vec![T::default(); padded], vec![T::default(); padded]);
        for at in places(rows.count, 0..1) {
            tile.evaluate(self.fma, &cols.terms[0], 0, rows, at, true);
            for r in 0..at.rows {
                let i = r * T::NR;
                k[at.row + r] = tile.value(&cols.terms[0])[i];
                e[at.row + r] = tile.leaves[0].slope[i] * tile.leaves[0].s[i];
            }
        }
        (k, e)
    }

    #[allow(clippy::too_many_arguments)]
    fn sum_pairs(
        &self,
        cols: &Cols<T>,
        rows: &Rows<T>,
        places: &[u32],
        kb: &[T],
        eb: &[T],
        at_zero: f64,
        tile: &mut Tile<T>,
    ) -> SplitSums {
        let (singles, count) = (places.len(), self.location.weights.len());
        let zeros = vec![T::default(); singles.div_ceil(T::NR) * T::NR + TILE_ROWS];
        let (kb, eb) = if kb.is_empty() { (&zeros[..], &zeros[..]) } else { (kb, eb) };
        let mut w: Vec<T> = places.iter().map(|&p| T::from_f64(self.location.weights[p as usize])).collect();
        w.resize(zeros.len(), T::default());
        let mut lanes = vec![T::default(); (singles + TILE_ROWS) * T::NR];
        let mut sums = SplitSums { rows: vec![0.0; singles], ..Default::default() };
        let (mut s2, mut d2) = ([T::default(); TILE_ROWS * 16], [T::default(); TILE_ROWS * 16]);
        for panel in 0..cols.panels {
            let column = panel * T::NR;
            let own = T::NR.min(singles - column);
            let above = (0..column).step_by(TILE_ROWS).map(|row| (row, TILE_ROWS.min(column - row), true));
            for (row, n, mirror) in above.chain([(column, own, false)]) {
                let at = Place { row, rows: n, panel };
                tile.evaluate(self.fma, &cols.terms[0], 0, rows, at, self.wanted.theta);
                for r in 0..n {
                    let start = places[row + r] as usize * count;
                    let (value, slope) = (&self.tables.value[start..], &self.tables.slope[start..]);
                    let columns = &places[column..column + own];
                    for (out, &q) in s2[r * T::NR..].iter_mut().zip(columns) {
                        *out = value[q as usize];
                    }
                    if self.wanted.theta {
                        for (out, &q) in d2[r * T::NR..].iter_mut().zip(columns) {
                            *out = slope[q as usize];
                        }
                    }
                }
                let mut columns = [T::default(); 48];
                let leaf = &tile.leaves[0];
                let args = PairTile {
                    value: tile.value(&cols.terms[0]).as_ptr(),
                    slope: leaf.slope.as_ptr(),
                    s: leaf.s.as_ptr(),
                    kb_row: kb[row..].as_ptr(),
                    kb_column: kb[column..].as_ptr(),
                    eb_row: eb[row..].as_ptr(),
                    eb_column: eb[column..].as_ptr(),
                    place: s2.as_ptr(),
                    place_slope: d2.as_ptr(),
                    w_row: w[row..].as_ptr(),
                    w_column: w[column..].as_ptr(),
                    lanes: lanes[row * T::NR..].as_mut_ptr(),
                    columns: columns.as_mut_ptr(),
                };
                // SAFETY: all buffers hold a tile, a panel or TILE_ROWS rows, as `PairTile` asks.
                unsafe { pair_tile(self.fma, n, at_zero, self.wanted.theta, &args) };
                let m = if mirror { 2.0 } else { 1.0 };
                for j in 0..own {
                    let wj = w[column + j].to_f64();
                    sums.value += m * wj * columns[j].to_f64();
                    sums.place += m * wj * columns[T::NR + j].to_f64();
                    sums.distance += m * wj * columns[2 * T::NR + j].to_f64();
                    if mirror {
                        sums.rows[column + j] += columns[j].to_f64();
                    }
                }
            }
        }
        for (out, lanes) in sums.rows.iter_mut().zip(lanes.chunks_exact(T::NR)) {
            *out += lanes.iter().map(|l| l.to_f64()).sum::<f64>();
        }
        sums
    }

    /// `sum_q w_q k_place(p, q) k(x_p, x_q)` for every view `p`, background included.
    fn row_sums(&self, own: &[f64], places: &[u32], kb: &[T], split: bool, c: f64, out: &mut Pairs) {
        out.row_sums.clear();
        if !self.wanted.weights {
            return;
        }
        let count = self.location.weights.len();
        out.row_sums.resize(count, 0.0);
        if split {
            let mut y = vec![T::default(); count];
            for (r, &p) in places.iter().enumerate() {
                let w = T::from_f64(self.location.weights[p as usize]);
                y[p as usize] = w * (kb[r] - T::from_f64(1.0));
            }
            for (p, row) in self.tables.value.chunks_exact(count).enumerate() {
                let mut lanes = [T::default(); 16];
                // SAFETY: both hold `count` numbers.
                unsafe { dot(self.fma, count, row.as_ptr(), y.as_ptr(), lanes.as_mut_ptr()) };
                out.row_sums[p] = self.tables.row_value[p] + lanes.iter().map(|l| l.to_f64()).sum::<f64>();
            }
        }
        for (r, &p) in places.iter().enumerate() {
            let p = p as usize;
            out.row_sums[p] += own[r];
            if split {
                out.row_sums[p] += (kb[r].to_f64() - 1.0) * self.tables.row_value[p];
            }
        }
        out.row_sums.iter_mut().for_each(|r| *r *= c);
    }
}
