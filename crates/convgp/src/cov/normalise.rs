//! Images divided by the size of their response: `f(x) / c(x)` with a known `c`, still a Gaussian process.

use super::Cov;
use crate::component::ImageNorm;
use crate::linalg::{Accumulate, Mat, gemm, norm_squared, par_solve_lower_of, par_solve_lower_t};

impl ImageNorm {
    /// `c` of every image, from the unnormalised covariances of the component and the factor of its `Kuu`.
    pub fn factors(self, chol: &Mat, cov: &Cov) -> Vec<f64> {
        let images = cov.kuf[0].cols();
        let squares = match self {
            ImageNorm::None => return vec![1.0; images],
            ImageNorm::Kff => (0..images).map(|n| cov.kff.iter().map(|k| k[n]).sum()).collect(),
            ImageNorm::Nystrom => {
                let mut sums = vec![0.0; images];
                let mut a = Mat::default();
                for kuf in &cov.kuf {
                    a.resize(kuf.rows(), images);
                    par_solve_lower_of(chol.view(), kuf.view(), a.view_mut());
                    sums.iter_mut().enumerate().for_each(|(n, s)| *s += norm_squared(a.col(n)));
                }
                sums
            }
        };
        squares.into_iter().map(root).collect()
    }

    /// Divides `Kuf` by `c` and `kff` by its square; returns `c`.
    pub fn apply(self, chol: &Mat, cov: &mut Cov) -> Vec<f64> {
        let factors = self.factors(chol, cov);
        if self != ImageNorm::None {
            for kuf in &mut cov.kuf {
                for (n, c) in factors.iter().enumerate() {
                    kuf.col_mut(n).iter_mut().for_each(|k| *k /= c);
                }
            }
            for kff in &mut cov.kff {
                kff.iter_mut().zip(&factors).for_each(|(k, c)| *k /= c * c);
            }
        }
        factors
    }

    /// Pullback of [`ImageNorm::apply`]: `bar` comes in for the normalised covariances and goes out for those before;
    /// what flows through the factor of `Kuu` is added to `kuu_bar` (symmetric).
    pub fn pullback(self, chol: &Mat, normalised: &Cov, factors: &[f64], bar: &mut Cov, kuu_bar: &mut Mat) {
        if self == ImageNorm::None {
            return;
        }
        let c_bar: Vec<f64> = (0..factors.len())
            .map(|n| {
                let kuf = bar.kuf.iter().zip(&normalised.kuf);
                let kuf: f64 = kuf.map(|(b, k)| crate::linalg::dot(b.col(n), k.col(n))).sum();
                let kff: f64 = bar.kff.iter().zip(&normalised.kff).map(|(b, k)| b[n] * k[n]).sum();
                -(kuf + 2.0 * kff) / factors[n]
            })
            .collect();
        for (n, c) in factors.iter().enumerate() {
            bar.kuf.iter_mut().for_each(|b| b.col_mut(n).iter_mut().for_each(|b| *b /= c));
            bar.kff.iter_mut().for_each(|b| b[n] /= c * c);
        }
        if self == ImageNorm::Kff {
            for kff in &mut bar.kff {
                kff.iter_mut().zip(c_bar.iter().zip(factors)).for_each(|(b, (g, c))| *b += g / (2.0 * c));
            }
            return;
        }
        // c^2 = sum_r Kuf_r^T K^{-1} Kuf_r; the normalised Kuf times c is Kuf.
        for (kuf_bar, kuf) in bar.kuf.iter_mut().zip(&normalised.kuf) {
            let mut v = Mat::default();
            v.resize(kuf.rows(), kuf.cols());
            par_solve_lower_of(chol.view(), kuf.view(), v.view_mut());
            par_solve_lower_t(chol.view(), v.view_mut());
            let mut weighted = v.clone();
            for (n, (g, c)) in c_bar.iter().zip(factors).enumerate() {
                kuf_bar.col_mut(n).iter_mut().zip(v.col(n)).for_each(|(b, v)| *b += g * v);
                weighted.col_mut(n).iter_mut().for_each(|w| *w *= -0.5 * g * c);
            }
            gemm(kuu_bar.view_mut(), Accumulate::Add, 1.0, weighted.view(), v.view().transpose());
        }
    }
}

/// The root of a variance, not zero.
fn root(square: f64) -> f64 {
    square.max(f64::MIN_POSITIVE).sqrt()
}
