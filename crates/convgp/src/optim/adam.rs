//! Adam on constrained parameters.

use super::Schedule;
use crate::params::{Entry, Layout, Slot, Transform};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Numbers that one task moves. Each number is moved by itself, so the split changes no bits.
const CHUNK: usize = 1 << 14;
/// Numbers moved together: small enough that their gradients are turned into shifts in the first-level cache.
const PART: usize = 512;

/// Settings of [`Adam`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AdamSpec {
    /// Step size, in free coordinates.
    pub rate: f64,
    /// Factor on it as training goes on.
    pub schedule: Schedule,
    /// Factor for kernel parameters and white noise.
    pub kernel: f64,
    /// Factor for inducing inputs.
    pub z: f64,
    /// Factor for weights of views.
    pub weights: f64,
    /// Factor for parameters of the likelihood.
    pub likelihood: f64,
    /// Factor for means and factors of the posterior, where Adam moves it.
    pub q: f64,
    /// Memory of the first moment.
    pub beta1: f64,
    /// Memory of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// How positive numbers move.
    pub positives: Positives,
}

/// How positive numbers (variances, lengthscales) move.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Positives {
    /// By factors, `value = exp(free)`.
    #[default]
    Exp,
    /// `value = softplus(free)`, as in the 2017 code: a large number moves by so little that it stays where it starts.
    Softplus,
}

impl Default for AdamSpec {
    /// The rates of our own runs: 0.05, weights six times that, kernels less (fast ones run away from data before the
    /// posterior has seen them), inducing inputs a fifth (the posterior must follow them), 50 steps of warm-up, cosine
    /// to 5 %.
    fn default() -> Self {
        Self {
            rate: 0.05,
            schedule: Schedule::WarmupCosine { warmup: 50, floor: 0.05 },
            kernel: 0.3,
            z: 0.2,
            weights: 6.0,
            likelihood: 1.0,
            q: 1.0,
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-8,
            positives: Positives::Exp,
        }
    }
}

/// One trainable slot: where it is, and where its moments are.
#[derive(Debug, Clone)]
struct Moved {
    slot: Slot,
    transform: Transform,
    factor: f64,
}

/// Adam (Kingma & Ba, 2015), upwards, in free coordinates.
///
/// The parameter vector stays in constrained coordinates: a step pulls the gradient to free space, shifts there, and
/// comes back, chunk by chunk, so no second vector of its size is needed. Moments are single precision and exist for
/// trainable slots only; they are the caller's, who may save them.
#[derive(Debug, Clone)]
pub struct Adam {
    spec: AdamSpec,
    moved: Vec<Moved>,
}

/// Everything Adam remembers; moments in the order of the trainable slots.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AdamState {
    /// Steps since the moments were zero.
    pub count: u64,
    /// Running mean of the gradient.
    pub first: Vec<f32>,
    /// Running mean of its square.
    pub second: Vec<f32>,
}

impl AdamState {
    /// Forgets everything, as after a roll-back.
    pub fn reset(&mut self) {
        self.count = 0;
        self.first.fill(0.0);
        self.second.fill(0.0);
    }

    /// Where it has moments of every trainable or `fixed` parameter, drops those of fixed ones.
    pub(crate) fn forget_frozen(&mut self, layout: &Layout, fixed: impl Fn(&Entry) -> bool) {
        let held = layout.entries().iter().filter(|e| e.trainable || fixed(e));
        let keep: Vec<bool> = held.flat_map(|e| std::iter::repeat_n(e.trainable, e.slot.len())).collect();
        for moments in [&mut self.first, &mut self.second].into_iter().filter(|m| m.len() == keep.len()) {
            let mut kept = keep.iter();
            moments.retain(|_| kept.next() == Some(&true));
        }
    }
}

impl Adam {
    /// For the trainable entries of `layout`; `factor` multiplies the step size of an entry.
    pub fn new(spec: AdamSpec, layout: &Layout, factor: impl Fn(&Entry) -> f64) -> Self {
        let trainable = layout.entries().iter().filter(|e| e.trainable);
        let transform = |e: &Entry| match (e.transform, spec.positives) {
            (Transform::Positive, Positives::Exp) => Transform::Scale,
            (other, _) => other,
        };
        let moved =
            trainable.map(|e| Moved { slot: e.slot, transform: transform(e), factor: factor(e) }).collect();
        Self { spec, moved }
    }

