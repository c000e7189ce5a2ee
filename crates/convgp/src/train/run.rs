//! The one training loop: works in short stretches until the budget is spent, evaluates, saves, and tells a [`Sink`].

use super::clock::Clock;
use super::planner::StepPlanner;
use super::{Budget, Control, Event, Row, RunningMetrics, Solver, TrainerState, fit_temperature};
use crate::cov::Fused;
use crate::data::Dataset;
use crate::likelihood::Temperature;
use crate::metrics::Metrics;
use crate::model::{Model, Predictor};
use crate::objective::Objective;
use crate::params::Params;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between looks at what a user asks for.
const TICK: Duration = Duration::from_millis(50);

/// What is fitted, and to what.
#[derive(Debug, Clone, Copy)]
pub struct Problem<'a> {
    /// The model.
    pub model: &'a Model,
    /// Training images.
    pub data: &'a Dataset,
    /// Images for the held-out curve.
    pub held_out: Option<&'a Dataset>,
}

/// How long a run takes, and what happens on the way.
#[derive(Debug, Clone, Copy)]
pub struct RunOptions<'a> {
    /// How long to train.
    pub budget: Budget,
    /// Steps between evaluations; the solver's own number if absent.
    pub evaluate_every: Option<u64>,
    /// Time between checkpoints; at the end only if absent.
    pub checkpoint_every: Option<Duration>,
    /// Pause after so many steps of this run.
    pub stop_after: Option<u64>,
    /// Whether the temperature of predictions is fitted at the end.
    pub fit_temperature: bool,
    /// What was maximised, which decides how images are left out for it.
    pub objective: Objective,
    /// Seconds of training before the run was resumed.
    pub seconds: f64,
    /// Best held-out negative log predictive probability before the run was resumed.
    pub best_nlpp: Option<f64>,
    /// Interrupts the run when set, also in the middle of a long computation.
    pub interrupt: Option<&'a AtomicBool>,
}

impl RunOptions<'_> {
    /// From the first step, for so long, with a temperature at the end.
    pub fn new(budget: Budget) -> Self {
        Self {
            budget,
            evaluate_every: None,
            checkpoint_every: None,
            stop_after: None,
            fit_temperature: true,
            objective: Objective::default(),
            seconds: 0.0,
            best_nlpp: None,
            interrupt: None,
        }
    }
}

/// What a run is asked to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Go on.
    Continue,
    /// End as if the budget were spent.
    Finish,
    /// End at once.
    Interrupt,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The budget is spent, nothing is left to do, or a sink asked for it.
    Finished,
    /// As many steps as this run was to take.
    Paused,
    /// It was interrupted.
    Interrupted,
}

impl Ending {
    /// A word for events.
    pub fn name(self) -> &'static str {
        match self {
            Ending::Finished => "finished",
            Ending::Paused => "paused",
            Ending::Interrupted => "interrupted",
        }
    }
}

/// Where a run stands.
#[derive(Debug)]
pub struct Status<'a> {
    /// Steps taken.
    pub step: u64,
    /// Steps planned.
    pub total_steps: u64,
    /// Seconds of training, without evaluations.
    pub seconds: f64,
    /// What the last steps looked like.
    pub metrics: &'a RunningMetrics,
    /// Parameters.
    pub params: &'a Params,
    /// What a resumed run needs beside them, if it can be resumed.
    pub state: Option<&'a TrainerState>,
    /// Best held-out negative log predictive probability so far.
    pub best_nlpp: Option<f64>,
}

/// Hears what happens in a run, and may end it. Every method has a default that does nothing.
pub trait Sink {
    /// What its methods fail with; ends the run.
    type Error: From<crate::Error>;

