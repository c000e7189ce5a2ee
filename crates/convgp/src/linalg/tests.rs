//! The operations against plain loops, and the pullback against differences.

use super::*;
use crate::params::packed_len;
use crate::rng::Rng;

fn random(rows: usize, cols: usize, seed: u64) -> Mat {
    let mut rng = Rng::new(seed);
    Mat::from_fn(rows, cols, |_, _| rng.normal())
}

fn naive(a: &Mat, b: &Mat) -> Mat {
    Mat::from_fn(a.rows(), b.cols(), |i, j| (0..a.cols()).map(|k| a[(i, k)] * b[(k, j)]).sum())
}

fn assert_close(a: &Mat, b: &Mat) {
    for (x, y) in a.data().iter().zip(b.data()) {
        assert!((x - y).abs() < 1e-10 * (1.0 + y.abs()), "{x} against {y}");
    }
}

fn positive_definite(n: usize, seed: u64) -> Mat {
    let a = random(n, n + 3, seed);
    let at = Mat::from_fn(n + 3, n, |i, j| a[(j, i)]);
    naive(&a, &at)
}

#[test]
fn triangular_products_ignore_the_other_half() {
    let n = 37;
    let (mut l, b) = (random(n, n, 1), random(n, 5, 2));
    let dirty = l.clone();
    l.zero_upper();
    let lt = Mat::from_fn(n, n, |i, j| l[(j, i)]);
    let mut out = Mat::zeros(n, 5);
    mul_lower(out.view_mut(), Accumulate::Set, 1.0, dirty.view(), b.view());
    assert_close(&out, &naive(&l, &b));
    mul_lower_t(out.view_mut(), Accumulate::Set, 1.0, dirty.view(), b.view());
    assert_close(&out, &naive(&lt, &b));
    let mut square = Mat::zeros(n, n);
    own_t_times_lower(square.view_mut(), dirty.view());
    square.mirror_lower();
    assert_close(&square, &naive(&lt, &l));
}

#[test]
fn factor_solves_and_inverts() {
    for n in [1, 2, 17, 130] {
        let k = positive_definite(n, 3);
        let mut l = k.clone();
        cholesky(l.view_mut(), &mut CholeskyScratch::default()).unwrap();
        l.zero_upper();
        let lt = Mat::from_fn(n, n, |i, j| l[(j, i)]);
        assert_close(&naive(&l, &lt), &k);
        let (mut half, mut x) = (Mat::zeros(n, n), Mat::zeros(n, n));
        par_solve_lower_of(l.view(), k.view(), half.view_mut());
        par_solve_lower_t_of(l.view(), half.view(), x.view_mut());
        assert_close(&x, &Mat::from_fn(n, n, |i, j| f64::from(u8::from(i == j))));
        let mut inverse = Mat::zeros(n, n);
        invert_lower(inverse.view_mut(), l.view());
        assert_close(&naive(&inverse, &l), &Mat::from_fn(n, n, |i, j| f64::from(u8::from(i == j))));
    }
}

#[test]
fn factoring_by_blocks_is_the_same_factor() {
    let k = positive_definite(23, 9);
    let (mut whole, mut blocks) = (k.clone(), k);
    let scratch = &mut CholeskyScratch::default();
    cholesky(whole.view_mut(), scratch).unwrap();
    cholesky_by_blocks(blocks.view_mut(), &[7, 11, 5], scratch).unwrap();
    whole.zero_upper();
    blocks.zero_upper();
    assert_close(&blocks, &whole);
}

/// The derivative of `sum_ij C_ij L_ij` in `K`, against central differences.
#[test]
fn cholesky_pullback_matches_differences() {
    let n = 37;
    let (k, mut c) = (positive_definite(n, 11), random(n, n, 12));
    c.zero_upper();
    let factor = |k: &Mat| {
        let mut l = k.clone();
        cholesky(l.view_mut(), &mut CholeskyScratch::default()).unwrap();
        l.zero_upper();
        l
    };
    let objective = |k: &Mat| dot(factor(k).data(), c.data());
    let l = factor(&k);
    // Phi(-L^T c): the pullback carries a minus sign, as inference uses it.
    let mut phi = Mat::zeros(n, n);
    mul_lower_t(phi.view_mut(), Accumulate::Set, -1.0, l.view(), c.view());
    (0..n).for_each(|i| phi[(i, i)] *= 0.5);
    cholesky_pullback(l.view(), &mut phi);
    for (i, j) in [(0, 0), (5, 2), (36, 36), (20, 19), (36, 0)] {
        let h = 1e-5;
        let at = |step: f64| {
            let mut moved = k.clone();
            moved[(i, j)] += step;
            if i != j {
                moved[(j, i)] += step;
            }
            objective(&moved)
        };
        let difference = (at(h) - at(-h)) / (2.0 * h);
        let found = phi[(i, j)] + if i == j { 0.0 } else { phi[(j, i)] };
        assert!((found - difference).abs() < 1e-7 * (1.0 + difference.abs()), "{found} against {difference}");
    }
}

