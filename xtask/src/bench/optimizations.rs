//! What each idea of the fused engine bought: steps with one of them switched off.

use super::child::{Job, Mode};
use super::clock::Times;
use super::configs::{Config, Sizes};
use super::images::{Kind, folder, load};
use super::report::Report;
use super::steps::missing;
use anyhow::Result;
use convgp::Model;
use convgp::cov::{Engine, Fused, Optimizations};
use convgp::data::Dataset;
use convgp::rng::Rng;
use convgp::train::Trainer;
use std::path::Path;
use std::time::Instant;

const ON: Optimizations =
    Optimizations { merge: true, handover: true, symmetric: true, box_filter: true, vector: true };

const VARIANTS: [(&str, Optimizations); 6] = [
    ("nothing", ON),
    ("merged views", Optimizations { merge: false, ..ON }),
    ("handed-over moments", Optimizations { handover: false, ..ON }),
    ("symmetric half of kff", Optimizations { symmetric: false, ..ON }),
    ("box filters", Optimizations { box_filter: false, ..ON }),
    ("vector instructions in tiles", Optimizations { vector: false, ..ON }),
];

/// One engine at work on its own model.
trait Runner {
    fn step(&mut self) -> Result<()>;
}

impl<E: Engine> Runner for Trainer<'_, E> {
    fn step(&mut self) -> Result<()> {
        Trainer::step(self)?;
        Ok(())
    }
}

/// R, M1, C1 and C1cp.
pub fn run(report: Report, data: Option<&Path>, rounds: usize, names: &[&str]) -> Result<()> {
    let note = "Seconds per step (natural steps for q, all threads) with one idea of the engine off, everything else \
                on; `single precision` is off when tiles are f64. One process, variants in turn, so that noise hits \
                all alike. A factor above 1 is what the idea buys there.";
    let mut table = report.table("optimizations", note);
    let mut left_out = Vec::new();
    for name in names {
        let config = Config::find(name)?;
        for kind in [Kind::Real, Kind::Random] {
            if kind == Kind::Real && folder(config, data).is_none() {
                left_out.push(missing(config));
                continue;
            }
            let set = load(config, kind, data, Sizes::default())?;
            let times = measure(config, kind, &set, rounds)?;
            let base = times[0].1.median();
            for (off, times) in &times {
                table.add(&vec![
                    ("config", (*name).into()),
                    ("images", kind.name().into()),
                    ("off", (*off).into()),
                    ("median_s", times.median().into()),
                    ("min_s", times.min().into()),
                    ("max_s", times.max().into()),
                    ("n", times.0.len().into()),
                    ("factor", (times.median() / base).into()),
                ]);
            }
        }
    }
    left_out.iter().for_each(|line| report.note(line));
    Ok(())
}

fn measure(config: &Config, kind: Kind, data: &Dataset, rounds: usize) -> Result<Vec<(&'static str, Times)>> {
    let engines = VARIANTS.map(|(_, optimizations)| Fused::<f32>::with_optimizations(optimizations));
    let double = Fused::<f64>::default();
    let mut names = VARIANTS.map(|(name, _)| name).to_vec();
    names.push("single precision");
    let mut models = Vec::new();
    for _ in &names {
        models.push(Model::new(&config.model(Sizes::default())?, Some(data.images()), &mut Rng::new(1))?);
    }
    let job = Job {
        config: config.name.into(),
        mode: Mode::Natural,
        images: kind,
        data: None,
        threads: 0,
        steps: rounds,
        sizes: Sizes::default(),
        predict: 0,
    };
    let spec = job.train_spec(config);
    let mut runners: Vec<Box<dyn Runner + '_>> = Vec::new();
    for (i, (model, params)) in models.iter().enumerate() {
        let params = params.clone();
        runners.push(match engines.get(i) {
            Some(engine) => Box::new(Trainer::new(model, engine, data, &spec, params)?),
            None => Box::new(Trainer::new(model, &double, data, &spec, params)?),
        });
    }
    let mut times = vec![Times::default(); names.len()];
    for round in 0..=rounds {
        for (runner, times) in runners.iter_mut().zip(&mut times) {
            let start = Instant::now();
            runner.step()?;
            if round > 0 {
                times.0.push(start.elapsed().as_secs_f64());
            }
        }
    }
    Ok(names.into_iter().zip(times).collect())
}
