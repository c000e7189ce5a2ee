//! The innermost loops, over one tile of views x inducing inputs that lives in the first-level cache.
//!
//! One source serves every machine: each loop is written once over [`Real`] and compiled twice, portably and inside a
//! function that enables AVX2 and fused multiply-add; [`Lane`] picks one at run time. All pointers must be valid for the
//! stated sizes. A tile is row-major, [`TILE_ROWS`] x `NR`; a panel holds `NR` columns, one element after the other.

use crate::kernel::RadialFn;
use crate::real::{Fma, Real};

/// Rows of a tile: with 16 columns of `f32` it takes 3 KiB.
pub const TILE_ROWS: usize = 48;
/// Rows of the register block: 6 x 2 vectors of accumulators, two of loads and one broadcast fill the 16 registers.
const MR: usize = 6;

/// A floating-point type the engine can run in.
pub trait Lane: Real + std::fmt::Debug {
    /// The same number with fused multiply-add.
    type Fast: Real;
    /// Columns of a tile: two vector registers.
    const NR: usize;
    /// A radial function over a tile, see [`RadialFn`].
    fn radial(f: &dyn RadialFn, s: &[Self], value: &mut [Self], slope: Option<&mut [Self]>, fma: bool);
}

impl Lane for f32 {
    type Fast = Fma<f32>;
    const NR: usize = 16;
    fn radial(f: &dyn RadialFn, s: &[f32], value: &mut [f32], slope: Option<&mut [f32]>, fma: bool) {
        f.tile_f32(s, value, slope, fma);
    }
}

impl Lane for f64 {
    type Fast = Fma<f64>;
    const NR: usize = 8;
    fn radial(f: &dyn RadialFn, s: &[f64], value: &mut [f64], slope: Option<&mut [f64]>, fma: bool) {
        f.tile_f64(s, value, slope, fma);
    }
}

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

/// Declares `name`, which runs `$body` portably or compiled for AVX2 + FMA, in the lane width of the type.
macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident, $body:ident, $fast:ident, ($($arg:ident : $kind:tt),*)) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// Pointers must be valid for the sizes stated; `fma` must be false on machines without AVX2 and FMA.
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name<T: Lane>(fma: bool, $($arg: kernel!(@type T $kind)),*) {
            #[cfg(target_arch = "x86_64")]
            if fma {
                // SAFETY: the caller vouches for pointers and features; `Fast` is a transparent wrapper of `T`.
                return unsafe { if T::NR == 16 {
                    $fast::<T::Fast, 16>($(kernel!(@cast T $arg $kind)),*)
                } else {
                    $fast::<T::Fast, 8>($(kernel!(@cast T $arg $kind)),*)
                } };
            }
            let _ = fma;
            // SAFETY: as above.
            unsafe { if T::NR == 16 { $body::<T, 16>($($arg),*) } else { $body::<T, 8>($($arg),*) } }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        #[allow(clippy::too_many_arguments)]
        unsafe fn $fast<T: Real, const NR: usize>($($arg: kernel!(@type T $kind)),*) {
            // SAFETY: the same contract as the body.
            unsafe { $body::<T, NR>($($arg),*) }
        }
    };
    (@type $t:ident usize) => { usize };
    (@type $t:ident bool) => { bool };
    (@type $t:ident read) => { *const $t };
    (@type $t:ident write) => { *mut $t };
    (@type $t:ident index) => { *const usize };
    (@cast $t:ident $arg:ident usize) => { $arg };
    (@cast $t:ident $arg:ident bool) => { $arg };
    (@cast $t:ident $arg:ident index) => { $arg };
    (@cast $t:ident $arg:ident read) => { $arg.cast::<$t::Fast>() };
    (@cast $t:ident $arg:ident write) => { $arg.cast::<$t::Fast>() };
}
pub(super) use kernel;

/// `acc[i][j] += sum_k x[i * xi + k * xk] b[k][j]`.
#[inline(always)]
unsafe fn block<T: Real, const R: usize, const NR: usize>(
    depth: usize,
    x: *const T,
    xi: usize,
    xk: usize,
    b: *const T,
    acc: &mut [[T; NR]; R],
) {
    for k in 0..depth {
        // SAFETY: `b` holds `depth` rows of NR, `x` the strided R x depth elements.
        unsafe {
            let row = &*b.add(k * NR).cast::<[T; NR]>();
            for i in 0..R {
                let xv = *x.add(i * xi + k * xk);
                for j in 0..NR {
                    acc[i][j] = xv.mul_add(row[j], acc[i][j]);
                }
            }
        }
    }
}

