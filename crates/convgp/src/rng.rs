//! The one source of randomness: a seeded, portable, serialisable generator.
//!
//! Everything random takes a `&mut Rng`, so a run is a function of its seed. ChaCha8 is chosen because its stream is
//! documented to stay the same across versions and machines.

use rand::{Rng as _, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// A seeded generator. Equal seeds give equal streams on every machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rng(ChaCha8Rng);

impl Rng {
    /// Generator for a seed.
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// An independent generator for a named purpose, so that one consumer's draws never shift another's.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self(rng)
    }

    /// Uniform in `[0, 1)`.
    pub fn uniform(&mut self) -> f64 {
        self.0.random::<f64>()
    }

    /// Uniform in `0..n`; `n` must be positive.
    pub fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }

    /// Standard normal draw (Box-Muller, one of the pair: simple and portable).
    pub fn normal(&mut self) -> f64 {
        let u = 1.0 - self.uniform();
        let v = self.uniform();
        (-2.0 * libm::log(u)).sqrt() * libm::cos(std::f64::consts::TAU * v)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Fisher-Yates shuffle.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }

    /// `k` distinct numbers of `0..n` in random order (all of them when `k >= n`).
    pub fn choose(&mut self, n: usize, k: usize) -> Vec<usize> {
        let k = k.min(n);
        let mut all: Vec<usize> = (0..n).collect();
        for i in 0..k {
            let j = i + self.below(n - i);
            all.swap(i, j);
        }
        all.truncate(k);
        all
    }
}
