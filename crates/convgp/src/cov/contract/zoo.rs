//! The zoo: small components that differ in everything an engine has to get right.

use crate::component::Weights;
use crate::component::{Component, ComponentParts, ImageNorm, Pooling};
use crate::data::{Batch, ImageShape, Images, Pixels};
use crate::kernel::{Dims, Kernel, KernelError, KernelSpec, PairBar, Product, ViewDims};
use crate::params::{Layout, ParamInit, Transform};
use crate::rng::Rng;
use crate::views::{ViewSpec, Views};
use std::sync::Arc;

/// A component with parameters at no special point, and images for it.
#[derive(Debug)]
pub struct Case {
    /// What is unusual about it.
    pub name: String,
    /// The component; its parameters do not start at the beginning of `values`.
    pub component: Component,
    /// Names of the parameters.
    pub layout: Layout,
    /// Parameters.
    pub values: Vec<f64>,
    /// Images.
    pub batch: Batch,
}

/// A line of the zoo: height, width, channels; views, kernel, location kernel; inducing inputs, images.
struct Recipe {
    name: &'static str,
    shape: [usize; 3],
    views: &'static str,
    kernel: &'static str,
    location: &'static str,
    weights: Weights,
    pooling: Option<[usize; 2]>,
    normalise: bool,
    white: bool,
    inducing: usize,
    batch: usize,
    pixels: Look,
}

/// What the images look like.
#[derive(Clone, Copy)]
enum Look {
    /// Every pixel random: no two views alike.
    Noise,
    /// A few bright pixels on black: most views are blank, many are equal.
    Sparse,
    /// All pixels of an image equal.
    Flat,
}

impl Recipe {
    const fn new(name: &'static str, views: &'static str, kernel: &'static str) -> Self {
        Self {
            name,
            shape: [6, 5, 1],
            views,
            kernel,
            location: "",
            weights: Weights::Learned,
            pooling: None,
            normalise: false,
            white: false,
            inducing: 4,
            batch: 3,
            pixels: Look::Noise,
        }
    }
}

const PATCHES: &str = "type = 'patches'\npatch = [3, 2]";
const RBF: &str = "type = 'rbf'\nvariance = 1.3\nlengthscale = 1.7";
const MATERN32: &str = "type = 'matern32'\nlengthscale = 2.1";

