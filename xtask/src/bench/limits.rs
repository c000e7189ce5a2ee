//! What the machine can do at best, measured by the same command as everything else. One thread, single precision
//! unless said.

use super::box_filter::{BoxFilter, box_filter};
use super::clock::fastest;
use super::loops::{exponential, has_fma, product};
use super::report::{Cell, Report, Row};
use convgp::linalg::{Accumulate, Mat, gemm};
use std::hint::black_box;

/// Seconds spent on each limit.
const SECONDS: f64 = 0.4;

/// Fastest seconds per value of the ideal loops.
#[derive(Debug)]
pub struct Limits {
    seconds: f64,
    /// One exponential.
    pub exp: f64,
    /// Multiplications and additions per second of a double-precision product.
    pub gemm: f64,
}

impl Limits {
    /// Measures what does not depend on sizes.
    pub fn new(quick: bool) -> Self {
        let seconds = if quick { 0.05 } else { SECONDS };
        let mut limits = Self { seconds, exp: 0.0, gemm: 0.0 };
        limits.exp = limits.per_value(exponential());
        let n = 256;
        let (a, b) =
            (Mat::from_fn(n, n, |i, j| (i + 2 * j) as f64), Mat::from_fn(n, n, |i, j| (i * j) as f64));
        let mut out = Mat::zeros(n, n);
        let once = fastest(seconds, || gemm(out.view_mut(), Accumulate::Set, 1.0, a.view(), b.view()));
        limits.gemm = 2.0 * (n as f64).powi(3) / once;
        limits
    }

    fn per_value(&self, (run, count): (Box<dyn FnMut()>, usize)) -> f64 {
        fastest(self.seconds, run) / count as f64
    }

    /// Seconds per product of `depth` numbers, in tiles of a `rows x columns` matrix.
    pub fn product(&self, depth: usize, rows: usize, columns: usize) -> f64 {
        self.per_value(product(depth, rows, columns))
    }

    /// Seconds per distance between two patches of one image, by box filters.
    pub fn box_filter(&self, geometry: BoxFilter) -> f64 {
        self.per_value(box_filter(geometry))
    }

    /// Copied bytes per second (each byte is read once and written once), far beyond the caches.
    fn copy(&self) -> f64 {
        let from = vec![1u8; 128 << 20];
        let mut to = vec![0u8; from.len()];
        let once = fastest(2.0 * self.seconds, || {
            to.copy_from_slice(&from);
            black_box(&mut to);
        });
        from.len() as f64 / once
    }

    /// Shows all limits.
    pub fn show(&self, report: Report) {
        let vectors = if has_fma() { "AVX2 and fused multiply-add" } else { "portable code" };
        let note = format!(
            "One thread, f32 unless said, {vectors}; the fastest of many short runs. A fused limit is the sum of \
             two ideal costs, distances and exponentials, each alone in tiles of the first-level cache: sums, weights \
             and derivatives are free."
        );
        let mut table = report.table("limits", &note);
        let mut add = |what: String, rate: f64, unit: &str| {
            let row: Row = vec![("what", what.into()), ("rate", Cell::Number(rate)), ("unit", unit.into())];
            table.add(&row);
        };
        for depth in [9, 25, 75, 512] {
            let flops = 2.0 * depth as f64 / self.product(depth, 576, 750);
            add(format!("matrix product 576 x {depth} x 750"), flops / 1e9, "GFLOP/s");
        }
        add("exp".into(), 1e-9 / self.exp, "G values/s");
        for (name, side, patch, channels) in GEOMETRIES {
            let e = patch * patch * channels;
            let p = (side - patch + 1).pow(2);
            let kuf = self.product(e, p, 750) + self.exp;
            add(format!("fused limit of Kuf, {name}, M 750"), 1e-9 / kuf, "G values/s");
            let (by_boxes, by_product) = (
                self.box_filter(BoxFilter { side, patch, channels }) + self.exp,
                self.product(e, p, p) + self.exp,
            );
            add(format!("fused limit of kff, {name}, box filters"), 1e-9 / by_boxes, "G pairs/s");
            add(format!("fused limit of kff, {name}, product"), 1e-9 / by_product, "G pairs/s");
        }
        add("matrix product 256 x 256 x 256, f64".into(), self.gemm / 1e9, "GFLOP/s");
        add("copy of 128 MiB".into(), self.copy() / 1e9, "GB/s");
    }
}

/// Name, side of the image, side of the patch, channels in a patch.
const GEOMETRIES: [(&str, usize, usize, usize); 3] =
    [("3x3 of 28x28", 28, 3, 1), ("5x5 of 28x28", 28, 5, 1), ("5x5x3 of 32x32x3", 32, 5, 3)];
