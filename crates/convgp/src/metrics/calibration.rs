//! Calibration: does the model know how often it is right?

use super::{Interval, MetricsError, check_confidences};
use crate::rng::Rng;
use std::ops::Range;

/// How confidences are put into bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binning {
    /// This many bins `[lower, upper)` of equal width from 0 to 1; the last one holds 1 as well.
    EqualWidth(usize),
    /// This many bins with (nearly) equally many images each. Equal confidences stay together, so there may be fewer.
    EqualMass(usize),
}

/// One bin of a reliability table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// Lower edge.
    pub lower: f64,
    /// Upper edge.
    pub upper: f64,
    /// Images in it.
    pub count: usize,
    /// Their mean confidence; the middle of an empty bin.
    pub confidence: f64,
    /// The fraction of them that is right; zero for an empty bin.
    pub accuracy: f64,
}

/// What a perfectly calibrated model with these confidences would show at this number of images.
#[derive(Debug, Clone, PartialEq)]
pub struct NullBand {
    /// Of the expected calibration error.
    pub error: Interval,
    /// Of the accuracy in every bin.
    pub accuracy: Vec<Interval>,
}

/// Images sorted by confidence and cut into bins.
#[derive(Debug, Clone)]
pub struct Reliability {
    /// Sorted.
    confidences: Vec<f64>,
    /// In the same order.
    correct: Vec<bool>,
    binning: Binning,
    bins: Vec<(Range<usize>, f64, f64)>,
}

impl Reliability {
    /// Sorts and bins. Zero bins are taken as one.
    pub fn new(confidences: &[f64], correct: &[bool], binning: Binning) -> Result<Self, MetricsError> {
        check_confidences(confidences, correct)?;
        let mut order: Vec<usize> = (0..confidences.len()).collect();
        order.sort_by(|a, b| confidences[*a].total_cmp(&confidences[*b]));
        let sorted =
            (order.iter().map(|i| confidences[*i]).collect(), order.iter().map(|i| correct[*i]).collect());
        Ok(Self::binned(sorted, binning))
    }

    /// From confidences in increasing order.
    fn binned((confidences, correct): (Vec<f64>, Vec<bool>), binning: Binning) -> Self {
        let bins = match binning {
            Binning::EqualWidth(count) => equal_width(&confidences, count.max(1)),
            Binning::EqualMass(count) => equal_mass(&confidences, count.max(1)),
        };
        Self { confidences, correct, binning, bins }
    }

    /// The table: a line per bin, in order of confidence.
    pub fn bins(&self) -> Vec<Bin> {
        let line = |(range, lower, upper): &(Range<usize>, f64, f64)| {
            let count = range.len();
            let mean = |sum: f64, empty: f64| if count == 0 { empty } else { sum / count as f64 };
            let right = self.correct[range.clone()].iter().filter(|c| **c).count();
            let confidence: f64 = self.confidences[range.clone()].iter().sum();
            Bin {
                lower: *lower,
                upper: *upper,
                count,
                confidence: mean(confidence, 0.5 * (lower + upper)),
                accuracy: mean(right as f64, 0.0),
            }
        };
        self.bins.iter().map(line).collect()
    }

    /// Expected calibration error: the mean over images of `|accuracy - confidence|` of their bin.
    pub fn error(&self) -> f64 {
        let gap = |b: &Bin| b.count as f64 * (b.accuracy - b.confidence).abs();
        self.bins().iter().map(gap).sum::<f64>() / self.confidences.len() as f64
    }

    /// Percentile interval of [`Reliability::error`] when the images are drawn again with replacement. The error of a
    /// finite sample lies above that of the whole population, more so after drawing again, so the interval leans
    /// upwards: compare it with [`Reliability::null_band`], not with zero.
    pub fn bootstrap(&self, draws: usize, level: f64, rng: &mut Rng) -> Interval {
        let mut errors: Vec<f64> = (0..draws.max(1)).map(|_| self.drawn_again(rng).error()).collect();
        Interval::central(&mut errors, level)
    }

    /// As many images, drawn from these with replacement. Counting how often each was drawn keeps them sorted.
    fn drawn_again(&self, rng: &mut Rng) -> Self {
        let n = self.confidences.len();
        let mut times = vec![0; n];
        (0..n).for_each(|_| times[rng.below(n)] += 1);
        let pairs = self.confidences.iter().zip(&self.correct).zip(&times);
        let drawn = pairs.flat_map(|((c, r), &times)| std::iter::repeat_n((*c, *r), times)).unzip();
        Self::binned(drawn, self.binning)
    }

