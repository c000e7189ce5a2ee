//! Intervals by simulation.

use serde::Serialize;

/// A central interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

impl Interval {
    /// The central part of `draws` that holds a fraction `level` of them; `draws` gets sorted.
    pub(super) fn central(draws: &mut [f64], level: f64) -> Self {
        draws.sort_by(f64::total_cmp);
        let tail = 0.5 * (1.0 - level);
        Self { lower: quantile(draws, tail), upper: quantile(draws, 1.0 - tail) }
    }
    /// Whether `value` lies in it, ends included.
    pub fn contains(&self, value: f64) -> bool {
        (self.lower..=self.upper).contains(&value)
    }
}

/// Quantile of sorted numbers, linear between neighbours.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len() - 1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn central_interval_of_a_hundred_and_one_numbers() {
        let mut draws: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let ninety = Interval::central(&mut draws, 0.9);
        assert!((ninety.lower - 5.0).abs() < 1e-9 && (ninety.upper - 95.0).abs() < 1e-9);
        assert!(ninety.contains(50.0) && !ninety.contains(4.9));
        assert_eq!(Interval::central(&mut [3.0], 0.5), Interval { lower: 3.0, upper: 3.0 });
    }
}
