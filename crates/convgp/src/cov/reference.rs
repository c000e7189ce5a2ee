//! The naive engine: double precision, every view cut out, every pair visited.

use super::{Cov, Engine, Need};
use crate::component::{Component, Response};
use crate::data::Batch;
use crate::kernel::PairBar;
use crate::linalg::Mat;

/// Double loops over kernel values. Slow and obvious: the judge of everything faster.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reference;

/// All views of one image, row-major `P x E`.
pub(super) fn views_of(response: &Response, image: &[f64]) -> Vec<f64> {
    let views = response.views();
    let mut out = vec![0.0; views.count() * views.len()];
    views.write(image, &mut out);
    out
}

impl Engine for Reference {
    type Saved = ();

    fn kuu(&self, c: &Component, values: &[f64], kuu: &mut Mat) {
        let (m, theta, white) = (c.inducing(), c.theta(values), c.white(values));
        kuu.resize(m, m);
        for j in 0..m {
            for i in 0..m {
                let k = c.kernel().value(theta, c.z(values, i), c.z(values, j));
                kuu[(i, j)] = if i == j { k + white } else { k };
            }
        }
    }

    fn kuu_pullback(&self, c: &Component, values: &[f64], kuu_bar: &Mat, grad: &mut [f64]) {
        let (m, e, theta) = (c.inducing(), c.view_len(), c.theta(values));
        let mut theta_bar = vec![0.0; theta.len()];
        for j in 0..m {
            let mut z_bar = vec![0.0; e];
            for i in 0..m {
                // Two of them: z_j is the right argument of k(z_i, z_j) and the left one of its mirror image. The
                // parameters see each ordered pair once.
                let mut pair_theta = vec![0.0; theta.len()];
                let g = kuu_bar[(i, j)];
                let (zi, zj) = (c.z(values, i), c.z(values, j));
                let mut bar = PairBar { theta: &mut pair_theta, b: Some(&mut z_bar) };
                c.kernel().pullback(theta, zi, zj, 2.0 * g, &mut bar);
                theta_bar.iter_mut().zip(&pair_theta).for_each(|(t, p)| *t += 0.5 * p);
            }
            c.z_slot().of_mut(grad)[j * e..(j + 1) * e].iter_mut().zip(&z_bar).for_each(|(g, z)| *g += z);
        }
        c.theta_slot().of_mut(grad).iter_mut().zip(&theta_bar).for_each(|(g, t)| *g += t);
        if let Some(white) = c.white_slot() {
            white.of_mut(grad)[0] += (0..m).map(|i| kuu_bar[(i, i)]).sum::<f64>();
        }
    }

    fn images(&self, c: &Component, values: &[f64], batch: &Batch, need: Need, _: &mut (), cov: &mut Cov) {
        let (e, theta, white) = (c.view_len(), c.theta(values), c.white(values));
        cov.resize(c.responses().len(), c.inducing(), batch.len());
        for (r, response) in c.responses().iter().enumerate() {
            let weights = response.weights(values);
            for n in 0..batch.len() {
                let views = views_of(response, batch.image(n));
                let view = |p: usize| &views[p * e..(p + 1) * e];
                for m in 0..c.inducing() {
                    let z = c.z(values, m);
                    cov.kuf[r][(m, n)] = weights
                        .iter()
                        .enumerate()
                        .map(|(p, w)| w * c.kernel().value(theta, view(p), z))
                        .sum();
                }
                if need != Need::Mean {
                    let mut sum = white;
                    for (p, wp) in weights.iter().enumerate() {
                        for (q, wq) in weights.iter().enumerate() {
                            sum += wp * wq * c.kernel().value(theta, view(p), view(q));
                        }
                    }
                    cov.kff[r][n] = sum;
                }
            }
        }
    }

    fn images_pullback(
        &self,
        c: &Component,
        values: &[f64],
        batch: &Batch,
        _: &mut (),
        cov_bar: &Cov,
        grad: &mut [f64],
    ) {
        let (e, theta) = (c.view_len(), c.theta(values));
        let mut theta_bar = vec![0.0; theta.len()];
        for (r, response) in c.responses().iter().enumerate() {
            let weights = response.weights(values);
            let mut weights_bar = vec![0.0; weights.len()];
            for n in 0..batch.len() {
                let views = views_of(response, batch.image(n));
                let view = |p: usize| &views[p * e..(p + 1) * e];
                for m in 0..c.inducing() {
                    let (z, g) = (c.z(values, m), cov_bar.kuf[r][(m, n)]);
                    let z_bar = &mut c.z_slot().of_mut(grad)[m * e..(m + 1) * e];
                    let mut bar = PairBar { theta: &mut theta_bar, b: Some(z_bar) };
                    for (p, w) in weights.iter().enumerate() {
                        weights_bar[p] += g * c.kernel().value(theta, view(p), z);
                        c.kernel().pullback(theta, view(p), z, g * w, &mut bar);
                    }
                }
                let (g, mut bar) = (cov_bar.kff[r][n], PairBar { theta: &mut theta_bar, b: None });
                for (p, wp) in weights.iter().enumerate() {
                    for (q, wq) in weights.iter().enumerate() {
                        weights_bar[p] += 2.0 * g * wq * c.kernel().value(theta, view(p), view(q));
                        c.kernel().pullback(theta, view(p), view(q), g * wp * wq, &mut bar);
                    }
                }
            }
            response.add_weights_bar(&weights_bar, grad);
            if let Some(white) = c.white_slot() {
                white.of_mut(grad)[0] += cov_bar.kff[r].iter().sum::<f64>();
            }
        }
        c.theta_slot().of_mut(grad).iter_mut().zip(&theta_bar).for_each(|(g, t)| *g += t);
    }
}
