//! Limited-memory BFGS for small, deterministic problems.
//!
//! Our own because it is 150 lines next to what a crate would bring: argmin 0.11 has an open bug in exactly this pair of
//! solver and line search and wants its own vector traits, `lbfgsb` wraps C, and `lbfgs` 0.3 neither tells an undefined
//! place from a bad one nor stops with a reason. A jitter that cannot be raised further must shorten the step, not end
//! the search.

use super::line_search::{Point, strong_wolfe};
use crate::linalg::dot;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Settings, and the minimiser itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lbfgs {
    /// Pairs of steps and gradient changes that are remembered.
    pub memory: usize,
    /// Stop when no derivative is larger than this.
    pub gradient_tolerance: f64,
    /// Stop when a step improves the value by less than this fraction of it.
    pub value_tolerance: f64,
    /// Stop after this many steps.
    pub max_steps: usize,
}

impl Default for Lbfgs {
    fn default() -> Self {
        Self { memory: 10, gradient_tolerance: 1e-5, value_tolerance: 0.0, max_steps: 1000 }
    }
}

/// Why it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// All derivatives are small.
    Gradient,
    /// The last step hardly changed the value.
    Value,
    /// Out of steps.
    Steps,
    /// No point along the last direction is better: the value is at its rounding error.
    LineSearch,
}

/// Where it stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The best point.
    pub x: Vec<f64>,
    /// Value before the first and after every step.
    pub values: Vec<f64>,
    /// Largest derivative, in absolute value.
    pub gradient: f64,
    /// Evaluations of the function.
    pub evaluations: usize,
    /// Why.
    pub reason: StopReason,
}

impl Outcome {
    /// The value reached.
    pub fn value(&self) -> f64 {
        *self.values.last().expect("the start is always recorded")
    }
}

/// One remembered pair, `s = x' - x`, `y = g' - g`, and `1 / s.y`.
struct Pair {
    s: Vec<f64>,
    y: Vec<f64>,
    rho: f64,
}

impl Lbfgs {
    /// Minimises `f(x, gradient)` from `x`. A numerical error or a value that is not finite shortens the step; at the
    /// start it is returned.
    pub fn minimise(
        &self,
        mut f: impl FnMut(&[f64], &mut [f64]) -> Result<f64>,
        mut x: Vec<f64>,
    ) -> Result<Outcome> {
        let mut g = vec![0.0; x.len()];
        let mut values = vec![f(&x, &mut g)?];
        let mut pairs: VecDeque<Pair> = VecDeque::new();
        let (mut evaluations, mut reason) = (1, StopReason::Steps);
        let (mut trial, mut trial_g) = (x.clone(), g.clone());
        for step in 0..=self.max_steps {
            let value = values[step];
            if largest(&g) <= self.gradient_tolerance {
                reason = StopReason::Gradient;
                break;
            }
            if step > 0 && values[step - 1] - value < self.value_tolerance * value.abs() {
                reason = StopReason::Value;
                break;
            }
            if step == self.max_steps {
                break;
            }
            let mut direction = descent(&pairs, &g);
            if dot(&direction, &g) >= 0.0 {
                pairs.clear();
                direction = descent(&pairs, &g);
            }
            let first = if pairs.is_empty() { (1.0 / dot(&g, &g).sqrt()).min(1.0) } else { 1.0 };
            let eval = |t: f64| {
                evaluations += 1;
                trial.iter_mut().zip(&x).zip(&direction).for_each(|((z, x), d)| *z = x + t * d);
                match f(&trial, &mut trial_g) {
                    Err(Error::Numerical(_)) => Ok((f64::INFINITY, f64::NAN)),
                    other => other.map(|v| (v, dot(&trial_g, &direction))),
                }
            };
            let slope = dot(&g, &direction);
            let Some(accepted) = strong_wolfe(eval, Point { t: 0.0, value, slope }, first)? else {
                if pairs.is_empty() {
                    reason = StopReason::LineSearch;
                    break;
                }
                // Once more along the gradient itself, before giving up.
                pairs.clear();
                values.push(value);
                continue;
            };
            self.remember(&mut pairs, &x, &trial, &g, &trial_g);
            x.copy_from_slice(&trial);
            g.copy_from_slice(&trial_g);
            values.push(accepted.value);
        }
        Ok(Outcome { x, values, gradient: largest(&g), evaluations, reason })
    }

