//! How many steps fit into the time there is.
//!
//! Schedules follow a number of steps, so a run limited by time measures its speed, sets that number, and corrects it
//! rarely. A run limited by steps never looks at the clock.

use serde::{Deserialize, Serialize};

/// How long to train.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Budget {
    /// So many steps.
    Steps(u64),
    /// So many seconds of training.
    Seconds(f64),
}

/// Steps before the clock is started: the first ones allocate.
pub const WARM_UP: u64 = 3;
/// The first estimate needs at least this many steps and this fraction of the time.
pub const FIRST_STEPS: u64 = 5;
const FIRST_FRACTION: f64 = 0.02;
/// Fractions of the time at which the plan is looked at again.
const LOOKS: [f64; 3] = [0.2, 0.5, 0.8];
/// A plan that is this close is left alone.
const CLOSE: f64 = 0.03;
/// Stands for a plan that is not known yet: schedules stay at their start.
const UNKNOWN: u64 = 1 << 40;

/// Speed and plan of a session.
#[derive(Debug)]
pub struct StepPlanner {
    limit: Option<f64>,
    first_step: u64,
    /// Step and seconds when the warm-up was over.
    mark: Option<(u64, f64)>,
    /// Fraction of the time at which to look next; `None` before the first plan.
    next_look: Option<usize>,
}

impl StepPlanner {
    /// For a session that starts at a step, after so many seconds of earlier ones.
    pub fn new(budget: Budget, first_step: u64, seconds: f64) -> Self {
        let limit = match budget {
            Budget::Steps(_) => None,
            Budget::Seconds(limit) => Some(limit),
        };
        let passed = |limit: f64| LOOKS.iter().filter(|&&f| f * limit <= seconds).count();
        let next_look = (first_step > 0).then(|| limit.map_or(0, passed));
        Self { limit, first_step, mark: None, next_look }
    }

    /// The plan to start with, where it is not the one given.
    pub fn first_total(&self, given: u64) -> Option<u64> {
        let unplanned = self.limit.is_some() && self.first_step == 0;
        (unplanned && given != UNKNOWN).then_some(UNKNOWN)
    }

    /// Whether [`StepPlanner::plan`] or [`StepPlanner::is_over`] have something to say.
    pub fn is_due(&self, step: u64, seconds: f64) -> bool {
        let Some(limit) = self.limit else { return false };
        let warm = self.mark.is_none() && step >= self.first_step + WARM_UP;
        warm || self.is_over(seconds) || self.look_is_due(step, seconds, limit)
    }

    fn look_is_due(&self, step: u64, seconds: f64, limit: f64) -> bool {
        let Some((mark_step, mark)) = self.mark else { return false };
        if step < mark_step + FIRST_STEPS {
            return false;
        }
        match self.next_look {
            None => seconds - mark >= FIRST_FRACTION * limit,
            Some(look) => LOOKS.get(look).is_some_and(|f| seconds >= f * limit),
        }
    }

    /// Whether time is up.
    pub fn is_over(&self, seconds: f64) -> bool {
        self.limit.is_some_and(|limit| seconds >= limit)
    }

    /// A new plan and the seconds per step it rests on, when it is time for one and it differs from the old.
    pub fn plan(&mut self, step: u64, seconds: f64, total: u64) -> Option<(u64, f64)> {
        let limit = self.limit?;
        if self.mark.is_none() && step >= self.first_step + WARM_UP {
            self.mark = Some((step, seconds));
        }
        if !self.look_is_due(step, seconds, limit) {
            return None;
        }
        let (mark_step, mark) = self.mark?;
        self.next_look = Some(self.next_look.map_or(0, |look| look + 1));
        let per_step = (seconds - mark) / (step - mark_step) as f64;
        let new = step + ((limit - seconds).max(0.0) / per_step) as u64;
        let differs = (new as f64 - total as f64).abs() > CLOSE * total as f64;
        (differs && new > step).then_some((new, per_step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a run whose step `i` takes `speed(i)` seconds; returns the plans made and the last step.
    fn play(limit: f64, speed: impl Fn(u64) -> f64) -> (Vec<u64>, u64) {
        let mut planner = StepPlanner::new(Budget::Seconds(limit), 0, 0.0);
        let mut total = planner.first_total(1000).unwrap();
        let (mut plans, mut step, mut seconds) = (Vec::new(), 0, 0.0);
        while step < total && !planner.is_over(seconds) {
            seconds += speed(step);
            step += 1;
            let due = planner.is_due(step, seconds);
            if let Some((new, _)) = due.then(|| planner.plan(step, seconds, total)).flatten() {
                plans.push(new);
                total = new;
            }
        }
        (plans, step)
    }

    #[test]
    fn even_steps_are_planned_once() {
        let (plans, last) = play(10.0, |i| if i == 0 { 0.5 } else { 0.01 });
        assert_eq!(plans.len(), 1, "{plans:?}");
        assert!((940..=951).contains(&last) && plans[0].abs_diff(951) < 3, "{plans:?}, {last}");
    }

    #[test]
    fn a_run_that_slows_down_is_planned_again_and_ends_in_time() {
        let (plans, last) = play(10.0, |i| if i < 200 { 0.01 } else { 0.02 });
        assert!((2..=4).contains(&plans.len()) && plans.is_sorted_by(|a, b| a > b), "{plans:?}");
        assert!(last <= 601, "{last}");
    }

    #[test]
    fn steps_never_look_at_the_clock() {
        let mut planner = StepPlanner::new(Budget::Steps(10), 0, 0.0);
        assert_eq!(planner.first_total(10), None);
        assert!((0..10).all(|i| !planner.is_due(i, 1e9) && planner.plan(i, 1e9, 10).is_none()));
        assert!(!planner.is_over(1e9));
    }

    #[test]
    fn a_resumed_run_keeps_its_plan_until_the_next_look() {
        let mut planner = StepPlanner::new(Budget::Seconds(10.0), 300, 3.0);
        assert_eq!(planner.first_total(1000), None);
        assert!((301..400).all(|i| planner.plan(i, 3.0 + 0.01 * (i - 300) as f64, 1000).is_none()));
        assert!(planner.plan(600, 6.0, 500).is_some());
    }
}
