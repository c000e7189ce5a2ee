//! Images in parallel, in chunks whose size does not depend on the number of threads.
//!
//! Every row of the output is written by exactly one task from that row of the input, so results are the same bits for
//! any number of threads and for any way of cutting a data set into batches.

use super::Expectations;
use rayon::prelude::*;

/// Images per task: small enough to share a batch of 200 between many threads, large enough to hide the scheduling.
const CHUNK: usize = 8;

/// One image's place in [`Expectations`].
pub(super) struct Row<'a> {
    /// The expected log density.
    pub value: &'a mut f64,
    /// Derivatives in the means, `L`.
    pub mean_bar: &'a mut [f64],
    /// Derivatives in the variances, `L`.
    pub var_bar: &'a mut [f64],
}

/// Calls `fill(n, row, scratch)` for every image; `scratch` is made once per task.
pub(super) fn fill_rows<S>(
    out: &mut Expectations,
    latents: usize,
    scratch: impl Fn() -> S + Sync,
    fill: impl Fn(usize, Row, &mut S) + Sync,
) {
    let per_task = CHUNK * latents;
    out.value
        .par_chunks_mut(CHUNK)
        .zip(out.mean_bar.par_chunks_mut(per_task))
        .zip(out.var_bar.par_chunks_mut(per_task))
        .enumerate()
        .for_each(|(task, ((value, mean_bar), var_bar))| {
            let mut scratch = scratch();
            let bars = mean_bar.chunks_exact_mut(latents).zip(var_bar.chunks_exact_mut(latents));
            for (i, (value, (mean_bar, var_bar))) in value.iter_mut().zip(bars).enumerate() {
                fill(task * CHUNK + i, Row { value, mean_bar, var_bar }, &mut scratch);
            }
        });
}

/// An `images x width` array whose rows are written by `fill(n, row, scratch)`.
pub(super) fn map_rows<S>(
    images: usize,
    width: usize,
    scratch: impl Fn() -> S + Sync,
    fill: impl Fn(usize, &mut [f64], &mut S) + Sync,
) -> Vec<f64> {
    let mut out = vec![0.0; images * width];
    out.par_chunks_mut(CHUNK * width).enumerate().for_each(|(task, rows)| {
        let mut scratch = scratch();
        for (i, row) in rows.chunks_exact_mut(width).enumerate() {
            fill(task * CHUNK + i, row, &mut scratch);
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_visited_once_with_its_own_number() {
        for images in [0, 1, CHUNK, 3 * CHUNK + 5] {
            let mut out = Expectations::default();
            out.reset(images, 3, 0);
            let fill = |n: usize, row: Row, _: &mut ()| {
                *row.value += n as f64;
                row.mean_bar.iter_mut().enumerate().for_each(|(l, m)| *m += (3 * n + l) as f64);
                row.var_bar[2] += 1.0;
            };
            fill_rows(&mut out, 3, || (), fill);
            assert!(out.value.iter().enumerate().all(|(n, &v)| v == n as f64));
            assert!(out.mean_bar.iter().enumerate().all(|(i, &v)| v == i as f64));
            assert_eq!(out.var_bar.iter().sum::<f64>(), images as f64);
            let mapped = map_rows(images, 2, || (), |n, row, ()| row.fill(n as f64));
            assert!(mapped.iter().enumerate().all(|(i, &v)| v == (i / 2) as f64));
        }
    }
}