/// Calls `$f::<T, R, NR>` for register blocks covering `rows`.
macro_rules! by_blocks {
    ($rows:expr, $f:ident, $t:ident, $nr:ident, |$r:ident| ($($arg:expr),*)) => {{
        let mut $r = 0;
        while $r + MR <= $rows {
            $f::<$t, MR, $nr>($($arg),*);
            $r += MR;
        }
        match $rows - $r {
            5 => $f::<$t, 5, $nr>($($arg),*),
            4 => $f::<$t, 4, $nr>($($arg),*),
            3 => $f::<$t, 3, $nr>($($arg),*),
            2 => $f::<$t, 2, $nr>($($arg),*),
            1 => $f::<$t, 1, $nr>($($arg),*),
            _ => {}
        }
    }};
}

kernel!(
    /// Squared distances by expansion, `out[r][j] = yn[r] + zn[j] + y_r . z_j` with `y = -2 x`: rows are stored times
    /// minus two, so that nothing is left to do after the product. Rounding may leave them slightly negative.
    distances, distances_body, distances_fma,
    (rows: usize, depth: usize, y: read, stride: usize, yn: read, panel: read, zn: read, out: write)
);

#[inline(always)]
#[allow(clippy::too_many_arguments)]
unsafe fn distances_body<T: Real, const NR: usize>(
    rows: usize,
    depth: usize,
    y: *const T,
    stride: usize,
    yn: *const T,
    panel: *const T,
    zn: *const T,
    out: *mut T,
) {
    #[inline(always)]
    unsafe fn one<T: Real, const R: usize, const NR: usize>(
        depth: usize,
        y: *const T,
        stride: usize,
        yn: *const T,
        panel: *const T,
        zn: *const T,
        out: *mut T,
    ) {
        // SAFETY: the caller's contract, R rows of it.
        unsafe {
            let zn = &*zn.cast::<[T; NR]>();
            let mut acc: [[T; NR]; R] = std::array::from_fn(|i| {
                let yn = *yn.add(i);
                std::array::from_fn(|j| yn + zn[j])
            });
            block::<T, R, NR>(depth, y, stride, 1, panel, &mut acc);
            *out.cast::<[[T; NR]; R]>() = acc;
        }
    }
    // SAFETY: the caller's contract.
    unsafe {
        by_blocks!(rows, one, T, NR, |r| (
            depth,
            y.add(r * stride),
            stride,
            yn.add(r),
            panel,
            zn,
            out.add(r * NR)
        ));
    }
}

kernel!(
    /// Squared distances by differences, for functions that are not smooth at zero:
    /// `out[r][j] = sum_e (x_re - z_ej)^2`.
    differences, differences_body, differences_fma,
    (rows: usize, depth: usize, x: read, stride: usize, panel: read, out: write)
);

#[inline(always)]
unsafe fn differences_body<T: Real, const NR: usize>(
    rows: usize,
    depth: usize,
    x: *const T,
    stride: usize,
    panel: *const T,
    out: *mut T,
) {
    // SAFETY: the caller's contract.
    unsafe {
        for r in 0..rows {
            let mut acc = [T::default(); NR];
            for e in 0..depth {
                let xv = *x.add(r * stride + e);
                let z = &*panel.add(e * NR).cast::<[T; NR]>();
                for j in 0..NR {
                    let d = xv - z[j];
                    acc[j] = d.mul_add(d, acc[j]);
                }
            }
            *out.add(r * NR).cast::<[T; NR]>() = acc;
        }
    }
}

kernel!(
    /// Moments of a tile: `out[e][j] += sum_r x[r][e] t[r][j]` for `width` columns of `x`.
    moments, moments_body, moments_fma,
    (rows: usize, width: usize, x: read, stride: usize, t: read, out: write)
);

