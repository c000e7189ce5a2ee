//! The solution for one noise: from `G` where images are many, from `A^T A` where they are few.

use super::statistics::{Columns, Statistics, Sums, most_left_out};
use crate::linalg::{
    self, Accumulate, CholeskyScratch, Mat, NotPositiveDefinite, dot, inverse_blocks, par_cholesky, par_gemm,
    par_solve_lower,
};
use rayon::prelude::*;

/// Least share of itself that a left-out image leaves to the others, against rounding.
const LEAST_REST: f64 = 1e-9;

/// A way to the solution, and to images left out of it.
pub trait Solver {
    /// Mean of `|A_n|^2`.
    fn mean_square(&self) -> f64;
    /// Prepares everything below for a noise.
    fn factorise(&mut self, lambda: f64) -> Result<(), NotPositiveDefinite>;
    /// `w`, `D x L`.
    fn weights(&self) -> &Mat;
    /// The images that are left out in turn.
    fn left_out(&self) -> &LeftOut;
    /// The posterior: the factor `C` of `(G + lambda I) / lambda`, or `W`. An image counts once, however many copies it
    /// has: they are not observations of their own.
    fn into_posterior(self: Box<Self>, lambda: f64) -> Result<Mat, NotPositiveDefinite>;
}

/// Images left out in turn, each with its copies, and predicted by the solution without them.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// Their ids, in the order of everything below.
    pub ids: Vec<u64>,
    /// Their targets, `L x n`.
    pub targets: Mat,
    /// Their residuals, `L x n`.
    pub residuals: Mat,
    /// The noise variance that residuals ask for.
    pub noise: f64,
}

impl LeftOut {
    /// Every `width` columns of `targets` are an image and its copies.
    fn new(ids: Vec<u64>, targets: &Mat, width: usize) -> Self {
        let own = |l: usize, n: usize| targets[(l, n * width)];
        let targets = Mat::from_fn(targets.rows(), targets.cols() / width, own);
        Self { ids, targets, ..Self::default() }
    }

    /// Solves `R_S r_S = e_S` for the columns `S` of every image, `R = I - H` and `e` being the residuals of the fit. The
    /// blocks of `R` are beside each other in `rest`.
    fn solve(&mut self, rest: &Mat, e: &Mat) {
        let (width, latents, count) = (rest.rows(), e.rows(), self.targets.cols());
        let one = |n: usize| {
            let mut factor = Mat::from_fn(width, width, |i, j| rest[(i, n * width + j)]);
            (0..width).for_each(|i| factor[(i, i)] = factor[(i, i)].max(LEAST_REST));
            let mut r = Mat::from_fn(width, latents, |i, l| e[(l, n * width + i)]);
            // Rounding may spoil a block of copies that hardly differ; then the image is left out alone.
            if linalg::cholesky(factor.view_mut(), &mut CholeskyScratch::default()).is_ok() {
                linalg::solve_lower(factor.view(), r.view_mut());
                linalg::solve_lower_t(factor.view(), r.view_mut());
            } else {
                (0..latents).for_each(|l| r[(0, l)] /= rest[(0, n * width)].max(LEAST_REST));
            }
            let own: Vec<f64> = (0..latents).map(|l| r[(0, l)]).collect();
            let product = |l: usize| (0..width).map(|i| r[(i, l)] * e[(l, n * width + i)]).sum::<f64>();
            let square = (0..latents).map(product).sum::<f64>();
            (own, square)
        };
        let all: Vec<(Vec<f64>, f64)> = (0..count).into_par_iter().map(one).collect();
        self.noise = all.iter().map(|(_, square)| square).sum::<f64>() / (width * latents * count) as f64;
        self.residuals = Mat::from_columns(all.into_iter().flat_map(|(own, _)| own).collect(), latents);
    }
}

/// The way for these statistics.
pub fn solver(mut statistics: Statistics) -> Box<dyn Solver> {
    statistics.flush();
    let Statistics { width, outputs, ids, few, sums, .. } = statistics;
    match sums {
        Some(sums) => Box::new(Primal::new(sums, ids.len() * width, width)),
        None => {
            let targets = few.targets(width);
            Box::new(Dual::new(few.ids, Mat::from_columns(few.a, outputs), targets, width))
        }
    }
}

/// Many images: `G` in the upper triangle and on the diagonal kept apart, its factor in the lower triangle.
#[derive(Debug)]
pub struct Primal {
    g: Mat,
    diagonal: Vec<f64>,
    b: Mat,
    columns: usize,
    w: Mat,
    /// Features and targets of the images left out and of their copies.
    a: Mat,
    y: Mat,
    width: usize,
    left_out: LeftOut,
}

impl Primal {
    fn new(sums: Sums, columns: usize, width: usize) -> Self {
        let Sums { mut g, b, kept, .. } = sums;
        g.mirror_lower();
        let diagonal = (0..g.rows()).map(|i| g[(i, i)]).collect();
        let mut order: Vec<usize> = (0..kept.ids.len()).collect();
        order.sort_by_key(|&i| kept.ids[i]);
        order.truncate(most_left_out(width));
        let select = |numbers: &[f64], each: usize| -> Vec<f64> {
            order.iter().flat_map(|i| &numbers[i * each..(i + 1) * each]).copied().collect()
        };
        let a = Mat::from_columns(select(&kept.a, width * g.rows()), g.rows());
        let y = Columns { ids: vec![0; order.len()], a: Vec::new(), y: select(&kept.y, b.cols()) };
        let y = y.targets(width);
        let ids = order.iter().map(|&i| kept.ids[i]).collect();
        let left_out = LeftOut::new(ids, &y, width);
        Self { g, diagonal, b, columns, w: Mat::default(), a, y, width, left_out }
    }
}

