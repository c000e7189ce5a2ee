//! What several test files share: small models, random data and parameters, dense linear algebra written out.

#![allow(dead_code)] // every test file uses another part

use convgp::data::{Batch, Dataset, ImageShape, Images, Pixels, Targets};
use convgp::likelihood::LikelihoodSpec;
use convgp::linalg::{Cholesky, Mat, dot, solve_lower};
use convgp::params::{Params, Transform, packed_column, packed_len};
use convgp::rng::Rng;
use convgp::{Model, ModelSpec};

/// A model at a point that is not special, with data.
pub struct Setup {
    pub model: Model,
    pub values: Params,
    pub data: Dataset,
}

impl Setup {
    /// The model of a spec in TOML, `count` random images and targets of its kind, random parameters.
    pub fn new(text: &str, count: usize, seed: u64) -> Self {
        let spec = ModelSpec::from_toml(text).unwrap_or_else(|e| panic!("{e}\nin\n{text}"));
        let mut rng = Rng::new(seed);
        let images = noise_images(spec.image, count, &mut rng);
        let targets = random_targets(&spec.likelihood, count, &mut rng);
        let data = Dataset::new(images, targets).unwrap();
        let (model, mut values) = Model::new(&spec, Some(data.images()), &mut rng).unwrap();
        randomise(&model, &mut values, &mut rng);
        Self { model, values, data }
    }

    pub fn full_batch(&self) -> Batch {
        self.data.batch(&(0..self.data.len()).collect::<Vec<_>>())
    }
}

pub fn noise_images(shape: ImageShape, count: usize, rng: &mut Rng) -> Images {
    let pixels = (0..count * shape.len()).map(|_| rng.uniform()).collect();
    Images::new(shape, Pixels::F64(pixels)).unwrap()
}

pub fn random_targets(likelihood: &LikelihoodSpec, count: usize, rng: &mut Rng) -> Targets {
    match likelihood.build().unwrap().classes() {
        None => Targets::real((0..count).map(|_| rng.normal()).collect()).unwrap(),
        Some(classes) => {
            let labels = (0..count).map(|_| rng.below(classes) as u32).collect();
            Targets::classes(labels, classes).unwrap()
        }
    }
}

/// Moves every parameter away from its initial value.
pub fn randomise(model: &Model, values: &mut [f64], rng: &mut Rng) {
    for e in model.layout().entries() {
        let slot = e.slot.of_mut(values);
        match e.transform {
            Transform::Positive | Transform::Scale => {
                slot.iter_mut().for_each(|v| *v *= 0.7 + 0.6 * rng.uniform())
            }
            Transform::Unit => slot.iter_mut().for_each(|v| *v = 0.05 + 0.2 * rng.uniform()),
            Transform::Lower { order } => random_triangles(order, slot, rng),
            Transform::Real if e.name.ends_with(".z") => {
                slot.iter_mut().for_each(|v| *v += 0.2 * rng.normal());
            }
            Transform::Real if e.name.contains("weights") => {
                slot.iter_mut().for_each(|v| *v = 0.6 + 0.5 * rng.normal());
            }
            Transform::Real => slot.iter_mut().for_each(|v| *v = 0.7 * rng.normal()),
        }
    }
}

fn random_triangles(order: usize, packed: &mut [f64], rng: &mut Rng) {
    for triangle in packed.chunks_exact_mut(packed_len(order)) {
        triangle.iter_mut().for_each(|v| *v = 0.3 * rng.normal());
        (0..order).for_each(|j| triangle[packed_column(order, j)] = 0.4 + 0.8 * rng.uniform());
    }
}

/// `A B` by three loops.
pub fn times(a: &Mat, b: &Mat) -> Mat {
    assert_eq!(a.cols(), b.rows());
    Mat::from_fn(a.rows(), b.cols(), |i, j| (0..a.cols()).map(|k| a[(i, k)] * b[(k, j)]).sum())
}

pub fn transposed(a: &Mat) -> Mat {
    Mat::from_fn(a.cols(), a.rows(), |i, j| a[(j, i)])
}

