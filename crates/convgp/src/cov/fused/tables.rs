//! Innermost loops of location-aware kernels, where every pair of view and inducing input (or of two views) has a weight of its
//! own. Written and compiled as in [`super::micro`].

use super::micro::{Lane, kernel};
use crate::real::Real;

kernel!(
    /// `out[j] += sum_r w[r][j] v[r][j]`.
    table_sum, table_sum_body, table_sum_fma,
    (rows: usize, w: read, v: read, out: write)
);

#[inline(always)]
unsafe fn table_sum_body<T: Real, const NR: usize>(rows: usize, w: *const T, v: *const T, out: *mut T) {
    // SAFETY: the caller's contract.
    unsafe {
        let mut acc = *out.cast::<[T; NR]>();
        for r in 0..rows {
            let (w, v) = (*w.add(r * NR).cast::<[T; NR]>(), *v.add(r * NR).cast::<[T; NR]>());
            for j in 0..NR {
                acc[j] = w[j].mul_add(v[j], acc[j]);
            }
        }
        *out.cast::<[T; NR]>() = acc;
    }
}

kernel!(
    /// `table[starts[r] + j] += g[j] (v[r][j] - b[j])`.
    table_add, table_add_body, table_add_fma,
    (rows: usize, starts: index, g: read, v: read, b: read, table: write)
);

#[inline(always)]
unsafe fn table_add_body<T: Real, const NR: usize>(
    rows: usize,
    starts: *const usize,
    g: *const T,
    v: *const T,
    b: *const T,
    table: *mut T,
) {
    // SAFETY: the caller's contract.
    unsafe {
        let (g, b) = (*g.cast::<[T; NR]>(), *b.cast::<[T; NR]>());
        for r in 0..rows {
            let v = *v.add(r * NR).cast::<[T; NR]>();
            let out = table.add(*starts.add(r)).cast::<[T; NR]>();
            let mut sum = *out;
            for j in 0..NR {
                sum[j] = g[j].mul_add(v[j] - b[j], sum[j]);
            }
            *out = sum;
        }
    }
}

kernel!(
    /// Dot product of `n` numbers, left in NR lanes: `out[j] += sum_i a[i NR + j] b[i NR + j]`.
    dot, dot_body, dot_fma,
    (n: usize, a: read, b: read, out: write)
);

#[inline(always)]
unsafe fn dot_body<T: Real, const NR: usize>(n: usize, a: *const T, b: *const T, out: *mut T) {
    // SAFETY: the caller's contract.
    unsafe {
        let mut acc = *out.cast::<[T; NR]>();
        for i in 0..n / NR {
            let (a, b) = (*a.add(i * NR).cast::<[T; NR]>(), *b.add(i * NR).cast::<[T; NR]>());
            for j in 0..NR {
                acc[j] = a[j].mul_add(b[j], acc[j]);
            }
        }
        for i in n / NR * NR..n {
            acc[0] = (*a.add(i)).mul_add(*b.add(i), acc[0]);
        }
        *out.cast::<[T; NR]>() = acc;
    }
}

/// A tile of pairs of location-aware views; see [`pair_tile`]. Tiles have `TILE_ROWS` rows of NR, `*_column` NR numbers,
/// `*_row` TILE_ROWS numbers, `columns` three times NR.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct PairTile<T> {
    pub value: *const T,
    pub slope: *const T,
    pub s: *const T,
    pub kb_row: *const T,
    pub kb_column: *const T,
    pub eb_row: *const T,
    pub eb_column: *const T,
    pub place: *const T,
    pub place_slope: *const T,
    pub w_row: *const T,
    pub w_column: *const T,
    pub lanes: *mut T,
    pub columns: *mut T,
}

/// With `c = value - kb_r - kb_j + zero` and `e = slope s - eb_r - eb_j`, per column `j` the sums over rows of
/// `w_r place c` and, with `slopes`, `w_r place_slope c` and `w_r place e`; per row (in lanes) `w_j place c`.
///
/// # Safety
/// Pointers as [`PairTile`] says; `fma` must be false on machines without AVX2 and FMA.
pub unsafe fn pair_tile<T: Lane>(fma: bool, rows: usize, zero: f64, slopes: bool, t: &PairTile<T>) {
    #[cfg(target_arch = "x86_64")]
    if fma {
        // SAFETY: the caller vouches; `Fast` is a transparent wrapper of `T`, so the pointers mean the same.
        return unsafe {
            let t = &*std::ptr::from_ref(t).cast::<PairTile<T::Fast>>();
            if T::NR == 16 {
                pair_tile_fma::<T::Fast, 16>(rows, zero, slopes, t)
            } else {
                pair_tile_fma::<T::Fast, 8>(rows, zero, slopes, t)
            }
        };
    }
    let _ = fma;
    // SAFETY: as above.
    unsafe {
        if T::NR == 16 {
            pair_tile_body::<T, 16>(rows, zero, slopes, t);
        } else {
            pair_tile_body::<T, 8>(rows, zero, slopes, t);
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn pair_tile_fma<T: Real, const NR: usize>(rows: usize, zero: f64, slopes: bool, t: &PairTile<T>) {
    // SAFETY: the same contract.
    unsafe { pair_tile_body::<T, NR>(rows, zero, slopes, t) }
}

#[inline(always)]
unsafe fn pair_tile_body<T: Real, const NR: usize>(rows: usize, zero: f64, slopes: bool, t: &PairTile<T>) {
    // SAFETY: the caller's contract.
    unsafe {
        let panel = |p: *const T| *p.cast::<[T; NR]>();
        let (kb, eb, wj) = (panel(t.kb_column), panel(t.eb_column), panel(t.w_column));
        let (mut c1, mut c2, mut c3) = ([T::default(); NR], [T::default(); NR], [T::default(); NR]);
        for r in 0..rows {
            let row = |p: *const T| *p.add(r * NR).cast::<[T; NR]>();
            let (v, place) = (row(t.value), row(t.place));
            let (kr, w) = (*t.kb_row.add(r), *t.w_row.add(r));
            let shift = T::from_f64(zero) - kr;
            let lanes = t.lanes.add(r * NR).cast::<[T; NR]>();
            let mut sum = *lanes;
            for j in 0..NR {
                let pc = place[j] * (v[j] + shift - kb[j]);
                c1[j] = w.mul_add(pc, c1[j]);
                sum[j] = wj[j].mul_add(pc, sum[j]);
            }
            *lanes = sum;
            if slopes {
                let (d, s, slope, er) = (row(t.slope), row(t.s), row(t.place_slope), *t.eb_row.add(r));
                for j in 0..NR {
                    let e = d[j].mul_add(s[j], -er) - eb[j];
                    c2[j] = (w * slope[j]).mul_add(v[j] + shift - kb[j], c2[j]);
                    c3[j] = (w * place[j]).mul_add(e, c3[j]);
                }
            }
        }
        *t.columns.cast::<[[T; NR]; 3]>() = [c1, c2, c3];
    }
}
