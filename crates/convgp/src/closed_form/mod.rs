//! The closed-form solver: fixed inducing inputs, Gaussian noise on targets, everything else by leave-one-out.
//!
//! With `A = F^{-1} Kuf` of all training images (`D x N`), targets `Y` and noise `lambda` relative to the kernel's variance:
//!
//! ```text
//! G = A A^T,  b = A Y              sums over images: one pass, any order
//! w = (G + lambda I)^{-1} b        means of the whitened inducing outputs
//! h_n = A_n^T (G + lambda I)^{-1} A_n
//! left out: mean_n = Y_n - r_n with r_n = (Y_n - A_n^T w) / (1 - h_n)
//! s2 = mean of r_n^2 (1 - h_n),  kernel variance s2 / lambda
//! ```
//!
//! Labels of `C` classes have targets `e_c - 1 / C` ([`Labels`](crate::likelihood::Labels)); `lambda` and the temperature
//! are those at which left-out images are predicted best. No image is held back.

mod features;
mod solve;
pub(crate) mod statistics;
#[cfg(test)]
mod tests;

pub use features::Features;
pub use statistics::{Precision, Statistics, StatisticsError};

use crate::Result;
use crate::cov::Engine;
use crate::data::Dataset;
use crate::error::{NumericalError, SpecError};
use crate::likelihood::log_softmax;
use crate::linalg::{NotPositiveDefinite, pack_lower};
use crate::model::Model;
use crate::params::{Params, Slot};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use solve::{LeftOut, Solver, solver};

/// Steps of the search for the noise, per decade, and its ends relative to the mean of `|A_n|^2`.
const STEPS_PER_DECADE: i32 = 2;
const LEAST: f64 = 1e-8;
const MOST: f64 = 1e3;
/// Least relative gain in NLPP for which the noise is lowered by a step.
const LEAST_GAIN: f64 = 2e-3;
/// Temperatures tried first, from `exp(-6)` to `exp(2)`; then the best one is looked for beside the best of these.
const TEMPERATURES: usize = 21;
const REFINEMENTS: usize = 22;

fn log_temperature(i: usize) -> f64 {
    -6.0 + 8.0 * i as f64 / (TEMPERATURES - 1) as f64
}

/// Where a function with one minimum between two numbers is smallest, by golden sections.
fn smallest_between(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    let share = (5f64.sqrt() - 1.0) / 2.0;
    let mut inner = [high - share * (high - low), low + share * (high - low)];
    let mut values = inner.map(&f);
    for _ in 0..REFINEMENTS {
        if values[0] <= values[1] {
            high = inner[1];
            inner = [high - share * (high - low), inner[0]];
            values = [f(inner[0]), values[0]];
        } else {
            low = inner[0];
            inner = [inner[1], low + share * (high - low)];
            values = [values[1], f(inner[1])];
        }
    }
    0.5 * (low + high)
}

/// How to solve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Precision of the large products.
    pub precision: Precision,
    /// Noise relative to the kernel's variance; found by leave-one-out when absent.
    pub lambda: Option<f64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { precision: Precision::Single, lambda: None }
    }
}

/// Leave-one-out figures at one noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LeaveOneOut {
    /// Noise relative to the kernel's variance.
    pub lambda: f64,
    /// Mean squared residual of left-out images.
    pub mse: f64,
    /// Noise variance.
    pub noise: f64,
    /// Temperature with the smallest NLPP; 1 for regression.
    pub temperature: f64,
    /// Mean negative log probability of left-out images.
    pub nlpp: f64,
    /// Fraction of left-out images that are misclassified, for classification.
    pub error: Option<f64>,
}

/// What a fit came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Images, and inducing outputs `D`.
    pub images: usize,
    /// Inducing outputs.
    pub outputs: usize,
    /// Images that were left out in turn.
    pub left_out: usize,
    /// Metrics at the noise that was chosen.
    pub chosen: LeaveOneOut,
    /// Every noise that was tried, ascending.
    pub tried: Vec<LeaveOneOut>,
    /// The log predictive probability of every image that was left out.
    #[serde(skip)]
    pub log_predictive: LogPredictive,
}

/// Log predictive probabilities of images that were left out, by id, so that models can be compared image by image.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogPredictive(Vec<(u64, f64)>);

