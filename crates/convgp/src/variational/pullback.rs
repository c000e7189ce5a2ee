//! Pullback of the marginals and the divergence.

use super::{Form, PosteriorScratch, Variational};
use crate::cov::Cov;
use crate::likelihood::Expectations;
use crate::linalg::{self, Accumulate, Mat, MatRef, cholesky_pullback, gemm};
use crate::params::{Params, packed_len};
use rayon::prelude::*;

impl Variational {
    /// Given derivatives `gm`, `gv` of the scaled expectation term (in `expect`), writes cotangents of all covariances
    /// and writes the gradient of `expectation - KL` in `q` into `grad` (covariance form only; natural steps need none).
    ///
    /// ```text
    /// dm_l = A gm_l - m_l
    /// dR_l = tril(2 A diag(gv_l) A^T R_l) - R_l + diag(1 / R_l[i, i])
    /// dA   = sum_l m_l gm_l^T + 2 (S_l - I) A diag(gv_l)
    /// dKuf = L^{-T} dA,   dkff = sum_l gv_l,   dKuu = -sym(L^{-T} Phi(dA A^T) L^{-1})
    /// ```
    ///
    /// The last line is the usual pullback through Kuf and the Cholesky factor, simplified: with `X = L^{-T} dA A^T`
    /// the factor's cotangent is `-tril(X)`, and `L^T` times the strict upper half of `X` stays strictly upper, so
    /// `Phi(L^T tril(X)) = Phi(L^T X) = Phi(dA A^T)`: no triangular product is left.
    #[allow(clippy::too_many_arguments)] // forward's inputs, and one buffer per output
    pub fn pullback(
        &self,
        params: &Params,
        chol: &[Mat],
        expect: &Expectations,
        s: &mut PosteriorScratch,
        cov_bar: &mut [Cov],
        kuu_bar: &mut [Mat],
        grad: &mut [f64],
    ) {
        let q_bar: &mut [f64] = match params.form() {
            Form::Covariance => self.slot().of_mut(grad),
            Form::Natural => &mut [],
        };
        self.pull_latents(params, expect, s, q_bar);
        self.sum_a_bar(expect, s);
        for (c, phi) in kuu_bar.iter_mut().enumerate() {
            let m = chol[c].rows();
            phi.resize(m, m);
            phi.fill(0.0);
            for b in self.blocks.iter().filter(|b| b.component == c) {
                let a = s.a.view().subrows(b.rows.start, m);
                let a_bar = s.a_bar.view().subrows(b.rows.start, m);
                par_gemm_lower(phi, a_bar, a);
            }
        }
        if !self.whitened {
            self.unwhiten_pullback(chol, s, q_bar, kuu_bar);
        }
        for (c, phi) in kuu_bar.iter_mut().enumerate() {
            (0..phi.rows()).for_each(|i| phi[(i, i)] *= 0.5);
            cholesky_pullback(chol[c].view(), phi);
        }
        self.pull_covariances(chol, expect, s, cov_bar);
    }

    /// Gradient in `q` (covariance form), and `products[l] <- 2 S_l A diag(gv_l)`.
    fn pull_latents(
        &self,
        params: &Params,
        expect: &Expectations,
        s: &mut PosteriorScratch,
        q_bar: &mut [f64],
    ) {
        let (latents, total) = (self.latents, self.total);
        let (a, means, pool, factors) = (&s.a, &s.means, &s.pool, &s.factors);
        let q = self.q_values(params, &s.whitened);
        let images = a.cols();
        if params.form() == Form::Covariance {
            let gm = MatRef::from_column_major_slice(&expect.mean_bar, latents, images);
            let bar =
                linalg::MatMut::from_column_major_slice_mut(&mut q_bar[..self.mean.len()], total, latents);
            gemm(bar, Accumulate::Set, 1.0, a.view(), gm.transpose());
            q_bar[..self.mean.len()].iter_mut().zip(means.data()).for_each(|(b, m)| *b -= m);
        }
        let triangles_start = self.mean.len().min(q_bar.len());
        let bars = self.split_by_latent(&mut q_bar[triangles_start..]);
        s.products.par_iter_mut().zip(bars).enumerate().for_each(|(l, (t, mut bars))| {
            for n in 0..images {
                let gv = expect.var_bar[n * latents + l];
                t.col_mut(n).iter_mut().for_each(|t| *t *= gv);
            }
            for (g, group) in self.groups.iter().enumerate() {
                let (start, order) = (group.rows.start, group.order());
                let mut u = t.view_mut().subrows_mut(start, order);
                if params.form() == Form::Natural {
                    linalg::solve_lower_t(factors[l][g].view(), u.as_mut());
                    for n in 0..images {
                        t.col_mut(n)[group.rows.clone()].iter_mut().for_each(|t| *t *= 2.0);
                    }
                    continue;
                }
                pool.with(|panel, product, _| {
                    let triangle = self.q_triangle(q, g, l);
                    product.resize(order, images);
                    product.fill(0.0);
                    let a = a.view().subrows(start, order);
                    for (first, width) in linalg::panels(order) {
                        let (below, u) = (order - first, u.as_ref().subrows(first, width));
                        linalg::unpack_panel(triangle, order, first, width, panel);
                        let out = product.view_mut().subrows_mut(first, below);
                        gemm(out, Accumulate::Add, 2.0, panel.view(), u);
                        gemm(panel.view_mut(), Accumulate::Set, 2.0, a.subrows(first, below), u.transpose());
                        write_factor_bar(panel, first, triangle, order, bars[g]);
                    }
                    u.copy_from(product.view());
                });
            }
        });
    }

