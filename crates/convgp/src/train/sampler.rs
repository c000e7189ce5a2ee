//! Which images each step sees.

use crate::rng::Rng;
use serde::{Deserialize, Serialize};

/// Generator stream of the minibatches, apart from every other use of the seed.
const STREAM: u64 = 1;

/// Minibatch sampler; it is its own saved state.
///
/// A fraction of each batch may be drawn by importance: in proportion to scores, how badly images were explained when they
/// were last seen. [`Sampler::write_weights`] makes up for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampler {
    rng: Rng,
    count: usize,
    batch: usize,
    /// Order of the current epoch; empty when drawing with replacement or using all images at every step.
    order: Vec<u32>,
    /// Images of the epoch that are used up.
    used: usize,
    /// Images of a batch drawn by importance.
    #[serde(default, alias = "focused")]
    by_importance: usize,
    /// One minus the probability of the target, of every image when last seen, from 1 to `u16::MAX`; empty where none is drawn by importance.
    #[serde(default)]
    scores: Vec<u16>,
}

impl Sampler {
    /// Of `batch` out of `count` images, an `importance_fraction` of them by score. Without replacement, batches at least as large
    /// as the data are the data in order.
    pub fn new(count: usize, batch: usize, replacement: bool, importance_fraction: f64, seed: u64) -> Self {
        let shuffled = !replacement && batch < count;
        let order = if shuffled { (0..count as u32).collect() } else { Vec::new() };
        let batch = if replacement { batch } else { batch.min(count) };
        let by_importance = if shuffled { (importance_fraction * batch as f64) as usize } else { 0 };
        let scores = vec![u16::MAX; if by_importance > 0 { count } else { 0 }];
        Self { rng: Rng::stream(seed, STREAM), count, batch, used: order.len(), order, by_importance, scores }
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
        let even = self.batch - self.by_importance;
        while indices.len() < even {
            if self.used == self.order.len() {
                self.rng.shuffle(&mut self.order);
                self.used = 0;
            }
            let take = (even - indices.len()).min(self.order.len() - self.used);
            indices.extend(self.order[self.used..self.used + take].iter().map(|&i| i as usize));
            self.used += take;
        }
        self.draw_by_score(indices);
    }

    /// Adds the part drawn by importance: the scores laid end to end and cut into equal stretches, one point drawn in each.
    fn draw_by_score(&mut self, indices: &mut Vec<usize>) {
        let (total, mut image, mut end) = (self.total_score(), 0, 0);
        for stretch in 0..self.by_importance {
            let point = (stretch * total + self.rng.below(total.max(1))) / self.by_importance;
            while end <= point {
                end += usize::from(self.scores[image]);
                image += 1;
            }
            indices.push(image - 1);
        }
    }

    fn total_score(&self) -> usize {
        self.scores.iter().map(|&s| usize::from(s)).sum()
    }

    /// Replaces `weights` by how much each image of a batch counts, so that sums over batches have the mean they would
    /// have if all images were drawn alike; none where all are. To be called before [`Sampler::update_scores`].
    pub fn write_weights(&self, indices: &[usize], weights: &mut Vec<f64>) {
        weights.clear();
        if self.by_importance == 0 {
            return;
        }
        let fraction = self.by_importance as f64 / self.batch as f64;
        let mean = self.total_score() as f64 / self.count as f64;
        weights.extend(
            indices.iter().map(|&i| 1.0 / (1.0 - fraction + fraction * f64::from(self.scores[i]) / mean)),
        );
    }

    /// Remembers how well the images of a batch were explained: their expected log densities.
    pub fn update_scores(&mut self, indices: &[usize], log_densities: &[f64]) {
        if self.by_importance == 0 {
            return;
        }
        for (&i, log_density) in indices.iter().zip(log_densities) {
            let unexplained = -libm::expm1(*log_density);
            // The cast saturates.
            self.scores[i] = ((unexplained * f64::from(u16::MAX)) as u16).max(1);
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
        let mut s = Sampler::new(10, 4, false, 0.0, 3);
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
        assert_eq!(draw(&mut Sampler::new(3, 9, false, 0.5, 0), 2), [[0, 1, 2], [0, 1, 2]]);
        let drawn = draw(&mut Sampler::new(3, 9, true, 0.0, 0), 1).concat();
        assert!(drawn.len() == 9 && drawn.iter().all(|&i| i < 3));
    }

    #[test]
    fn a_saved_sampler_continues() {
        for (replacement, importance) in [(false, 0.0), (true, 0.0), (false, 0.5)] {
            let mut s = Sampler::new(100, 7, replacement, importance, 5);
            let first = draw(&mut s, 20).concat();
            s.update_scores(&first, &vec![-0.3; first.len()]);
            let text = serde_json::to_string(&s).unwrap();
            let mut twin: Sampler = serde_json::from_str(&text).unwrap();
            assert_eq!(draw(&mut s, 20), draw(&mut twin, 20));
        }
    }

    #[test]
    fn badly_explained_images_are_drawn_more_often_and_count_less() {
        let (count, batch, batches) = (50, 10, 4000);
        let mut s = Sampler::new(count, batch, false, 0.5, 1);
        let log_densities: Vec<f64> = (0..count).map(|i| if i % 10 == 0 { -3.0 } else { -0.01 }).collect();
        s.update_scores(&(0..count).collect::<Vec<_>>(), &log_densities);
        let (mut drawn, mut counted, mut indices, mut weights) =
            (vec![0.0; count], vec![0.0; count], vec![], vec![]);
        for _ in 0..batches {
            s.next_batch(&mut indices);
            s.write_weights(&indices, &mut weights);
            assert_eq!((indices.len(), weights.len()), (batch, batch));
            for (&i, w) in indices.iter().zip(&weights) {
                drawn[i] += 1.0;
                counted[i] += w;
            }
        }
        let even = (batches * batch) as f64 / count as f64;
        assert!(drawn[0] > 4.0 * even && drawn[1] < 0.7 * even, "{} {} {even}", drawn[0], drawn[1]);
        for (i, total) in counted.iter().enumerate() {
            assert!((total / even - 1.0).abs() < 0.1, "image {i}: {total}, evenly {even}");
        }
    }

    #[test]
    fn scores_stay_above_zero() {
        let mut s = Sampler::new(4, 2, false, 0.5, 0);
        s.update_scores(&[0, 1, 2, 3], &[0.0, 2.0, f64::NEG_INFINITY, f64::NAN]);
        assert_eq!(s.scores, [1, 1, u16::MAX, 1]);
        draw(&mut s, 10);
    }
}
