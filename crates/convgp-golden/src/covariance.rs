//! `kind: covariance`: windows, transforms, normalised covariances and the pullback of a contraction.

use crate::GoldenError;
use crate::closed_form::{Setup, compare_gradients, compare_images, compare_whitening, total_kff};
use crate::compare::Found;
use crate::node::Node;
use crate::report::{Precision, Report};
use convgp::cov::{Cov, Engine};
use convgp::likelihood::LikelihoodSpec;
use convgp::linalg::{Mat, dot};
use convgp::model::PosteriorSpec;
use convgp::variational::Structure;

/// Compares every array of the file.
pub fn check<E: Engine>(root: &Node, engine: &E, precision: Precision) -> Result<Report, GoldenError> {
    let posterior = PosteriorSpec { structure: Structure::Shared, whiten: true, rank: None };
    let setup = Setup::read(root, LikelihoodSpec::Labels { classes: 2 }, posterior)?;
    let (outputs, mut found) = (root.get("outputs")?, Found::default());
    compare_whitening(root, &setup.images, &mut found)?;
    let mut ours = setup.covariances(engine, &setup.images)?;
    setup.compare(&outputs, &ours, &mut found)?;
    let (c, n) = (setup.component(), ours.batch.len());
    let views = c.responses()[0].views();
    let mut last = vec![0.0; views.count() * views.len()];
    views.write(ours.batch.image(n - 1), &mut last);
    let shape = [views.count(), views.len()];
    found.compare("transformed", &outputs.get("transformed_last")?, &shape, &last)?;

    let factors = c.image_norm().apply(&ours.chol, &mut ours.cov);
    found.compare("factor", &outputs.get("factor")?, &[n], &factors)?;
    compare_images(&outputs, ["Kuf_normalised", "kff_normalised"], &ours.cov, &mut found)?;
    let (windows, m) = (ours.cov.kuf.len(), c.inducing());
    let (cot_kuf, cot_kff) =
        (root.get("cot_Kuf")?.array(&[windows, m, n])?, root.get("cot_kff")?.array(&[n])?);
    let at = |r: usize| move |k: usize, i: usize| (r * m + k) * n + i;
    let kuf: Vec<Mat> = (0..windows).map(|r| Mat::from_fn(m, n, |k, i| cot_kuf[at(r)(k, i)])).collect();
    let sums = kuf.iter().zip(&ours.cov.kuf).map(|(b, k)| dot(b.data(), k.data()));
    let contraction = sums.sum::<f64>() + dot(&cot_kff, &total_kff(&ours.cov));
    found.compare("contraction", &outputs.get("contraction")?, &[], &[contraction])?;

    let mut bar = Cov { kuf, kff: vec![cot_kff; windows] };
    let (mut kuu_bar, mut grad) = (Mat::zeros(m, m), vec![0.0; setup.values.len()]);
    c.image_norm().pullback(&ours.chol, &ours.cov, &factors, &mut bar, &mut kuu_bar);
    engine.kuu_pullback(c, &setup.values, &kuu_bar, &mut grad);
    engine.images_pullback(c, &setup.values, &ours.batch, &mut ours.saved, &bar, &mut grad);
    compare_gradients(&root.get("grads")?, &setup, &grad, &mut found)?;
    Ok(setup.report(&ours, precision, found))
}
