//! Which images each step sees.

use crate::rng::Rng;
use serde::{Deserialize, Serialize};

/// Generator stream of the minibatches, apart from every other use of the seed.
const STREAM: u64 = 1;

/// Minibatch sampler; it is its own saved state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampler {
    rng: Rng,
    count: usize,
    batch: usize,
    /// Order of the current epoch; empty when drawing with replacement or using all images at every step.
    order: Vec<u32>,
    /// Images of the epoch that are used up.
    used: usize,
}

impl Sampler {
    /// Of `batch` out of `count` images. Without replacement, batches at least as large as the data are the data in
    /// order.
    pub fn new(count: usize, batch: usize, replacement: bool, seed: u64) -> Self {
        let shuffled = !replacement && batch < count;
        let order = if shuffled { (0..count as u32).collect() } else { Vec::new() };
        let batch = if replacement { batch } else { batch.min(count) };
        Self { rng: Rng::stream(seed, STREAM), count, batch, used: order.len(), order }
    }

    /// Number of images it draws from.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Replaces `indices` by the next batch. Batches are equally large: one that runs over the end of an epoch
    /// continues in the next.
    pub fn next_batch(&mut self, indices: &mut Vec<usize>) {
        indices.clear();
        if self.order.is_empty() && self.batch == self.count {
            indices.extend(0..self.count);
            return;
        }
        if self.order.is_empty() {
            indices.extend((0..self.batch).map(|_| self.rng.below(self.count)));
            return;
        }
        while indices.len() < self.batch {
            if self.used == self.order.len() {
                self.rng.shuffle(&mut self.order);
                self.used = 0;
            }
            let take = (self.batch - indices.len()).min(self.order.len() - self.used);
            indices.extend(self.order[self.used..self.used + take].iter().map(|&i| i as usize));
            self.used += take;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(sampler: &mut Sampler, batches: usize) -> Vec<Vec<usize>> {
        let mut out = Vec::new();
        for _ in 0..batches {
            let mut b = Vec::new();
            sampler.next_batch(&mut b);
            out.push(b);
        }
        out
    }

    #[test]
    fn an_epoch_sees_every_image_once() {
        let mut s = Sampler::new(10, 4, false, 3);
        let all = draw(&mut s, 5).concat();
        for epoch in all.chunks(10) {
            let mut sorted = epoch.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..10).collect::<Vec<_>>());
        }
        assert_ne!(all[..10], all[10..], "epochs are shuffled anew");
    }

    #[test]
    fn large_batches_are_the_data_in_order_unless_drawn_with_replacement() {
        assert_eq!(draw(&mut Sampler::new(3, 9, false, 0), 2), [[0, 1, 2], [0, 1, 2]]);
        let drawn = draw(&mut Sampler::new(3, 9, true, 0), 1).concat();
        assert!(drawn.len() == 9 && drawn.iter().all(|&i| i < 3));
    }

    #[test]
    fn a_saved_sampler_continues() {
        for replacement in [false, true] {
            let mut s = Sampler::new(100, 7, replacement, 5);
            draw(&mut s, 20);
            let text = serde_json::to_string(&s).unwrap();
            let mut twin: Sampler = serde_json::from_str(&text).unwrap();
            assert_eq!(draw(&mut s, 20), draw(&mut twin, 20));
        }
    }
}
