//! Kernels with a factor that depends only on where a view sits, not on the image: `k = k_pixels * k_place`.
//!
//! The factor is a table, computed once per step. Views with equal pixels sit at different places and cannot simply be
//! merged, but the most frequent one (the background) still can: with `b` the background and `S` all other views,
//!
//! ```text
//! sum_p W_pm k(x_p, z_m) = sum_{p in S} W_pm k(x_p, z_m) + (total_m - sum_{p in S} W_pm) k(b, z_m)
//! k(x_p, x_q) = c_pq + k(x_p, b) + k(x_q, b) - k(b, b),     c_pq = 0 unless p and q are both in S
//! ```

mod pairs;

use super::cols::{Cols, Place, Rows, Tile, places};
use super::dense;
use super::kff::{self, PairScratch, Pairs};
use super::merge::Merged;
use super::micro::{Lane, TILE_ROWS, moments, scale_elements, weighted_sum};
use super::tables::{table_add, table_sum};
use crate::component::Component;
use crate::cov::Need;
use crate::kernel::{Leaf, Term};
use pairs::{PairTables, SplitPairs};

/// Beyond this many views the pair table would be larger than the views themselves.
const MAX_VIEWS: usize = 2048;

/// The factor that depends on places, and its tables.
#[derive(Debug)]
pub struct LocationAware<T: Lane> {
    /// The kernel without its place factor.
    pixel_terms: Vec<Term>,
    /// The whole kernel.
    terms: Vec<Term>,
    /// The place factor against the inducing places.
    cols: Cols<T>,
    rows: Rows<T>,
    weights: Vec<f64>,
    /// `k_place(p, m)`, `P x padded`.
    table: Vec<T>,
    /// The same times `w_p`, and its sum over `p`.
    weighted: Vec<T>,
    total: Vec<f64>,
    /// Pairs of places, when the kernel is simple enough for the formula above.
    pairs: Option<PairTables<T>>,
}

