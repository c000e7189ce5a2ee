//! One suite over every engine. The suite itself is `convgp::cov::contract`, so that an engine from outside can run it.

use convgp::cov::contract::{Tolerance, check_by_differences, check_engine};
use convgp::cov::{Cov, Engine, Fused, Need, Optimizations, Reference};
use convgp::data::{Batch, ImageShape, Images, Pixels};
use convgp::linalg::Mat;
use convgp::{Model, ModelSpec, rng::Rng};

/// What the engine is allowed; its name and the errors seen are printed with `--nocapture`.
#[allow(clippy::print_stdout)]
fn suite<E: Engine>(name: &str, engine: &E, value: f64, gradient: f64) {
    match check_engine(engine, Tolerance { value, gradient }) {
        Ok(worst) => println!("{name}: {worst:?}"),
        Err(e) => panic!("{name}: {e}"),
    }
}

#[test]
fn reference() {
    suite("Reference", &Reference, 1e-14, 0.0);
}

#[test]
fn fused_in_double_precision() {
    suite("Fused<f64>", &Fused::<f64>::default(), 1e-12, 1e-10);
}

#[test]
fn fused_in_single_precision() {
    suite("Fused<f32>", &Fused::<f32>::default(), 1e-5, 1e-4);
}

/// Every idea switched off in turn, and all at once: results stay the same. Without `vector` it is the portable path.
#[test]
fn fused_without_its_optimizations() {
    let all = Optimizations::default();
    let none =
        Optimizations { merge: false, handover: false, symmetric: false, box_filter: false, vector: false };
    for optimizations in [
        Optimizations { merge: false, ..all },
        Optimizations { handover: false, ..all },
        Optimizations { symmetric: false, ..all },
        Optimizations { box_filter: false, ..all },
        Optimizations { vector: false, ..all },
        Optimizations { merge: false, box_filter: false, ..all },
        none,
    ] {
        suite(
            &format!("Fused<f64> {optimizations:?}"),
            &Fused::<f64>::with_optimizations(optimizations),
            1e-12,
            1e-10,
        );
        suite(
            &format!("Fused<f32> {optimizations:?}"),
            &Fused::<f32>::with_optimizations(optimizations),
            1e-5,
            1e-4,
        );
    }
}

#[test]
#[allow(clippy::print_stdout)]
fn reference_by_differences() {
    println!("Reference, differences: {:?}", check_by_differences(&Reference, 1e-9).unwrap());
}

/// Results are the same bits whatever the number of threads.
#[test]
fn threads_do_not_matter() {
    same_bits(&Reference);
    same_bits(&Fused::<f32>::default());
    same_bits(&Fused::<f64>::default());
}

fn same_bits<E: Engine>(engine: &E) {
    for case in convgp::cov::contract::cases() {
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let (c, values, batch) = (&case.component, &case.values, &case.batch);
                let (mut saved, mut cov, mut kuu) = Default::default();
                let mut grad = vec![0.0; values.len()];
                engine.kuu(c, values, &mut kuu);
                engine.kuu_pullback(c, values, &kuu, &mut grad);
                engine.images(c, values, batch, Need::Gradient, &mut saved, &mut cov);
                engine.images_pullback(c, values, batch, &mut saved, &cov, &mut grad);
                (kuu, cov, grad)
            })
        };
        assert!(run(1) == run(2), "{}", case.name);
    }
}

/// Everything from pixels up, without the library's views and kernels: located 2 x 3 patches, stride 2 x 1, of the
/// second channel, weighted and normalised, RBF times Matern-3/2, white noise.
#[test]
fn sums_written_in_pixels() {
    let text = r#"
        image = { height = 5, width = 4, channels = 2 }
        likelihood = { type = "probit" }
        [[components]]
        views = { type = "patches", patch = [2, 3], stride = [2, 1], channels = 1, located = true }
        weights = "learned"
        normalise = true
        white = 0.3
        kernel = { type = "rbf", variance = 1.4, lengthscale = 0.9 }
        location = { type = "matern32", lengthscale = 2.5 }
        inducing = { count = 3, init = "uniform" }
    "#;
    let (model, mut values) =
        Model::new(&ModelSpec::from_toml(text).unwrap(), None, &mut Rng::new(3)).unwrap();
    let weights = [0.7, -0.4, 1.9, 0.2];
    model.layout().set(&mut values, "component-0.weights", &weights).unwrap();
    let pixel = |n: usize, row: usize, col: usize, channel: usize| {
        ((n * 31 + row * 13 + col * 7 + channel * 3) % 17) as f64 / 17.0
    };
    let mut pixels = Vec::new();
    for n in 0..2 {
        for row in 0..5 {
            for col in 0..4 {
                pixels.extend([pixel(n, row, col, 0), pixel(n, row, col, 1)]);
            }
        }
    }
    let images = Images::new(ImageShape::new(5, 4, 2).unwrap(), Pixels::F64(pixels)).unwrap();
    let c = &model.components()[0];
    let z = |m: usize| c.z(&values, m).to_vec();
    // Corners in view order: rows 0 and 2, columns 0 and 1.
    let corners = [(0, 0), (0, 1), (2, 0), (2, 1)];
    let view = |n: usize, p: usize| {
        let (r, s) = corners[p];
        let mut v = Vec::new();
        for i in 0..2 {
            for j in 0..3 {
                v.push(pixel(n, r + i, s + j, 1));
            }
        }
        v.extend([r as f64, s as f64]);
        v
    };
    let k = |a: &[f64], b: &[f64]| {
        let square = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum::<f64>();
        let r = 3f64.sqrt() * square(&a[6..], &b[6..]).sqrt() / 2.5;
        1.4 * (-square(&a[..6], &b[..6]) / (2.0 * 0.81)).exp() * (1.0 + r) * (-r).exp()
    };
    let (mut kuu, mut cov) = (Mat::default(), Cov::default());
    let batch = Batch::of_images(&images, &[0, 1]);
    Reference.kuu(c, &values, &mut kuu);
    Reference.images(c, &values, &batch, Need::Value, &mut (), &mut cov);
    for m in 0..3 {
        for o in 0..3 {
            let expected = k(&z(m), &z(o)) + if m == o { 0.3 } else { 0.0 };
            assert!((kuu[(m, o)] - expected).abs() < 1e-15 * 5.0);
        }
        for n in 0..2 {
            let expected: f64 = (0..4).map(|p| weights[p] / 4.0 * k(&z(m), &view(n, p))).sum();
            assert!((cov.kuf[0][(m, n)] - expected).abs() < 1e-14);
        }
    }
    for n in 0..2 {
        let mut expected = 0.3;
        for p in 0..4 {
            for q in 0..4 {
                expected += weights[p] / 4.0 * weights[q] / 4.0 * k(&view(n, p), &view(n, q));
            }
        }
        assert!((cov.kff[0][n] - expected).abs() < 1e-14);
    }
}
