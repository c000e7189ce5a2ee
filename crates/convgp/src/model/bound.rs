//! The evidence lower bound and all its derivatives.

use super::{Jitter, Model};
use crate::Result;
use crate::component::Component;
use crate::cov::{Cov, Engine, Need};
use crate::data::{Batch, Minibatch};
use crate::error::{NumericalError, SpecError};
use crate::likelihood::{Expectations, Integrand, Marginals};
use crate::linalg::{CholeskyScratch, Mat, cholesky};
use crate::params::{Form, Params};
use crate::variational::{PosteriorScratch, VarianceReport};

/// Times the jitter is multiplied by ten before a matrix is given up as indefinite.
pub const JITTER_TRIES: usize = 6;

/// The bound and its parts at one evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bound {
    /// `elbo = expectation - kl`.
    pub elbo: f64,
    /// `N / B sum_n E_q[log p(y_n | f_n)]`.
    pub expectation: f64,
    /// `sum_l KL(q_l || p)`.
    pub kl: f64,
    /// The largest jitter that was needed, relative to the mean diagonal.
    pub jitter: f64,
    /// How often jitter had to be raised.
    pub jitter_raised: usize,
    /// Conditional variances that rounding made negative.
    pub variances: VarianceReport,
}

/// The bound where its divergence may have been left out, as most steps of training in natural form do.
///
/// ```
/// use convgp::model::Evaluation;
///
/// let evaluation = Evaluation { expectation: -3.0, kl: Some(0.5), ..Evaluation::default() };
/// assert_eq!(evaluation.elbo(), Some(-3.5));
/// assert_eq!(Evaluation { kl: None, ..evaluation }.elbo(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Evaluation {
    /// `N / B sum_n E_q[log p(y_n | f_n)]`.
    pub expectation: f64,
    /// `sum_l KL(q_l || p)`, if it was computed.
    pub kl: Option<f64>,
    /// The largest jitter that was needed, relative to the mean diagonal.
    pub jitter: f64,
    /// How often jitter had to be raised.
    pub jitter_raised: usize,
    /// Conditional variances that rounding made negative.
    pub variances: VarianceReport,
}

impl Evaluation {
    /// `expectation - kl`, if the divergence was computed.
    pub fn elbo(&self) -> Option<f64> {
        self.kl.map(|kl| self.expectation - kl)
    }
}

/// Buffers of an evaluation; made once, reused at every step.
#[derive(Debug)]
pub struct Workspace<E: Engine> {
    pub(crate) kuu: Vec<Mat>,
    pub(crate) chol: Vec<Mat>,
    pub(crate) cov: Vec<Cov>,
    saved: Vec<E::Saved>,
    kuu_bar: Vec<Mat>,
    cov_bar: Vec<Cov>,
    pub(crate) posterior: PosteriorScratch,
    pub(crate) marginals: Marginals,
    pub(crate) expect: Expectations,
    cholesky: CholeskyScratch,
    /// Jitter of each component relative to the mean diagonal of its `Kuu`.
    jitter: Vec<f64>,
    /// Derivatives of the bound in every (constrained) parameter; without `q`, which comes last, in natural form.
    pub grad: Vec<f64>,
}

impl<E: Engine> Default for Workspace<E> {
    fn default() -> Self {
        Self {
            kuu: Vec::new(),
            chol: Vec::new(),
            cov: Vec::new(),
            saved: Vec::new(),
            kuu_bar: Vec::new(),
            cov_bar: Vec::new(),
            posterior: PosteriorScratch::default(),
            marginals: Marginals::default(),
            expect: Expectations::default(),
            cholesky: CholeskyScratch::default(),
            jitter: Vec::new(),
            grad: Vec::new(),
        }
    }
}

impl<E: Engine> Workspace<E> {
    /// Marginals of the latents at the last evaluation.
    pub fn marginals(&self) -> &Marginals {
        &self.marginals
    }
    /// Scaled derivatives of the expectation term at the last evaluation.
    pub fn expectations(&self) -> &Expectations {
        &self.expect
    }
    /// `Kuu` of each component at the last evaluation, without jitter.
    pub fn kuu(&self) -> &[Mat] {
        &self.kuu
    }
    /// `Kuf` and `kff` of each component at the last evaluation.
    pub fn cov(&self) -> &[Cov] {
        &self.cov
    }
    fn resize(&mut self, components: usize) {
        self.kuu.resize_with(components, Mat::default);
        self.chol.resize_with(components, Mat::default);
        self.cov.resize_with(components, Cov::default);
        self.saved.resize_with(components, E::Saved::default);
        self.kuu_bar.resize_with(components, Mat::default);
        self.cov_bar.resize_with(components, Cov::default);
        self.jitter.resize(components, 0.0);
    }
}

/// What an evaluation should produce.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wanted {
    /// The power of the expectations; 0 for the bound.
    pub alpha: f64,
    /// Derivatives too.
    pub gradient: bool,
    /// The divergence, which natural form has to pay for.
    pub kl: bool,
}

