//! Exact covariances of images: the literal double sum, for tests and small exact Gaussian processes.

use super::reference::views_of;
use crate::component::Component;
use crate::data::Batch;
use crate::linalg::Mat;

/// `k_f(x, x') = sum_r sum_pq w_rp w_rq k_g(x[p], x'[q])`, every image of `a` against every image of `b`. White noise
/// belongs to one image and is not included.
///
/// Work: `A B P^2` kernel values per response.
pub fn exact_cross_covariance(component: &Component, values: &[f64], a: &Batch, b: &Batch) -> Mat {
    let (e, theta) = (component.view_len(), component.theta(values));
    let mut out = Mat::zeros(a.len(), b.len());
    for response in component.responses() {
        let weights = response.weights(values);
        let views_a: Vec<_> = (0..a.len()).map(|i| views_of(response, a.image(i))).collect();
        for j in 0..b.len() {
            let views_b = views_of(response, b.image(j));
            for (i, views_a) in views_a.iter().enumerate() {
                for (va, wa) in views_a.chunks_exact(e).zip(&weights) {
                    for (vb, wb) in views_b.chunks_exact(e).zip(&weights) {
                        out[(i, j)] += wa * wb * component.kernel().value(theta, va, vb);
                    }
                }
            }
        }
    }
    out
}

/// Covariance matrix of `f` at the images of a batch, white noise on its diagonal (once per response).
pub fn exact_covariance(component: &Component, values: &[f64], batch: &Batch) -> Mat {
    let mut out = exact_cross_covariance(component, values, batch, batch);
    let white = component.white(values) * component.responses().len() as f64;
    (0..batch.len()).for_each(|i| out[(i, i)] += white);
    out
}
