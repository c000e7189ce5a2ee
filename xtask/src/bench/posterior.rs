//! The posterior algebra: marginals, their pullback, and the natural step, against a double-precision product.

use super::clock::{Times, Watch};
use super::limits::Limits;
use super::report::{Report, Row};
use anyhow::{Result, anyhow};
use convgp::cov::{Cov, Need};
use convgp::likelihood::{Expectations, Marginals};
use convgp::linalg::Mat;
use convgp::model::PosteriorSpec;
use convgp::params::Layout;
use convgp::params::Params;
use convgp::rng::Rng;
use convgp::variational::{Form, PosteriorScratch, Variational};
use std::sync::Arc;

/// Inducing inputs, images, latents.
const SIZES: [(usize, usize, usize); 5] =
    [(100, 100, 10), (750, 40, 10), (750, 200, 10), (1000, 40, 10), (1500, 200, 10)];

/// All sizes, in both forms of q.
pub fn run(report: Report, limits: &Limits, quick: bool) -> Result<()> {
    let note = "One thread, f64. Floating-point operations as triangular algorithms need them (a triangular product or \
                solve of M x B: M^2 B; a Cholesky factor: M^3 / 3; the pullback of Kuu's factor: 2 M^3), against the \
                speed of a 256 x 256 x 256 product. `covariance` is the form for Adam, `natural` for natural steps.";
    let mut table = report.table("posterior", note);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let (sizes, rounds) = if quick { (&SIZES[..2], 2) } else { (&SIZES[..], 5) };
    pool.install(|| {
        for &size in sizes {
            for form in [Form::Covariance, Form::Natural] {
                for (what, times, flops) in measure(size, form, rounds)? {
                    table.add(&row(what, size, form, &times, flops, limits.gemm));
                }
            }
        }
        Ok(())
    })
}

fn row(
    what: &str,
    (m, b, l): (usize, usize, usize),
    form: Form,
    times: &Times,
    flops: f64,
    limit: f64,
) -> Row {
    let rate = flops / times.median();
    vec![
        ("operation", what.into()),
        ("form", if form == Form::Natural { "natural" } else { "covariance" }.into()),
        ("M", m.into()),
        ("B", b.into()),
        ("L", l.into()),
        ("median_ms", (1e3 * times.median()).into()),
        ("min_ms", (1e3 * times.min()).into()),
        ("max_ms", (1e3 * times.max()).into()),
        ("GFLOP_per_s", (rate / 1e9).into()),
        ("share_percent", (100.0 * rate / limit).into()),
    ]
}

/// Operation, times, floating-point operations.
type Measured = (&'static str, Times, f64);

fn measure((m, b, l): (usize, usize, usize), form: Form, rounds: usize) -> Result<Vec<Measured>> {
    let (mut layout, mut values, mut rng) = (Layout::default(), Vec::new(), Rng::new(5));
    let q = Variational::register(l, &[(m, 1)], PosteriorSpec::default(), &mut layout, &mut values)?;
    let mut params = Params::new(Arc::new(layout), values);
    q.set_form(form, &mut params).map_err(|e| anyhow!("latent {} is indefinite", e.latent))?;
    // A well-conditioned factor and a conditional variance that stays positive.
    let near_identity = |i: usize, j: usize| if i == j { 1.0 } else { 0.1 / (1 + i + j) as f64 };
    let chol = vec![Mat::from_fn(m, m, |i, j| if i < j { 0.0 } else { near_identity(i, j) })];
    let mut cov = vec![Cov::default()];
    cov[0].resize(1, m, b);
    cov[0].kuf[0].data_mut().iter_mut().for_each(|k| *k = 0.1 * rng.normal());
    cov[0].kff[0].fill(m as f64);
    let mut expect = Expectations::default();
    expect.reset(b, l, 0);
    expect.mean_bar.iter_mut().for_each(|g| *g = rng.normal());
    expect.var_bar.iter_mut().for_each(|g| *g = -rng.uniform());
    let (mut cov_bar, mut kuu_bar) = (cov.clone(), vec![Mat::default()]);
    let (mut scratch, mut marginals) = (PosteriorScratch::default(), Marginals::default());
    let (mut grad, mut watch) = (vec![0.0; params.len()], Watch::default());
    for round in 0..=rounds {
        watch
            .time("marginals", || {
                q.marginals(&params, &chol, &cov, Need::Value, &mut scratch, &mut marginals)
            })
            .map_err(|e| anyhow!("latent {} is indefinite", e.latent))?;
        watch.time("pullback", || {
            q.pullback(&params, &chol, &expect, &mut scratch, &mut cov_bar, &mut kuu_bar, &mut grad);
        });
        if form == Form::Natural {
            watch.time("step", || q.natural_step(0.01, Some(f64::INFINITY), &expect, &scratch, &mut params));
        }
        if round == 0 {
            watch.clear();
        }
    }
    let (m, b, l) = (m as f64, b as f64, l as f64);
    let (product, cube) = (m * m * b, m * m * m);
    let natural = form == Form::Natural;
    let forward = (l + 1.0) * product + if natural { l * cube / 3.0 } else { 0.0 };
    // Per latent a triangular product or solve, and for covariances the lower half of a gradient.
    let back = (if natural { l } else { 2.0 * l } + 2.0) * product + 2.0 * cube;
    let mut out =
        vec![("marginals", watch.times("marginals"), forward), ("pullback", watch.times("pullback"), back)];
    if natural {
        out.push(("natural step", watch.times("step"), l * product));
    }
    Ok(out)
}
