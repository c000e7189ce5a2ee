//! Pooled responses: kernel values are computed once per view and inducing input, whatever the number of windows.
//!
//! Values only. Derivatives go response by response, as if the windows had nothing in common.

use super::Optimizations;
use super::cols::{Cols, Place, Rows, Tile, places};
use super::dense::add_weighted;
use super::images::{Scratch, with_scratch};
use super::merge::Merged;
use super::micro::{Lane, TILE_ROWS};
use crate::component::Component;
use crate::cov::{Cov, Need};
use crate::data::Batch;
use crate::kernel::Term;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Mutex;

/// Whether responses from `first` on are windows that can be computed together.
pub fn applies(c: &Component, first: usize, need: Need) -> bool {
    let views = c.responses()[first].views();
    c.windows() > 1 && need != Need::Gradient && views.count() > 1 && views.coordinates() == 0
}

/// What all images share.
struct Job<'a, T> {
    fma: bool,
    merge: bool,
    terms: &'a [Term],
    theta: &'a [f64],
    cols: &'a Cols<T>,
    /// `[window][view]`.
    weights: Vec<Vec<f64>>,
    kff: bool,
}

/// Fills the covariances of the windows `first..first + c.windows()`.
#[allow(clippy::too_many_arguments)]
pub fn forward<T: Lane>(
    optimizations: Optimizations,
    fma: bool,
    terms: &[Term],
    cols: &Cols<T>,
    pool: &Mutex<Vec<Scratch<T>>>,
    c: &Component,
    first: usize,
    values: &[f64],
    batch: &Batch,
    need: Need,
    cov: &mut Cov,
) {
    let responses = &c.responses()[first..first + c.windows()];
    let job = Job {
        fma,
        merge: optimizations.merge,
        terms,
        theta: c.theta(values),
        cols,
        weights: responses.iter().map(|r| r.weights(values)).collect(),
        kff: need != Need::Mean,
    };
    let results: Vec<(Vec<f64>, Vec<f64>)> = (0..batch.len())
        .into_par_iter()
        .map(|n| {
            with_scratch(pool, |s| {
                let views = responses[0].views();
                s.cutter.cut(views, batch.image(n));
                job.image(views.len(), s)
            })
        })
        .collect();
    let white = c.white(values);
    for (n, (kuf, kff)) in results.iter().enumerate() {
        for (r, kuf) in kuf.chunks_exact(cols.padded()).enumerate() {
            cov.kuf[first + r].col_mut(n).copy_from_slice(&kuf[..cols.count]);
        }
        kff.iter().enumerate().for_each(|(r, k)| cov.kff[first + r][n] = k + white);
    }
}

impl<T: Lane> Job<'_, T> {
    /// `kuf` as `[window][padded column]` and `kff` of every window, of the image whose views were cut out last.
    fn image(&self, len: usize, s: &mut Scratch<T>) -> (Vec<f64>, Vec<f64>) {
        let mut merged = Merged::default();
        s.cutter.merge(len, len, self.merge, &mut merged);
        let Scratch { cutter, rows, tile, .. } = s;
        let view = |r: usize| cutter.view(merged.representatives[r] as usize, len);
        rows.fill(self.cols, merged.rows(), view);
        let mut sums = Vec::new();
        let weights: Vec<Vec<T>> = self
            .weights
            .iter()
            .map(|w| {
                merged.sum_into_rows(w, &mut sums);
                sums.iter().map(|&w| T::from_f64(w)).collect()
            })
            .collect();
        let kuf = self.kuf(rows, &weights, tile);
        if !self.kff {
            return (kuf, Vec::new());
        }
        let mut columns = Cols::default();
        columns.fill(self.terms, self.theta, merged.rows(), view, Some(self.cols));
        (kuf, self.pairs(rows, &columns, weights, tile))
    }

    fn kuf(&self, rows: &Rows<T>, weights: &[Vec<T>], tile: &mut Tile<T>) -> Vec<f64> {
        let padded = self.cols.padded();
        let mut out = vec![0.0; weights.len() * padded];
        let mut active = Vec::new();
        for at in places(rows.count, 0..self.cols.panels) {
            let range = at.row..at.row + at.rows;
            if at.panel == 0 {
                active = windows_in(weights, range.clone());
            }
            let mut first = 0;
            for term in &self.cols.terms {
                tile.evaluate(self.fma, term, first, rows, at, false);
                let c = term.coefficient.to_f64();
                for &r in &active {
                    // Each tile's sum starts anew in single precision and is added up in double precision.
                    let mut sum = [T::default(); 16];
                    add_weighted(self.fma, term, tile, &weights[r][range.clone()], &mut sum);
                    let out = &mut out[r * padded + at.panel * T::NR..];
                    out.iter_mut().zip(&sum[..T::NR]).for_each(|(o, s)| *o += c * s.to_f64());
                }
                first += term.leaves.len();
            }
        }
        out
    }

    /// `sum_pq phi_r(p) phi_r(q) k(p, q)` for every window, from half of the pairs.
    fn pairs(
        &self,
        rows: &Rows<T>,
        cols: &Cols<T>,
        mut weights: Vec<Vec<T>>,
        tile: &mut Tile<T>,
    ) -> Vec<f64> {
        weights.iter_mut().for_each(|w| w.resize(cols.padded(), T::default()));
        let mut out = vec![0.0; weights.len()];
        for panel in 0..cols.panels {
            let diagonal = panel * T::NR;
            let here = windows_in(&weights, diagonal..diagonal + T::NR);
            let mut visit = |at: Place, times: f64| {
                let range = at.row..at.row + at.rows;
                let mut first = 0;
                for term in &cols.terms {
                    tile.evaluate(self.fma, term, first, rows, at, false);
                    let c = times * term.coefficient.to_f64();
                    for &r in here.iter().filter(|&&r| is_used(&weights[r], range.clone())) {
                        let mut sum = [T::default(); 16];
                        add_weighted(self.fma, term, tile, &weights[r][range.clone()], &mut sum);
                        let columns = &weights[r][diagonal..diagonal + T::NR];
                        let dot = |(s, w): (&T, &T)| s.to_f64() * w.to_f64();
                        out[r] += c * sum.iter().zip(columns).map(dot).sum::<f64>();
                    }
                    first += term.leaves.len();
                }
            };
            for row in (0..diagonal).step_by(TILE_ROWS) {
                visit(Place { row, rows: TILE_ROWS.min(diagonal - row), panel }, 2.0);
            }
            visit(Place { row: diagonal, rows: T::NR.min(rows.count - diagonal), panel }, 1.0);
        }
        out
    }
}

fn is_used<T: Lane>(weights: &[T], rows: Range<usize>) -> bool {
    weights[rows].iter().any(|w| *w != T::default())
}

/// The windows that any of these rows belongs to.
fn windows_in<T: Lane>(weights: &[Vec<T>], rows: Range<usize>) -> Vec<usize> {
    (0..weights.len()).filter(|&r| is_used(&weights[r], rows.clone())).collect()
}