impl LogPredictive {
    /// Mean gain over another model of the same images, and the standard error of that mean.
    pub fn gain_over(&self, other: &Self) -> (f64, f64) {
        let gains: Vec<f64> = self.0.iter().zip(&other.0).map(|(a, b)| a.1 - b.1).collect();
        let n = gains.len().max(2) as f64;
        let mean = gains.iter().sum::<f64>() / n;
        let variance = gains.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, (variance / n).sqrt())
    }
}

/// Told how many of all images have been read; false stops the fit.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize) -> bool;

impl Model {
    /// Sets the posterior, noise and temperature in `values` to the closed-form solution on `data`; kernels and inducing
    /// inputs stay as they are. The model's posterior must be shared, its likelihood `labels` or `gaussian`. None if
    /// `progress` stopped it.
    ///
    /// Work: `N D^2` flops for the statistics (or `N^2 D` where `N < D`), `D^3 / 3` for every noise tried.
    pub fn fit_closed_form<E: Engine>(
        &self,
        engine: &E,
        values: &mut [f64],
        data: &Dataset,
        options: &Options,
        progress: Progress<'_>,
    ) -> Result<Option<Summary>> {
        let mut statistics = self.new_statistics(values, options.precision, data.len())?;
        if !self.add_to_statistics(engine, values, data, 0, &mut statistics, progress)? {
            return Ok(None);
        }
        self.solve(values, statistics, options).map(Some)
    }

    /// Statistics of no image yet, for a model that the closed-form solver can fit.
    pub fn new_statistics(
        &self,
        values: &[f64],
        precision: Precision,
        expected: usize,
    ) -> Result<Statistics> {
        let labels = self.likelihood_is_closed_form()?;
        self.check_values(values)?;
        let v = self.variational();
        let shared = v.shared().ok_or(SpecError::NotClosedForm)?;
        let width = 1 + self.spec().augmentation.map_or(0, |a| a.copies);
        let few = |slot: Slot| (v.total() / 2).max(slot.len() / v.total() * width);
        let singles = shared.explained_slot().map_or(0, few);
        let model = self.identity(values);
        Ok(Statistics::new(model, v.total(), v.latents(), labels, width, precision, singles, expected))
    }

    /// Adds the images of a data set to statistics, from number `first` on. Returns whether it came to the end.
    pub fn add_to_statistics<E: Engine>(
        &self,
        engine: &E,
        values: &[f64],
        data: &Dataset,
        first: usize,
        statistics: &mut Statistics,
        progress: Progress<'_>,
    ) -> Result<bool> {
        self.likelihood().check_targets(data.targets())?;
        let features = Features::new(self, engine, values)?;
        statistics.read(&features, data, first, progress)
    }

    /// Sets the posterior, noise and temperature in `values` to the solution for these statistics.
    pub fn solve(
        &self,
        values: &mut [f64],
        mut statistics: Statistics,
        options: &Options,
    ) -> Result<Summary> {
        let shared = self.variational().shared().ok_or(SpecError::NotClosedForm)?;
        let labels = self.likelihood_is_closed_form()?;
        self.check_values(values)?;
        let (outputs, images) = (self.variational().total(), statistics.len());
        match shared.explained_slot() {
            None => statistics.begin_sums(),
            Some(slot) if statistics.rank() == Some(slot.len() / outputs) => {}
            Some(slot) => {
                let (rank, found) = (slot.len() / outputs, statistics.rank().unwrap_or(outputs));
                return Err(StatisticsError::Rank { rank, found }.into());
            }
        }
        let scale = self.likelihood().gaussian_noise().unwrap_or_default().scale;
        let mut search = Search { solver: solver(statistics), images, labels, scale, tried: Vec::new() };
        let indefinite = |e: NotPositiveDefinite| NumericalError::IndefiniteMatrix {
            matrix: "the statistics of the images",
            row: e.row,
            size: outputs,
            remedy: "give a larger noise, or fewer inducing inputs",
        };
        let chosen = match options.lambda {
            Some(lambda) => search.at(lambda),
            None => search.best(),
        };
        let chosen = chosen.map_err(indefinite)?;
        let lambda = chosen.lambda;
        let Search { mut solver, mut tried, .. } = search;
        if tried.last().is_some_and(|last| last.lambda != lambda) {
            solver.factorise(lambda).map_err(indefinite)?;
        }
        tried.sort_by(|a, b| a.lambda.total_cmp(&b.lambda));
        let left_out = solver.left_out().targets.cols();
        let log_predictive = log_predictive(solver.left_out(), labels, scale, &chosen);
        self.variational().mean_slot().of_mut(values).copy_from_slice(solver.weights().data());
        let posterior = solver.into_posterior(lambda).map_err(indefinite)?;
        match shared.explained_slot() {
            Some(slot) => slot.of_mut(values).copy_from_slice(posterior.data()),
            None => {
                let slot = self.variational().groups()[0].slot;
                pack_lower(posterior.view(), 0.0, 1.0, slot.of_mut(values));
            }
        }
        shared.scale_slot().of_mut(values)[0] = chosen.noise / lambda;
        let likelihood = if labels { vec![lambda, chosen.temperature] } else { vec![chosen.noise] };
        self.theta.of_mut(values).copy_from_slice(&likelihood);
        Ok(Summary { images, outputs, left_out, chosen, tried, log_predictive })
    }

