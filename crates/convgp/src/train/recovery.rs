//! What happens when the numbers go wrong.

use super::trainer::{Event, Trainer};
use crate::Result;
use crate::component::Component;
use crate::cov::Engine;
use crate::error::NumericalError;
use crate::model::Evaluation;

impl<E: Engine> Trainer<'_, E> {
    /// Factor on both step sizes.
    pub(super) fn scale(&self) -> f64 {
        0.5f64.powi(self.state.backoffs as i32)
    }

    /// The current parameters were evaluated without trouble: count, copy them when the last snapshot is old enough, and
    /// take back a back-off after many stable steps. Must precede the update, so that only proven parameters are copied.
    pub(super) fn note_success(&mut self, bound: &Evaluation) {
        let (recovery, state) = (self.spec.recovery, &mut self.state);
        state.counts.jitter_raises += u64::from(bound.jitter_raised > 0);
        state.counts.clamped_variances += bound.variances.clamped as u64;
        let value = bound.elbo().unwrap_or(bound.expectation);
        let snapshot = &mut state.snapshot;
        let first = snapshot.bound.replace(value).is_none();
        snapshot.age += 1;
        if first || snapshot.age >= recovery.snapshot_every {
            snapshot.values.copy_from_slice(&self.params);
            (snapshot.step, snapshot.age) = (state.step, 0);
        }
        state.stable_steps += 1;
        if state.backoffs > 0 && state.stable_steps >= recovery.stable_steps {
            (state.backoffs, state.stable_steps) = (state.backoffs - 1, 0);
        }
    }

    /// Back to the last snapshot with half the step sizes, or an error when that was tried often enough. The step counter
    /// goes on, so the next try sees another minibatch.
    pub(super) fn roll_back(&mut self, cause: NumericalError) -> Result<Event> {
        self.state.counts.roll_backs += 1;
        if self.state.backoffs >= self.spec.recovery.tries {
            return Err(self.diverged(cause).into());
        }
        let state = &mut self.state;
        (state.backoffs, state.stable_steps) = (state.backoffs + 1, 0);
        self.params.copy_from_slice(&state.snapshot.values);
        state.snapshot.age = 0;
        state.adam.reset();
        Ok(Event::RolledBack { cause, to_step: self.state.snapshot.step, scale: self.scale() })
    }

    /// The final error: names the component that failed, or else the one whose inducing inputs are closest.
    fn diverged(&self, cause: NumericalError) -> NumericalError {
        let culprit = match &cause {
            NumericalError::NotPositiveDefinite { component, .. } => Some(component.as_str()),
            _ => None,
        };
        let gap =
            |c: &Component| c.closest_inducing(&self.state.snapshot.values).unwrap_or((0, 0, f64::INFINITY));
        let pairs = self.model.components().iter().map(|c| (c.name(), gap(c)));
        let (component, (first, second, gap)) = pairs
            .min_by(|(a, p), (b, q)| {
                let innocent = |name: &str| culprit.is_some_and(|c| c != name);
                innocent(a).cmp(&innocent(b)).then(p.2.total_cmp(&q.2))
            })
            .expect("a model has at least one component");
        NumericalError::Diverged {
            step: self.state.step,
            tries: self.spec.recovery.tries as usize,
            last_bound: self.state.snapshot.bound,
            component: component.into(),
            first,
            second,
            gap,
            cause: Box::new(cause),
        }
    }
}