    /// Number of moments of either kind.
    pub fn len(&self) -> usize {
        self.moved.iter().map(|m| m.slot.len()).sum()
    }

    /// Whether nothing is trainable.
    pub fn is_empty(&self) -> bool {
        self.moved.is_empty()
    }

    /// Moments before the first step.
    pub fn initial_state(&self) -> AdamState {
        AdamState { count: 0, first: vec![0.0; self.len()], second: vec![0.0; self.len()] }
    }

    /// One step of size `rate` up the gradient; `grad` holds derivatives in constrained values.
    ///
    /// # Panics
    /// If `state` has another number of moments than [`Adam::len`].
    pub fn step(&self, state: &mut AdamState, rate: f64, values: &mut [f64], grad: &[f64]) {
        state.count += 1;
        let AdamSpec { beta1, beta2, epsilon, .. } = self.spec;
        // Bias corrections folded into the step size and epsilon.
        let root = (1.0 - libm::pow(beta2, state.count as f64)).sqrt();
        let corrected = rate * root / (1.0 - libm::pow(beta1, state.count as f64));
        let rule = Rule { beta1, beta2, epsilon: epsilon * root };
        let mut start = 0;
        for m in &self.moved {
            let moments = start..start + m.slot.len();
            start = moments.end;
            let (transform, rate) = (m.transform, corrected * m.factor);
            m.slot
                .of_mut(values)
                .par_chunks_mut(CHUNK)
                .zip(m.slot.of(grad).par_chunks(CHUNK))
                .zip(state.first[moments.clone()].par_chunks_mut(CHUNK))
                .zip(state.second[moments].par_chunks_mut(CHUNK))
                .enumerate()
                .for_each(|(i, (((values, grad), first), second))| {
                    let parts = values.chunks_mut(PART).zip(grad.chunks(PART));
                    let moments = first.chunks_mut(PART).zip(second.chunks_mut(PART));
                    for (k, ((values, grad), (first, second))) in parts.zip(moments).enumerate() {
                        let (start, mut shift) = (i * CHUNK + k * PART, [0.0; PART]);
                        let shift = &mut shift[..grad.len()];
                        shift.copy_from_slice(grad);
                        transform.pull_part_to_free(start, values, shift);
                        rule.turn_into_shift(rate, shift, first, second);
                        transform.shift_part(start, values, shift);
                    }
                });
        }
    }
}

struct Rule {
    beta1: f64,
    beta2: f64,
    epsilon: f64,
}

