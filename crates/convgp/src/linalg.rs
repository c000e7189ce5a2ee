//! The few dense operations inference needs; the only module that names the linear-algebra crate.
//!
//! Matrices are `f64`, column-major. Every operation runs on the calling thread: parallelism is the caller's, over
//! latents or fixed column chunks, so that results do not depend on the number of threads.

mod cholesky;

pub use cholesky::{
    Cholesky, CholeskyScratch, cholesky, cholesky_by_blocks, cholesky_pullback, par_cholesky,
};

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::matmul::{self, triangular, triangular::BlockStructure};
use faer::linalg::{triangular_inverse, triangular_solve};
use faer::{Accum, Par};
use rayon::prelude::*;

use crate::params::packed_column;
use std::ops::Range;

/// Borrowed matrix; has `subrows`, `subcols`, `submatrix`, `transpose` and indexing.
pub type MatRef<'a> = faer::MatRef<'a, f64>;
/// Mutably borrowed matrix.
pub type MatMut<'a> = faer::MatMut<'a, f64>;

/// Columns handled together when one operation is split between threads. Fixed, so that bits do not depend on the
/// number of threads.
const COLUMNS: usize = 32;

/// Not positive definite: elimination met a pivot that is not positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not positive definite: the pivot of row {row} is not positive")]
pub struct NotPositiveDefinite {
    /// Row of the failing pivot.
    pub row: usize,
}

/// An owned column-major matrix.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mat {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Mat {
    /// Zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, data: vec![0.0; rows * cols] }
    }
    /// From columns of `rows` numbers, one after the other.
    pub fn from_columns(data: Vec<f64>, rows: usize) -> Self {
        assert!(rows > 0 && data.len().is_multiple_of(rows), "whole columns");
        Self { rows, cols: data.len() / rows, data }
    }
    /// From a function of row and column.
    pub fn from_fn(rows: usize, cols: usize, mut f: impl FnMut(usize, usize) -> f64) -> Self {
        let mut m = Self::zeros(rows, cols);
        for j in 0..cols {
            for i in 0..rows {
                m[(i, j)] = f(i, j);
            }
        }
        m
    }
    /// Changes the size, keeping the allocation where it suffices; contents are unspecified.
    pub fn resize(&mut self, rows: usize, cols: usize) {
        (self.rows, self.cols) = (rows, cols);
        self.data.resize(rows * cols, 0.0);
    }
    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// Columns.
    pub fn cols(&self) -> usize {
        self.cols
    }
    /// Column `j`.
    pub fn col(&self, j: usize) -> &[f64] {
        &self.data[j * self.rows..(j + 1) * self.rows]
    }
    /// Column `j`, to be changed.
    pub fn col_mut(&mut self, j: usize) -> &mut [f64] {
        &mut self.data[j * self.rows..(j + 1) * self.rows]
    }
    /// All columns one after the other.
    pub fn data(&self) -> &[f64] {
        &self.data
    }
    /// All columns one after the other, to be changed.
    pub fn data_mut(&mut self) -> &mut [f64] {
        &mut self.data
    }
    /// The whole matrix, borrowed.
    pub fn view(&self) -> MatRef<'_> {
        MatRef::from_column_major_slice(&self.data, self.rows, self.cols)
    }
    /// The whole matrix, mutably borrowed.
    pub fn view_mut(&mut self) -> MatMut<'_> {
        MatMut::from_column_major_slice_mut(&mut self.data, self.rows, self.cols)
    }
    /// Sets every element.
    pub fn fill(&mut self, value: f64) {
        self.data.fill(value);
    }
    /// Zeroes what lies strictly above the diagonal.
    pub fn zero_upper(&mut self) {
        for j in 1..self.cols {
            let top = j.min(self.rows);
            self.col_mut(j)[..top].fill(0.0);
        }
    }
    /// Copies the upper triangle onto the lower one.
    pub fn mirror_upper(&mut self) {
        let n = self.rows;
        for_tiles(n, |columns, rows| {
            for j in columns {
                for i in rows.start.max(j + 1)..rows.end {
                    self.data[j * n + i] = self.data[i * n + j];
                }
            }
        });
    }
    /// Copies the lower triangle onto the upper one.
    pub fn mirror_lower(&mut self) {
        let n = self.rows;
        for_tiles(n, |columns, rows| {
            for j in columns {
                for i in rows.start.max(j + 1)..rows.end {
                    self.data[i * n + j] = self.data[j * n + i];
                }
            }
        });
    }
}

impl std::ops::Index<(usize, usize)> for Mat {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.data[j * self.rows + i]
    }
}

impl std::ops::IndexMut<(usize, usize)> for Mat {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.data[j * self.rows + i]
    }
}

