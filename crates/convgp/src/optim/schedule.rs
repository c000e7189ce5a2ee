//! Step sizes as a function of progress.

use serde::{Deserialize, Serialize};

/// A factor on a step size, depending on the step and the number of steps planned. Nothing else: the same run with the
/// same plan takes the same steps, however long they take. A run limited by time fixes its plan once, from measured
/// speed, and records it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Schedule {
    /// Always 1.
    Constant {},
    /// `factor^floor(step / every)`; the 2017 experiments have `10^(-floor(i / every) / 3)`, the default factor.
    StepDecay {
        /// Steps of equal size.
        every: u64,
        /// Ratio of one size to the one before.
        #[serde(default = "cube_root_of_a_tenth")]
        factor: f64,
    },
    /// Linear warm-up, then half a cosine from 1 down to `floor` at the last planned step.
    WarmupCosine {
        /// Steps of warm-up; the first has the factor `1 / warmup`.
        #[serde(default)]
        warmup: u64,
        /// Factor at the end.
        #[serde(default = "five_percent")]
        floor: f64,
    },
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule::Constant {}
    }
}

fn cube_root_of_a_tenth() -> f64 {
    0.464_158_883_361_277_8
}
fn five_percent() -> f64 {
    0.05
}

impl Schedule {
    /// The factor at `step` (counted from 0) of `total` planned ones.
    pub fn factor(&self, step: u64, total: u64) -> f64 {
        match *self {
            Schedule::Constant {} => 1.0,
            Schedule::StepDecay { every, factor } => libm::pow(factor, (step / every.max(1)) as f64),
            Schedule::WarmupCosine { warmup, .. } if step < warmup => (step + 1) as f64 / warmup as f64,
            Schedule::WarmupCosine { warmup, floor } => {
                let last = total.saturating_sub(1).max(warmup);
                let progress = (step - warmup) as f64 / (last - warmup).max(1) as f64;
                let cosine = libm::cos(std::f64::consts::PI * progress.min(1.0));
                floor + (1.0 - floor) * 0.5 * (1.0 + cosine)
            }
        }
    }

    /// What is wrong with it, if anything.
    pub fn problem(&self) -> Option<&'static str> {
        let positive = |x: f64| x > 0.0 && x <= 1.0;
        match *self {
            Schedule::StepDecay { every: 0, .. } => Some("`every` must be at least 1"),
            Schedule::StepDecay { factor, .. } if !positive(factor) => {
                Some("`factor` must be above 0 and at most 1")
            }
            Schedule::WarmupCosine { floor, .. } if !(0.0..=1.0).contains(&floor) => {
                Some("`floor` must be between 0 and 1")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_decay() {
        let s: Schedule = toml::from_str("type = 'step-decay'\nevery = 30000").unwrap();
        for i in [0u64, 29_999, 30_000, 100_000, 200_000] {
            let expected = 10f64.powf(-((i / 30_000) as f64) / 3.0);
            assert!((s.factor(i, 0) / expected - 1.0).abs() < 1e-14);
        }
    }

    #[test]
    fn warm_up_then_cosine_to_the_floor() {
        let s = Schedule::WarmupCosine { warmup: 4, floor: 0.1 };
        let at = |i| s.factor(i, 105);
        assert_eq!([at(0), at(1), at(3), at(4)], [0.25, 0.5, 1.0, 1.0]);
        assert!((at(54) - 0.55).abs() < 1e-12, "half way");
        assert!((at(104) - 0.1).abs() < 1e-15 && (at(400) - 0.1).abs() < 1e-15);
        assert!((4..104).all(|i| at(i + 1) < at(i)));
        // Plans shorter than the warm-up, or empty, are no trouble.
        assert!((0..9).all(|i| s.factor(i, 2).is_finite() && s.factor(i, 0).is_finite()));
    }

    #[test]
    fn specs_are_checked() {
        assert_eq!(toml::from_str::<Schedule>("type = 'constant'").unwrap(), Schedule::Constant {});
        assert!(toml::from_str::<Schedule>("type = 'constant'\nfloor = 0.1").is_err());
        assert!(toml::from_str::<Schedule>("type = 'warmup-cosine'\nflor = 0.1").is_err());
        assert!(Schedule::StepDecay { every: 0, factor: 0.5 }.problem().is_some());
        assert!(Schedule::WarmupCosine { warmup: 0, floor: 1.5 }.problem().is_some());
        assert!(Schedule::default().problem().is_none());
    }
}