#[inline(always)]
unsafe fn moments_body<T: Real, const NR: usize>(
    rows: usize,
    width: usize,
    x: *const T,
    stride: usize,
    t: *const T,
    out: *mut T,
) {
    #[inline(always)]
    unsafe fn one<T: Real, const R: usize, const NR: usize>(
        rows: usize,
        x: *const T,
        stride: usize,
        t: *const T,
        out: *mut T,
    ) {
        // SAFETY: the caller's contract, R columns of it.
        unsafe {
            let out = &mut *out.cast::<[[T; NR]; R]>();
            let mut acc = *out;
            block::<T, R, NR>(rows, x, 1, stride, t, &mut acc);
            *out = acc;
        }
    }
    // SAFETY: the caller's contract.
    unsafe {
        by_blocks!(width, one, T, NR, |e| (rows, x.add(e), stride, t, out.add(e * NR)));
    }
}

kernel!(
    /// `out[j] += sum_r w[r] v[r][j]`.
    weighted_sum, weighted_sum_body, weighted_sum_fma,
    (rows: usize, w: read, v: read, out: write)
);

#[inline(always)]
unsafe fn weighted_sum_body<T: Real, const NR: usize>(rows: usize, w: *const T, v: *const T, out: *mut T) {
    // SAFETY: the caller's contract.
    unsafe {
        let out = &mut *out.cast::<[T; NR]>();
        let mut acc = *out;
        for r in 0..rows {
            let (w, v) = (*w.add(r), *v.add(r * NR).cast::<[T; NR]>());
            for j in 0..NR {
                acc[j] = w.mul_add(v[j], acc[j]);
            }
        }
        *out = acc;
    }
}

kernel!(
    /// `t[r][j] = w[r] t[r][j]`, and `out[j] += sum_r t[r][j] s[r][j]` with the new `t`.
    scale_rows, scale_rows_body, scale_rows_fma,
    (rows: usize, w: read, t: write, s: read, out: write)
);

#[inline(always)]
unsafe fn scale_rows_body<T: Real, const NR: usize>(
    rows: usize,
    w: *const T,
    t: *mut T,
    s: *const T,
    out: *mut T,
) {
    // SAFETY: the caller's contract.
    unsafe {
        let out = &mut *out.cast::<[T; NR]>();
        let mut acc = *out;
        for r in 0..rows {
            let (w, s) = (*w.add(r), *s.add(r * NR).cast::<[T; NR]>());
            let t = t.add(r * NR).cast::<[T; NR]>();
            let scaled = (*t).map(|t| w * t);
            for j in 0..NR {
                acc[j] = scaled[j].mul_add(s[j], acc[j]);
            }
            *t = scaled;
        }
        *out = acc;
    }
}

kernel!(
    /// The same with a weight per element: row `r` is multiplied by `NR` weights at `w + r * stride`.
    scale_elements, scale_elements_body, scale_elements_fma,
    (rows: usize, w: read, stride: usize, t: write, s: read, out: write)
);

#[inline(always)]
unsafe fn scale_elements_body<T: Real, const NR: usize>(
    rows: usize,
    w: *const T,
    stride: usize,
    t: *mut T,
    s: *const T,
    out: *mut T,
) {
    // SAFETY: the caller's contract.
    unsafe {
        let out = &mut *out.cast::<[T; NR]>();
        let mut acc = *out;
        for r in 0..rows {
            let (w, s) = (*w.add(r * stride).cast::<[T; NR]>(), *s.add(r * NR).cast::<[T; NR]>());
            let t = t.add(r * NR).cast::<[T; NR]>();
            let mut scaled = *t;
            for j in 0..NR {
                scaled[j] = w[j] * scaled[j];
                acc[j] = scaled[j].mul_add(s[j], acc[j]);
            }
            *t = scaled;
        }
        *out = acc;
    }
}

kernel!(
    /// Row sums, kept in lanes: `out[r][j] += g[j] v[r][j]`.
    row_sums, row_sums_body, row_sums_fma,
    (rows: usize, g: read, v: read, out: write)
);

#[inline(always)]
unsafe fn row_sums_body<T: Real, const NR: usize>(rows: usize, g: *const T, v: *const T, out: *mut T) {
    // SAFETY: the caller's contract.
    unsafe {
        let g = *g.cast::<[T; NR]>();
        for r in 0..rows {
            // Loaded whole and stored whole: in place, possible aliasing would keep the loop scalar.
            let v = *v.add(r * NR).cast::<[T; NR]>();
            let out = out.add(r * NR).cast::<[T; NR]>();
            let mut sum = *out;
            for j in 0..NR {
                sum[j] = g[j].mul_add(v[j], sum[j]);
            }
            *out = sum;
        }
    }
}