/// Whether a product overwrites its destination or is added to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accumulate {
    /// Overwrite.
    Set,
    /// Add.
    Add,
}

impl From<Accumulate> for Accum {
    fn from(mode: Accumulate) -> Self {
        match mode {
            Accumulate::Set => Accum::Replace,
            Accumulate::Add => Accum::Add,
        }
    }
}

/// `dst (+)= alpha a b`.
pub fn gemm(dst: MatMut<'_>, mode: Accumulate, alpha: f64, a: MatRef<'_>, b: MatRef<'_>) {
    matmul::matmul(dst, mode.into(), a, b, alpha, Par::Seq);
}

/// Lower triangle of `dst (+)= alpha a b`; what lies above the diagonal of `dst` is left alone.
pub fn gemm_lower(dst: MatMut<'_>, mode: Accumulate, alpha: f64, a: MatRef<'_>, b: MatRef<'_>) {
    use BlockStructure::{Rectangular, TriangularLower};
    triangular::matmul(dst, TriangularLower, mode.into(), a, Rectangular, b, Rectangular, alpha, Par::Seq);
}

/// `dst (+)= alpha l b` with `l` lower triangular.
pub fn mul_lower(dst: MatMut<'_>, mode: Accumulate, alpha: f64, l: MatRef<'_>, b: MatRef<'_>) {
    use BlockStructure::{Rectangular, TriangularLower};
    triangular::matmul(dst, Rectangular, mode.into(), l, TriangularLower, b, Rectangular, alpha, Par::Seq);
}

/// `dst (+)= alpha l^T b` with `l` lower triangular.
pub fn mul_lower_t(dst: MatMut<'_>, mode: Accumulate, alpha: f64, l: MatRef<'_>, b: MatRef<'_>) {
    use BlockStructure::{Rectangular, TriangularUpper};
    let u = l.transpose();
    triangular::matmul(dst, Rectangular, mode.into(), u, TriangularUpper, b, Rectangular, alpha, Par::Seq);
}

/// Lower triangle of `dst = l^T l` with `l` lower triangular.
pub fn own_t_times_lower(dst: MatMut<'_>, l: MatRef<'_>) {
    use BlockStructure::{TriangularLower, TriangularUpper};
    let (accum, u) = (Accum::Replace, l.transpose());
    triangular::matmul(dst, TriangularLower, accum, u, TriangularUpper, l, TriangularLower, 1.0, Par::Seq);
}

/// `rhs <- l^{-1} rhs`.
pub fn solve_lower(l: MatRef<'_>, rhs: MatMut<'_>) {
    triangular_solve::solve_lower_triangular_in_place(l, rhs, Par::Seq);
}

/// `rhs <- l^{-T} rhs`.
pub fn solve_lower_t(l: MatRef<'_>, rhs: MatMut<'_>) {
    triangular_solve::solve_upper_triangular_in_place(l.transpose(), rhs, Par::Seq);
}

/// Lower triangle of `dst = l^{-1}`; what lies above the diagonal of `dst` is left alone.
pub fn invert_lower(dst: MatMut<'_>, l: MatRef<'_>) {
    triangular_inverse::invert_lower_triangular(dst, l, Par::Seq);
}

/// Applies `f` to the first column and the columns of fixed chunks of `rhs`, in parallel.
fn by_columns(rhs: MatMut<'_>, f: impl Fn(usize, MatMut<'_>) + Sync + Send) {
    let (mut chunks, mut rest) = (Vec::with_capacity(rhs.ncols() / COLUMNS + 1), rhs);
    while rest.ncols() > COLUMNS {
        let (head, tail) = rest.split_at_col_mut(COLUMNS);
        chunks.push(head);
        rest = tail;
    }
    chunks.push(rest);
    chunks.into_par_iter().enumerate().for_each(|(i, chunk)| f(i * COLUMNS, chunk));
}

/// `dst <- l^{-1} src` with the columns shared between threads.
pub fn par_solve_lower_of(l: MatRef<'_>, src: MatRef<'_>, dst: MatMut<'_>) {
    by_columns(dst, |first, mut chunk| {
        chunk.copy_from(src.subcols(first, chunk.ncols()));
        solve_lower(l, chunk);
    });
}

/// `dst <- l^{-T} src` with the columns shared between threads.
pub fn par_solve_lower_t_of(l: MatRef<'_>, src: MatRef<'_>, dst: MatMut<'_>) {
    by_columns(dst, |first, mut chunk| {
        chunk.copy_from(src.subcols(first, chunk.ncols()));
        solve_lower_t(l, chunk);
    });
}

/// [`solve_lower_t`] with the columns of `rhs` shared between threads.
pub fn par_solve_lower_t(l: MatRef<'_>, rhs: MatMut<'_>) {
    by_columns(rhs, |_, chunk| solve_lower_t(l, chunk));
}

