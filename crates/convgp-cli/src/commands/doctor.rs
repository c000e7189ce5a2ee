//! `convgp doctor`: what this machine offers, and numerical self-checks.

use crate::support::exit::Exit;
use anyhow::Result;
use clap::Args;
use convgp::collapsed::Collapsed;
use convgp::cov::{Engine, Fused, Reference};
use convgp::data::{Batch, Dataset, Targets};
use convgp::exact::ExactGp;
use convgp::memory::{available, size_text};
use convgp::model::Workspace;
use convgp::params::Params;
use convgp::rng::Rng;
use convgp::{Model, ModelSpec};
use std::io::Write;

/// Show what this machine offers and run numerical self-checks.
#[derive(Debug, Args)]
pub struct Doctor {}

/// A self-check: how far two ways of computing the same are apart, and how far they may be.
struct Check {
    name: &'static str,
    found: f64,
    allowed: f64,
}

/// Reports; fails when a self-check does.
pub fn run(_: &Doctor) -> Result<Exit> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "convgp {}, {} {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    )?;
    writeln!(out, "processor: {}", features())?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    writeln!(out, "threads: {} of {cores}", rayon::current_num_threads())?;
    let memory = available().map_or_else(|| "unknown".into(), size_text);
    writeln!(out, "memory available: {memory}")?;
    let mut exit = Exit::Done;
    for check in [sparse_against_exact()?, gradients()?, single_precision()?, double_precision()?] {
        let good = check.found <= check.allowed;
        let verdict = if good { "ok" } else { "FAILED" };
        let Check { name, found, allowed } = check;
        writeln!(out, "{verdict:6} {name}: {found:.1e} apart, {allowed:.0e} allowed")?;
        if !good {
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}

/// What the engine can use of the processor.
fn features() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let known = [
            ("avx2", std::is_x86_feature_detected!("avx2")),
            ("fma", std::is_x86_feature_detected!("fma")),
            ("avx512f", std::is_x86_feature_detected!("avx512f")),
        ];
        let have: Vec<&str> = known.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
        let used = if known[0].1 && known[1].1 {
            "the fast loops are in use"
        } else {
            "the fast loops need avx2 and fma"
        };
        format!("{} ({used})", if have.is_empty() { "no vector extensions".into() } else { have.join(", ") })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        "not x86-64: the portable loops are in use".into()
    }
}

/// Digits with targets the checks can use.
fn digits(count: usize, real: bool) -> Result<Dataset> {
    let (train, _) = convgp_data::sample::mnist();
    let some = train.select(&(0..count).collect::<Vec<_>>()).map_err(convgp::Error::from)?;
    let targets = match real {
        true => Targets::real((0..count).map(|i| (i as f64).sin()).collect()),
        false => Targets::classes((0..count).map(|i| i as u32 % 3).collect(), 3),
    };
    let data = targets.and_then(|t| Dataset::new(some.images().clone(), t));
    Ok(data.map_err(convgp::Error::from)?)
}

fn model(text: &str, data: &Dataset) -> Result<(Model, Params)> {
    let rng = &mut Rng::new(7);
    let (model, mut values) = Model::new(&ModelSpec::from_toml(text)?, Some(data.images()), rng)?;
    // Away from the start, where some derivatives vanish.
    let means = model.variational().mean_slot().of_mut(&mut values);
    means.iter_mut().for_each(|m| *m = rng.normal());
    Ok((model, values))
}

/// With an inducing input at every image the bound is the evidence.
fn sparse_against_exact() -> Result<Check> {
    let data = digits(12, true)?;
    let (model, values) = model(
        "image = { height = 28, width = 28 }
         likelihood = { type = 'gaussian' }
         jitter = { relative = 1e-10 }
         [[components]]
         views = { type = 'image' }
         kernel = { type = 'rbf', lengthscale = 8.0 }
         inducing = { count = 12 }",
        &data,
    )?;
    let exact = ExactGp::new(&model, &values, &data)?.log_evidence();
    let bound = Collapsed::new(&model, &Reference, &values, &data)?.value(&values)?;
    Ok(Check { name: "sparse bound against exact evidence", found: relative(bound, exact), allowed: 1e-6 })
}

const CONVOLUTION: &str = "
    image = { height = 28, width = 28 }
    likelihood = { type = 'robust-max', classes = 3 }
    [[components]]
    views = { type = 'patches', patch = 5, stride = 2 }
    weights = 'learned'
    normalise = true
    white = 1e-3
    kernel = { type = 'rbf', variance = 20.0 }
    inducing = { count = 20 }";

fn evaluate<E: Engine>(engine: &E, model: &Model, values: &Params, batch: &Batch) -> Result<(f64, Vec<f64>)> {
    let mut ws = Workspace::default();
    let bound = model.elbo_and_grad(engine, values, batch.of(100), &mut ws)?;
    Ok((bound.elbo, ws.grad))
}

/// Derivatives against central differences, at a few numbers of every parameter.
fn gradients() -> Result<Check> {
    let data = digits(4, false)?;
    let (model, values) = model(CONVOLUTION, &data)?;
    let batch = data.batch(&[0, 1, 2, 3]);
    let (_, grad) = evaluate(&Reference, &model, &values, &batch)?;
    let scale = grad.iter().fold(0.0f64, |m, g| m.max(g.abs()));
    let mut found = 0.0f64;
    for entry in model.layout().entries() {
        let middle = entry.slot.range().start + entry.slot.len() / 2;
        let step = 1e-5 * values[middle].abs().max(1.0);
        let at = |x: f64| {
            let mut moved = values.clone();
            moved[middle] = x;
            let mut ws = Workspace::default();
            model.elbo(&Reference, &moved, batch.of(100), &mut ws).map(|b| b.elbo)
        };
        let slope = (at(values[middle] + step)? - at(values[middle] - step)?) / (2.0 * step);
        found = found.max((slope - grad[middle]).abs() / scale);
    }
    Ok(Check { name: "derivatives against differences", found, allowed: 1e-6 })
}

fn fused_against_reference<E: Engine>(engine: &E, name: &'static str, allowed: f64) -> Result<Check> {
    let data = digits(10, false)?;
    let (model, values) = model(CONVOLUTION, &data)?;
    let batch = data.batch(&(0..10).collect::<Vec<_>>());
    let (bound, grad) = evaluate(engine, &model, &values, &batch)?;
    let (expected, expected_grad) = evaluate(&Reference, &model, &values, &batch)?;
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>().sqrt();
    let difference = norm(&mut grad.iter().zip(&expected_grad).map(|(a, b)| a - b));
    let gradient = difference / norm(&mut expected_grad.iter().copied());
    Ok(Check { name, found: relative(bound, expected).max(gradient), allowed })
}

fn single_precision() -> Result<Check> {
    fused_against_reference(&Fused::<f32>::default(), "fast engine against reference, single precision", 1e-3)
}

fn double_precision() -> Result<Check> {
    fused_against_reference(&Fused::<f64>::default(), "fast engine against reference, double precision", 1e-9)
}

fn relative(a: f64, b: f64) -> f64 {
    (a - b).abs() / b.abs()
}