kernel!(
    /// `a[i] *= b[i]` over `rows` rows.
    multiply, multiply_body, multiply_fma,
    (rows: usize, a: write, b: read)
);

#[inline(always)]
unsafe fn multiply_body<T: Real, const NR: usize>(rows: usize, a: *mut T, b: *const T) {
    // SAFETY: the caller's contract.
    unsafe {
        for r in 0..rows {
            let (a, b) = (a.add(r * NR).cast::<[T; NR]>(), *b.add(r * NR).cast::<[T; NR]>());
            let mut product = *a;
            for j in 0..NR {
                product[j] = product[j] * b[j];
            }
            *a = product;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn random<T: Real>(n: usize, rng: &mut Rng) -> Vec<T> {
        (0..n).map(|_| T::from_f64(rng.normal())).collect()
    }

    fn close<T: Real>(a: &[T], b: &[f64], tolerance: f64) {
        for (a, b) in a.iter().zip(b) {
            assert!((a.to_f64() - b).abs() < tolerance * (1.0 + b.abs()), "{} against {b}", a.to_f64());
        }
    }

    /// Every loop against a plain double loop, for every number of leftover rows.
    fn check<T: Lane>(fma: bool, tolerance: f64) {
        let rng = &mut Rng::new(3);
        let (nr, d) = (T::NR, 7);
        for rows in 1..=13 {
            let (x, panel) = (random::<T>(rows * (d + 2), rng), random::<T>(d * nr, rng));
            let at = |r: usize, e: usize| x[r * (d + 2) + e].to_f64();
            let z = |e: usize, j: usize| panel[e * nr + j].to_f64();
            let norm = |v: &dyn Fn(usize) -> f64| (0..d).map(|e| v(e).powi(2)).sum::<f64>();
            let xn: Vec<T> = (0..rows).map(|r| T::from_f64(norm(&|e| at(r, e)))).collect();
            let zn: Vec<T> = (0..nr).map(|j| T::from_f64(norm(&|e| z(e, j)))).collect();
            let exact: Vec<f64> = (0..rows * nr)
                .map(|i| (0..d).map(|e| (at(i / nr, e) - z(e, i % nr)).powi(2)).sum())
                .collect();
            let mut out = vec![T::default(); rows * nr];
            // SAFETY: all slices have the sizes stated.
            unsafe {
                let y: Vec<T> = x.iter().map(|&x| x * T::from_f64(-2.0)).collect();
                let (xn, zn) = (xn.as_ptr(), zn.as_ptr());
                distances(fma, rows, d, y.as_ptr(), d + 2, xn, panel.as_ptr(), zn, out.as_mut_ptr());
                close(&out, &exact, tolerance);
                out.fill(T::default());
                differences(fma, rows, d, x.as_ptr(), d + 2, panel.as_ptr(), out.as_mut_ptr());
                close(&out, &exact, tolerance);
                let t = random::<T>(rows * nr, rng);
                let mut m = vec![T::from_f64(0.5); (d + 2) * nr];
                moments(fma, rows, d + 2, x.as_ptr(), d + 2, t.as_ptr(), m.as_mut_ptr());
                let exact: Vec<f64> = (0..(d + 2) * nr)
                    .map(|i| {
                        0.5 + (0..rows).map(|r| at(r, i / nr) * t[r * nr + i % nr].to_f64()).sum::<f64>()
                    })
                    .collect();
                close(&m, &exact, tolerance);
                let w = random::<T>(rows, rng);
                let mut sum = vec![T::default(); nr];
                weighted_sum(fma, rows, w.as_ptr(), t.as_ptr(), sum.as_mut_ptr());
                let exact: Vec<f64> = (0..nr)
                    .map(|j| (0..rows).map(|r| w[r].to_f64() * t[r * nr + j].to_f64()).sum())
                    .collect();
                close(&sum, &exact, tolerance);
            }
        }
    }

    #[test]
    fn loops_match_plain_sums_portably_and_vectorised() {
        check::<f32>(false, 1e-5);
        check::<f64>(false, 1e-13);
        if has_fma() {
            check::<f32>(true, 1e-5);
            check::<f64>(true, 1e-13);
        }
    }
}
