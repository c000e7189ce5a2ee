//! The ideal inner loops whose speed is the machine's limit: a matrix product and the exponential here, box
//! filters in `box_filter`. They do nothing else: no weights, no sums, no derivatives.
//!
//! Written over [`Real`] and compiled for AVX2 and fused multiply-add where the machine has them, as the engine's own
//! loops are, but independent of those.

use convgp::real::{Fma, Real};
use std::hint::black_box;

/// Columns of a tile: two vectors.
pub const NR: usize = 16;
/// Rows of a register block.
pub const MR: usize = 6;
/// Register blocks of a tile, which stays in the first-level cache.
const BLOCKS: usize = 8;

/// Whether this machine has AVX2 and fused multiply-add.
pub fn has_fma() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Declares a function that runs `$body` for [`Fma`] numbers, compiled with the instructions they stand for.
macro_rules! fast {
    ($name:ident, $body:ident, ($($arg:ident : $kind:ty),*)) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        fn $name($($arg: $kind),*) {
            $body::<Fma<f32>>($($arg),*);
        }
    };
}

/// Calls the fast instantiation where it exists, else the portable one.
macro_rules! dispatch {
    ($fast:ident, $body:ident, $make:expr, |$data:ident| ($($arg:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if has_fma() {
            let mut $data = $make(Fma as fn(f32) -> Fma<f32>);
            // SAFETY: the machine has the instructions.
            return Box::new(move || unsafe { $fast($($arg),*) });
        }
        let mut $data = $make((|x| x) as fn(f32) -> f32);
        Box::new(move || $body($($arg),*))
    }};
}

pub(super) use {dispatch, fast};

/// Numbers in `[-1, 0]`, none of them special.
pub fn numbers<T>(count: usize, of: impl Fn(f32) -> T) -> Vec<T> {
    (0..count).map(|i| of(-((i * 37 % 101) as f32) / 101.0)).collect()
}

struct Product<T> {
    rows: Vec<T>,
    panels: Vec<T>,
    tile: Vec<[[T; NR]; MR]>,
}

/// A run over `rows x columns` products of `depth` numbers each (both sizes rounded up to whole tiles), and how many
/// it computes.
pub fn product(depth: usize, rows: usize, columns: usize) -> (Box<dyn FnMut()>, usize) {
    let (rows, columns) = (rows.next_multiple_of(MR), columns.next_multiple_of(NR));
    (product_run(depth, rows, columns), rows * columns)
}

fn product_run(depth: usize, rows: usize, columns: usize) -> Box<dyn FnMut()> {
    fn make<T: Real>(of: fn(f32) -> T, depth: usize, rows: usize, columns: usize) -> Product<T> {
        let tile = vec![[[T::default(); NR]; MR]; BLOCKS];
        Product { rows: numbers(rows * depth, of), panels: numbers(columns * depth, of), tile }
    }
    dispatch!(product_fma, product_body, |of| make(of, depth, rows, columns), |p| (depth, &mut p))
}

fast!(product_fma, product_body, (depth: usize, p: &mut Product<Fma<f32>>));

/// Rows are packed by register blocks, `[block][depth][MR]`, columns by panels, `[panel][depth][NR]`.
#[inline(always)]
fn product_body<T: Real>(depth: usize, p: &mut Product<T>) {
    for rows in p.rows.chunks(BLOCKS * depth * MR) {
        for panel in p.panels.chunks_exact(depth * NR) {
            for (block, out) in rows.chunks_exact(depth * MR).zip(&mut p.tile) {
                let mut acc = [[T::default(); NR]; MR];
                for (a, b) in block.as_chunks::<MR>().0.iter().zip(panel.as_chunks::<NR>().0) {
                    for i in 0..MR {
                        for j in 0..NR {
                            acc[i][j] = a[i].mul_add(b[j], acc[i][j]);
                        }
                    }
                }
                *out = acc;
            }
            black_box(&mut p.tile);
        }
    }
}

/// A run over one tile of exponentials, and how many it computes.
pub fn exponential() -> (Box<dyn FnMut()>, usize) {
    let count = BLOCKS * MR * NR;
    let (x, mut out) = (numbers(count, |x| 12.0 * x), vec![0.0; count]);
    #[cfg(target_arch = "x86_64")]
    if has_fma() {
        // SAFETY: the machine has the instructions.
        return (Box::new(move || unsafe { exp2_fma(&x, &mut out) }), count);
    }
    (Box::new(move || exp2_tile(&x, &mut out, |a, b, c| a * b + c)), count)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn exp2_fma(x: &[f32], out: &mut [f32]) {
    exp2_tile(x, out, f32::mul_add);
}

/// `2^x` for `x <= 0`, the cheapest exponential to about one unit in the last place: scaling to base two can be folded
/// into what comes before. `2^x = 2^n (1 + r q(r))`, `n` whole and `|r| <= 1/2`, minimax `q`.
#[inline(always)]
fn exp2_tile(x: &[f32], out: &mut [f32], fma: impl Fn(f32, f32, f32) -> f32) {
    const MAGIC: f32 = 12_582_912.0; // 1.5 * 2^23: adding it rounds to a whole number, left in the low bits
    const Q: [f32; 6] =
        [1.535_336_2e-4, 1.339_887_5e-3, 9.618_437e-3, 5.550_332_4e-2, 2.402_264_8e-1, 6.931_472e-1];
    for (out, &x) in out.iter_mut().zip(x) {
        let x = if x > -126.0 { x } else { -126.0 };
        let t = x + MAGIC;
        let r = x - (t - MAGIC);
        let q = Q[1..].iter().fold(Q[0], |q, &c| fma(q, r, c));
        *out = fma(q, r, 1.0) * f32::from_bits((t.to_bits() << 23).wrapping_add(0x3f80_0000));
    }
    black_box(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_one() {
        let x: Vec<f32> = (0..=12_000).map(|i| -(i as f32) / 100.0).collect();
        let mut out = vec![0.0; x.len()];
        exp2_tile(&x, &mut out, |a, b, c| a * b + c);
        for (x, y) in x.iter().zip(&out) {
            assert!((y / f64::from(*x).exp2() as f32 - 1.0).abs() < 3e-7, "2^{x} = {y}");
        }
        assert_eq!(out[0], 1.0);
    }
}
