//! The column side of a tile: inducing inputs (or any set of views) scaled by the lengthscales and packed in panels.

use super::micro::{Lane, TILE_ROWS, differences, distances, multiply};
use crate::kernel::{Leaf, RadialFn, Term};
use std::ops::Range;

/// A kernel's terms with their columns.
#[derive(Debug, Default)]
pub struct Cols<T> {
    /// Columns, without padding.
    pub count: usize,
    /// Panels of `NR` columns.
    pub panels: usize,
    /// One per term of the kernel.
    pub terms: Vec<TermCols<T>>,
    /// Number of different products of variances among the terms; see [`TermCols::group`].
    pub groups: usize,
}

/// A product of radial leaves.
#[derive(Debug)]
pub struct TermCols<T> {
    /// Product of the leaves' variances.
    pub coefficient: T,
    /// Terms with the same variances share a group: their values are summed before the variances' derivatives.
    pub group: usize,
    /// The factors.
    pub leaves: Vec<LeafCols<T>>,
}

/// One radial factor.
#[derive(Debug)]
pub struct LeafCols<T> {
    /// What it is.
    pub leaf: Leaf,
    /// `1 / lengthscale` of each element.
    pub inverse: Vec<f64>,
    /// Subtracted from every row and column before scaling. Distances do not change, but what is squared and cancelled
    /// on the way to them gets smaller.
    centre: Vec<f64>,
    /// `[panel][element][NR]`, scaled.
    panel: Vec<T>,
    /// `[panel][NR]`, squared norms of the scaled columns.
    norm: Vec<T>,
}

impl<T: Lane> LeafCols<T> {
    /// Elements read, `d`.
    pub fn depth(&self) -> usize {
        self.inverse.len()
    }
    /// Columns of the rows' matrix that moments are taken of: elements, their squares for ARD, and a one.
    pub fn width(&self) -> usize {
        self.depth() * if self.leaf.ard { 2 } else { 1 } + 1
    }
    /// Numbers of its moments: per column `width` sums, and the sum of weighted distances.
    pub fn moments_len(&self, panels: usize) -> usize {
        panels * (self.width() + 1) * T::NR
    }
    /// Rows are stored times this (see [`distances`]).
    pub fn row_factor(&self) -> f64 {
        if self.leaf.radial.smooth() { -2.0 } else { 1.0 }
    }
    /// Centred and scaled element `e` of column `m`.
    pub fn column(&self, m: usize, e: usize) -> f64 {
        self.panel[((m / T::NR) * self.depth() + e) * T::NR + m % T::NR].to_f64()
    }
}

impl<T: Lane> Cols<T> {
    /// Packs `count` columns, centred at their mean or, with `like`, as those others are (rows and columns of one tile
    /// must agree). Allocates only when sizes grow.
    pub fn fill<'a>(
        &mut self,
        terms: &[Term],
        theta: &[f64],
        count: usize,
        column: impl Fn(usize) -> &'a [f64],
        like: Option<&Self>,
    ) {
        self.count = count;
        self.panels = count.div_ceil(T::NR);
        let mut groups: Vec<Vec<usize>> = Vec::new();
        self.terms.truncate(terms.len());
        for (t, term) in terms.iter().enumerate() {
            if t == self.terms.len() {
                self.terms.push(TermCols { coefficient: T::default(), group: 0, leaves: Vec::new() });
            }
            let variances: Vec<usize> = term.leaves.iter().filter_map(|l| l.variance).collect();
            let group = groups.iter().position(|g| *g == variances).unwrap_or_else(|| {
                groups.push(variances);
                groups.len() - 1
            });
            let cols = &mut self.terms[t];
            cols.group = group;
            cols.coefficient = T::from_f64(term.leaves.iter().map(|l| l.variance(theta)).product());
            cols.leaves.truncate(term.leaves.len());
            for (i, leaf) in term.leaves.iter().enumerate() {
                if i == cols.leaves.len() {
                    cols.leaves.push(LeafCols {
                        leaf: leaf.clone(),
                        inverse: Vec::new(),
                        centre: Vec::new(),
                        panel: Vec::new(),
                        norm: Vec::new(),
                    });
                }
                let centre = like.map(|l| &l.terms[t].leaves[i].centre[..]);
                cols.leaves[i].fill(leaf, theta, count, self.panels, &column, centre);
            }
        }
        self.groups = groups.len();
    }

    /// Padded number of columns.
    pub fn padded(&self) -> usize {
        self.panels * T::NR
    }
    /// All leaves, term by term.
    pub fn leaves(&self) -> impl Iterator<Item = (&TermCols<T>, &LeafCols<T>)> {
        self.terms.iter().flat_map(|t| t.leaves.iter().map(move |l| (t, l)))
    }
    /// Numbers of the moments of all leaves.
    pub fn moments_len(&self) -> usize {
        self.moments_len_of(self.panels)
    }
    /// Numbers of the moments of all leaves in so many panels.
    pub fn moments_len_of(&self, panels: usize) -> usize {
        self.leaves().map(|(_, l)| l.moments_len(panels)).sum()
    }
}