    /// Cuts the triangles' part of an array laid out like [`Variational::slot`] into `[latent][group]` pieces.
    pub(super) fn split_by_latent<'a>(&self, mut triangles: &'a mut [f64]) -> Vec<Vec<&'a mut [f64]>> {
        let mut out: Vec<Vec<&mut [f64]>> = (0..self.latents).map(|_| Vec::new()).collect();
        if triangles.is_empty() {
            return out;
        }
        for group in &self.groups {
            for latent in &mut out {
                let (head, tail) = triangles.split_at_mut(packed_len(group.order()));
                latent.push(head);
                triangles = tail;
            }
        }
        out
    }

    /// `dA = sum_l products[l] + m_l gm_l^T - 2 A diag(sum_l gv_l)`; latents are added in order.
    fn sum_a_bar(&self, expect: &Expectations, s: &mut PosteriorScratch) {
        let (latents, total, images) = (self.latents, self.total, s.a.cols());
        s.a_bar.resize(total, images);
        let gm = MatRef::from_column_major_slice(&expect.mean_bar, latents, images);
        gemm(s.a_bar.view_mut(), Accumulate::Set, 1.0, s.means.view(), gm);
        let (a, products, clamped) = (&s.a, &s.products, &s.clamped);
        s.a_bar.data_mut().par_chunks_mut(total).enumerate().for_each(|(n, bar)| {
            for product in products {
                bar.iter_mut().zip(product.col(n)).for_each(|(b, p)| *b += p);
            }
            let gv = base_bar(expect, latents, clamped, n);
            bar.iter_mut().zip(a.col(n)).for_each(|(b, a)| *b -= 2.0 * gv * a);
        });
    }

    fn pull_covariances(
        &self,
        chol: &[Mat],
        expect: &Expectations,
        s: &PosteriorScratch,
        cov_bar: &mut [Cov],
    ) {
        let images = s.a.cols();
        for b in &self.blocks {
            let kuf = &mut cov_bar[b.component].kuf[b.response];
            let a_bar = s.a_bar.view().subrows(b.rows.start, b.rows.len());
            linalg::par_solve_lower_t_of(chol[b.component].view(), a_bar, kuf.view_mut());
            let kff = &mut cov_bar[b.component].kff[b.response];
            (0..images).for_each(|n| kff[n] = base_bar(expect, self.latents, &s.clamped, n));
        }
    }
}

/// Derivative in the conditional prior variance, shared by all latents; zero where that variance was clamped.
fn base_bar(expect: &Expectations, latents: usize, clamped: &[bool], n: usize) -> f64 {
    if clamped[n] { 0.0 } else { expect.var_bar[n * latents..(n + 1) * latents].iter().sum() }
}

/// Columns from `first` on: the data's part in `panel`, and `-R + diag(1 / R[i, i])` from the divergence.
fn write_factor_bar(panel: &Mat, first: usize, triangle: &[f64], order: usize, bar: &mut [f64]) {
    for k in 0..panel.cols() {
        let range = linalg::packed_range(order, first + k);
        let r = &triangle[range.clone()];
        let out = &mut bar[range];
        for ((out, data), r) in out.iter_mut().zip(&panel.col(k)[k..]).zip(r) {
            *out = data - r;
        }
        out[0] += 1.0 / r[0];
    }
}

/// Lower triangle of `dst += a b^T`, by column chunks shared between threads.
fn par_gemm_lower(dst: &mut Mat, a: MatRef<'_>, b: MatRef<'_>) {
    const COLUMNS: usize = 64;
    let n = dst.rows();
    dst.data_mut().par_chunks_mut(n * COLUMNS).enumerate().for_each(|(chunk, columns)| {
        let (start, width) = (chunk * COLUMNS, columns.len() / n);
        let out = linalg::MatMut::from_column_major_slice_mut(columns, n, width);
        let out = out.subrows_mut(start, n - start);
        gemm(out, Accumulate::Add, 1.0, a.subrows(start, n - start), b.subrows(start, width).transpose());
    });
}
