//! A posterior stored over `u` itself: `m_v = L^{-1} m_u`, `R_v = L^{-1} R_u`, and the pullback of that change.

use super::{PosteriorScratch, Variational};
use crate::linalg::{self, Accumulate, Mat, MatRef, gemm_lower};
use crate::params::packed_len;

impl Variational {
    /// Fills `s.whitened` from the stored, unwhitened numbers.
    pub(super) fn write_whitened(&self, values: &[f64], chol: &[Mat], s: &mut PosteriorScratch) {
        s.whitened.clear();
        s.whitened.extend_from_slice(self.slot().of(values));
        self.change_of_basis(chol, &mut s.whitened, linalg::solve_lower);
    }

    /// The numbers of `q` rewritten over `v`, for importing a posterior over `u`.
    pub fn whiten(&self, q_u: &[f64], chol: &[Mat]) -> Vec<f64> {
        let mut q = q_u.to_vec();
        self.change_of_basis(chol, &mut q, linalg::solve_lower);
        q
    }

    /// The numbers of a whitened `q` rewritten over `u`, for export.
    pub fn unwhiten(&self, q_v: &[f64], chol: &[Mat]) -> Vec<f64> {
        let mut q = q_v.to_vec();
        self.change_of_basis(chol, &mut q, |l, mut rhs| {
            let copy = rhs.as_ref().to_owned();
            linalg::mul_lower(rhs.as_mut(), Accumulate::Set, 1.0, l, copy.as_ref());
        });
        q
    }

    /// Applies `op(L_c, rows of block c)` to means and factors of an array laid out like [`Variational::slot`].
    fn change_of_basis(&self, chol: &[Mat], q: &mut [f64], op: impl Fn(MatRef<'_>, linalg::MatMut<'_>)) {
        let (means, triangles) = q.split_at_mut(self.mean.len());
        let mut means = linalg::MatMut::from_column_major_slice_mut(means, self.total, self.latents);
        for b in &self.blocks {
            op(chol[b.component].view(), means.as_mut().subrows_mut(b.rows.start, b.rows.len()));
        }
        let mut offset = 0;
        for group in &self.groups {
            let (order, len) = (group.order(), packed_len(group.order()));
            for packed in triangles[offset..offset + self.latents * len].chunks_exact_mut(len) {
                let mut r = Mat::zeros(order, order);
                linalg::unpack_lower(packed, r.view_mut());
                for b in self.blocks.iter().filter(|b| group.rows.contains(&b.rows.start)) {
                    let first = b.rows.start - group.rows.start;
                    op(chol[b.component].view(), r.view_mut().subrows_mut(first, b.rows.len()));
                }
                linalg::pack_lower(r.view(), 0.0, 1.0, packed);
            }
            offset += self.latents * len;
        }
    }

    /// Turns the gradient in the whitened numbers into one in the stored numbers (in place) and adds what flows into
    /// each factor `L`: since `R_v = L^{-1} R_u`, `Phi` receives `dR_v R_v^T`, and `dm_v m_v^T` likewise.
    pub(super) fn unwhiten_pullback(
        &self,
        chol: &[Mat],
        s: &PosteriorScratch,
        q_bar: &mut [f64],
        phi: &mut [Mat],
    ) {
        let mean_bar = MatRef::from_column_major_slice(&q_bar[..self.mean.len()], self.total, self.latents);
        for b in &self.blocks {
            let rows = |m: MatRef<'_>| -> Mat {
                Mat::from_fn(b.rows.len(), m.ncols(), |i, j| m[(b.rows.start + i, j)])
            };
            let (bar, value) = (rows(mean_bar), rows(s.means.view()));
            gemm_lower(
                phi[b.component].view_mut(),
                Accumulate::Add,
                1.0,
                bar.view(),
                value.view().transpose(),
            );
        }
        for (g, group) in self.groups.iter().enumerate() {
            let order = group.order();
            for l in 0..self.latents {
                let (mut bar, mut value) = (Mat::zeros(order, order), Mat::zeros(order, order));
                linalg::unpack_lower(self.q_triangle(q_bar, g, l), bar.view_mut());
                linalg::unpack_lower(self.q_triangle(&s.whitened, g, l), value.view_mut());
                for b in self.blocks.iter().filter(|b| group.rows.contains(&b.rows.start)) {
                    let (first, size) = (b.rows.start - group.rows.start, b.rows.len());
                    let value = value.view().subrows(first, size).transpose();
                    gemm_lower(
                        phi[b.component].view_mut(),
                        Accumulate::Add,
                        1.0,
                        bar.view().subrows(first, size),
                        value,
                    );
                }
            }
        }
        self.change_of_basis(chol, q_bar, linalg::solve_lower_t);
    }
}