impl<T: Lane> LeafCols<T> {
    fn fill<'a>(
        &mut self,
        leaf: &Leaf,
        theta: &[f64],
        count: usize,
        panels: usize,
        column: &impl Fn(usize) -> &'a [f64],
        centre: Option<&[f64]>,
    ) {
        self.leaf = leaf.clone();
        self.centre.clear();
        match centre {
            Some(centre) => self.centre.extend_from_slice(centre),
            None => {
                self.centre.resize(leaf.dims.len, 0.0);
                for m in 0..count {
                    let values = column(m);
                    self.centre.iter_mut().zip(leaf.dims.indices()).for_each(|(c, e)| *c += values[e]);
                }
                self.centre.iter_mut().for_each(|c| *c /= count as f64);
            }
        }
        self.inverse.clear();
        self.inverse.extend((0..leaf.dims.len).map(|i| 1.0 / leaf.lengthscale(theta, i)));
        let d = self.inverse.len();
        self.panel.clear();
        self.panel.resize(panels * d * T::NR, T::default());
        self.norm.clear();
        self.norm.resize(panels * T::NR, T::default());
        for m in 0..count {
            let (panel, lane, values) = (m / T::NR, m % T::NR, column(m));
            let mut norm = 0.0;
            for (i, e) in leaf.dims.indices().enumerate() {
                let z = T::from_f64((values[e] - self.centre[i]) * self.inverse[i]);
                norm += z.to_f64() * z.to_f64();
                self.panel[(panel * d + i) * T::NR + lane] = z;
            }
            self.norm[m] = T::from_f64(norm);
        }
    }
}

/// The row side of one leaf: scaled views of an image.
#[derive(Debug, Default)]
pub struct LeafRows<T> {
    /// `[row][width]`, elements times [`LeafCols::row_factor`], squares, one.
    pub data: Vec<T>,
    /// Squared norms of the scaled rows.
    norm: Vec<T>,
    /// Numbers in a row.
    pub width: usize,
}

impl<T: Lane> LeafRows<T> {
    /// Scales rows for a leaf.
    pub fn fill<'a>(&mut self, leaf: &LeafCols<T>, count: usize, row: impl Fn(usize) -> &'a [f64]) {
        let (width, d) = (leaf.width(), leaf.depth());
        self.width = width;
        self.data.resize(count * width, T::default());
        self.norm.resize(count, T::default());
        let factor = T::from_f64(leaf.row_factor());
        let dims = leaf.leaf.dims;
        for ((r, data), norm) in self.data.chunks_exact_mut(width).enumerate().zip(&mut self.norm) {
            let row = row(r);
            let mut sum = T::default();
            for (i, out) in data[..d].iter_mut().enumerate() {
                let x = T::from_f64((row[dims.start + i * dims.step] - leaf.centre[i]) * leaf.inverse[i]);
                sum += x * x;
                *out = x * factor;
            }
            if leaf.leaf.ard {
                for i in 0..d {
                    let x = data[i].to_f64() / leaf.row_factor();
                    data[d + i] = T::from_f64(x * x);
                }
            }
            data[width - 1] = T::from_f64(1.0);
            *norm = sum;
        }
    }
}

/// Rows for every leaf of a kernel.
#[derive(Debug, Default)]
pub struct Rows<T> {
    /// One per leaf, term by term.
    pub leaves: Vec<LeafRows<T>>,
    /// Number of rows.
    pub count: usize,
}

impl<T: Lane> Rows<T> {
    /// Scales rows for all leaves.
    pub fn fill<'a>(&mut self, cols: &Cols<T>, count: usize, row: impl Fn(usize) -> &'a [f64]) {
        self.count = count;
        self.leaves.resize_with(cols.leaves().count(), LeafRows::default);
        for (rows, (_, leaf)) in self.leaves.iter_mut().zip(cols.leaves()) {
            rows.fill(leaf, count, &row);
        }
    }
}

/// Values of one term on a tile, with what derivatives need.
#[derive(Debug, Default)]
pub struct Tile<T> {
    /// Per leaf of the term: distances, values, slopes times the other leaves' values.
    pub leaves: Vec<LeafTile<T>>,
    product: Vec<T>,
}

