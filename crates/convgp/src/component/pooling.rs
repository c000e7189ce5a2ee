//! Pooling: every window of a grid over the places of an image has its own response function.
//!
//! `f(x) = sum_r sum_p phi_r(p) g_r(x[p])` with independent `g_r` that share kernel and inducing inputs. The weights
//! `phi` are fixed: bilinear hats on the grid, which sum to one at every place, so that a place touches at most four
//! windows.

use crate::views::Layout;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The grid of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pooling {
    /// Windows below and beside each other.
    pub grid: [usize; 2],
}

impl Pooling {
    /// Number of windows `R`.
    pub fn windows(self) -> usize {
        self.grid[0] * self.grid[1]
    }

    /// Weights of every view in every window, `[window][view]`. Views of all planes at one place have the same weights.
    pub fn weights(self, layout: &Layout) -> Vec<Vec<f64>> {
        let [down, across] = self.grid;
        let (rows, cols) = (hats(layout.rows, down), hats(layout.cols, across));
        let window = |r: usize| {
            let (row, col) = (r / across, r % across);
            let plane = rows.iter().flat_map(|h| cols.iter().map(move |k| h[row] * k[col]));
            std::iter::repeat_n(plane.collect::<Vec<f64>>(), layout.planes.len()).flatten().collect()
        };
        (0..self.windows()).map(window).collect()
    }
}

/// How much each of `places` places in a line belongs to each of `windows` windows; rows sum to one.
fn hats(places: usize, windows: usize) -> Vec<Vec<f64>> {
    let hat = |place: usize| {
        let centre = (place as f64 + 0.5) / places as f64 * windows as f64 - 0.5;
        let mut row: Vec<f64> = (0..windows).map(|r| (1.0 - (centre - r as f64).abs()).max(0.0)).collect();
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|h| *h /= total);
        row
    };
    (0..places).map(hat).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;

    #[test]
    fn every_place_is_shared_out_between_at_most_four_windows() {
        let view = ImageShape::new(2, 2, 1).unwrap();
        for (rows, cols, grid) in [(7, 5, [3, 2]), (1, 4, [1, 1]), (2, 9, [4, 3])] {
            let layout = Layout { planes: vec!["a".into(), "b".into()], rows, cols, stride: (1, 1), view };
            let pooling = Pooling { grid };
            let weights = pooling.weights(&layout);
            assert_eq!(weights.len(), pooling.windows());
            for p in 0..layout.count() {
                let here: Vec<f64> = weights.iter().map(|w| w[p]).collect();
                assert!((here.iter().sum::<f64>() - 1.0).abs() < 1e-15);
                assert!(here.iter().filter(|h| **h > 0.0).count() <= 4);
                assert_eq!(weights[0][p], weights[0][p % (rows * cols)], "planes are alike");
            }
        }
    }
}