    /// Takes the images of a data set out of statistics. Nothing is changed if one of them is not in them.
    pub fn remove_from_statistics<E: Engine>(
        &self,
        engine: &E,
        values: &[f64],
        data: &Dataset,
        statistics: &mut Statistics,
    ) -> Result<()> {
        self.likelihood().check_targets(data.targets())?;
        statistics.remove(&Features::new(self, engine, values)?, data)
    }

    /// The same kernels, whitenings and inducing inputs with room for the posterior that these statistics lead to.
    pub fn resized(&self, values: &[f64], statistics: &Statistics) -> Result<(Model, Params)> {
        let mut spec = self.spec().clone();
        spec.posterior.rank = statistics.rank();
        let constants = self.constants();
        let saved = |name: &str| constants.iter().find(|c| c.name == name).map(|c| c.values.to_vec());
        let (model, mut new) = Model::restore(&spec, &saved)?;
        let (from, to) = (self.variational().slot().range().start, model.variational().slot().range().start);
        debug_assert_eq!(from, to, "only q changes its size");
        new[..to].copy_from_slice(&values[..from]);
        Ok((model, new))
    }

    /// Tells models apart by all numbers that features depend on.
    pub(crate) fn identity(&self, values: &[f64]) -> String {
        let fixed = self.variational().slot().range().start - self.likelihood().parameters().len();
        let constants = self.constants().into_iter().flat_map(|c| c.values);
        let all = values[..fixed].iter().chain(constants);
        let mix = |h: u64, x: &f64| (h.rotate_left(5) ^ x.to_bits()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        format!("{:016x}", all.fold(0, mix))
    }

    /// Whether targets are labels; an error where the likelihood is not for this solver.
    fn likelihood_is_closed_form(&self) -> Result<bool> {
        let noise = self.likelihood().gaussian_noise().ok_or(SpecError::NotClosedForm);
        Ok(noise.map(|_| self.likelihood().classes().is_some())?)
    }
}

/// The search for the noise.
struct Search {
    solver: Box<dyn Solver>,
    images: usize,
    /// Whether targets are labels.
    labels: bool,
    /// The unit of targets.
    scale: f64,
    tried: Vec<LeaveOneOut>,
}

impl Search {
    /// Metrics at one noise; an error where rounding leaves the matrix indefinite.
    fn at(&mut self, lambda: f64) -> std::result::Result<LeaveOneOut, NotPositiveDefinite> {
        self.solver.factorise(lambda)?;
        let figures = figures(self.solver.left_out(), self.images, self.labels, self.scale, lambda);
        self.tried.push(figures);
        Ok(figures)
    }