    /// Does work that takes long: the place to choose threads or to release a lock.
    fn compute<T: Send>(&mut self, work: impl FnOnce() -> crate::Result<T> + Send) -> Result<T, Self::Error> {
        Ok(work()?)
    }
    /// Called many times a second.
    fn tick(&mut self, _status: &Status<'_>) -> Result<Request, Self::Error> {
        Ok(Request::Continue)
    }
    /// A run limited by time knows its speed, and so its number of steps.
    fn plan(&mut self, _status: &Status<'_>, _seconds_per_step: f64) -> Result<(), Self::Error> {
        Ok(())
    }
    /// A step did not go smoothly.
    fn trouble(&mut self, _status: &Status<'_>, _step: u64, _event: &Event) -> Result<(), Self::Error> {
        Ok(())
    }
    /// An evaluation, and whether it is the best on held-out images so far.
    fn evaluation(
        &mut self,
        _status: &Status<'_>,
        _row: &Row,
        _held_out: Option<&Metrics>,
        _is_best: bool,
    ) -> Result<Request, Self::Error> {
        Ok(Request::Continue)
    }
    /// Time to save.
    fn checkpoint(&mut self, _status: &Status<'_>) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// A sink that hears nothing.
impl Sink for () {
    type Error = crate::Error;
}

/// What a run came to. Its parameters are the solver's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended {
    /// Why it ended.
    pub ending: Ending,
    /// Steps taken.
    pub step: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Temperature of its predictions; 1 unless it was fitted.
    pub temperature: Temperature,
}

/// Lets a solver work until the budget is spent, it has nothing left to do, or it is asked to end.
///
/// ```
/// use convgp::cov::Reference;
/// use convgp::data::{Dataset, ImageShape, Images, Pixels, Targets};
/// use convgp::train::{self, Budget, Problem, RunOptions, Solver, Stochastic, Trainer, TrainSpec};
/// use convgp::{Model, ModelSpec, rng::Rng};
///
/// let spec = ModelSpec::from_toml(r#"
///     image = { height = 3, width = 3 }
///     likelihood = { type = "probit" }
///     [[components]]
///     views = { type = "patches", patch = 2 }
///     kernel = { type = "rbf" }
///     inducing = { count = 3 }
/// "#)?;
/// let pixels = (0..20 * 9).map(|i| (i * 37 % 255) as u8).collect();
/// let images = Images::new(ImageShape::new(3, 3, 1)?, Pixels::U8(pixels))?;
/// let data = Dataset::new(images, Targets::classes((0..20).map(|n| n % 2).collect(), 2)?)?;
/// let (model, params) = Model::new(&spec, Some(data.images()), &mut Rng::new(0))?;
///
/// let trainer = Trainer::new(&model, &Reference, &data, &TrainSpec::default(), params)?;
/// let mut solver = Stochastic::new(trainer);
/// let problem = Problem { model: &model, data: &data, held_out: None };
/// let ended = train::run(&problem, &mut solver, &RunOptions::new(Budget::Steps(5)), &mut ())?;
/// assert_eq!((ended.step, ended.ending), (5, train::Ending::Finished));
/// # Ok::<(), convgp::Error>(())
/// ```
pub fn run<S: Sink>(
    problem: &Problem<'_>,
    solver: &mut dyn Solver,
    options: &RunOptions<'_>,
    sink: &mut S,
) -> Result<Ended, S::Error> {
    let first_step = solver.steps().0;
    let planner = StepPlanner::new(options.budget, first_step, options.seconds);
    let total = match options.budget {
        Budget::Steps(total) => Some(total),
        Budget::Seconds(_) => planner.first_total(solver.steps().1),
    };
    total.into_iter().for_each(|total| solver.set_total_steps(total));
    let clock = Clock::start(options.seconds);
    let best_nlpp = options.best_nlpp;
    let run =
        Run { problem, solver, options, sink, planner, clock, first_step, best_nlpp, evaluated_at: None };
    run.drive()
}

struct Run<'r, 'p, S> {
    problem: &'r Problem<'p>,
    solver: &'r mut dyn Solver,
    options: &'r RunOptions<'r>,
    sink: &'r mut S,
    planner: StepPlanner,
    clock: Clock,
    first_step: u64,
    best_nlpp: Option<f64>,
    evaluated_at: Option<u64>,
}

impl<S: Sink> Run<'_, '_, S> {
    fn drive(mut self) -> Result<Ended, S::Error> {
        let mut checkpointed = Instant::now();
        loop {
            let every = self.options.evaluate_every.unwrap_or_else(|| self.solver.evaluate_every()).max(1);
            let rest = self.stretch(every)?;
            self.tell_troubles()?;
            self.plan()?;
            let mut request = self.tick()?;
            let step = self.solver.steps().0;
            let spent = rest == Control::Stop || step > 0 && self.planner.is_over(self.clock.seconds());
            if spent || request == Request::Finish || step.is_multiple_of(every) && step > 0 {
                request = request.max_with(self.evaluate()?);
            }
            let ending = if spent || request == Request::Finish {
                Some(Ending::Finished)
            } else if request == Request::Interrupt || self.is_interrupted() {
                Some(Ending::Interrupted)
            } else {
                self.is_paused(step).then_some(Ending::Paused)
            };
            let due = self.options.checkpoint_every.is_some_and(|every| checkpointed.elapsed() >= every);
            // Nothing is saved of an interrupted solver that has no steps.
            if (ending.is_some() || due) && (step > 0 || ending == Some(Ending::Finished)) {
                let status = status(self.solver, &self.clock, self.best_nlpp);
                self.sink.checkpoint(&status)?;
                checkpointed = Instant::now();
            }
            if let Some(ending) = ending {
                let (seconds, temperature) = (self.clock.seconds(), self.temperature(ending)?);
                return Ok(Ended { ending, step, seconds, temperature });
            }
        }
    }