/// The lines of the zoo.
#[rustfmt::skip] // a table
fn recipes() -> Vec<Recipe> {
    let new = Recipe::new;
    let colour = [4, 5, 3];
    vec![
        Recipe { weights: Weights::Ones, ..new("invariant rbf patches", PATCHES, RBF) },
        new("weighted rbf patches", PATCHES, RBF),
        Recipe { pixels: Look::Sparse, batch: 5, ..new("weighted rbf, mostly blank", PATCHES, RBF) },
        Recipe { pixels: Look::Sparse, weights: Weights::Ones, ..new("invariant rbf, mostly blank", PATCHES, RBF) },
        Recipe { pixels: Look::Flat, ..new("weighted rbf, all views equal", PATCHES, RBF) },
        new("matern12", PATCHES, "type = 'matern12'\nlengthscale = 2.3"),
        new("matern32", PATCHES, MATERN32),
        new("matern52", PATCHES, "type = 'matern52'\nvariance = 0.4\nlengthscale = 1.2"),
        Recipe { pixels: Look::Sparse, ..new("matern12, mostly blank", PATCHES, "type = 'matern12'") },
        Recipe { pixels: Look::Sparse, ..new("matern32, mostly blank", PATCHES, MATERN32) },
        new("rbf, one lengthscale per element", PATCHES, "type = 'rbf'\nlengthscale = [0.9, 1.4, 2.0, 1.1, 3.0, 0.8]"),
        new("matern52, one lengthscale per element", PATCHES, "type = 'matern52'\nard = true\nlengthscale = 1.6"),
        new("additive rbf", PATCHES, "type = 'additive'\nlengthscale = 0.7"),
        // Its kinks lie at the grey levels: few of them, so that differences do not straddle one.
        Recipe { pixels: Look::Sparse, ..new("additive matern12", PATCHES, "type = 'additive'\nof = 'matern12'") },
        new("pixels", "type = 'pixels'", "type = 'rbf'\nlengthscale = 0.6"),
        Recipe { weights: Weights::Ones, ..new("whole image", "type = 'image'", "type = 'rbf'\nlengthscale = 3.0") },
        Recipe { weights: Weights::Ones, ..new("whole image, ard", "type = 'image'", "type = 'rbf'\nard = true\nlengthscale = 3.0") },
        Recipe { weights: Weights::Ones, ..new("whole image, additive", "type = 'image'", "type = 'additive'\nlengthscale = 0.8") },
        Recipe { shape: [7, 6, 1], ..new("stride 2", "type = 'patches'\npatch = [2, 3]\nstride = 2", RBF) },
        Recipe { shape: [5, 8, 1], pixels: Look::Sparse, ..new("uneven stride", "type = 'patches'\npatch = [2, 3]\nstride = [1, 2]", MATERN32) },
        new("one-pixel patches", "type = 'patches'\npatch = 1", RBF),
        new("patch as wide as the image", "type = 'patches'\npatch = [2, 5]", RBF),
        Recipe { shape: [12, 11, 1], inducing: 13, ..new("larger than a vector register", "type = 'patches'\npatch = [5, 4]", "type = 'rbf'\nlengthscale = 2.6") },
        Recipe { shape: [11, 12, 1], inducing: 9, pixels: Look::Sparse, ..new("larger, mostly blank", "type = 'patches'\npatch = [4, 5]", "type = 'rbf'\nlengthscale = 2.6") },
        Recipe { inducing: 1, batch: 1, ..new("one inducing input, one image", PATCHES, RBF) },
        Recipe { shape: [4, 3, 1], batch: 70, ..new("more images than a chunk", "type = 'patches'\npatch = [2, 2]", RBF) },
        Recipe { shape: [4, 3, 1], batch: 70, pixels: Look::Sparse, weights: Weights::Ones, ..new("more images than a chunk, mostly blank", "type = 'patches'\npatch = [2, 2]", RBF) },
        Recipe { shape: [4, 3, 1], inducing: 70, batch: 2, ..new("more inducing inputs than a chunk", "type = 'patches'\npatch = [2, 2]", RBF) },
        Recipe { white: true, ..new("white noise", PATCHES, RBF) },
        Recipe { normalise: true, white: true, ..new("normalised, white noise", PATCHES, RBF) },
        Recipe { normalise: true, weights: Weights::Ones, pixels: Look::Sparse, ..new("normalised, invariant", PATCHES, MATERN32) },
        Recipe { shape: colour, ..new("colour, pooled", "type = 'patches'\npatch = [2, 3]", RBF) },
        Recipe { shape: colour, pixels: Look::Sparse, ..new("colour, pooled, mostly blank", "type = 'patches'\npatch = [2, 3]", RBF) },
        Recipe { shape: colour, ..new("colour patches", "type = 'patches'\npatch = [2, 3]\nchannels = 'all'", RBF) },
        Recipe { shape: colour, ..new("colour patches, one kernel per channel", "type = 'patches'\npatch = [2, 3]\nchannels = 'all'", "type = 'channels'\nof = 'matern32'\nlengthscale = 1.5") },
        Recipe { shape: colour, white: true, ..new("multi-channel", "type = 'patches'\npatch = [2, 3]\nchannels = 'each'", RBF) },
        Recipe { shape: colour, weights: Weights::Ones, pixels: Look::Sparse, ..new("multi-channel, invariant", "type = 'patches'\npatch = [3, 2]\nchannels = 'each'", RBF) },
        Recipe { shape: colour, ..new("one channel", "type = 'patches'\npatch = [2, 3]\nchannels = 1", RBF) },
        new("sum", PATCHES, "type = 'sum'\nterms = [{ type = 'rbf', lengthscale = 1.5, dims = { start = 0, len = 3 } }, { type = 'matern32', dims = { start = 1, len = 3, step = 2 } }]"),
        new("product", PATCHES, "type = 'product'\nterms = [{ type = 'rbf', lengthscale = 1.5, dims = { start = 0, len = 4 } }, { type = 'matern52', dims = { start = 3, len = 3 } }]"),
        new("product of a sum", PATCHES, "type = 'product'\nterms = [{ type = 'sum', terms = [{ type = 'rbf' }, { type = 'matern12' }] }, { type = 'additive', of = 'matern52' }]"),
        new("opaque kernel", PATCHES, "opaque"),
        Recipe { location: MATERN32, ..new("located", "type = 'patches'\npatch = [3, 2]\nlocated = true", RBF) },
        Recipe { location: "type = 'rbf'\nlengthscale = [1.5, 2.5]", weights: Weights::Ones, pixels: Look::Sparse, ..new("located, invariant, mostly blank", "type = 'patches'\npatch = [3, 2]\nlocated = true", RBF) },
        Recipe { shape: colour, location: "type = 'matern12'\nlengthscale = 3.0", ..new("located, multi-channel, stride 2", "type = 'patches'\npatch = [2, 2]\nstride = 2\nchannels = 'each'\nlocated = true", MATERN32) },
        Recipe { shape: colour, location: MATERN32, ..new("located, one kernel per channel", "type = 'patches'\npatch = [2, 3]\nchannels = 'all'\nlocated = true", "type = 'channels'") },
        new("orbit of flips", "type = 'image'\norbit = ['flip-horizontal', 'flip-vertical']", "type = 'rbf'\nlengthscale = 3.0"),
        Recipe { shape: [4, 4, 2], weights: Weights::Ones, ..new("orbit of the square", "type = 'image'\norbit = ['square-symmetries']", "type = 'matern52'\nlengthscale = 4.0") },
        Recipe { weights: Weights::Ones, pixels: Look::Sparse, ..new("patches under flips", "type = 'patches'\npatch = [3, 2]\norbit = ['flip-horizontal']", RBF) },
        new("orbit with interpolation", "type = 'image'\norbit = [{ rotations = [-10.0, 17.0] }, { scalings = [1.1] }]", "type = 'rbf'\nlengthscale = 3.0"),
        Recipe { pixels: Look::Sparse, ..new("patches under shears and shifts", "type = 'patches'\npatch = [3, 3]\nstride = 2\norbit = [{ shears = [0.2] }, { shifts = 1 }]", RBF) },
        Recipe { location: MATERN32, ..new("located patches under rotations", "type = 'patches'\npatch = [3, 3]\nstride = 2\nlocated = true\norbit = [{ rotations = [15.0] }]", RBF) },
        Recipe { weights: Weights::PerPlane, location: MATERN32, ..new("located patches under shears, a weight for each", "type = 'patches'\npatch = [3, 3]\nstride = 2\nlocated = true\norbit = [{ shears = [-0.3, 0.3] }]", RBF) },
        Recipe { weights: Weights::Ones, pooling: Some([2, 3]), ..new("pooled patches", "type = 'patches'\npatch = [3, 2]", RBF) },
        Recipe { shape: [9, 8, 1], weights: Weights::Ones, pooling: Some([3, 2]), inducing: 19, pixels: Look::Sparse, ..new("pooled sparse patches of unit length", "type = 'patches'\npatch = [2, 2]\ntransform = { contrast = 0.1, unit = 0.5 }", RBF) },
        Recipe { shape: colour, pooling: Some([2, 2]), ..new("pooled colour patches, weighted", "type = 'patches'\npatch = [2, 3]\nchannels = 'all'", RBF) },
        Recipe { shape: colour, weights: Weights::Ones, pooling: Some([2, 1]), ..new("pooled patches of every channel under flips", "type = 'patches'\npatch = [2, 3]\nchannels = 'each'\norbit = ['flip-horizontal']", "type = 'sum'\nterms = [{ type = 'rbf', lengthscale = 1.3 }, { type = 'matern52' }]") },
        Recipe { weights: Weights::Ones, pooling: Some([2, 2]), location: MATERN32, ..new("pooled located patches", "type = 'patches'\npatch = [3, 2]\nlocated = true", RBF) },
        Recipe { shape: [11, 12, 1], inducing: 9, location: MATERN32, ..new("located, larger", "type = 'patches'\npatch = [4, 5]\nlocated = true", "type = 'rbf'\nlengthscale = 2.6") },
        Recipe { shape: colour, location: MATERN32, ..new("located patches of local contrast, under flips", "type = 'patches'\npatch = [2, 3]\nchannels = 'all'\nlocated = true\norbit = ['flip-horizontal']\ncontrast = { radius = 1.2, floor = 0.2 }", RBF) },
    ]
}