    fn remember(&self, pairs: &mut VecDeque<Pair>, x: &[f64], x2: &[f64], g: &[f64], g2: &[f64]) {
        let s: Vec<f64> = x2.iter().zip(x).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = g2.iter().zip(g).map(|(a, b)| a - b).collect();
        let curvature = dot(&s, &y);
        // The line search promises positive curvature; rounding can break the promise near the end.
        if curvature > f64::EPSILON * dot(&y, &y) {
            pairs.push_back(Pair { s, y, rho: 1.0 / curvature });
        }
        if pairs.len() > self.memory {
            pairs.pop_front();
        }
    }
}

/// `-H g` by the two-loop recursion.
fn descent(pairs: &VecDeque<Pair>, g: &[f64]) -> Vec<f64> {
    let mut q: Vec<f64> = g.iter().map(|g| -g).collect();
    let mut alphas = Vec::with_capacity(pairs.len());
    for p in pairs.iter().rev() {
        let alpha = p.rho * dot(&p.s, &q);
        q.iter_mut().zip(&p.y).for_each(|(q, y)| *q -= alpha * y);
        alphas.push(alpha);
    }
    if let Some(p) = pairs.back() {
        let scale = 1.0 / (p.rho * dot(&p.y, &p.y));
        q.iter_mut().for_each(|q| *q *= scale);
    }
    for (p, alpha) in pairs.iter().zip(alphas.into_iter().rev()) {
        let beta = p.rho * dot(&p.y, &q);
        q.iter_mut().zip(&p.s).for_each(|(q, s)| *q += (alpha - beta) * s);
    }
    q
}

fn largest(g: &[f64]) -> f64 {
    g.iter().fold(0.0, |m, g| m.max(g.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NumericalError;

    /// `sum_i (a - x_i)^2 + b (x_{i+1} - x_i^2)^2`.
    fn rosenbrock(a: f64, b: f64, x: &[f64], g: &mut [f64]) -> f64 {
        g.fill(0.0);
        let mut sum = 0.0;
        for i in 0..x.len() - 1 {
            let (u, v) = (a - x[i], x[i + 1] - x[i] * x[i]);
            sum += u * u + b * v * v;
            g[i] -= 2.0 * u + 4.0 * b * v * x[i];
            g[i + 1] += 2.0 * b * v;
        }
        sum
    }

    #[test]
    fn general_rosenbrock_valleys_are_followed_to_the_end() {
        for (a, b, start) in [(1.0, 100.0, [-1.2, 1.0]), (2.3, 37.0, [-3.0, 0.4]), (-0.7, 400.0, [2.0, -1.0])]
        {
            let f = |x: &[f64], g: &mut [f64]| Ok(rosenbrock(a, b, x, g));
            let solver = Lbfgs { gradient_tolerance: 1e-9, ..Lbfgs::default() };
            let out = solver.minimise(f, start.to_vec()).unwrap();
            assert_eq!(out.reason, StopReason::Gradient);
            assert!((out.x[0] - a).abs() < 1e-8 && (out.x[1] - a * a).abs() < 1e-7, "{:?}", out.x);
            assert!(out.values.windows(2).all(|w| w[1] <= w[0]), "monotone");
            assert!(out.evaluations < 150, "{} evaluations", out.evaluations);
        }
    }

    #[test]
    fn more_dimensions_than_memory() {
        let f = |x: &[f64], g: &mut [f64]| Ok(rosenbrock(1.0, 13.0, x, g));
        let solver = Lbfgs { memory: 5, ..Lbfgs::default() };
        let out = solver.minimise(f, (0..30).map(|i| 0.1 * i as f64 - 1.0).collect()).unwrap();
        assert_eq!(out.reason, StopReason::Gradient);
        assert!(out.value() < 1e-9);
    }

    #[test]
    fn undefined_regions_shorten_steps_and_errors_pass() {
        // log x - 3 x is undefined for x <= 0, and the first full step lands there.
        let f = |x: &[f64], g: &mut [f64]| {
            if x[0] <= 0.0 {
                return Err(NumericalError::NonFinite { value: f64::INFINITY, parameter: "x".into() }.into());
            }
            g[0] = 3.0 - 1.0 / x[0];
            Ok(3.0 * x[0] - x[0].ln())
        };
        let out = Lbfgs { gradient_tolerance: 1e-8, ..Lbfgs::default() }.minimise(f, vec![0.9]).unwrap();
        assert!((out.x[0] - 1.0 / 3.0).abs() < 1e-8);
        assert!(Lbfgs::default().minimise(f, vec![-1.0]).is_err(), "nowhere to go back to");
        let few = Lbfgs { max_steps: 2, ..Lbfgs::default() };
        let f = |x: &[f64], g: &mut [f64]| Ok(rosenbrock(1.0, 100.0, x, g));
        let out = few.minimise(f, vec![-1.2, 1.0]).unwrap();
        assert_eq!((out.reason, out.values.len()), (StopReason::Steps, 3));
    }
}
