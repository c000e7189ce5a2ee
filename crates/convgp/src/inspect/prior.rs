//! What the prior expects: draws of the response at every view of an image.

use super::InspectError;
use crate::Result;
use crate::data::Images;
use crate::linalg::Mat;
use crate::model::{Model, sampling_factor};
use crate::rng::Rng;

/// Most views whose joint prior is factorised.
pub const MOST_VIEWS: usize = 4096;

/// `count` draws of the response map `w_p g(x[p])` of the first of `images`, `P` numbers each: `g` is drawn jointly at all
/// views, so equal views get equal answers.
///
/// Work: `P^2 / 2` kernel values and `P^3 / 3` flops.
pub fn prior_maps(
    model: &Model,
    values: &[f64],
    (component, response): (usize, usize),
    images: &Images,
    count: usize,
    rng: &mut Rng,
) -> Result<Vec<Vec<f64>>> {
    model.check_images(images.shape())?;
    let none = InspectError::NoResponse { component, response };
    let c = model.components().get(component).ok_or(none.clone())?;
    let r = c.responses().get(response).ok_or(none)?;
    let (views, theta, weights) = (r.views(), c.theta(values), r.weights(values));
    let (p, e) = (views.count(), views.len());
    if p > MOST_VIEWS {
        return Err(InspectError::TooManyViews { component: c.name().into(), views: p }.into());
    }
    let (mut image, mut all) = (vec![0.0; images.shape().len()], vec![0.0; p * e]);
    images.write_image(0, &mut image);
    views.write(&image, &mut all);
    let view = |i: usize| &all[i * e..(i + 1) * e];
    let mut k = Mat::zeros(p, p);
    for j in 0..p {
        for i in j..p {
            k[(i, j)] = c.kernel().value(theta, view(i), view(j));
        }
    }
    k.mirror_lower();
    let factor = sampling_factor(&k, "prior covariance of a response map")?;
    let mut draw = || {
        let mut g = vec![0.0; p];
        for j in 0..p {
            let e = rng.normal();
            g[j..].iter_mut().zip(&factor.lower().col(j)[j..]).for_each(|(g, f)| *g += f * e);
        }
        g.iter().zip(&weights).map(|(g, w)| g * w).collect()
    };
    Ok((0..count).map(|_| draw()).collect())
}
