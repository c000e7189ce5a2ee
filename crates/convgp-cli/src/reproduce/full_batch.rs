//! Training on all images at once with L-BFGS, as the paper's RBF model on rectangles was.

use crate::clock::Clock;
use crate::events::{Event, Events};

use crate::interrupt;
use crate::progress::Progress;
use crate::session::{Ending, Setup, Trained};
use anyhow::Result;
use convgp::Model;
use convgp::cov::Fused;
use convgp::data::Dataset;
use convgp::io::save_prepared_model;
use convgp::metrics::Figures;
use convgp::optim::{Lbfgs, StopReason};
use convgp::train::{Budget, Row, maximise_bound};

/// Steps between looks at the clock, at the keyboard and at held-out images. What L-BFGS knows of the curvature is
/// learned anew after each.
const ROUND: u64 = 20;

/// Maximises the bound in double precision until it rests or the budget is used up. Inducing inputs stay in place where
/// the spec's `train.adam.z` is 0.
pub fn full_batch(
    solver: Lbfgs,
    setup: &Setup<'_>,
    data: &Dataset,
    (model, mut values): (&mut Model, Vec<f64>),
    events: &mut Events,
    progress: &Progress,
) -> Result<Trained> {
    if setup.experiment.train.adam.z == 0.0 {
        let names: Vec<String> = model.components().iter().map(|c| format!("{}.z", c.name())).collect();
        names
            .iter()
            .try_for_each(|z| model.layout_mut().set_trainable(z, false))
            .map_err(convgp::Error::from)?;
    }
    let (total, limit) = match setup.budget {
        Budget::Steps(steps) => (steps, f64::INFINITY),
        Budget::Seconds(limit) => (u64::MAX, limit),
    };
    let engine = Fused::<f64>::default();
    let (mut clock, mut step) = (Clock::start(0.0), 0);
    loop {
        let round = Lbfgs { max_steps: ROUND.min(total - step) as usize, ..solver };
        let report = maximise_bound(model, &engine, data, &round, &mut values)?;
        step += report.bounds.len() as u64 - 1;
        let (seconds, bound) = (clock.seconds(), report.bounds.last().copied());
        let judge = |data| Figures::of(model, &values, data);
        let figures = clock.aside(|| setup.held_out.map(judge).transpose())?;
        let row = Row {
            step,
            seconds,
            bound,
            held_out_error: figures.and_then(|f| f.error.or(f.rmse)),
            held_out_nlpp: figures.map(|f| f.nlpp),
            ..Row::default()
        };
        setup.run.append_row(&row)?;
        events.emit(&Event::Evaluation(&row))?;
        let held_out = figures
            .map_or(String::new(), |f| format!("; held out: error {}, NLPP {:.4}", f.error_text(), f.nlpp));
        let bound = bound.unwrap_or(f64::NAN);
        progress.note(&format!("step {step}, {seconds:.1} s: bound {bound:.4}{held_out}"));
        save_prepared_model(&setup.run.model(), model, &values, setup.class_names, setup.preparation)?;
        let rests = report.reason != StopReason::Steps;
        if rests || step >= total || seconds >= limit {
            return Ok(Trained { ending: Ending::Finished, step, seconds, values });
        }
        if interrupt::asked() {
            return Ok(Trained { ending: Ending::Interrupted, step, seconds, values });
        }
    }
}
