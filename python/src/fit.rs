//! Training: chunks of steps without the interpreter, and a look at it in between.

use crate::arrays::dictionary;
use crate::data::Data;
use crate::failure::{Failure, Outcome};
use crate::model::{Model, duration};
use crate::pool::run;
use convgp::cov::Fused;
use convgp::data::Dataset;
use convgp::io::SavedModel;
use convgp::metrics::Figures;
use convgp::train::pace::Pace;
use convgp::train::{Budget, Control, Latest, Moment, Observer, StepReport, Trainer, Trigger, sharpness};
use convgp::variational::Form;
use pyo3::prelude::*;
use std::time::{Duration, Instant};

/// Steps go on for so long before Python is asked whether somebody pressed Ctrl-C.
const CHUNK: Duration = Duration::from_millis(50);
/// Evaluations in a run, unless the user says how often.
const EVALUATIONS: u64 = 20;

#[pymethods]
impl Model {
    /// Trains for `steps` or `seconds` (or as long as its own settings say). `on_row` is called with a dictionary after every
    /// evaluation, `on_tick` with steps taken, steps planned and the bound between chunks of steps; training ends when either returns
    /// true. What they raise, and Ctrl-C, ends it too: the model is then the one of the last step.
    #[pyo3(signature = (data, held_out=None, *, steps=None, seconds=None, evaluate_every=None, threads=None, on_row=None, on_tick=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments
    fn fit(
        &mut self,
        py: Python<'_>,
        data: &Data,
        held_out: Option<&Data>,
        steps: Option<u64>,
        seconds: Option<f64>,
        evaluate_every: Option<u64>,
        threads: Option<usize>,
        on_row: Option<&Bound<'_, PyAny>>,
        on_tick: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        let dataset = data.dataset()?;
        let held_out = held_out.map(Data::dataset).transpose()?;
        self.train.steps = steps.unwrap_or(self.train.steps);
        let budget = match seconds {
            Some(seconds) => Budget::Seconds(duration(seconds)?.as_secs_f64()),
            None => Budget::Steps(self.train.steps),
        };
        let SavedModel { model, values, .. } = &mut self.saved;
        if self.train.sharpen {
            model.set_sharpness(1.0)?;
        }
        let engine = Fused::<f32>::default();
        let mut trainer = Trainer::new(model, &engine, &dataset, &self.train, values.clone())?;
        let pace = Pace::new(budget, 0, 0.0);
        if let Some(total) = pace.first_total(trainer.total_steps()) {
            trainer.set_total_steps(total);
        }
        let images = dataset.len();
        let mut sitting = Sitting {
            trainer,
            pace,
            images,
            held_out,
            evaluate_every,
            evaluated_at: 0,
            latest: Latest::default(),
            started: Instant::now(),
        };
        let ended = sitting.run(py, threads, on_row, on_tick);
        // Parameters after an error are those of the last step that was taken: good, because bad ones are rolled back.
        let mut new = sitting.trainer.into_values();
        model.set_form(Form::Covariance, &mut new)?;
        *values = new;
        ended?;
        if self.train.sharpen
            && let Some(power) = run(py, threads, || Ok(sharpness(model, &engine, values, &dataset)?))?
        {
            model.set_sharpness(power)?;
        }
        Ok(())
    }
}

/// A training run.
struct Sitting<'a> {
    trainer: Trainer<'a, Fused>,
    pace: Pace,
    images: usize,
    held_out: Option<Dataset>,
    evaluate_every: Option<u64>,
    evaluated_at: u64,
    latest: Latest,
    started: Instant,
}

type Callback<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

impl Sitting<'_> {
    fn run(
        &mut self,
        py: Python<'_>,
        threads: Option<usize>,
        on_row: Callback<'_, '_>,
        on_tick: Callback<'_, '_>,
    ) -> Outcome<()> {
        while !self.is_over() {
            run(py, threads, || self.chunk())?;
            let (step, total) = (self.trainer.steps_taken(), self.trainer.total_steps());
            let asked = on_tick.map(|f| stops(&f.call1((step, total, self.latest.bound))?)).transpose()?;
            if self.is_over() || self.is_evaluated(step) {
                let row = run(py, threads, || self.evaluate())?;
                if let Some(on_row) = on_row
                    && stops(&on_row.call1((dictionary(py, &row)?,))?)?
                {
                    return Ok(());
                }
            }
            py.check_signals()?;
            if asked == Some(true) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn is_over(&self) -> bool {
        self.trainer.steps_taken() >= self.trainer.total_steps() || self.pace.is_over(self.seconds())
    }

    /// Steps between evaluations.
    fn rhythm(&self) -> u64 {
        self.evaluate_every.unwrap_or_else(|| self.trainer.total_steps().div_ceil(EVALUATIONS)).max(1)
    }

    fn is_evaluated(&self, step: u64) -> bool {
        step.is_multiple_of(self.rhythm()) && step != self.evaluated_at
    }

    /// Steps until Python should have a look; makes or corrects the plan of a run limited by time.
    fn chunk(&mut self) -> Outcome<()> {
        let (begun, started, images) = (Instant::now(), self.started, self.images);
        let every = self.rhythm();
        let (pace, latest) = (&self.pace, &mut self.latest);
        let stop = |report: &StepReport| {
            let due = report.step.is_multiple_of(every)
                || pace.is_due(report.step, started.elapsed().as_secs_f64())
                || begun.elapsed() >= CHUNK;
            if due { Control::Stop } else { Control::Continue }
        };
        let watch = Observer::new(Trigger::Steps(1), |m: &Moment<'_>| {
            latest.look(m, images);
            Ok(())
        });
        self.trainer.run(stop, &mut [watch])?;
        let (step, seconds) = (self.trainer.steps_taken(), self.seconds());
        if let Some((total, _)) = self.pace.plan(step, seconds, self.trainer.total_steps()) {
            self.trainer.set_total_steps(total);
        }
        Ok(())
    }

    /// A row of the history.
    fn evaluate(&mut self) -> Outcome<serde_json::Value> {
        self.evaluated_at = self.trainer.steps_taken();
        let (model, values) = (self.trainer.model(), self.trainer.values());
        let held_out = self.held_out.as_ref().map(|data| Figures::of(model, values, data)).transpose()?;
        Ok(serde_json::to_value(self.latest.row(self.evaluated_at, self.seconds(), held_out))?)
    }
}

/// Whether a callback wants to stop.
fn stops(answer: &Bound<'_, PyAny>) -> Result<bool, Failure> {
    Ok(answer.is_truthy()?)
}