/// All cases of the zoo, the same at every call.
pub fn cases() -> Vec<Case> {
    recipes().iter().enumerate().map(|(i, recipe)| case(recipe, i as u64)).collect()
}

fn case(r: &Recipe, seed: u64) -> Case {
    let mut rng = Rng::stream(20_170_901, seed);
    let shape = ImageShape::new(r.shape[0], r.shape[1], r.shape[2]).expect("the zoo has no empty images");
    let views =
        toml::from_str::<ViewSpec>(r.views).expect("valid TOML").build(shape).expect("views that fit");
    let batch = batch(r, shape, &mut rng);
    let z = inducing_inputs(r.inducing, &views, &batch, &mut rng);
    let parts = ComponentParts {
        name: "c".into(),
        kernel: kernel(r, views[0].as_ref()),
        views,
        weights: r.weights,
        pooling: r.pooling.map(|grid| Pooling { grid }),
        image_norm: ImageNorm::None,
        normalise: r.normalise,
        white: r.white.then_some(0.3),
        z,
    };
    let (mut layout, mut values) = (Layout::default(), Vec::new());
    let other = |name: &str| ParamInit::array(name, Transform::Real, vec![1.0, -2.0, 0.5]);
    layout.add(&mut values, "other", other("before")).expect("a new name");
    let component = Component::register(parts, &mut layout, &mut values).expect("a valid component");
    layout.add(&mut values, "other", other("after")).expect("a new name");
    for e in layout.entries() {
        let slot = e.slot.of_mut(&mut values);
        match e.transform {
            Transform::Positive | Transform::Scale => {
                slot.iter_mut().for_each(|v| *v *= 0.8 + 0.4 * rng.uniform())
            }
            _ if e.name.contains("weights") => slot.iter_mut().for_each(|v| *v = 0.6 + 0.7 * rng.normal()),
            _ => {}
        }
    }
    if let Some(slot) = component.responses()[0].weights_slot() {
        slot.of_mut(&mut values)[slot.len() / 2] = 0.0;
    }
    Case { name: r.name.into(), component, layout, values, batch }
}