impl Rule {
    /// Updates the moments and overwrites the gradient by the shift.
    fn turn_into_shift(&self, rate: f64, grad: &mut [f64], first: &mut [f32], second: &mut [f32]) {
        let (b1, b2, epsilon) = (self.beta1, self.beta2, self.epsilon as f32);
        for ((g, m), v) in grad.iter_mut().zip(first).zip(second) {
            let mean = b1 * f64::from(*m) + (1.0 - b1) * *g;
            let square = b2 * f64::from(*v) + (1.0 - b2) * *g * *g;
            (*m, *v) = (mean as f32, square as f32);
            // The moments are only known in single precision, where roots and divisions are much cheaper.
            *g = rate * f64::from(*m / (v.sqrt() + epsilon));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{ParamInit, packed_len};

    fn problem(order: usize) -> (Layout, Vec<f64>) {
        let (mut layout, mut values) = (Layout::default(), Vec::new());
        layout.add(&mut values, "", ParamInit::positive("a", 0.7)).unwrap();
        layout.add(&mut values, "", ParamInit::positive("frozen", 2.0).frozen()).unwrap();
        let triangle = (0..packed_len(order)).map(|i| 1.0 + 0.001 * (i % 7) as f64).collect();
        let triangle = ParamInit::array("r", Transform::Lower { order }, triangle);
        layout.add(&mut values, "", triangle).unwrap();
        (layout, values)
    }

    /// Textbook Adam in free coordinates, double precision.
    fn textbook(layout: &Layout, values: &[f64], steps: usize, rate: f64) -> Vec<f64> {
        let space = super::super::FreeSpace::new(layout);
        let (mut x, mut values) = (space.gather(values), values.to_vec());
        let (mut m, mut v) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        for t in 1..=steps {
            space.scatter(&x, &mut values);
            let g = space.pull(&values, &gradient(&values, t));
            for i in 0..x.len() {
                m[i] = 0.9 * m[i] + 0.1 * g[i];
                v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
                let (mh, vh) = (m[i] / (1.0 - 0.9f64.powi(t as i32)), v[i] / (1.0 - 0.999f64.powi(t as i32)));
                x[i] += rate * mh / (vh.sqrt() + 1e-8);
            }
        }
        space.scatter(&x, &mut values);
        values
    }

    fn gradient(values: &[f64], t: usize) -> Vec<f64> {
        values
            .iter()
            .enumerate()
            .map(|(i, v)| (1.3 - v) * (1.0 + (i % 5) as f64) + 0.1 * (t % 3) as f64)
            .collect()
    }

    fn run(layout: &Layout, start: &[f64], steps: usize, rate: f64) -> Vec<f64> {
        let spec = AdamSpec { positives: Positives::Softplus, ..AdamSpec::default() };
        let adam = Adam::new(spec, layout, |_| 1.0);
        let (mut state, mut values) = (adam.initial_state(), start.to_vec());
        for t in 1..=steps {
            let g = gradient(&values, t);
            adam.step(&mut state, rate, &mut values, &g);
        }
        values
    }

    #[test]
    fn large_numbers_move_by_factors_unless_told_otherwise() {
        let (mut layout, mut values) = (Layout::default(), Vec::new());
        layout.add(&mut values, "", ParamInit::positive("variance", 500.0)).unwrap();
        for (positives, expected) in
            [(Positives::Exp, 500.0 * libm::exp(0.1)), (Positives::Softplus, 500.0 + 0.1)]
        {
            let spec = AdamSpec { positives, ..AdamSpec::default() };
            let mut moved = values.clone();
            let adam = Adam::new(spec, &layout, |_| 1.0);
            adam.step(&mut adam.initial_state(), 0.1, &mut moved, &[2.0]);
            assert!((moved[0] - expected).abs() < 1e-3, "{positives:?}: {}", moved[0]);
        }
    }

    #[test]
    fn agrees_with_the_textbook_in_free_space() {
        let (layout, start) = problem(6);
        let (ours, theirs) = (run(&layout, &start, 25, 0.05), textbook(&layout, &start, 25, 0.05));
        for (a, b) in ours.iter().zip(&theirs) {
            assert!((a - b).abs() < 1e-6, "{a} against {b}: single-precision moments only");
        }
        assert_eq!(ours[1], 2.0, "frozen");
    }

    #[test]
    fn threads_change_no_bit() {
        // A triangle of several chunks, so that chunks begin in the middle of columns.
        let (layout, start) = problem(300);
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| run(&layout, &start, 3, 0.1))
        };
        assert_eq!(on(1), on(2));
    }

    #[test]
    fn a_saved_state_continues_exactly() {
        let (layout, mut values) = problem(6);
        let adam = Adam::new(AdamSpec::default(), &layout, |e| if e.name == "a" { 2.0 } else { 1.0 });
        let (mut state, mut twin) = (adam.initial_state(), None);
        for t in 1..=10 {
            if t == 5 {
                let text = serde_json::to_string(&state).unwrap();
                twin = Some((serde_json::from_str::<AdamState>(&text).unwrap(), values.clone()));
            }
            let g = gradient(&values, t);
            if let Some((twin, twin_values)) = &mut twin {
                let g = gradient(twin_values, t);
                adam.step(twin, 0.03, twin_values, &g);
            }
            adam.step(&mut state, 0.03, &mut values, &g);
        }
        assert_eq!(twin.unwrap().1, values);
    }
}