/// Eigenvalues, ascending, and eigenvectors (columns) of a symmetric matrix, from its lower triangle.
pub fn eigen_symmetric(k: &Mat) -> (Vec<f64>, Mat) {
    let n = k.rows();
    let solved = faer::linalg::solvers::SelfAdjointEigen::new(k.view(), faer::Side::Lower);
    match solved {
        Ok(eigen) => {
            let (u, s) = (eigen.U(), eigen.S().column_vector());
            ((0..n).map(|i| s[i]).collect(), Mat::from_fn(n, n, |i, j| u[(i, j)]))
        }
        // The iteration does not converge for numbers that are not finite.
        Err(_) => (vec![f64::NAN; n], Mat::from_fn(n, n, |_, _| f64::NAN)),
    }
}

/// Ranges of columns and rows of small tiles that cover the lower triangle of a matrix of order `n`: what works on an
/// element and its mirror image tile by tile misses the cache on neither side.
fn for_tiles(n: usize, mut f: impl FnMut(Range<usize>, Range<usize>)) {
    const TILE: usize = 16;
    for j in (0..n).step_by(TILE) {
        for i in (j..n).step_by(TILE) {
            f(j..(j + TILE).min(n), i..(i + TILE).min(n));
        }
    }
}

/// Columns of a block of the parallel factorisations below; fixed, so that bits do not depend on the number of threads.
const BLOCK: usize = 256;

/// Cuts a matrix into parts of [`BLOCK`] columns.
fn column_blocks(mut rest: MatMut<'_>) -> Vec<MatMut<'_>> {
    let mut blocks = Vec::with_capacity(rest.ncols() / BLOCK + 1);
    while rest.ncols() > BLOCK {
        let (head, tail) = rest.split_at_col_mut(BLOCK);
        blocks.push(head);
        rest = tail;
    }
    blocks.push(rest);
    blocks
}

/// Diagonal blocks of `(l l^T)^{-1}`, all of one width, beside each other.
pub fn inverse_blocks(l: MatRef<'_>, width: usize) -> Mat {
    let n = l.nrows();
    let together = (BLOCK / width).max(1) * width;
    let starts: Vec<usize> = (0..n).step_by(together).collect();
    let part = |&start: &usize| -> Vec<f64> {
        let (rows, columns) = (n - start, together.min(n - start));
        let mut inverse = Mat::from_fn(rows, columns, |i, j| if i == j { 1.0 } else { 0.0 });
        solve_lower(l.submatrix(start, start, rows, rows), inverse.view_mut());
        let entry = |i: usize, j: usize| dot(inverse.col(j / width * width + i), inverse.col(j));
        (0..columns).flat_map(|j| (0..width).map(move |i| (i, j))).map(|(i, j)| entry(i, j)).collect()
    };
    Mat::from_columns(starts.par_iter().flat_map_iter(part).collect(), width)
}

/// `rhs <- l^{-1} rhs` with the columns shared between threads.
pub fn par_solve_lower(l: MatRef<'_>, rhs: MatMut<'_>) {
    by_columns(rhs, |_, chunk| solve_lower(l, chunk));
}

/// Lower triangle of `g += a a^T`, products in single precision and added up in double precision. `a` has `g.rows()`
/// rows, column after column.
pub fn syrk_single(g: &mut Mat, a: &[f32]) {
    let n = g.rows();
    let a = faer::MatRef::<'_, f32>::from_column_major_slice(a, n, a.len() / n);
    g.data.par_chunks_mut(n * BLOCK).enumerate().for_each(|(j, columns)| {
        let (first, width) = (j * BLOCK, columns.len() / n);
        let mut product = vec![0f32; (n - first) * width];
        let out = faer::MatMut::from_column_major_slice_mut(&mut product, n - first, width);
        let (rows, own) = (a.subrows(first, n - first), a.subrows(first, width));
        matmul::matmul(out, Accum::Replace, rows, own.transpose(), 1f32, Par::Seq);
        for (column, product) in columns.chunks_exact_mut(n).zip(product.chunks_exact(n - first)) {
            column[first..].iter_mut().zip(product).for_each(|(g, p)| *g += f64::from(*p));
        }
    });
}

/// Lower triangle of `g += alpha a a^T`.
pub fn syrk_double(g: &mut Mat, alpha: f64, a: MatRef<'_>) {
    let n = g.rows();
    g.data.par_chunks_mut(n * BLOCK).enumerate().for_each(|(j, columns)| {
        let (first, width) = (j * BLOCK, columns.len() / n);
        let out = MatMut::from_column_major_slice_mut(columns, n, width).subrows_mut(first, n - first);
        let (rows, own) = (a.subrows(first, n - first), a.subrows(first, width));
        gemm(out, Accumulate::Add, alpha, rows, own.transpose());
    });
}

/// `dst (+)= alpha a b` with the columns of `dst` shared between threads.
pub fn par_gemm(dst: MatMut<'_>, mode: Accumulate, alpha: f64, a: MatRef<'_>, b: MatRef<'_>) {
    by_columns(dst, |first, chunk| {
        let width = chunk.ncols();
        gemm(chunk, mode, alpha, a, b.subcols(first, width));
    });
}

/// `rhs <- l^{-1} rhs` for a packed lower triangle, panel by panel, columns shared between threads.
pub fn par_solve_packed_lower(packed: &[f64], order: usize, rhs: MatMut<'_>) {
    by_columns(rhs, |_, mut chunk| {
        let mut panel = Mat::default();
        for (first, width) in panels(order) {
            unpack_panel(packed, order, first, width, &mut panel);
            let (_, rest) = chunk.as_mut().split_at_row_mut(first);
            let (mut own, below) = rest.split_at_row_mut(width);
            solve_lower(panel.view().subrows(0, width), own.as_mut());
            let below_rows = order - first - width;
            gemm(below, Accumulate::Add, -1.0, panel.view().subrows(width, below_rows), own.as_ref());
        }
    });
}

/// Unpacks a packed lower triangle; what lies above the diagonal of `dst` is left alone.
pub fn unpack_lower(packed: &[f64], mut dst: MatMut<'_>) {
    let n = dst.nrows();
    for j in 0..n {
        let start = packed_column(n, j);
        let column = dst.as_mut().col_mut(j).subrows_mut(j, n - j);
        let column = column.try_as_col_major_mut().expect("columns of our matrices are contiguous");
        column.as_slice_mut().copy_from_slice(&packed[start..start + n - j]);
    }
}

/// Packs the lower triangle of `src`: `packed = beta packed + alpha src`.
pub fn pack_lower(src: MatRef<'_>, beta: f64, alpha: f64, packed: &mut [f64]) {
    let n = src.nrows();
    for j in 0..n {
        let start = packed_column(n, j);
        let column = src.col(j).subrows(j, n - j);
        let column = column.try_as_col_major().expect("columns of our matrices are contiguous");
        let out = &mut packed[start..start + n - j];
        if beta == 0.0 {
            out.iter_mut().zip(column.as_slice()).for_each(|(p, s)| *p = alpha * s);
        } else {
            out.iter_mut().zip(column.as_slice()).for_each(|(p, s)| *p = beta * *p + alpha * s);
        }
    }
}

/// Columns of a triangle that are unpacked together: with a thousand rows they fit the second-level cache, so that a
/// packed triangle is read once from memory and never written out dense.
pub const PANEL: usize = 64;

/// Panels of a triangle of this order, as first column and width.
pub fn panels(order: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..order).step_by(PANEL).map(move |start| (start, PANEL.min(order - start)))
}