impl<T: Lane> LocationAware<T> {
    /// `None` when the kernel is not of this form.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        terms: &[Term],
        c: &Component,
        r: usize,
        values: &[f64],
        weights: &[f64],
        fma: bool,
        need: Need,
        reuse: Option<Self>,
    ) -> Option<Self> {
        let views = c.responses()[r].views();
        let pixels = views.len() - views.coordinates();
        if views.coordinates() == 0 || views.count() > MAX_VIEWS || views.count() == 1 {
            return None;
        }
        let (pixel_terms, place_leaves) = split(terms, pixels)?;
        let theta = c.theta(values);
        let (mut cols, mut rows, mut table, mut weighted) = match reuse {
            Some(l) => (l.cols, l.rows, l.table, l.weighted),
            None => (Cols::default(), Rows::default(), Vec::new(), Vec::new()),
        };
        let place_term = [Term { leaves: place_leaves.clone() }];
        cols.fill(&place_term, theta, c.inducing(), |m| c.z(values, m), None);
        // Views of a blank image: only their coordinates are read.
        let len = views.len();
        let mut blank = vec![0.0; views.count() * len];
        views.write(&vec![0.0; views.image_shape().len()], &mut blank);
        rows.fill(&cols, views.count(), |p| &blank[p * len..(p + 1) * len]);
        let padded = cols.padded();
        table.resize(views.count() * padded, T::default());
        dense::values(fma, &cols, 0..cols.panels, &rows, &mut Tile::default(), &mut table, padded);
        weighted.clone_from(&table);
        let mut total = vec![0.0; padded];
        for (row, &w) in weighted.chunks_exact_mut(padded).zip(weights) {
            let w = T::from_f64(w);
            for (x, t) in row.iter_mut().zip(&mut total) {
                *x = *x * w;
                *t += x.to_f64();
            }
        }
        let simple = simple_leaf(&pixel_terms).is_some() && place_leaves.len() == 1 && !place_leaves[0].ard;
        let pairs = (simple && need != Need::Mean)
            .then(|| PairTables::new(&place_leaves[0], theta, &blank, len, weights));
        let (terms, weights) = (terms.to_vec(), weights.to_vec());
        Some(Self { pixel_terms, terms, cols, rows, weights, table, weighted, total, pairs })
    }

    /// The kernel without its place factor.
    pub fn pixel_terms(&self) -> &[Term] {
        &self.pixel_terms
    }

    /// The place factor of a pair as a function of the distance of the places, with its derivative in the lengthscale.
    pub fn place_leaf(&self) -> Option<&Leaf> {
        self.pairs.as_ref().map(|p| &p.leaf)
    }

    /// Rewrites merged rows so that only the most frequent view stays merged; it becomes the last row. Without a view
    /// that repeats, every view is its own row.
    pub fn split_background(&self, merged: &mut Merged) {
        let mut counts = vec![0u32; merged.rows()];
        merged.row_of.iter().for_each(|&r| counts[r as usize] += 1);
        let background = (0..counts.len()).max_by_key(|&r| (counts[r], std::cmp::Reverse(r))).unwrap_or(0);
        let repeats = counts[background] > 1;
        let count = merged.row_of.len();
        let representative = merged.representatives[background];
        merged.representatives.clear();
        for p in 0..count {
            if repeats && merged.row_of[p] as usize == background {
                merged.row_of[p] = u32::MAX;
            } else {
                merged.row_of[p] = merged.representatives.len() as u32;
                merged.representatives.push(p as u32);
            }
        }
        if repeats {
            let last = merged.representatives.len() as u32;
            merged.representatives.push(representative);
            merged.row_of.iter_mut().filter(|r| **r == u32::MAX).for_each(|r| *r = last);
        }
    }

    /// Rows that are views of their own; one more row is the background, if there is one.
    fn singles(merged: &Merged) -> usize {
        if merged.rows() < merged.row_of.len() { merged.rows() - 1 } else { merged.rows() }
    }

    /// [`super::kuf::forward`] with a weight per view and inducing input.
    #[allow(clippy::too_many_arguments)]
    pub fn kuf(
        &self,
        fma: bool,
        cols: &Cols<T>,
        rows: &Rows<T>,
        merged: &Merged,
        tile: &mut Tile<T>,
        out: &mut [f64],
        mut moments_out: Option<&mut [T]>,
    ) {
        let (padded, singles) = (cols.padded(), Self::singles(merged));
        let mut background: Vec<f64> = self.total.clone();
        let mut w = [T::default(); TILE_ROWS * 16];
        let ones = [T::from_f64(1.0); TILE_ROWS];
        for at in places(rows.count, 0..cols.panels) {
            let own = singles.min(at.row + at.rows) - at.row.min(singles);
            let column = at.panel * T::NR;
            for (row, &p) in merged.representatives[at.row..at.row + own].iter().enumerate() {
                let source = &self.weighted[p as usize * padded + column..][..T::NR];
                w[row * T::NR..(row + 1) * T::NR].copy_from_slice(source);
            }
            let mut own_sum = [T::default(); 16];
            // SAFETY: `own` rows of NR weights and as many ones.
            unsafe { weighted_sum(fma, own, ones.as_ptr(), w.as_ptr(), own_sum.as_mut_ptr()) };
            background[column..].iter_mut().zip(&own_sum[..T::NR]).for_each(|(b, w)| *b -= w.to_f64());
            if own < at.rows {
                let last = &mut w[own * T::NR..(own + 1) * T::NR];
                last.iter_mut().zip(&background[column..]).for_each(|(w, b)| *w = T::from_f64(*b));
            }
            let (mut first, mut offset) = (0, 0);
            for term in &cols.terms {
                tile.evaluate(fma, term, first, rows, at, moments_out.is_some());
                let mut sum = [T::default(); 16];
                // SAFETY: tiles of TILE_ROWS rows, a sum of NR.
                unsafe {
                    table_sum(fma, at.rows, w.as_ptr(), tile.value(term).as_ptr(), sum.as_mut_ptr());
                }
                let out = &mut out[term.group * padded + column..];
                let c = term.coefficient.to_f64();
                out.iter_mut().zip(&sum[..T::NR]).for_each(|(o, s)| *o += c * s.to_f64());
                for (i, leaf) in term.leaves.iter().enumerate() {
                    if let Some(all) = moments_out.as_deref_mut() {
                        let per_panel = (leaf.width() + 1) * T::NR;
                        let out = &mut all[offset + at.panel * per_panel..][..per_panel];
                        let (sums, distance) = out.split_at_mut(leaf.width() * T::NR);
                        let (rows, leaf_tile) = (&rows.leaves[first + i], &mut tile.leaves[i]);
                        // SAFETY: tiles of `at.rows` rows, a panel's moments in `out`.
                        unsafe {
                            let (t, s) = (leaf_tile.slope.as_mut_ptr(), leaf_tile.s.as_ptr());
                            scale_elements(fma, at.rows, w.as_ptr(), T::NR, t, s, distance.as_mut_ptr());
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

    /// Adds one image to the derivative in the weights per view and inducing input: `table[p][m] += g_m (k_pm - k_bm)` for
    /// the views that are not background, `background[m] += g_m k_bm` for all.
    #[allow(clippy::too_many_arguments)]
    pub fn kuf_bar(
        &self,
        fma: bool,
        cols: &Cols<T>,
        rows: &Rows<T>,
        merged: &Merged,
        g: &[T],
        tile: &mut Tile<T>,
        table: &mut [T],
        background: &mut [f64],
    ) {
        let (padded, singles) = (cols.padded(), Self::singles(merged));
        let mut at_background = vec![T::default(); padded];
        let mut value = [T::default(); TILE_ROWS * 16];
        if singles < rows.count {
            for panel in 0..cols.panels {
                let at = Place { row: singles, rows: 1, panel };
                total_value(fma, cols, rows, at, tile, &mut value);
                at_background[panel * T::NR..][..T::NR].copy_from_slice(&value[..T::NR]);
            }
            for m in 0..padded {
                background[m] += g[m].to_f64() * at_background[m].to_f64();
            }
        }
        let starts: Vec<usize> =
            merged.representatives[..singles].iter().map(|&p| p as usize * padded).collect();
        for at in places(singles, 0..cols.panels) {
            total_value(fma, cols, rows, at, tile, &mut value);
            let column = at.panel * T::NR;
            // SAFETY: every start is a row of `table`, and rows have `padded` numbers.
            unsafe {
                table_add(
                    fma,
                    at.rows,
                    starts[at.row..].as_ptr(),
                    g[column..].as_ptr(),
                    value.as_ptr(),
                    at_background[column..].as_ptr(),
                    table[column..].as_mut_ptr(),
                );
            }
        }
    }

    /// From the derivative in the weights per view and inducing input to views' weights, lengthscale and places.
    pub fn finish(
        &self,
        fma: bool,
        table: &[T],
        background: &[f64],
        weights_bar: &mut [f64],
        theta_bar: &mut [f64],
        z_bar: impl FnMut(usize, usize, f64),
    ) {
        let padded = self.cols.padded();
        let mut g = vec![T::default(); table.len()];
        for (p, row) in g.chunks_exact_mut(padded).enumerate() {
            let mut sum = 0.0;
            for m in 0..self.cols.count {
                let bar = table[p * padded + m].to_f64() + background[m];
                sum += bar * self.table[p * padded + m].to_f64();
                row[m] = T::from_f64(bar * self.weights[p]);
            }
            weights_bar[p] += sum;
        }
        let mut moments = vec![T::default(); self.cols.moments_len()];
        let mut groups = vec![0.0; self.cols.groups];
        let (tile, all) = (&mut Tile::default(), 0..self.cols.panels);
        dense::pullback(fma, &self.cols, all.clone(), &self.rows, &g, tile, &mut moments, &mut groups);
        let moments: Vec<f64> = moments.iter().map(|m| m.to_f64()).collect();
        dense::finish(&self.cols, all, &moments, theta_bar, z_bar);
    }

    /// [`super::kff::pairs`] for location-aware views; the row sums come back per view.
    #[allow(clippy::too_many_arguments)]
    pub fn pairs<'a>(
        &self,
        fma: bool,
        like: &Cols<T>,
        theta: &[f64],
        rows: &Rows<T>,
        view: impl Fn(usize) -> &'a [f64],
        merged: &Merged,
        wanted: kff::Wanted,
        tile: &mut Tile<T>,
        scratch: &mut PairScratch<T>,
        out: &mut Pairs,
    ) {
        match &self.pairs {
            Some(tables) => {
                let row = |r: usize| view(merged.representatives[r] as usize);
                let job = SplitPairs { fma, like, location: self, tables, theta, merged, wanted };
                job.run(rows, row, tile, out);
            }
            None => {
                // Too many factors for the split: every view its own row, the place factor an ordinary one.
                let (mut all_cols, mut all_rows) = (Cols::default(), Rows::default());
                all_cols.fill(&self.terms, theta, 1, |_| view(0), None);
                all_rows.fill(&all_cols, self.weights.len(), &view);
                let weights: Vec<T> = self.weights.iter().map(|&w| T::from_f64(w)).collect();
                let terms = &self.terms;
                kff::pairs(
                    fma, &all_cols, terms, theta, &all_rows, view, &weights, wanted, tile, scratch, out,
                );
            }
        }
    }
}

/// Sum of all terms on a tile, coefficients included.
fn total_value<T: Lane>(
    fma: bool,
    cols: &Cols<T>,
    rows: &Rows<T>,
    at: Place,
    tile: &mut Tile<T>,
    out: &mut [T],
) {
    let mut first = 0;
    for (t, term) in cols.terms.iter().enumerate() {
        tile.evaluate(fma, term, first, rows, at, false);
        let used = at.rows * T::NR;
        for (o, &v) in out[..used].iter_mut().zip(tile.value(term)) {
            let k = term.coefficient * v;
            *o = if t == 0 { k } else { *o + k };
        }
        first += term.leaves.len();
    }
}

/// Pixel leaves per term, and the place leaves that all terms share; `None` if they do not.
fn split(terms: &[Term], pixels: usize) -> Option<(Vec<Term>, Vec<Leaf>)> {
    let is_place = |l: &&Leaf| l.dims.start >= pixels && l.variance.is_none();
    let same = |a: &Leaf, b: &Leaf| a.dims == b.dims && a.lengthscale == b.lengthscale;
    let shared: Vec<Leaf> = terms.first()?.leaves.iter().filter(is_place).cloned().collect();
    let mut pixel_terms = Vec::new();
    for term in terms {
        let place: Vec<&Leaf> = term.leaves.iter().filter(is_place).collect();
        let pixel: Vec<Leaf> = term.leaves.iter().filter(|l| !is_place(l)).cloned().collect();
        let reads_places = |l: &Leaf| l.dims.indices().any(|d| d >= pixels);
        if place.len() != shared.len() || !place.iter().zip(&shared).all(|(a, b)| same(a, b)) {
            return None;
        }
        if pixel.is_empty() || pixel.iter().any(reads_places) {
            return None;
        }
        pixel_terms.push(Term { leaves: pixel });
    }
    (!shared.is_empty()).then_some((pixel_terms, shared))
}

/// The only leaf of a kernel of one isotropic leaf.
fn simple_leaf(terms: &[Term]) -> Option<&Leaf> {
    match terms {
        [term] if term.leaves.len() == 1 && !term.leaves[0].ard => Some(&term.leaves[0]),
        _ => None,
    }
}
