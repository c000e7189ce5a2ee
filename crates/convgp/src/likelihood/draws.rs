//! Standard normal draws that cover the space more evenly than independent ones.

use super::quantile::normal_quantile;
use crate::rng::Rng;

/// Writes `samples x dims` standard normal draws (row-major): a Latin hypercube of antithetic pairs.
///
/// `[0, 1]` is cut into `samples` equal cells per dimension. Draw `s` and its mirror image `s + samples/2` take two opposite
/// cells, which ones is a random permutation per dimension, so every cell of every dimension is hit exactly once. Each draw
/// alone is exactly standard normal, hence averages are unbiased; odd functions average to exactly zero. For softmax with
/// ten classes and 32 draws the standard error is half that of 32 independent antithetic draws.
///
/// `samples` must be even and `out` hold `samples * dims` numbers.
pub(super) fn write_stratified_normals(rng: &mut Rng, samples: usize, dims: usize, out: &mut [f64]) {
    let pairs = samples / 2;
    let mut cells: Vec<usize> = (0..pairs).collect();
    let (first, mirrored) = out.split_at_mut(pairs * dims);
    for d in 0..dims {
        rng.shuffle(&mut cells);
        for (s, &cell) in cells.iter().enumerate() {
            let u = rng.uniform();
            // One uniform gives the side of the pair and the place within the cell, the latter in (0, 1].
            let (side, place) = if u < 0.5 { (1.0, 1.0 - 2.0 * u) } else { (-1.0, 2.0 - 2.0 * u) };
            let draw = side * normal_quantile((cell as f64 + place) / samples as f64);
            first[s * dims + d] = draw;
            mirrored[s * dims + d] = -draw;
        }
    }
}

/// An independent generator for image `n` of evaluation `draw`.
pub(super) fn generator(seed: u64, draw: u64, n: usize) -> Rng {
    Rng::stream(seed, mix(mix(draw) ^ n as u64))
}

/// The finaliser of SplitMix64: nearby numbers become unrelated ones.
fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::super::special::normal_cdf;
    use super::*;

    #[test]
    fn every_cell_is_hit_once_and_pairs_mirror() {
        let (samples, dims) = (32, 5);
        let mut eps = vec![0.0; samples * dims];
        write_stratified_normals(&mut generator(3, 1, 4), samples, dims, &mut eps);
        for d in 0..dims {
            let mut hit = vec![0; samples];
            for s in 0..samples {
                let cell = normal_cdf(eps[s * dims + d]) * samples as f64;
                hit[(cell as usize).min(samples - 1)] += 1;
                assert_eq!(eps[s * dims + d], -eps[((s + 16) % 32) * dims + d]);
            }
            assert!(hit.iter().all(|&h| h == 1), "dimension {d}: {hit:?}");
        }
    }

    #[test]
    fn second_moments_are_right_and_dimensions_uncorrelated() {
        let (mut square, mut cross, rounds) = (0.0, 0.0, 400);
        let mut eps = [0.0; 32];
        for draw in 0..rounds {
            write_stratified_normals(&mut generator(0, draw, 0), 16, 2, &mut eps);
            square += eps.iter().map(|e| e * e).sum::<f64>() / 32.0;
            cross += eps.chunks(2).map(|e| e[0] * e[1]).sum::<f64>() / 16.0;
        }
        let (square, cross) = (square / rounds as f64, cross / rounds as f64);
        assert!((square - 1.0).abs() < 0.02, "{square}");
        assert!(cross.abs() < 0.06, "{cross}");
    }

    #[test]
    fn draws_depend_on_seed_evaluation_and_image_only() {
        let first = |seed, draw, n| generator(seed, draw, n).uniform();
        assert_eq!(first(1, 2, 3), first(1, 2, 3));
        let others = [first(1, 2, 4), first(1, 3, 3), first(2, 2, 3), first(1, 3, 2)];
        assert!(others.iter().all(|&u| u != first(1, 2, 3)));
    }
}
