//! Distances between all patches of an image by box filters, the cheapest way known: the third ideal loop.

use super::loops::{dispatch, fast, has_fma, numbers};
use convgp::real::{Fma, Real};
use std::hint::black_box;

/// Images side by side in box filters: with more of them, those of MNIST's size leave the first-level cache.
pub const LANES: usize = 8;

/// Geometry of box filters: square images, square patches, stride one.
#[derive(Debug, Clone, Copy)]
pub struct BoxFilter {
    /// Rows and columns of an image.
    pub side: usize,
    /// Rows and columns of a patch.
    pub patch: usize,
    /// Channels that one patch spans.
    pub channels: usize,
}

type Vector<T> = [T; LANES];

struct Planes<T> {
    pixels: Vec<Vector<T>>,
    /// The last `patch` rows of squared differences.
    ring: Vec<Vector<T>>,
    /// Sums down the columns of the ring.
    column: Vec<Vector<T>>,
    partial: Vec<Vector<T>>,
    s: Vec<Vector<T>>,
}

/// A run over the distances of all unordered pairs of different patches in [`LANES`] images, and how many it computes.
pub fn box_filter(g: BoxFilter) -> (Box<dyn FnMut()>, usize) {
    let count = (g.side - g.patch + 1).pow(2);
    (box_run(g), LANES * count * (count - 1) / 2)
}

fn planes<T: Real>(of: fn(f32) -> T, g: BoxFilter) -> Planes<T> {
    let pixels = numbers(g.side * g.side * g.channels * LANES, of).as_chunks::<LANES>().0.to_vec();
    let strip = || vec![[T::default(); LANES]; g.side];
    let ring = strip().repeat(g.patch);
    Planes { pixels, ring, column: strip(), partial: strip(), s: strip() }
}

fn box_run(g: BoxFilter) -> Box<dyn FnMut()> {
    dispatch!(box_fma, box_body, |of| planes(of, g), |p| (g, &mut p))
}

fast!(box_fma, box_body, (g: BoxFilter, p: &mut Planes<Fma<f32>>));

/// Loops over a known number of rows and columns are faster.
#[inline(always)]
fn box_body<T: Real>(g: BoxFilter, p: &mut Planes<T>) {
    match g.patch {
        3 => box_offsets::<T, 3>(g, p),
        5 => box_offsets::<T, 5>(g, p),
        7 => box_offsets::<T, 7>(g, p),
        other => unimplemented_patch(other),
    }
}

#[cold]
fn unimplemented_patch(side: usize) {
    panic!("box filters are measured for patches of 3, 5 and 7, not {side}");
}

/// For every offset between two patches: squared differences, summed down columns in a ring, then along rows.
#[inline(always)]
fn box_offsets<T: Real, const PATCH: usize>(g: BoxFilter, p: &mut Planes<T>) {
    let grid = (g.side - PATCH + 1) as isize;
    for dy in 0..grid {
        for dx in 1 - grid..grid {
            if dy > 0 || dx > 0 {
                box_offset::<T, PATCH>(g, p, dy as usize, dx);
            }
        }
    }
}

#[inline(always)]
fn box_offset<T: Real, const PATCH: usize>(g: BoxFilter, p: &mut Planes<T>, dy: usize, dx: isize) {
    let (width, plane) = (g.side - dx.unsigned_abs(), g.side * g.side);
    let (left, right) = ((-dx).max(0) as usize, dx.max(0) as usize);
    let (column, s) = (&mut p.column[..width], &mut p.s[..width - PATCH + 1]);
    column.fill([T::default(); LANES]);
    for y in 0..g.side - dy {
        let a = |c: usize| &p.pixels[c * plane + y * g.side + left..][..width];
        let b = |c: usize| &p.pixels[c * plane + (y + dy) * g.side + right..][..width];
        let ring = &mut p.ring[(y % PATCH) * g.side..][..width];
        let last = g.channels - 1;
        for c in 0..last {
            for ((out, a), b) in p.partial.iter_mut().zip(a(c)).zip(b(c)) {
                *out = if c == 0 { squares(*a, *b) } else { add_squares(*out, *a, *b) };
            }
        }
        let partial = &p.partial[..width];
        match (last > 0, y < PATCH) {
            (false, false) => slide::<T, false, false>(a(last), b(last), partial, column, ring),
            (false, true) => slide::<T, false, true>(a(last), b(last), partial, column, ring),
            (true, false) => slide::<T, true, false>(a(last), b(last), partial, column, ring),
            (true, true) => slide::<T, true, true>(a(last), b(last), partial, column, ring),
        }
        if y + 1 >= PATCH {
            running_sums::<T, PATCH>(column, s);
            black_box(s.as_mut_ptr());
        }
    }
}