    fn is_interrupted(&self) -> bool {
        self.options.interrupt.is_some_and(|flag| flag.load(Ordering::SeqCst))
    }
    fn is_paused(&self, step: u64) -> bool {
        self.options.stop_after.is_some_and(|n| step - self.first_step >= n)
    }

    /// Works until something is due.
    fn stretch(&mut self, every: u64) -> Result<Control, S::Error> {
        let Self { solver, sink, planner, clock, options, first_step, .. } = self;
        let begun = Instant::now();
        let mut due = |step: u64| {
            let paused = || options.stop_after.is_some_and(|n| step - *first_step >= n);
            let rhythm = || step.is_multiple_of(every) || begun.elapsed() >= TICK;
            // A solver without steps is not cut short by the clock: there would be nothing to show.
            step > 0 && (rhythm() || paused() || planner.is_due(step, clock.seconds()))
                || options.interrupt.is_some_and(|flag| flag.load(Ordering::SeqCst))
        };
        sink.compute(|| solver.advance(&mut due))
    }

    fn tell_troubles(&mut self) -> Result<(), S::Error> {
        for (step, event) in self.solver.take_events() {
            self.sink.trouble(&status(self.solver, &self.clock, self.best_nlpp), step, &event)?;
        }
        Ok(())
    }

    /// Makes or corrects the plan of a run limited by time.
    fn plan(&mut self) -> Result<(), S::Error> {
        let (step, total) = self.solver.steps();
        let Some((total, per_step)) = self.planner.plan(step, self.clock.seconds(), total) else {
            return Ok(());
        };
        self.solver.set_total_steps(total);
        self.sink.plan(&status(self.solver, &self.clock, self.best_nlpp), per_step)
    }

    fn tick(&mut self) -> Result<Request, S::Error> {
        self.sink.tick(&status(self.solver, &self.clock, self.best_nlpp))
    }

    /// A row of results.
    fn evaluate(&mut self) -> Result<Request, S::Error> {
        let step = self.solver.steps().0;
        if self.evaluated_at.replace(step) == Some(step) {
            return Ok(Request::Continue);
        }
        let seconds = self.clock.seconds();
        let Self { problem: Problem { model, held_out, .. }, solver, sink, clock, .. } = self;
        let (params, engine) = (solver.params(), Fused::<f32>::default());
        let metrics = |data| Metrics::of(&Predictor::new(model, &engine, params)?, data);
        let held_out = clock.aside(|| sink.compute(|| held_out.map(metrics).transpose()))?;
        let row = self.solver.metrics().row(step, seconds, held_out);
        let is_best = row.held_out_nlpp.is_some_and(|n| self.best_nlpp.is_none_or(|best| n < best));
        if is_best {
            self.best_nlpp = row.held_out_nlpp;
        }
        let status = status(self.solver, &self.clock, self.best_nlpp);
        self.sink.evaluation(&status, &row, held_out.as_ref(), is_best)
    }

