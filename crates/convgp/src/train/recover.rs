//! What happens when the numbers go wrong.

use super::trainer::{Event, Trainer};
use crate::Result;
use crate::component::Component;
use crate::cov::Engine;
use crate::error::NumericalError;
use crate::model::Bound;

impl<E: Engine> Trainer<'_, E> {
    /// Factor on both step sizes.
    pub(super) fn scale(&self) -> f64 {
        0.5f64.powi(self.halvings as i32)
    }

    /// The current parameters were evaluated without trouble: count, copy them when the last copy is old enough, and
    /// take back a halving after a long calm. Must precede the update, so that only proven parameters are copied.
    pub(super) fn note_good(&mut self, bound: &Bound) {
        let recovery = self.spec.recovery;
        self.counts.jitter_raises += u64::from(bound.jitter_raised > 0);
        self.counts.clamped_variances += bound.variances.clamped as u64;
        let value = if bound.elbo.is_finite() { bound.elbo } else { bound.expectation };
        let first = self.good.bound.replace(value).is_none();
        self.good.age += 1;
        if first || self.good.age >= recovery.snapshot_every {
            self.good.values.copy_from_slice(&self.values);
            (self.good.step, self.good.age) = (self.step, 0);
        }
        self.calm += 1;
        if self.halvings > 0 && self.calm >= recovery.calm {
            (self.halvings, self.calm) = (self.halvings - 1, 0);
        }
    }

    /// Back to the last good parameters with half the step sizes, or an error when that was tried often enough. The step
    /// counter goes on, so the next try sees another minibatch.
    pub(super) fn roll_back(&mut self, cause: NumericalError) -> Result<Event> {
        self.counts.roll_backs += 1;
        if self.halvings >= self.spec.recovery.tries {
            return Err(self.diverged(cause).into());
        }
        (self.halvings, self.calm) = (self.halvings + 1, 0);
        self.values.copy_from_slice(&self.good.values);
        self.good.age = 0;
        self.adam.reset();
        Ok(Event::RolledBack { cause, to_step: self.good.step, scale: self.scale() })
    }

    /// The final error: names the component that failed, or else the one whose inducing inputs are closest.
    fn diverged(&self, cause: NumericalError) -> NumericalError {
        let culprit = match &cause {
            NumericalError::NotPositiveDefinite { component, .. } => Some(component.as_str()),
            _ => None,
        };
        let gap = |c: &Component| c.closest_inducing(&self.good.values).unwrap_or((0, 0, f64::INFINITY));
        let pairs = self.model.components().iter().map(|c| (c.name(), gap(c)));
        let (component, (first, second, gap)) = pairs
            .min_by(|(a, p), (b, q)| {
                let innocent = |name: &str| culprit.is_some_and(|c| c != name);
                innocent(a).cmp(&innocent(b)).then(p.2.total_cmp(&q.2))
            })
            .expect("a model has at least one component");
        NumericalError::Diverged {
            step: self.step,
            tries: self.spec.recovery.tries as usize,
            last_bound: self.good.bound.unwrap_or(f64::NAN),
            component: component.into(),
            first,
            second,
            gap,
            cause: Box::new(cause),
        }
    }
}