impl Model {
    /// The bound at `params` on a minibatch.
    pub fn elbo<E: Engine>(
        &self,
        engine: &E,
        params: &Params,
        on: Minibatch,
        ws: &mut Workspace<E>,
    ) -> Result<Bound> {
        self.bound(engine, params, on, 0.0, false, ws)
    }

    /// The bound and, in `ws.grad`, its derivatives in every parameter. In natural form `q`, whose numbers come last,
    /// is left out: natural steps move it.
    pub fn elbo_and_grad<E: Engine>(
        &self,
        engine: &E,
        params: &Params,
        on: Minibatch,
        ws: &mut Workspace<E>,
    ) -> Result<Bound> {
        self.energy_and_grad(engine, params, on, 0.0, ws)
    }

    /// The same for the power-EP energy with power `alpha`, 0 for the bound: expected log densities become
    /// `(1 / alpha) log E_q[p(y | f)^alpha]`.
    pub fn energy_and_grad<E: Engine>(
        &self,
        engine: &E,
        params: &Params,
        on: Minibatch,
        alpha: f64,
        ws: &mut Workspace<E>,
    ) -> Result<Bound> {
        self.bound(engine, params, on, alpha, true, ws)
    }

    fn bound<E: Engine>(
        &self,
        engine: &E,
        params: &Params,
        on: Minibatch,
        alpha: f64,
        gradient: bool,
        ws: &mut Workspace<E>,
    ) -> Result<Bound> {
        self.check_values(params)?;
        let wanted = Wanted { alpha, gradient, kl: true };
        let Evaluation { expectation, kl, jitter, jitter_raised, variances } =
            self.evaluate(engine, params, on, wanted, ws)?;
        let kl = kl.expect("was asked for");
        Ok(Bound { elbo: expectation - kl, expectation, kl, jitter, jitter_raised, variances })
    }

    /// One natural-gradient step of `q`, in place, from the evaluation held in `ws`: [`Model::elbo_and_grad`] at the
    /// same `params`, with `q` in natural form. See [`Variational::natural_step`](crate::variational::Variational::natural_step).
    pub fn natural_step<E: Engine>(
        &self,
        gamma: f64,
        trust_radius: Option<f64>,
        ws: &Workspace<E>,
        params: &mut Params,
    ) {
        self.variational.natural_step(gamma, trust_radius, &ws.expect, &ws.posterior, params);
    }

    /// An evaluation at values that are known to be finite.
    pub(crate) fn evaluate<E: Engine>(
        &self,
        engine: &E,
        params: &Params,
        on: Minibatch,
        wanted: Wanted,
        ws: &mut Workspace<E>,
    ) -> Result<Evaluation> {
        let batch = on.batch;
        self.check_batch(batch)?;
        if self.is_closed_form() {
            return Err(SpecError::ClosedFormOnly.into());
        }
        ws.resize(self.components.len());
        let mut evaluation = Evaluation::default();
        let need = if wanted.gradient { Need::Gradient } else { Need::Value };
        self.covariances(engine, params, batch, need, ws, &mut evaluation)?;
        evaluation.variances = self
            .variational
            .marginals(params, &ws.chol, &ws.cov, Need::Value, &mut ws.posterior, &mut ws.marginals)
            .map_err(NumericalError::from)?;
        let theta = self.likelihood_theta(params);
        ws.expect.reset(batch.len(), self.likelihood.latents(), theta.len());
        let of = Integrand {
            alpha: wanted.alpha,
            theta,
            q: &ws.marginals,
            targets: batch.targets(),
            draw: on.draw,
        };
        self.likelihood.expect(&of, &mut ws.expect);
        evaluation.expectation = on.scale() * weighted_sum(&ws.expect.value, batch.weights());
        evaluation.kl = wanted.kl.then(|| self.variational.kl(params, &ws.posterior));
        if wanted.gradient {
            self.pullback(engine, params, on, ws);
        }
        Ok(evaluation)
    }

    /// Steps 2 and 3 of an evaluation: all covariances, and the factors of every `Kuu`.
    fn covariances<E: Engine>(
        &self,
        engine: &E,
        params: &Params,
        batch: &Batch,
        need: Need,
        ws: &mut Workspace<E>,
        evaluation: &mut Evaluation,
    ) -> Result<()> {
        for (i, c) in self.components.iter().enumerate() {
            engine.kuu(c, params, &mut ws.kuu[i]);
            // One thread factorises while the others go on with the images.
            let Workspace { kuu, chol, cholesky, saved, cov, .. } = ws;
            let (factorised, ()) = rayon::join(
                || self.factorise(i, params, &kuu[i], &mut chol[i], cholesky),
                || engine.images(c, params, batch, need, &mut saved[i], &mut cov[i]),
            );
            let (jitter, raised) = factorised?;
            ws.jitter[i] = jitter;
            evaluation.jitter = evaluation.jitter.max(jitter);
            evaluation.jitter_raised += raised;
        }
        Ok(())
    }