    /// Answers are drawn right with probability equal to their confidence, again and again: where the error and the
    /// bins' accuracies then fall.
    pub fn null_band(&self, draws: usize, level: f64, rng: &mut Rng) -> NullBand {
        let mut world = self.clone();
        let (mut errors, mut accuracies) = (Vec::new(), vec![Vec::new(); self.bins.len()]);
        for _ in 0..draws.max(1) {
            world.correct.iter_mut().zip(&self.confidences).for_each(|(c, p)| *c = rng.uniform() < *p);
            errors.push(world.error());
            accuracies.iter_mut().zip(world.bins()).for_each(|(all, bin)| all.push(bin.accuracy));
        }
        NullBand {
            error: Interval::central(&mut errors, level),
            accuracy: accuracies.iter_mut().map(|all| Interval::central(all, level)).collect(),
        }
    }
}

fn equal_width(sorted: &[f64], count: usize) -> Vec<(Range<usize>, f64, f64)> {
    let edge = |b: usize| b as f64 / count as f64;
    let below = |b: usize| match b {
        _ if b == count => sorted.len(),
        _ => sorted.partition_point(|c| *c < edge(b)),
    };
    (0..count).map(|b| (below(b)..below(b + 1), edge(b), edge(b + 1))).collect()
}

fn equal_mass(sorted: &[f64], count: usize) -> Vec<(Range<usize>, f64, f64)> {
    let n = sorted.len();
    let mut bins = Vec::new();
    let (mut start, mut lower) = (0, 0.0);
    for b in 1..=count {
        let end = (b * n).div_ceil(count).max(start);
        // Equal confidences stay together: the bin runs on to the last of them.
        let end = sorted.partition_point(|c| *c <= sorted[end - 1]);
        if end > start {
            let upper = if end == n { 1.0 } else { 0.5 * (sorted[end - 1] + sorted[end]) };
            bins.push((start..end, lower, upper));
            (start, lower) = (end, upper);
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: Binning = Binning::EqualWidth(10);

    #[test]
    fn the_edges_belong_to_the_first_and_the_last_bin() {
        let r = Reliability::new(&[0.0, 1.0, 1.0, 0.1], &[false, true, false, true], WIDE).unwrap();
        let bins = r.bins();
        assert_eq!(bins.len(), 10);
        let filled: Vec<_> = (0..10).filter(|b| bins[*b].count > 0).map(|b| (b, bins[b].count)).collect();
        assert_eq!(filled, [(0, 1), (1, 1), (9, 2)]);
        assert!((r.error() - (0.0 + 0.9 + 2.0 * 0.5) / 4.0).abs() < 1e-15);
    }

    #[test]
    fn equal_confidences_share_a_bin_whatever_their_order() {
        let confidences = [0.6, 0.6, 0.6, 0.6, 0.9];
        for correct in [[true, false, false, true, true], [false, true, true, false, true]] {
            let r = Reliability::new(&confidences, &correct, Binning::EqualMass(5)).unwrap();
            let counts: Vec<_> = r.bins().iter().map(|b| b.count).collect();
            assert_eq!(counts, [4, 1]);
            assert!((r.error() - (4.0 * 0.1 + 0.1) / 5.0).abs() < 1e-15);
        }
        let even: Vec<f64> = (0..30).map(|i| f64::from(i) / 30.0).collect();
        let r = Reliability::new(&even, &[true; 30], Binning::EqualMass(15)).unwrap();
        assert!(r.bins().len() == 15 && r.bins().iter().all(|b| b.count == 2));
        assert_eq!((r.bins()[0].lower, r.bins()[14].upper), (0.0, 1.0));
    }

    #[test]
    fn a_calibrated_model_lies_in_its_null_band_and_a_boasting_one_does_not() {
        let mut rng = Rng::new(4);
        let confidences: Vec<f64> = (0..2000).map(|_| 0.5 + 0.5 * rng.uniform()).collect();
        let honest: Vec<bool> = confidences.iter().map(|c| rng.uniform() < *c).collect();
        let boasting: Vec<bool> = confidences.iter().map(|c| rng.uniform() < c - 0.15).collect();
        let of = |correct: &[bool], rng: &mut Rng| {
            let r = Reliability::new(&confidences, correct, Binning::EqualWidth(15)).unwrap();
            (r.error(), r.null_band(200, 0.95, rng), r.bootstrap(200, 0.95, rng))
        };
        let (error, null, interval) = of(&honest, &mut rng);
        assert!(null.error.contains(error), "{error} outside {null:?}");
        assert!(interval.lower < interval.upper && interval.upper > error, "{interval:?} leans upwards");
        let (error, null, interval) = of(&boasting, &mut rng);
        assert!(error > null.error.upper && interval.lower > null.error.upper);
        assert!((error - 0.15).abs() < 0.03, "{error}");
    }

    #[test]
    fn mistakes_are_named() {
        let bad = |c: &[f64], r: &[bool]| Reliability::new(c, r, WIDE).unwrap_err();
        assert_eq!(bad(&[], &[]), MetricsError::Empty { what: "confidences" });
        assert!(matches!(bad(&[0.5], &[]), MetricsError::Count { found: 0, expected: 1, .. }));
        assert!(matches!(bad(&[0.5, 1.5], &[true; 2]), MetricsError::NotAProbability { image: 1, .. }));
    }
}