/// One more row: with `new = (a - b)^2`, plus `partial` for `MANY` channels, `column += new - ring; ring = new`; in the
/// `FIRST` rows there is nothing to take off. Vectors are loaded and stored whole: element by element, possible
/// aliasing keeps the loop scalar.
#[inline(always)]
fn slide<T: Real, const MANY: bool, const FIRST: bool>(
    a: &[Vector<T>],
    b: &[Vector<T>],
    partial: &[Vector<T>],
    column: &mut [Vector<T>],
    ring: &mut [Vector<T>],
) {
    for ((((column, ring), a), b), partial) in column.iter_mut().zip(ring).zip(a).zip(b).zip(partial) {
        let new = if MANY { add_squares(*partial, *a, *b) } else { squares(*a, *b) };
        *column = add(*column, if FIRST { new } else { subtract(new, *ring) });
        *ring = new;
    }
}

/// `s[x] = sum_{k < PATCH} column[x + k]`.
#[inline(always)]
fn running_sums<T: Real, const PATCH: usize>(column: &[Vector<T>], s: &mut [Vector<T>]) {
    let mut sum = [T::default(); LANES];
    for new in &column[..PATCH] {
        sum = add(sum, *new);
    }
    s[0] = sum;
    for ((new, old), s) in column[PATCH..].iter().zip(column).zip(&mut s[1..]) {
        sum = add(sum, subtract(*new, *old));
        *s = sum;
    }
}

#[inline(always)]
fn add<T: Real>(mut a: Vector<T>, b: Vector<T>) -> Vector<T> {
    for j in 0..LANES {
        a[j] += b[j];
    }
    a
}

#[inline(always)]
fn subtract<T: Real>(mut a: Vector<T>, b: Vector<T>) -> Vector<T> {
    for j in 0..LANES {
        a[j] = a[j] - b[j];
    }
    a
}

/// `(a - b)^2`.
#[inline(always)]
fn squares<T: Real>(a: Vector<T>, b: Vector<T>) -> Vector<T> {
    let mut e = subtract(a, b);
    for j in 0..LANES {
        e[j] = e[j] * e[j];
    }
    e
}

/// `sum + (a - b)^2`.
#[inline(always)]
fn add_squares<T: Real>(mut sum: Vector<T>, a: Vector<T>, b: Vector<T>) -> Vector<T> {
    for j in 0..LANES {
        let e = a[j] - b[j];
        sum[j] = e.mul_add(e, sum[j]);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn box_filters_give_the_distances() {
        let g = BoxFilter { side: 7, patch: 3, channels: 2 };
        let mut p = planes(|x: f32| x, g);
        // The last row of windows for an offset: top-left corners (3, 1..) and (4, 0..).
        box_offset::<f32, 3>(g, &mut p, 1, -1);
        for x in 0..4 {
            for j in 0..LANES {
                let at = |c: usize, y: usize, x: usize| p.pixels[c * 49 + y * 7 + x][j];
                let exact: f32 = (0..18)
                    .map(|i| (i / 9, i % 9 / 3, i % 3))
                    .map(|(c, dy, dx)| (at(c, 3 + dy, 1 + x + dx) - at(c, 4 + dy, x + dx)).powi(2))
                    .sum();
                assert!((p.s[x][j] - exact).abs() < 1e-4, "{} against {exact}", p.s[x][j]);
            }
        }
    }
}