#[test]
fn indefinite_matrices_name_their_pivot() {
    let mut k = Mat::from_fn(4, 4, |i, j| f64::from(u8::from(i == j)));
    k[(2, 2)] = -1.0;
    let err = cholesky(k.view_mut(), &mut CholeskyScratch::default()).unwrap_err();
    assert_eq!(err, NotPositiveDefinite { row: 2 });
}

/// The crate's parallel product has an open report of a silently wrong result: this one is ours, by chunks, and
/// must agree with the sequential one to the bit.
#[test]
fn chunked_solves_equal_sequential_ones() {
    let (n, cols) = (90, 3 * COLUMNS + 7);
    let mut l = positive_definite(n, 5);
    cholesky(l.view_mut(), &mut CholeskyScratch::default()).unwrap();
    let rhs = random(n, cols, 6);
    let mut parallel = Mat::zeros(n, cols);
    par_solve_lower_of(l.view(), rhs.view(), parallel.view_mut());
    for start in (0..cols).step_by(COLUMNS) {
        let width = COLUMNS.min(cols - start);
        let mut chunk = Mat::from_fn(n, width, |i, j| rhs[(i, start + j)]);
        solve_lower(l.view(), chunk.view_mut());
        (0..width).for_each(|j| assert_eq!(chunk.col(j), parallel.col(start + j)));
    }
}

#[test]
fn packing_round_trips() {
    let n = 9;
    let mut l = random(n, n, 7);
    l.zero_upper();
    let mut packed = vec![0.0; packed_len(n)];
    pack_lower(l.view(), 0.0, 1.0, &mut packed);
    let mut back = Mat::zeros(n, n);
    unpack_lower(&packed, back.view_mut());
    assert_eq!(back, l);
}

#[test]
fn dot_is_a_dot() {
    let a: Vec<f64> = (0..19).map(f64::from).collect();
    assert_eq!(dot(&a, &a), (0..19).map(|i| f64::from(i * i)).sum::<f64>());
}

#[test]
fn a_single_number_that_is_not_finite_is_noticed() {
    let mut x = vec![1e300; 40_003];
    assert!(all_finite(&x) && all_finite(&[]));
    for (i, bad) in [(0, f64::NAN), (17_000, f64::INFINITY), (40_002, f64::NEG_INFINITY)] {
        let good = std::mem::replace(&mut x[i], bad);
        assert!(!all_finite(&x));
        x[i] = good;
    }
}

#[test]
fn large_factorisations_agree_with_small_ones() {
    let (n, m) = (530, 700);
    let mut rng = crate::rng::Rng::new(5);
    let a = Mat::from_fn(n, m, |_, _| rng.normal());
    let mut g = Mat::zeros(n, n);
    syrk_double(&mut g, 1.0, a.view());
    (0..n).for_each(|i| g[(i, i)] += 1.0);
    let mut single = Mat::zeros(n, n);
    syrk_single(&mut single, &a.data().iter().map(|x| *x as f32).collect::<Vec<_>>());
    (0..n).for_each(|i| single[(i, i)] += 1.0);
    let (mut small, mut large) = (g.clone(), g.clone());
    cholesky(small.view_mut(), &mut CholeskyScratch::default()).unwrap();
    par_cholesky(large.view_mut(), &mut CholeskyScratch::default()).unwrap();
    for j in 0..n {
        for i in j..n {
            assert!((small[(i, j)] - large[(i, j)]).abs() < 1e-10 * m as f64, "{i} {j}");
            assert!((g[(i, j)] - single[(i, j)]).abs() < 1e-5 * m as f64, "{i} {j}");
        }
    }
    large.zero_upper();
    for width in [1, 3] {
        let blocks = inverse_blocks(large.view().submatrix(0, 0, n / 3 * 3, n / 3 * 3), width);
        let mut part = Mat::from_fn(n / 3 * 3, n / 3 * 3, |i, j| if i == j { 1.0 } else { 0.0 });
        solve_lower(large.view().submatrix(0, 0, n / 3 * 3, n / 3 * 3), part.view_mut());
        for j in 0..part.cols() {
            for i in 0..width {
                let expected = dot(part.col(j / width * width + i), part.col(j));
                assert!((blocks[(i, j)] - expected).abs() < 1e-12);
            }
        }
    }
    let mut packed = vec![0.0; n * (n + 1) / 2];
    pack_lower(large.view(), 0.0, 1.0, &mut packed);
    let (mut expected, mut found) = (a.clone(), a.clone());
    solve_lower(large.view(), expected.view_mut());
    par_solve_packed_lower(&packed, n, found.view_mut());
    for (e, f) in expected.data().iter().zip(found.data()) {
        assert!((e - f).abs() < 1e-9);
    }
    let mut bad = Mat::from_fn(300, 300, |i, j| if i == j { 1.0 } else { 0.0 });
    bad[(290, 290)] = -1.0;
    assert_eq!(
        par_cholesky(bad.view_mut(), &mut CholeskyScratch::default()),
        Err(NotPositiveDefinite { row: 290 })
    );
}