/// Columns `start..start + width` of a packed lower triangle, rows from `start` on; zero above the diagonal.
pub fn unpack_panel(packed: &[f64], order: usize, start: usize, width: usize, dst: &mut Mat) {
    dst.resize(order - start, width);
    for k in 0..width {
        let (column, first) = (dst.col_mut(k), packed_column(order, start + k));
        column[..k].fill(0.0);
        column[k..].copy_from_slice(&packed[first..first + order - start - k]);
    }
}

/// The part of a packed lower triangle that holds column `j`, from the diagonal down.
pub fn packed_range(order: usize, j: usize) -> std::ops::Range<usize> {
    let first = packed_column(order, j);
    first..first + order - j
}

/// Dot product.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Eight running sums let the compiler vectorise; the order is fixed, so results repeat.
    let mut sums = [0.0; 8];
    let (chunks_a, chunks_b) = (a.chunks_exact(8), b.chunks_exact(8));
    let tail: f64 = chunks_a.remainder().iter().zip(chunks_b.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in chunks_a.zip(chunks_b) {
        for i in 0..8 {
            sums[i] += x[i] * y[i];
        }
    }
    sums.iter().sum::<f64>() + tail
}

/// Whether every number is finite.
pub fn all_finite(values: &[f64]) -> bool {
    // Zero times a number that is not finite is not a number, and sums keep it: no branch, so it vectorises.
    values.par_chunks(1 << 14).all(|part| {
        let (chunks, mut sums) = (part.chunks_exact(8), [0.0; 8]);
        let tail = chunks.remainder().iter().all(|v| v.is_finite());
        chunks.for_each(|c| (0..8).for_each(|i| sums[i] += 0.0 * c[i]));
        tail && sums.iter().all(|s| *s == 0.0)
    })
}

/// Squared Euclidean norm.
pub fn norm_squared(a: &[f64]) -> f64 {
    dot(a, a)
}

#[cfg(test)]
mod tests;