    /// The factor of a component's `Kuu`: see [`factorise`].
    pub(crate) fn factorise(
        &self,
        component: usize,
        values: &[f64],
        kuu: &Mat,
        chol: &mut Mat,
        scratch: &mut CholeskyScratch,
    ) -> Result<(f64, usize)> {
        factorise(&self.components[component], values, self.spec.jitter, kuu, chol, scratch)
    }

    /// Steps 7 and 8: from the expectations back to every parameter.
    fn pullback<E: Engine>(&self, engine: &E, params: &Params, on: Minibatch, ws: &mut Workspace<E>) {
        let (batch, scale) = (on.batch, on.scale());
        let expect = &mut ws.expect;
        for bar in [&mut expect.mean_bar, &mut expect.var_bar, &mut expect.theta_bar] {
            bar.iter_mut().for_each(|b| *b *= scale);
        }
        let latents = self.likelihood.latents();
        for (n, weight) in batch.weights().iter().enumerate() {
            for bar in [&mut expect.mean_bar, &mut expect.var_bar] {
                bar[n * latents..(n + 1) * latents].iter_mut().for_each(|b| *b *= weight);
            }
        }
        // The numbers of q come last. In covariance form their gradient is overwritten, in natural form they have none:
        // either way nothing that large needs zeroing at every step.
        let q = self.variational.slot().range();
        let natural = params.form() == Form::Natural;
        ws.grad.resize(if natural { q.start } else { params.len() }, 0.0);
        ws.grad[..q.start].fill(0.0);
        self.theta.of_mut(&mut ws.grad).copy_from_slice(&ws.expect.theta_bar);
        for (bar, cov) in ws.cov_bar.iter_mut().zip(&ws.cov) {
            bar.resize(cov.kuf.len(), cov.kuf[0].rows(), cov.kuf[0].cols());
        }
        self.variational.pullback(
            params,
            &ws.chol,
            &ws.expect,
            &mut ws.posterior,
            &mut ws.cov_bar,
            &mut ws.kuu_bar,
            &mut ws.grad,
        );
        if let Jitter::Relative(_) = self.spec.jitter {
            ws.kuu_bar.iter_mut().zip(&ws.jitter).for_each(|(bar, &jitter)| pull_jitter(bar, jitter));
        }
        for (i, c) in self.components.iter().enumerate() {
            engine.kuu_pullback(c, params, &ws.kuu_bar[i], &mut ws.grad);
            engine.images_pullback(c, params, batch, &mut ws.saved[i], &ws.cov_bar[i], &mut ws.grad);
        }
    }
}

/// Pullback of `Kuu -> Kuu + jitter mean(diag Kuu) I`: the jitter grows with the diagonal it is relative to.
pub(crate) fn pull_jitter(kuu_bar: &mut Mat, jitter: f64) {
    let size = kuu_bar.rows();
    let share = jitter * (0..size).map(|i| kuu_bar[(i, i)]).sum::<f64>() / size as f64;
    (0..size).for_each(|i| kuu_bar[(i, i)] += share);
}

/// The sum of values, each times its weight where there are weights.
fn weighted_sum(values: &[f64], weights: &[f64]) -> f64 {
    if weights.is_empty() {
        return values.iter().sum();
    }
    values.iter().zip(weights).map(|(v, w)| v * w).sum()
}

/// `chol = cholesky(kuu + jitter I)`, with ten times the jitter after each failure, [`JITTER_TRIES`] times.
/// Returns the jitter relative to the mean diagonal and how often it was raised.
pub(super) fn factorise(
    c: &Component,
    values: &[f64],
    jitter: Jitter,
    kuu: &Mat,
    chol: &mut Mat,
    scratch: &mut CholeskyScratch,
) -> Result<(f64, usize)> {
    let size = kuu.rows();
    let diagonal = (0..size).map(|i| kuu[(i, i)]).sum::<f64>() / size as f64;
    let mut jitter = match jitter {
        Jitter::Relative(r) => r * diagonal,
        Jitter::Absolute(a) => a,
    };
    let mut row = 0;
    for tries in 0..=JITTER_TRIES {
        chol.clone_from(kuu);
        (0..size).for_each(|i| chol[(i, i)] += jitter);
        match cholesky(chol.view_mut(), scratch) {
            Ok(()) => return Ok((jitter / diagonal, tries)),
            Err(e) => row = e.row,
        }
        jitter *= 10.0;
    }
    let (first, second, gap) = c.closest_inducing(values).unwrap_or((0, 0, f64::INFINITY));
    Err(NumericalError::NotPositiveDefinite {
        component: c.name().into(),
        row,
        size,
        jitter: jitter / 10.0,
        tries: JITTER_TRIES,
        first,
        second,
        gap,
    }
    .into())
}