    /// The temperature of a finished run's predictions.
    fn temperature(&mut self, ending: Ending) -> Result<Temperature, S::Error> {
        let wanted = self.options.fit_temperature && self.solver.leaves_temperature();
        if ending != Ending::Finished || !wanted {
            return Ok(Temperature::ONE);
        }
        let Problem { model, data, .. } = *self.problem;
        self.solver.release();
        let params = self.solver.params();
        let (engine, objective) = (Fused::<f32>::default(), self.options.objective);
        self.sink.compute(|| fit_temperature(model, &engine, params, data, objective))
    }
}

impl Request {
    /// The one that ends sooner.
    fn max_with(self, other: Self) -> Self {
        if self == Request::Continue { other } else { self }
    }
}

fn status<'a>(solver: &'a dyn Solver, clock: &Clock, best_nlpp: Option<f64>) -> Status<'a> {
    let (step, total_steps) = solver.steps();
    let (metrics, params, state) = (solver.metrics(), solver.params(), solver.state());
    Status { step, total_steps, seconds: clock.seconds(), metrics, params, state, best_nlpp }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closed_form::Options;
    use crate::cov::Reference;
    use crate::likelihood::LikelihoodSpec;
    use crate::model::PosteriorSpec;
    use crate::optim::Lbfgs;
    use crate::rng::Rng;
    use crate::train::testing::{classes, regression, small_spec};
    use crate::train::{ClosedForm, FullBatch, StatisticsFile, Stochastic, TrainSpec, Trainer};
    use crate::variational::Structure;
    use crate::{Error, ModelSpec};

    /// Notes what it hears, and asks for something at a step.
    #[derive(Default)]
    struct Heard {
        rows: Vec<u64>,
        saved: Vec<(u64, Vec<f64>, Option<TrainerState>)>,
        ask: Option<(u64, Request)>,
    }

    impl Sink for Heard {
        type Error = Error;
        fn tick(&mut self, status: &Status<'_>) -> Result<Request, Error> {
            Ok(self.ask.filter(|(step, _)| status.step >= *step).map_or(Request::Continue, |ask| ask.1))
        }
        fn evaluation(
            &mut self,
            _: &Status<'_>,
            row: &Row,
            held_out: Option<&Metrics>,
            _: bool,
        ) -> Result<Request, Error> {
            assert_eq!(row.held_out_nlpp, held_out.map(|m| m.nlpp));
            self.rows.push(row.step);
            Ok(Request::Continue)
        }
        fn checkpoint(&mut self, status: &Status<'_>) -> Result<(), Error> {
            self.saved.push((status.step, status.params.to_vec(), status.state.cloned()));
            Ok(())
        }
    }

    fn model(spec: &ModelSpec, data: &Dataset) -> (Model, Params) {
        Model::new(spec, Some(data.images()), &mut Rng::new(6)).unwrap()
    }

    fn probit() -> ModelSpec {
        ModelSpec { likelihood: LikelihoodSpec::probit(), ..small_spec() }
    }

    const SPEC: fn() -> TrainSpec = || TrainSpec { batch_size: 5, steps: 12, ..TrainSpec::default() };

    #[test]
    fn the_driver_changes_no_bit_and_a_paused_run_goes_on_to_the_same_ones() {
        let (data, held_out) = (classes(30, 4), classes(8, 5));
        let (model, params) = model(&probit(), &data);
        let problem = Problem { model: &model, data: &data, held_out: Some(&held_out) };
        let mut alone = Trainer::new(&model, &Reference, &data, &SPEC(), params.clone()).unwrap();
        (0..12).for_each(|_| _ = alone.step().unwrap());
        let options =
            RunOptions { evaluate_every: Some(5), stop_after: Some(7), ..RunOptions::new(Budget::Steps(12)) };
        let trainer = Trainer::new(&model, &Reference, &data, &SPEC(), params).unwrap();
        let mut heard = Heard::default();
        let ended = run(&problem, &mut Stochastic::new(trainer), &options, &mut heard).unwrap();
        assert_eq!((ended.ending, ended.step, ended.temperature), (Ending::Paused, 7, Temperature::ONE));
        let (step, values, state) = heard.saved.pop().unwrap();
        assert_eq!((step, &heard.rows), (7, &vec![5]));
        let trainer = Trainer::resume(&model, &Reference, &data, &SPEC(), values, state.unwrap()).unwrap();
        let options = RunOptions { stop_after: None, ..options };
        let mut solver = Stochastic::new(trainer);
        let ended = run(&problem, &mut solver, &options, &mut heard).unwrap();
        assert_eq!((ended.ending, ended.step, heard.rows), (Ending::Finished, 12, vec![5, 10, 12]));
        assert_eq!(solver.params(), alone.params());
    }

    #[test]
    fn a_sink_may_finish_a_run_or_interrupt_it() {
        let data = classes(20, 4);
        let (model, params) = model(&probit(), &data);
        let problem = Problem { model: &model, data: &data, held_out: None };
        for (request, ending) in
            [(Request::Finish, Ending::Finished), (Request::Interrupt, Ending::Interrupted)]
        {
            let trainer = Trainer::new(&model, &Reference, &data, &SPEC(), params.clone()).unwrap();
            let options = RunOptions { evaluate_every: Some(2), ..RunOptions::new(Budget::Steps(1 << 40)) };
            let mut heard = Heard { ask: Some((4, request)), ..Heard::default() };
            let ended = run(&problem, &mut Stochastic::new(trainer), &options, &mut heard).unwrap();
            assert_eq!(ended.ending, ending);
            assert_eq!(heard.saved.last().map(|s| s.0), Some(ended.step), "saved as it ended");
        }
    }

    #[test]
    fn the_closed_form_is_solved_at_once_and_an_interrupted_one_is_not_saved() {
        let (data, held_out) = (regression(30, 1), regression(9, 2));
        let posterior = PosteriorSpec { structure: Structure::Shared, whiten: true, rank: None };
        let (model, params) = model(&ModelSpec { posterior, ..small_spec() }, &data);
        let problem = Problem { model: &model, data: &data, held_out: Some(&held_out) };
        let interrupt = AtomicBool::new(true);
        for flag in [None, Some(&interrupt)] {
            let options = RunOptions { interrupt: flag, ..RunOptions::new(Budget::Seconds(1e-9)) };
            let mut solver = ClosedForm::new(
                &model,
                &Reference,
                &data,
                Options::default(),
                params.clone(),
                |read, all| assert!(read <= all),
            );
            let mut heard = Heard::default();
            let ended = run(&problem, &mut solver, &options, &mut heard).unwrap();
            if flag.is_none() {
                assert_eq!((ended.ending, heard.rows, heard.saved.len()), (Ending::Finished, vec![0], 1));
                assert!(solver.params() != &params && solver.note().unwrap().starts_with("solved: D = "));
            } else {
                assert_eq!((ended.ending, heard.rows, heard.saved.len()), (Ending::Interrupted, vec![], 0));
                assert_eq!(solver.params(), &params);
            }
        }
    }

    #[test]
    fn an_interrupted_closed_form_goes_on_from_its_statistics_to_the_same_bits() {
        let data = regression(600, 1);
        let posterior = PosteriorSpec { structure: Structure::Shared, whiten: true, rank: None };
        let (model, params) = model(&ModelSpec { posterior, ..small_spec() }, &data);
        let problem = Problem { model: &model, data: &data, held_out: None };
        let folder = tempfile::tempdir().unwrap();
        let file = StatisticsFile { path: folder.path().join("statistics.safetensors"), keep: false };
        let interrupt = AtomicBool::new(false);
        let options = RunOptions { interrupt: Some(&interrupt), ..RunOptions::new(Budget::Steps(1)) };
        let fit = |stop_at: usize, file: Option<&StatisticsFile>| {
            interrupt.store(false, Ordering::SeqCst);
            let watch = |read: usize, _: usize| interrupt.store(read >= stop_at, Ordering::SeqCst);
            let solver =
                ClosedForm::new(&model, &Reference, &data, Options::default(), params.clone(), watch);
            let mut solver = file.into_iter().fold(solver, |s, file| s.with_file(file.clone()));
            let ended = run(&problem, &mut solver, &options, &mut ()).unwrap();
            (ended.ending, Box::new(solver).into_params())
        };
        let (_, whole) = fit(usize::MAX, None);
        assert_eq!(fit(200, Some(&file)).0, Ending::Interrupted);
        assert!(file.path.is_file());
        assert_eq!(fit(usize::MAX, Some(&file)), (Ending::Finished, whole));
        assert!(!file.path.is_file(), "it has served");
    }

    #[test]
    fn full_batches_go_by_rounds_to_the_number_of_steps_asked_for() {
        let data = regression(10, 1);
        let (model, params) = model(&small_spec(), &data);
        let problem = Problem { model: &model, data: &data, held_out: None };
        let objective = Objective::default();
        let mut solver = FullBatch::new(&model, &Reference, &data, objective, Lbfgs::default(), params);
        let (options, mut heard) = (RunOptions::new(Budget::Steps(45)), Heard::default());
        let ended = run(&problem, &mut solver, &options, &mut heard).unwrap();
        assert_eq!((ended.step, heard.rows), (45, vec![20, 40, 45]));
        assert!(solver.metrics().bound.is_some());
    }
}
