//! Small problems for tests: oblong images, two components of different kinds.

use crate::ModelSpec;
use crate::data::{Dataset, ImageShape, Images, Pixels, Targets};
use crate::rng::Rng;

/// A weighted convolution and an RBF on 4 x 5 images, Gaussian noise.
pub(crate) fn small_spec() -> ModelSpec {
    ModelSpec::from_toml(
        r#"
        image = { height = 4, width = 5 }
        likelihood = { type = "gaussian", variance = 0.15 }
        jitter = { relative = 1e-6 }
        [[components]]
        name = "conv"
        views = { type = "patches", patch = [2, 3] }
        weights = "learned"
        white = 0.01
        kernel = { type = "rbf", variance = 0.3, lengthscale = 1.3 }
        inducing = { count = 5 }
        [[components]]
        name = "image"
        views = { type = "image" }
        kernel = { type = "matern52", variance = 0.6, lengthscale = 2.1 }
        inducing = { count = 4 }
        "#,
    )
    .expect("the spec is well formed")
}

fn images(count: usize, rng: &mut Rng) -> Images {
    let shape = ImageShape::new(4, 5, 1).expect("no side is empty");
    Images::new(shape, Pixels::F64((0..count * 20).map(|_| rng.uniform()).collect())).expect("whole images")
}

/// `count` random images with real targets that depend on them.
pub(crate) fn regression(count: usize, seed: u64) -> Dataset {
    let rng = &mut Rng::new(seed);
    let images = images(count, rng);
    let mut x = [0.0; 20];
    let mut target = |i| {
        images.write_image(i, &mut x);
        x[3] - x[7] + x[12] * x[13] + 0.1 * rng.normal()
    };
    let y = (0..count).map(&mut target).collect();
    Dataset::new(images, Targets::real(y).expect("finite")).expect("one target per image")
}

/// The same in two classes: the sign of the target less its typical value.
pub(crate) fn classes(count: usize, seed: u64) -> Dataset {
    let data = regression(count, seed);
    let Targets::Real(y) = data.targets() else { unreachable!("regression has real targets") };
    let labels = y.iter().map(|&y| u32::from(y > 0.25)).collect();
    Dataset::new(data.images().clone(), Targets::classes(labels, 2).expect("labels are 0 or 1"))
        .expect("as many")
}