impl Solver for Primal {
    fn mean_square(&self) -> f64 {
        self.diagonal.iter().sum::<f64>() / self.columns as f64
    }

    fn factorise(&mut self, lambda: f64) -> Result<(), NotPositiveDefinite> {
        let d = self.g.rows();
        self.g.mirror_upper();
        (0..d).for_each(|i| self.g[(i, i)] = self.diagonal[i] + lambda);
        par_cholesky(self.g.view_mut(), &mut CholeskyScratch::default())?;
        self.w.clone_from(&self.b);
        linalg::solve_lower(self.g.view(), self.w.view_mut());
        linalg::solve_lower_t(self.g.view(), self.w.view_mut());
        let mut e = self.y.clone();
        par_gemm(e.view_mut(), Accumulate::Add, -1.0, self.w.view().transpose(), self.a.view());
        let mut projected = self.a.clone();
        par_solve_lower(self.g.view(), projected.view_mut());
        let width = self.width;
        let share = |i: usize, j: usize| dot(projected.col(j / width * width + i), projected.col(j));
        let rest =
            Mat::from_fn(width, projected.cols(), |i, j| f64::from(u8::from(i == j % width)) - share(i, j));
        self.left_out.solve(&rest, &e);
        Ok(())
    }

    fn weights(&self) -> &Mat {
        &self.w
    }
    fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    fn into_posterior(mut self: Box<Self>, lambda: f64) -> Result<Mat, NotPositiveDefinite> {
        let once = 1.0 / self.width as f64;
        if self.width > 1 {
            self.g.mirror_upper();
            self.g.data_mut().iter_mut().for_each(|x| *x *= once);
            (0..self.g.rows()).for_each(|i| self.g[(i, i)] = once * self.diagonal[i] + lambda);
            par_cholesky(self.g.view_mut(), &mut CholeskyScratch::default())?;
        }
        let mut factor = self.g;
        let scale = 1.0 / lambda.sqrt();
        factor.data_mut().iter_mut().for_each(|x| *x *= scale);
        Ok(factor)
    }
}

/// Few images: everything from `K = A^T A`.
#[derive(Debug)]
pub struct Dual {
    a: Mat,
    y: Mat,
    width: usize,
    k: Mat,
    factor: Mat,
    w: Mat,
    left_out: LeftOut,
}

impl Dual {
    fn new(ids: Vec<u64>, a: Mat, y: Mat, width: usize) -> Self {
        let mut k = Mat::zeros(a.cols(), a.cols());
        par_gemm(k.view_mut(), Accumulate::Set, 1.0, a.view().transpose(), a.view());
        let left_out = LeftOut::new(ids, &y, width);
        Self { a, y, width, k, factor: Mat::default(), w: Mat::default(), left_out }
    }
}

impl Solver for Dual {
    fn mean_square(&self) -> f64 {
        (0..self.k.rows()).map(|i| self.k[(i, i)]).sum::<f64>() / self.k.rows() as f64
    }

    fn factorise(&mut self, lambda: f64) -> Result<(), NotPositiveDefinite> {
        let n = self.k.rows();
        self.factor.clone_from(&self.k);
        (0..n).for_each(|i| self.factor[(i, i)] += lambda);
        par_cholesky(self.factor.view_mut(), &mut CholeskyScratch::default())?;
        let factor = self.factor.view();
        // alpha = P Y with P = (K + lambda I)^{-1}; I - H = lambda P, and the residuals of the fit are lambda alpha.
        let latents = self.y.rows();
        let mut alpha = Mat::from_fn(n, latents, |i, l| self.y[(l, i)]);
        linalg::solve_lower(factor, alpha.view_mut());
        linalg::solve_lower_t(factor, alpha.view_mut());
        self.w.resize(self.a.rows(), latents);
        par_gemm(self.w.view_mut(), Accumulate::Set, 1.0, self.a.view(), alpha.view());
        let mut rest = inverse_blocks(factor, self.width);
        rest.data_mut().iter_mut().for_each(|x| *x *= lambda);
        self.left_out.solve(&rest, &Mat::from_fn(latents, n, |l, i| lambda * alpha[(i, l)]));
        Ok(())
    }

    fn weights(&self) -> &Mat {
        &self.w
    }
    fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// `W = A F^{-T}` with `F F^T = K + lambda I`: `W W^T = A (K + lambda I)^{-1} A^T`.
    fn into_posterior(self: Box<Self>, lambda: f64) -> Result<Mat, NotPositiveDefinite> {
        let Self { a, width, k, mut factor, .. } = *self;
        let images = a.cols() / width;
        if width > 1 {
            let once = |i: usize, j: usize| k[(i * width, j * width)] + if i == j { lambda } else { 0.0 };
            factor = Mat::from_fn(images, images, once);
            par_cholesky(factor.view_mut(), &mut CholeskyScratch::default())?;
        }
        // The columns of W^T are F^{-1} times the rows of A.
        let mut transposed = Mat::from_fn(images, a.rows(), |i, j| a[(j, i * width)]);
        par_solve_lower(factor.view(), transposed.view_mut());
        Ok(Mat::from_fn(a.rows(), images, |i, j| transposed[(j, i)]))
    }
}
