//! Collapsed bounds and energies as functions of `A`, `kff` and the noise.

use super::indefinite;
use crate::Result;
use crate::linalg::{
    Accumulate, Cholesky, Mat, dot, gemm_lower, norm_squared, par_solve_lower_of, par_solve_lower_t,
};
use crate::objective::Objective;

/// What a collapsed objective depends on.
#[derive(Debug)]
pub(super) struct Inputs {
    /// `Mtot x N`.
    pub a: Mat,
    /// `kff[n] - |A[:, n]|^2`, never negative.
    pub d: Vec<f64>,
    /// Targets as the model sees them.
    pub y: Vec<f64>,
    /// The logarithm of their unit.
    pub log_scale: f64,
    pub noise: f64,
    pub objective: Objective,
}

/// Derivatives with `A`, `kff` and the noise variance taken as independent.
#[derive(Debug, Clone, PartialEq)]
pub struct Adjoints {
    /// In the whitened covariances, `Mtot x N`.
    pub a: Mat,
    /// In the prior variances.
    pub kff: Vec<f64>,
    /// In the noise variance.
    pub noise: f64,
}

/// The best posterior and the value there.
#[derive(Debug)]
pub(super) struct Optimum {
    /// `B`, the lower triangle.
    pub precision: Mat,
    /// Its factor.
    pub factor: Cholesky,
    pub theta: Vec<f64>,
    pub value: f64,
}

impl Inputs {
    /// `s2 + alpha d_n`, the noise that image `n` seems to have.
    fn sigma(&self, n: usize) -> f64 {
        self.noise + self.objective.alpha() * self.d[n]
    }

    /// `beta` in the penalty `log(1 + beta d_n / s2) / beta`.
    fn beta(&self) -> f64 {
        match self.objective {
            Objective::TightenedBound {} => 1.0,
            other => other.alpha(),
        }
    }

    fn penalty(&self, d: f64) -> f64 {
        let (beta, ratio) = (self.beta(), d / self.noise);
        if beta == 0.0 { ratio } else { libm::log1p(beta * ratio) / beta }
    }

    /// `B` is factorised by blocks of these sizes.
    pub fn optimum(&self, sizes: &[usize]) -> Result<Optimum> {
        let (m, n) = (self.a.rows(), self.a.cols());
        let mut weighted = self.a.clone();
        let mut theta = vec![0.0; m];
        for (i, y) in self.y.iter().enumerate() {
            let sigma = self.sigma(i);
            weighted.col_mut(i).iter_mut().for_each(|a| *a /= sigma);
            theta.iter_mut().zip(weighted.col(i)).for_each(|(t, a)| *t += a * y);
        }
        let mut precision = Mat::zeros(m, m);
        gemm_lower(precision.view_mut(), Accumulate::Set, 1.0, weighted.view(), self.a.view().transpose());
        (0..m).for_each(|i| precision[(i, i)] += 1.0);
        let factor = Cholesky::by_blocks(precision.clone(), sizes)
            .map_err(|e| indefinite("precision of the collapsed posterior", e, m))?;
        let mut c = theta.clone();
        factor.whiten_vector(&mut c);
        let constant = 0.5 * n as f64 * libm::log(std::f64::consts::TAU * self.noise);
        let squares: f64 = self.y.iter().enumerate().map(|(i, y)| y * y / self.sigma(i)).sum();
        let penalty: f64 = self.d.iter().map(|&d| self.penalty(d)).sum();
        let unit = n as f64 * self.log_scale;
        let value = 0.5 * (norm_squared(&c) - squares - penalty) - constant - factor.half_log_det() - unit;
        Ok(Optimum { precision, factor, theta, value })
    }

    /// Derivatives at the optimum.
    pub fn adjoints(&self, o: &Optimum) -> Adjoints {
        let (m, n) = (self.a.rows(), self.a.cols());
        let mean = o.mean();
        // B^{-1} A, column by column turned into the derivative.
        let mut a_bar = Mat::zeros(m, n);
        par_solve_lower_of(o.factor.lower().view(), self.a.view(), a_bar.view_mut());
        par_solve_lower_t(o.factor.lower().view(), a_bar.view_mut());
        let (alpha, beta, noise) = (self.objective.alpha(), self.beta(), self.noise);
        let (mut kff, mut noise_bar) = (Vec::with_capacity(n), 0.0);
        for i in 0..n {
            let (a, d, sigma) = (self.a.col(i), self.d[i], self.sigma(i));
            let residual = self.y[i] - dot(a, &mean);
            let explained = dot(a, a_bar.col(i));
            let t = 0.5 * (explained + residual * residual) / (sigma * sigma);
            let widened = noise + beta * d;
            let bar = alpha * t - 0.5 / widened;
            noise_bar += t + 0.5 * (d / widened - 1.0) / noise;
            let rows = a_bar.col_mut(i).iter_mut().zip(a).zip(&mean);
            rows.for_each(|((w, a), m)| *w = (m * residual - *w) / sigma - 2.0 * a * bar);
            kff.push(bar);
        }
        Adjoints { a: a_bar, kff, noise: noise_bar }
    }
}

impl Optimum {
    /// `B^{-1} theta`.
    pub fn mean(&self) -> Vec<f64> {
        let mut out = self.theta.clone();
        self.factor.solve(&mut out);
        out
    }
}
