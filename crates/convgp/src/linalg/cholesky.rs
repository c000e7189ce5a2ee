//! Cholesky factors: in place, as a type, by blocks, in parallel, and back through them.

use super::*;
use faer::linalg::cholesky::llt;

/// Scratch of [`cholesky`], kept by the caller.
#[derive(Default)]
pub struct CholeskyScratch(Option<(usize, MemBuffer)>);

impl std::fmt::Debug for CholeskyScratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CholeskyScratch").finish_non_exhaustive()
    }
}

/// Lower Cholesky factor in place, from the lower triangle of `k`. What lies above the diagonal is not meaningful
/// afterwards.
pub fn cholesky(k: MatMut<'_>, scratch: &mut CholeskyScratch) -> Result<(), NotPositiveDefinite> {
    let n = k.nrows();
    if scratch.0.as_ref().is_none_or(|(size, _)| *size < n) {
        let need = llt::factor::cholesky_in_place_scratch::<f64>(n, Par::Seq, Default::default());
        scratch.0 = Some((n, MemBuffer::new(need)));
    }
    let (_, memory) = scratch.0.as_mut().expect("was filled just above");
    let stack = MemStack::new(memory);
    llt::factor::cholesky_in_place(k, Default::default(), Par::Seq, stack, Default::default())
        .map(|_| ())
        .map_err(|e| match e {
            llt::factor::LltError::NonPositivePivot { index } => NotPositiveDefinite { row: index },
        })
}

/// The factor `L` of a positive definite `K = L L^T`, lower triangular.
///
/// ```
/// use convgp::linalg::{Cholesky, Mat};
///
/// let k = Mat::from_columns(vec![4.0, 2.0, 2.0, 5.0], 2);
/// let factor = Cholesky::new(k)?;
/// assert_eq!(factor.half_log_det(), 4f64.ln()); // |K| = 16
/// let mut x = [8.0, 16.0];
/// factor.solve(&mut x);
/// assert_eq!(x, [0.5, 3.0]);
/// # Ok::<(), convgp::linalg::NotPositiveDefinite>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Cholesky {
    factor: Mat,
}

impl Cholesky {
    /// Of `k`, of which the lower triangle is read.
    pub fn new(k: Mat) -> Result<Self, NotPositiveDefinite> {
        let size = k.rows();
        Self::by_blocks(k, &[size])
    }

    /// The same by blocks of the given sizes, see [`cholesky_by_blocks`].
    pub fn by_blocks(mut k: Mat, sizes: &[usize]) -> Result<Self, NotPositiveDefinite> {
        cholesky_by_blocks(k.view_mut(), sizes, &mut CholeskyScratch::default())?;
        k.zero_upper();
        Ok(Self { factor: k })
    }

    /// With this lower triangle, packed by columns; its diagonal must be positive.
    pub fn from_packed(packed: &[f64], order: usize) -> Self {
        let mut factor = Mat::zeros(order, order);
        unpack_lower(packed, factor.view_mut());
        factor.zero_upper();
        Self { factor }
    }

    /// `L`, zeros above its diagonal.
    pub fn lower(&self) -> &Mat {
        &self.factor
    }
    /// `log |L|`, half the log-determinant of `K`.
    pub fn half_log_det(&self) -> f64 {
        (0..self.factor.rows()).map(|i| libm::log(self.factor[(i, i)])).sum()
    }
    /// `rhs <- L^{-1} rhs`.
    pub fn whiten(&self, rhs: MatMut<'_>) {
        solve_lower(self.factor.view(), rhs);
    }
    /// `x <- L^{-1} x`.
    pub fn whiten_vector(&self, x: &mut [f64]) {
        let rows = x.len();
        self.whiten(MatMut::from_column_major_slice_mut(x, rows, 1));
    }
    /// `x <- K^{-1} x`.
    pub fn solve(&self, x: &mut [f64]) {
        let rows = x.len();
        let mut x = MatMut::from_column_major_slice_mut(x, rows, 1);
        solve_lower(self.factor.view(), x.as_mut());
        solve_lower_t(self.factor.view(), x);
    }
    /// The lower triangle of `K^{-1}`.
    pub fn inverse(&self) -> Mat {
        let order = self.factor.rows();
        let (mut inverse, mut product) = (Mat::zeros(order, order), Mat::zeros(order, order));
        invert_lower(inverse.view_mut(), self.factor.view());
        own_t_times_lower(product.view_mut(), inverse.view());
        product
    }
}