fn kernel(r: &Recipe, view: &dyn Views) -> Arc<dyn Kernel> {
    let len = view.len() - view.coordinates();
    let dims = ViewDims { len, channels: view.layout().view.channels() };
    let build = |text: &str| {
        let spec: KernelSpec = toml::from_str(text).expect("valid TOML");
        spec.build(dims, None).expect("a kernel that fits")
    };
    if r.kernel == "opaque" {
        return Arc::new(Opaque(build(RBF)));
    }
    if r.location.is_empty() {
        return build(r.kernel);
    }
    let location: KernelSpec = toml::from_str(r.location).expect("valid TOML");
    let location = location.build_location(Dims { start: len, len: view.coordinates(), step: 1 });
    let parts = vec![build(r.kernel), location.expect("a location kernel")];
    Arc::new(Product::new(parts).expect("two factors"))
}

fn batch(r: &Recipe, shape: ImageShape, rng: &mut Rng) -> Batch {
    let mut pixels = Vec::with_capacity(r.batch * shape.len());
    for n in 0..r.batch {
        let flat = rng.uniform();
        pixels.extend((0..shape.len()).map(|_| match r.pixels {
            Look::Noise => rng.uniform(),
            // Two grey levels only, so that views with something on them repeat as well; the second image is blank.
            Look::Sparse if n != 1 && rng.uniform() < 0.12 => 0.4 + 0.6 * (rng.below(2) as f64),
            Look::Sparse => 0.0,
            Look::Flat => flat,
        }));
    }
    let images = Images::new(shape, Pixels::F64(pixels)).expect("finite pixels");
    Batch::of_images(&images, &(0..r.batch).collect::<Vec<_>>())
}

/// Views of the images, moved a little: some close to what the images show, none equal to it.
fn inducing_inputs(count: usize, views: &[Arc<dyn Views>], batch: &Batch, rng: &mut Rng) -> Vec<f64> {
    let (e, mut z) = (views[0].len(), Vec::new());
    for m in 0..count {
        let views = &views[m % views.len()];
        let mut all = vec![0.0; views.count() * e];
        views.write(batch.image(m % batch.len()), &mut all);
        let p = rng.below(views.count());
        z.extend(all[p * e..(p + 1) * e].iter().map(|x| x + 0.4 * rng.normal()));
    }
    z
}

/// A kernel that does not say what it is made of, as one from outside the crate may be.
#[derive(Debug)]
struct Opaque(Arc<dyn Kernel>);

impl Kernel for Opaque {
    fn parameters(&self) -> Vec<ParamInit> {
        self.0.parameters()
    }
    fn check_len(&self, len: usize) -> Result<(), KernelError> {
        self.0.check_len(len)
    }
    fn value(&self, theta: &[f64], a: &[f64], b: &[f64]) -> f64 {
        self.0.value(theta, a, b)
    }
    fn pullback(&self, theta: &[f64], a: &[f64], b: &[f64], g: f64, bar: &mut PairBar) {
        self.0.pullback(theta, a, b, g, bar);
    }
}
