//! Training: stretches of work without the interpreter, and a look at it in between.

use crate::arrays::dictionary;
use crate::data::Data;
use crate::failure::{Failure, Outcome};
use crate::model::{Model, duration};
use crate::pool::run_interruptible;
use convgp::closed_form::{Options, Precision};
use convgp::cov::Fused;
use convgp::likelihood::Temperature;
use convgp::metrics::Metrics;
use convgp::params::Form;
use convgp::train::{
    self, Budget, ClosedForm, Problem, Request, Row, RunOptions, Sink, Solver, Status, Stochastic, Trainer,
};
use pyo3::prelude::*;
use std::sync::atomic::AtomicBool;

#[pymethods]
impl Model {
    /// Trains for `steps` or `seconds` (or as long as its own settings say); models for the closed-form solver are solved. `on_row` is
    /// called with a dictionary after every evaluation, `on_tick` with steps taken, steps planned and the bound many times a second; training
    /// ends when either returns true. What they raise, and Ctrl-C, ends it too: the model is then the one of the last step.
    /// With `keep_statistics`, a model that is solved can be updated.
    #[pyo3(signature = (data, held_out=None, *, steps=None, seconds=None, evaluate_every=None, keep_statistics=false, threads=None,
                        on_row=None, on_tick=None))]
    #[allow(clippy::too_many_arguments)] // keyword arguments
    fn fit(
        &mut self,
        py: Python<'_>,
        data: &Data,
        held_out: Option<&Data>,
        steps: Option<u64>,
        seconds: Option<f64>,
        evaluate_every: Option<u64>,
        keep_statistics: bool,
        threads: Option<usize>,
        on_row: Option<&Bound<'_, PyAny>>,
        on_tick: Option<&Bound<'_, PyAny>>,
    ) -> Outcome<()> {
        let dataset = self.dataset(data)?;
        let held_out = held_out.map(|data| self.dataset(data)).transpose()?;
        self.train.steps = steps.unwrap_or(self.train.steps);
        let budget = match seconds {
            Some(seconds) => Budget::Seconds(duration(seconds)?.as_secs_f64()),
            None => Budget::Steps(self.train.steps),
        };
        let (model, params) = (&*self.saved.model, self.saved.params.clone());
        let (engine, interrupt) = (Fused::<f32>::default(), AtomicBool::new(false));
        let mut solver: Box<dyn Solver + '_> = if model.is_closed_form() {
            // Images are added to and removed from sums in double precision without a trace.
            let precision = if keep_statistics { Precision::Double } else { Precision::Single };
            let options = Options { precision, ..Options::default() };
            let solver = ClosedForm::new(model, &engine, &dataset, options, params, |_, _| {});
            Box::new(solver.keeping_statistics(keep_statistics))
        } else {
            Box::new(Stochastic::new(Trainer::new(model, &engine, &dataset, &self.train, params)?))
        };
        let problem = Problem { model, data: &dataset, held_out: held_out.as_ref() };
        let options = RunOptions {
            evaluate_every,
            fit_temperature: self.train.fit_temperature,
            objective: self.train.objective,
            interrupt: Some(&interrupt),
            ..RunOptions::new(budget)
        };
        let mut callbacks = Callbacks { py, threads, interrupt: &interrupt, on_row, on_tick };
        let ended = train::run(&problem, solver.as_mut(), &options, &mut callbacks);
        // Parameters after an error are those of the last step that was taken: good, because bad ones are rolled back.
        self.statistics = solver.take_statistics();
        let mut params = solver.into_params();
        model.set_form(Form::Covariance, &mut params)?;
        self.saved.params = params;
        self.saved.temperature = Temperature::ONE;
        self.saved.temperature = ended?.temperature;
        Ok(())
    }
}

/// What Python hears of a run.
struct Callbacks<'a, 'py> {
    py: Python<'py>,
    threads: Option<usize>,
    interrupt: &'a AtomicBool,
    on_row: Option<&'a Bound<'py, PyAny>>,
    on_tick: Option<&'a Bound<'py, PyAny>>,
}

impl Sink for Callbacks<'_, '_> {
    type Error = Failure;

    fn compute<T: Send>(&mut self, work: impl FnOnce() -> convgp::Result<T> + Send) -> Outcome<T> {
        run_interruptible(self.py, self.threads, self.interrupt, || Ok(work()?))
    }

    fn tick(&mut self, status: &Status<'_>) -> Outcome<Request> {
        self.py.check_signals()?;
        let Some(on_tick) = self.on_tick else { return Ok(Request::Continue) };
        request(&on_tick.call1((status.step, status.total_steps, status.metrics.bound))?)
    }

    fn evaluation(
        &mut self,
        _status: &Status<'_>,
        row: &Row,
        _held_out: Option<&Metrics>,
        _is_best: bool,
    ) -> Outcome<Request> {
        let Some(on_row) = self.on_row else { return Ok(Request::Continue) };
        request(&on_row.call1((dictionary(self.py, &serde_json::to_value(row)?)?,))?)
    }
}

/// What a callback's answer asks for.
fn request(answer: &Bound<'_, PyAny>) -> Outcome<Request> {
    Ok(if answer.is_truthy()? { Request::Finish } else { Request::Continue })
}