    /// Walks downhill from a first guess, by half decades.
    fn best(&mut self) -> std::result::Result<LeaveOneOut, NotPositiveDefinite> {
        let size = self.solver.mean_square();
        let at = |step: i32| size * 10f64.powf(f64::from(step) / f64::from(STEPS_PER_DECADE));
        let bound = |x: f64| (x.log10() * f64::from(STEPS_PER_DECADE)).round() as i32;
        let (lowest, highest) = (bound(LEAST), bound(MOST));
        let mut step = bound(1e-5 * self.images as f64).clamp(lowest, highest);
        // Where the guess is too small for single precision, go up until it is not.
        let mut best = loop {
            match self.at(at(step)) {
                Ok(figures) => break figures,
                Err(_) if step < highest => step += 1,
                Err(e) => return Err(e),
            }
        };
        let first = step;
        // Less noise must pay: where it hardly matters, kernel variances would grow without end.
        let enough = |direction: i32, nlpp: f64| if direction < 0 { LEAST_GAIN * nlpp.abs() } else { 0.0 };
        for direction in [1, -1] {
            let mut next = step + direction;
            while (lowest..=highest).contains(&next) {
                match self.at(at(next)) {
                    Ok(figures) if best.nlpp - figures.nlpp > enough(direction, best.nlpp) => {
                        (best, step) = (figures, next);
                    }
                    _ => break,
                }
                next += direction;
            }
            if step != first {
                break;
            }
        }
        Ok(best)
    }
}

/// Log predictive probabilities of the images left out, at what was chosen.
fn log_predictive(left_out: &LeftOut, labels: bool, scale: f64, chosen: &LeaveOneOut) -> LogPredictive {
    let LeftOut { ids, residuals, targets, .. } = left_out;
    let one = |n: usize| {
        let (target, residual) = (targets.col(n), residuals.col(n));
        if !labels {
            let square = residual.iter().map(|r| (scale * r).powi(2)).sum::<f64>() / residual.len() as f64;
            return -0.5 * ((2.0 * std::f64::consts::PI * chosen.mse).ln() + square / chosen.mse);
        }
        let label = (0..target.len()).fold(0, |best, l| if target[l] > target[best] { l } else { best });
        let means: Vec<f64> = target.iter().zip(residual).map(|(t, r)| t - r).collect();
        log_softmax(&means, chosen.temperature).nth(label).unwrap_or(f64::NAN)
    };
    let mut all: Vec<(u64, f64)> = ids.iter().enumerate().map(|(n, id)| (*id, one(n))).collect();
    all.sort_by_key(|(id, _)| *id);
    LogPredictive(all)
}

/// Leave-one-out figures of a factorised solver.
///
/// The temperature is that at which left-out images are predicted best, were there one image more whose label could be any:
/// few images without a mistake are no proof that there will be none.
fn figures(left_out: &LeftOut, images: usize, labels: bool, scale: f64, lambda: f64) -> LeaveOneOut {
    let LeftOut { residuals, noise, targets, .. } = left_out;
    let (latents, count) = (targets.rows(), targets.cols());
    let size = (latents * count) as f64;
    let mse = residuals.data().iter().map(|r| r * r).sum::<f64>() / size;
    if !labels {
        // The log density of a Gaussian with the residuals' own variance, in the units of the targets.
        let mse = scale * scale * mse;
        let nlpp = 0.5 * (1.0 + (2.0 * std::f64::consts::PI * mse.max(f64::MIN_POSITIVE)).ln());
        return LeaveOneOut { lambda, mse, noise: *noise, temperature: 1.0, nlpp, error: None };
    }
    let label = |n: usize| {
        (0..latents).fold(0, |best, l| if targets[(l, n)] > targets[(best, n)] { l } else { best })
    };
    let labels: Vec<usize> = (0..count).map(label).collect();
    let mut means = targets.clone();
    means.data_mut().iter_mut().zip(residuals.data()).for_each(|(m, r)| *m -= r);
    let nlpp = |t: f64| -> f64 {
        let one = |n: usize| -log_softmax(means.col(n), t).nth(labels[n]).unwrap_or(f64::NAN);
        (0..count).map(one).sum::<f64>() / count as f64
    };
    let any_label = |t: f64| -> f64 {
        let one = |n: usize| -log_softmax(means.col(n), t).sum::<f64>();
        (0..count).map(one).sum::<f64>() / size
    };
    let score = |log_t: f64| nlpp(log_t.exp()) + any_label(log_t.exp()) / images as f64;
    let tried: Vec<(f64, f64)> =
        (0..TEMPERATURES).into_par_iter().map(log_temperature).map(|t| (t, score(t))).collect();
    let near = tried.into_iter().fold((0.0, f64::INFINITY), |best, t| if t.1 < best.1 { t } else { best }).0;
    let step = log_temperature(1) - log_temperature(0);
    let temperature = smallest_between(near - step, near + step, score).exp();
    let nlpp = nlpp(temperature);
    let wrong = |n: &usize| {
        let mean = means.col(*n);
        (0..latents).any(|l| mean[l] > mean[labels[*n]])
    };
    let error = (0..count).filter(wrong).count() as f64 / count as f64;
    LeaveOneOut { lambda, mse, noise: *noise, temperature, nlpp, error: Some(error) }
}