/// [`cholesky`] by blocks of the given sizes: only the diagonal blocks are ever factorised.
pub fn cholesky_by_blocks(
    mut k: MatMut<'_>,
    sizes: &[usize],
    scratch: &mut CholeskyScratch,
) -> Result<(), NotPositiveDefinite> {
    let mut start = 0;
    for &size in sizes {
        let (_, _, _, trailing) = k.as_mut().split_at_mut(start, start);
        let (mut diagonal, _, mut below, mut rest) = trailing.split_at_mut(size, size);
        cholesky(diagonal.as_mut(), scratch).map_err(|e| NotPositiveDefinite { row: start + e.row })?;
        // below <- below L^{-T}, that is L^{-1} below^T
        solve_lower(diagonal.as_ref(), below.as_mut().transpose_mut());
        gemm_lower(rest.as_mut(), Accumulate::Add, -1.0, below.as_ref(), below.as_ref().transpose());
        start += size;
    }
    Ok(())
}

/// `Phi -> -sym(L^{-T} Phi L^{-1})`, the pullback of `K = L L^T` for a lower triangular `Phi` (diagonal already halved).
///
/// On entry `phi` holds the lower triangle, on exit the symmetric result. Work: 4/3 M^3 flops, shared between threads.
pub fn cholesky_pullback(l: MatRef<'_>, phi: &mut Mat) {
    let n = phi.rows();
    // Phi L^{-1}, that is L^{-T} Phi^T: the first rows of Phi only meet the leading part of L.
    phi.zero_upper();
    by_columns(phi.view_mut().transpose_mut(), |first, chunk| {
        let end = first + chunk.ncols();
        solve_lower_t(l.submatrix(0, 0, end, end), chunk.subrows_mut(0, end));
    });
    par_solve_lower_t(l, phi.view_mut());
    for_tiles(n, |columns, rows| {
        for j in columns {
            for i in rows.start.max(j)..rows.end {
                let x = -0.5 * (phi.data[j * n + i] + phi.data[i * n + j]);
                (phi.data[j * n + i], phi.data[i * n + j]) = (x, x);
            }
        }
    });
}

/// [`cholesky`] of a large matrix, its blocks shared between threads. What lies above the diagonal is left alone.
pub fn par_cholesky(mut k: MatMut<'_>, scratch: &mut CholeskyScratch) -> Result<(), NotPositiveDefinite> {
    let n = k.nrows();
    let mut own = Mat::default();
    for start in (0..n).step_by(BLOCK) {
        let size = BLOCK.min(n - start);
        let (_, _, _, trailing) = k.as_mut().split_at_mut(start, start);
        let (mut diagonal, _, mut below, rest) = trailing.split_at_mut(size, size);
        // In a copy, since the factorisation writes above the diagonal.
        own.resize(size, size);
        own.view_mut().copy_from(diagonal.as_ref());
        cholesky(own.view_mut(), scratch).map_err(|e| NotPositiveDefinite { row: start + e.row })?;
        diagonal.copy_from_triangular_lower(own.view());
        let diagonal = diagonal.as_ref();
        // below <- below L^{-T}, that is L^{-1} below^T
        let parts = column_blocks(below.as_mut().transpose_mut());
        parts.into_par_iter().for_each(|part| solve_lower(diagonal, part));
        let below = below.as_ref();
        column_blocks(rest).into_par_iter().enumerate().for_each(|(j, part)| {
            let (first, width) = (j * BLOCK, part.ncols());
            let rows = below.nrows() - first;
            let (_, lower) = part.split_at_row_mut(first);
            let (mut square, mut rectangle) = lower.split_at_row_mut(width);
            let (own, others) = (below.subrows(first, width), below.subrows(first + width, rows - width));
            gemm_lower(square.as_mut(), Accumulate::Add, -1.0, own, own.transpose());
            gemm(rectangle.as_mut(), Accumulate::Add, -1.0, others, own.transpose());
        });
    }
    Ok(())
}