/// The lower Cholesky factor of `k + jitter I`, zeros above it.
pub fn factor(k: &Mat, jitter: f64) -> Mat {
    let mut l = k.clone();
    (0..l.rows()).for_each(|i| l[(i, i)] += jitter);
    Cholesky::new(l).expect("a positive definite matrix").lower().clone()
}

/// `log N(y; 0, k)`.
pub fn log_normal(k: &Mat, y: &[f64]) -> f64 {
    let (n, l) = (y.len(), factor(k, 0.0));
    let mut solved = Mat::from_fn(n, 1, |i, _| y[i]);
    solve_lower(l.view(), solved.view_mut());
    let log_det: f64 = (0..n).map(|i| l[(i, i)].ln()).sum();
    -0.5 * dot(solved.data(), solved.data()) - log_det - 0.5 * n as f64 * std::f64::consts::TAU.ln()
}

/// Eigenvalues of a symmetric matrix, largest first, by Jacobi rotations.
pub fn eigenvalues(k: &Mat) -> Vec<f64> {
    let (n, mut a) = (k.rows(), k.clone());
    for _ in 0..60 {
        let off: f64 = (0..n).map(|i| (0..i).map(|j| a[(i, j)] * a[(i, j)]).sum::<f64>()).sum();
        let diagonal: f64 = (0..n).map(|i| a[(i, i)] * a[(i, i)]).sum();
        if off <= 1e-34 * diagonal {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[(p, q)] == 0.0 {
                    continue;
                }
                let half = (a[(q, q)] - a[(p, p)]) / (2.0 * a[(p, q)]);
                let t = half.signum() / (half.abs() + (half * half + 1.0).sqrt());
                let c = 1.0 / (t * t + 1.0).sqrt();
                let s = t * c;
                for i in 0..n {
                    let (x, y) = (a[(i, p)], a[(i, q)]);
                    (a[(i, p)], a[(i, q)]) = (c * x - s * y, s * x + c * y);
                }
                for i in 0..n {
                    let (x, y) = (a[(p, i)], a[(q, i)]);
                    (a[(p, i)], a[(q, i)]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
    }
    let mut values: Vec<f64> = (0..n).map(|i| a[(i, i)]).collect();
    values.sort_by(|x, y| y.total_cmp(x));
    values
}

/// Outlines of rectangles as in the paper: sides 4 to 28 that differ by at least 3, one pixel wide, on 28 x 28.
pub fn rectangles(count: usize, rng: &mut Rng) -> Dataset {
    const SIDE: usize = 28;
    let (mut pixels, mut labels) = (vec![0u8; count * SIDE * SIDE], Vec::new());
    for image in pixels.chunks_exact_mut(SIDE * SIDE) {
        let (h, w) = loop {
            let (h, w) = (4 + rng.below(25), 4 + rng.below(25));
            if h.abs_diff(w) >= 3 {
                break (h, w);
            }
        };
        let (top, left) = (rng.below(SIDE - h + 1), rng.below(SIDE - w + 1));
        for r in 0..h {
            for c in 0..w {
                if r == 0 || r == h - 1 || c == 0 || c == w - 1 {
                    image[(top + r) * SIDE + left + c] = 255;
                }
            }
        }
        labels.push(u32::from(h > w));
    }
    let shape = ImageShape::new(SIDE, SIDE, 1).unwrap();
    let images = Images::new(shape, Pixels::U8(pixels)).unwrap();
    Dataset::new(images, Targets::classes(labels, 2).unwrap()).unwrap()
}

#[track_caller]
pub fn assert_close(found: f64, expected: f64, tolerance: f64) {
    let error = (found - expected).abs() / expected.abs().max(1.0);
    assert!(error <= tolerance, "{found} is not {expected}: relative error {error:.1e} > {tolerance:.1e}");
}

#[track_caller]
pub fn assert_all_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    let scale = expected.iter().fold(1e-300_f64, |s, e| s.max(e.abs()));
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        let error = (f - e).abs() / scale;
        assert!(error <= tolerance, "[{i}] {f} is not {e}: relative error {error:.1e} > {tolerance:.1e}");
    }
}