/// One leaf's part of a [`Tile`].
#[derive(Debug, Default)]
pub struct LeafTile<T> {
    /// Squared scaled distances.
    pub s: Vec<T>,
    value: Vec<T>,
    /// Derivative of the term in the distance, coefficient not included.
    pub slope: Vec<T>,
}

/// A place in the grid of tiles.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// First row.
    pub row: usize,
    /// Rows, at most [`TILE_ROWS`].
    pub rows: usize,
    /// Panel of columns.
    pub panel: usize,
}

impl<T: Lane> Tile<T> {
    /// Evaluates term `term` (whose first leaf is number `first`) at a place; afterwards [`Tile::value`] holds it.
    #[allow(clippy::too_many_arguments)]
    pub fn evaluate(
        &mut self,
        fma: bool,
        term: &TermCols<T>,
        first: usize,
        rows: &Rows<T>,
        at: Place,
        slopes: bool,
    ) {
        let size = TILE_ROWS * T::NR;
        if self.leaves.len() < term.leaves.len() {
            self.leaves.resize_with(term.leaves.len(), LeafTile::default);
        }
        for (i, leaf) in term.leaves.iter().enumerate() {
            let tile = &mut self.leaves[i];
            tile.resize(size);
            let used = at.rows * T::NR;
            tile.distances(fma, leaf, &rows.leaves[first + i], at);
            let LeafTile { s, value, slope } = tile;
            let slope = slopes.then_some(&mut slope[..used]);
            T::radial(leaf.leaf.radial as &dyn RadialFn, &s[..used], &mut value[..used], slope, fma);
        }
        if term.leaves.len() > 1 {
            self.multiply_leaves(fma, term.leaves.len(), at.rows, slopes);
        }
    }

    /// Values of the term just evaluated, coefficient not included.
    pub fn value(&self, term: &TermCols<T>) -> &[T] {
        if term.leaves.len() > 1 { &self.product } else { &self.leaves[0].value }
    }

    /// Value of the product, and each slope times the other leaves' values.
    fn multiply_leaves(&mut self, fma: bool, count: usize, rows: usize, slopes: bool) {
        let used = rows * T::NR;
        self.product.resize(TILE_ROWS * T::NR, T::default());
        self.product[..used].copy_from_slice(&self.leaves[0].value[..used]);
        for i in 1..count {
            // SAFETY: both buffers hold TILE_ROWS rows.
            unsafe { multiply(fma, rows, self.product.as_mut_ptr(), self.leaves[i].value.as_ptr()) };
        }
        if slopes {
            for i in 0..count {
                for k in (0..count).filter(|&k| k != i) {
                    let value = self.leaves[k].value.as_ptr();
                    // SAFETY: both buffers hold TILE_ROWS rows, and they belong to different leaves.
                    unsafe { multiply(fma, rows, self.leaves[i].slope.as_mut_ptr(), value) };
                }
            }
        }
    }
}

impl<T: Lane> LeafTile<T> {
    fn resize(&mut self, size: usize) {
        for v in [&mut self.s, &mut self.value, &mut self.slope] {
            v.resize(size, T::default());
        }
    }

    fn distances(&mut self, fma: bool, leaf: &LeafCols<T>, rows: &LeafRows<T>, at: Place) {
        let (d, width) = (leaf.depth(), rows.width);
        debug_assert!((at.row + at.rows) * width <= rows.data.len() && at.rows <= TILE_ROWS);
        let panel = &leaf.panel[at.panel * d * T::NR..(at.panel + 1) * d * T::NR];
        let y = rows.data[at.row * width..].as_ptr();
        let out = self.s.as_mut_ptr();
        // SAFETY: `rows` rows of `width` numbers from `row` on, `d` panel rows, and a tile of TILE_ROWS are there.
        unsafe {
            if leaf.leaf.radial.smooth() {
                let (yn, zn) = (rows.norm[at.row..].as_ptr(), leaf.norm[at.panel * T::NR..].as_ptr());
                distances(fma, at.rows, d, y, width, yn, panel.as_ptr(), zn, out);
            } else {
                differences(fma, at.rows, d, y, width, panel.as_ptr(), out);
            }
        }
    }
}

/// Places covering `rows` rows of some panels: row tiles outside, so that a tile's rows stay in the first-level cache.
pub fn places(rows: usize, panels: Range<usize>) -> impl Iterator<Item = Place> {
    (0..rows).step_by(TILE_ROWS).flat_map(move |row| {
        let rows = TILE_ROWS.min(rows - row);
        panels.clone().map(move |panel| Place { row, rows, panel })
    })
}
