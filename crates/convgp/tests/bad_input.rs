//! Bad input: a typed error that names the thing, never a panic.

mod common;

use common::{Setup, noise_images};
use convgp::component::{ComponentParts, ImageNorm};
use convgp::cov::Reference;
use convgp::data::{Batch, DataError, Dataset, ImageShape, Images, Pixels, Targets};
use convgp::error::{InitError, NumericalError, SpecError};
use convgp::kernel::{Dims, KernelError, Rbf, Stationary};
use convgp::likelihood::{LikelihoodError, LikelihoodSpec};
use convgp::model::{Predictor, Weights, Workspace};
use convgp::params::{ParamError, Params};
use convgp::rng::Rng;
use convgp::variational::Form;
use convgp::views::{Channels, GeometryError, Views, Windows};
use convgp::{Error, Model, ModelSpec};
use std::sync::Arc;

const GOOD: &str = "
    image = { height = 5, width = 4 }
    likelihood = { type = 'probit' }
    posterior = { structure = 'full' }
    jitter = { relative = 1e-4 }
    [[components]]
    name = 'conv'
    views = { type = 'patches', patch = [3, 2] }
    weights = 'learned'
    kernel = { type = 'rbf', dims = { start = 0, len = 6 } }
    inducing = { count = 4 }
";

/// The error of a spec, given five noise images of its shape where that is possible.
fn error(text: &str) -> Error {
    let spec = match ModelSpec::from_toml(text) {
        Ok(spec) => spec,
        Err(e) => return e,
    };
    let images = noise_images(spec.image, 5, &mut Rng::new(1));
    match Model::new(&spec, Some(&images), &mut Rng::new(2)) {
        Ok(_) => panic!("no error from\n{text}"),
        Err(e) => e,
    }
}

/// The error of [`GOOD`] with one thing replaced.
#[track_caller]
fn change(old: &str, new: &str) -> Error {
    assert!(GOOD.contains(old), "nothing to replace");
    error(&GOOD.replace(old, new))
}

#[track_caller]
fn says(e: &impl std::fmt::Display, words: &[&str]) {
    let text = e.to_string();
    assert!(words.iter().all(|w| text.contains(w)), "`{text}` does not say {words:?}");
}

/// Asserts variant and words of an error.
macro_rules! expect {
    ($error:expr, $pattern:pat, $($word:expr),+) => {{
        let error = $error;
        assert!(matches!(error, $pattern), "{error:?}");
        says(&error, &[$($word),+]);
    }};
}

#[test]
fn the_spec_that_is_changed_here_is_good() {
    Setup::new(GOOD, 5, 0);
}

#[test]
fn images() {
    let shape = ImageShape::new(5, 4, 1).unwrap();
    let new = |pixels| Images::new(shape, pixels).unwrap_err();
    expect!(ImageShape::new(5, 0, 1).unwrap_err(), DataError::EmptyShape { .. }, "5 x 0 x 1");
    let huge = ImageShape::new(usize::MAX, 2, 3).unwrap_err();
    expect!(huge, DataError::ImageTooLarge { .. }, "too large");
    expect!(new(Pixels::U8(vec![])), DataError::Empty, "no images");
    expect!(new(Pixels::U8(vec![0; 21])), DataError::PixelCount { .. }, "21", "5x4x1", "20");
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut pixels = vec![0.5; 60];
        pixels[20 + 7] = bad;
        let e = new(Pixels::F64(pixels.clone()));
        expect!(e, DataError::NotFinite { image: 1, pixel: 7, .. }, "pixel 7 of image 1", &bad.to_string());
        let single = pixels.iter().map(|&p| p as f32).collect();
        expect!(new(Pixels::F32(single)), DataError::NotFinite { image: 1, pixel: 7, .. }, "finite");
    }
    let images = noise_images(shape, 2, &mut Rng::new(0));
    expect!(
        images.select(&[0, 2]).unwrap_err(),
        DataError::IndexOutOfRange { index: 2, count: 2 },
        "image 2"
    );
    expect!(images.select(&[]).unwrap_err(), DataError::Empty, "no images");
}

#[test]
fn targets() {
    let e = Targets::classes(vec![0, 3, 1], 3).unwrap_err();
    expect!(e, DataError::LabelOutOfRange { image: 1, label: 3, classes: 3 }, "label 3 of image 1", "0..=2");
    expect!(Targets::classes(vec![0], 1).unwrap_err(), DataError::TooFewClasses { classes: 1 }, "at least 2");
    let e = Targets::real(vec![0.0, f64::NAN]).unwrap_err();
    expect!(e, DataError::TargetNotFinite { image: 1, .. }, "image 1", "NaN");
    let images = || noise_images(ImageShape::new(5, 4, 1).unwrap(), 2, &mut Rng::new(0));
    let e = Dataset::new(images(), Targets::real(vec![1.0]).unwrap()).unwrap_err();
    expect!(e, DataError::TargetCount { images: 2, targets: 1 }, "2 images", "1 targets");
    // Made by hand instead of by a constructor.
    let e = Dataset::new(images(), Targets::Classes { labels: vec![0, 7], classes: 3 }).unwrap_err();
    expect!(e, DataError::LabelOutOfRange { image: 1, label: 7, .. }, "label 7");
    let e = Dataset::new(images(), Targets::Real(vec![0.0, f64::INFINITY])).unwrap_err();
    expect!(e, DataError::TargetNotFinite { image: 1, .. }, "inf");
    let data = Dataset::new(images(), Targets::classes(vec![0, 1], 2).unwrap()).unwrap();
    let e = data.with_class_names(vec!["one".into()]).unwrap_err();
    expect!(e, DataError::ClassNames { names: 1, classes: 2 }, "1 class names for 2");
}

/// One spec field too many, in every table of a spec.
#[test]
fn unknown_fields() {
    for (old, new) in [
        ("jitter =", "colour = 1\njitter ="),
        ("height = 5", "height = 5, colour = 1"),
        ("type = 'probit'", "type = 'probit', colour = 1"),
        ("type = 'probit'", "type = 'gaussian', colour = 1"),
        ("type = 'probit'", "type = 'logit', colour = 1"),
        ("type = 'probit'", "type = 'robust-max', classes = 3, colour = 1"),
        ("type = 'probit'", "type = 'softmax', classes = 3, colour = 1"),
        ("structure = 'full'", "structure = 'full', colour = 1"),
        ("name = 'conv'", "name = 'conv'\ncolour = 1"),
        ("patch = [3, 2]", "patch = [3, 2], colour = 1"),
        ("type = 'patches', patch = [3, 2]", "type = 'image', colour = 1"),
        ("type = 'patches', patch = [3, 2]", "type = 'pixels', colour = 1"),
        ("type = 'patches', patch = [3, 2]", "type = 'image', orbit = ['colour']"),
        ("type = 'rbf'", "type = 'rbf', colour = 1"),
        ("len = 6", "len = 6, colour = 1"),
        ("count = 4", "count = 4, colour = 1"),
        ("relative = 1e-4", "colour = 1"),
    ] {
        expect!(change(old, new), Error::Toml(_), "colour", "unknown");
    }
    expect!(change("relative = 1e-4", "relative = 1e-4, absolute = 1e-4"), Error::Toml(_), "jitter");
    expect!(change("'full'", "'half'"), Error::Toml(_), "half", "mean-field");
    expect!(change("'learned'", "'fixed'"), Error::Toml(_), "fixed", "learned");
    expect!(change("count = 4", "count = -1"), Error::Toml(_), "-1");
    expect!(change("count = 4", "count = 4, init = 'noise'"), Error::Toml(_), "noise", "uniform");
    expect!(change("height = 5", "height = 0"), Error::Toml(_), "0 x 4 x 1");
    expect!(change("[[components]]", "[[components"), Error::Toml(_), "TOML");
}

#[test]
fn geometry() {
    let e = change("[3, 2]", "[6, 2]");
    expect!(e, Error::Geometry(GeometryError::PatchTooLarge { .. }), "6 x 2", "5x4x1", "at most 5 x 4");
    expect!(change("[3, 2]", "0"), Error::Geometry(GeometryError::ZeroPatch { .. }), "0 x 0", "at least 1");
    let e = change("[3, 2]", "[3, 2], stride = [0, 1]");
    expect!(e, Error::Geometry(GeometryError::ZeroStride { .. }), "0 x 1");
    let e = change("[3, 2]", "[3, 2], channels = 1");
    expect!(e, Error::Geometry(GeometryError::ChannelOutOfRange { .. }), "channel 1", "has 1");
    let e = change("[3, 2]", "[3, 2], orbit = ['quarter-turns']");
    expect!(e, Error::Geometry(GeometryError::NotSquare { .. }), "quarter-turns", "5x4x1");
    let e = change("[3, 2]", "[3, 2], orbit = [{ shifts = 4 }]");
    expect!(e, Error::Geometry(GeometryError::ShiftTooLarge { .. }), "4 pixels", "at most 3");
    let e = change("[3, 2]", "[3, 2], orbit = [{ scalings = [0.0] }]");
    expect!(e, Error::Geometry(GeometryError::BadScaling { .. }), "by 0");
    let e = change("[3, 2]", "[3, 2], orbit = [{ rotations = [nan] }]");
    expect!(e, Error::Geometry(GeometryError::NotFinite { .. }), "rotations");
}

#[test]
fn components() {
    let empty = "image = { height = 5, width = 4 }\nlikelihood = { type = 'probit' }\ncomponents = []";
    expect!(error(empty), Error::Spec(SpecError::NoComponents), "components");
    let component = &GOOD[GOOD.find("[[components]]").unwrap()..];
    let e = error(&format!("{GOOD}\n{component}"));
    expect!(e, Error::Spec(SpecError::DuplicateComponent { .. }), "conv");
    // A name that is also the default of another.
    let unnamed = component.replace("name = 'conv'", "");
    let e = error(&format!("{}\n{unnamed}", GOOD.replace("'conv'", "'component-1'")));
    expect!(e, Error::Spec(SpecError::DuplicateComponent { .. }), "component-1");
    expect!(change("count = 4", "count = 0"), Error::Spec(SpecError::NoInducing { .. }), "conv", "count");
    let e = change("[3, 2]", "[3, 2], located = true");
    expect!(e, Error::Spec(SpecError::CoordinatesWithoutLocation { .. }), "conv", "location");
    let e = change("inducing", "location = { type = 'rbf' }\ninducing");
    expect!(e, Error::Spec(SpecError::LocationWithoutCoordinates { .. }), "conv", "location_aware");
    for jitter in ["relative = 0.0", "relative = 1.0", "absolute = -1e-6", "absolute = nan"] {
        let e = change("relative = 1e-4", jitter);
        expect!(e, Error::Spec(SpecError::Jitter { .. }), "jitter", "positive and below 1");
    }
}

/// More inducing inputs than there are different views.
#[test]
fn too_few_views() {
    let spec = ModelSpec::from_toml(GOOD).unwrap();
    let blank = Images::new(spec.image, Pixels::U8(vec![0; 200])).unwrap();
    for (init, count) in [("views", 4), ("k-means", 4), ("views", 1_000_000_000)] {
        let text = GOOD.replace("count = 4", &format!("count = {count}, init = '{init}'"));
        let spec = ModelSpec::from_toml(&text).unwrap();
        let e = Model::new(&spec, Some(&blank), &mut Rng::new(0)).unwrap_err();
        assert!(
            matches!(e, Error::Init(InitError::TooFewViews { wanted, found: 1, .. }) if wanted == count),
            "{e:?}"
        );
        says(&e, &["conv", &count.to_string(), "only 1 distinct", "uniform"]);
    }
    // Exactly as many as there are is possible: every one of them is found, however rare.
    let mut pixels = vec![0; 2000 * 20];
    pixels[777 * 20] = 255;
    let rare = Images::new(spec.image, Pixels::U8(pixels)).unwrap();
    let text = GOOD.replace("count = 4", "count = 2");
    Model::new(&ModelSpec::from_toml(&text).unwrap(), Some(&rare), &mut Rng::new(0)).unwrap();
    let e = Model::new(&spec, None, &mut Rng::new(0)).unwrap_err();
    expect!(e, Error::Init(InitError::NoImages), "training images");
}

#[test]
fn kernels() {
    let rbf = "type = 'rbf', dims = { start = 0, len = 6 }";
    let e = change(rbf, "type = 'rbff'");
    expect!(e, Error::Toml(_), "rbff", "matern32", "product");
    let e = change(rbf, "type = 'additive', of = 'rbff'");
    expect!(e, Error::Toml(_), "rbff");
    let e = change(rbf, "type = 'rbf', lengthscale = [1.0, 2.0]");
    expect!(e, Error::Kernel(KernelError::LengthscaleCount { found: 2, expected: 6 }), "2 lengthscales", "6");
    let e = change(rbf, "type = 'additive', lengthscale = [1.0, 2.0]");
    expect!(e, Error::Kernel(KernelError::LengthscaleCount { found: 2, .. }), "2 lengthscales");
    expect!(
        change("len = 6", "len = 7"),
        Error::Kernel(KernelError::DimsOutOfRange { .. }),
        "0..7",
        "6 numbers"
    );
    let far = i64::MAX.to_string();
    for huge in [format!("len = {far}, step = {far}"), format!("len = {far} }}, ard = true, of = {{ a = 1")] {
        // The second is not even TOML of the right kind; neither may panic.
        let e = change("len = 6", &huge);
        assert!(matches!(e, Error::Kernel(KernelError::DimsOutOfRange { .. }) | Error::Toml(_)), "{e:?}");
    }
    let e = change(rbf, &format!("type = 'rbf', ard = true, dims = {{ start = 0, len = {far} }}"));
    expect!(e, Error::Kernel(KernelError::DimsOutOfRange { .. }), "6 numbers");
    expect!(change("len = 6", "len = 0"), Error::Kernel(KernelError::NoDims), "dims");
    expect!(change("len = 6", "len = 6, step = 0"), Error::Kernel(KernelError::NoDims), "step");
    expect!(change(rbf, "type = 'sum'"), Error::Kernel(KernelError::NoTerms { kind: "sum" }), "sum", "terms");
    let e = change(rbf, "type = 'product', variance = 2.0, terms = [{ type = 'rbf' }]");
    expect!(e, Error::Toml(_), "unknown field `variance`, expected `terms`");
    let e = change(rbf, "type = 'rbf', terms = [{ type = 'rbf' }]");
    expect!(e, Error::Toml(_), "unknown field `terms`");
    let located = GOOD.replace("[3, 2]", "[3, 2], located = true");
    let e = error(&located.replace("inducing", "location = { type = 'rbf', variance = 1.0 }\ninducing"));
    expect!(e, Error::Kernel(KernelError::LocationField { field: "variance" }), "location", "variance");
    let e = error(&located.replace("inducing", "location = { type = 'sum' }\ninducing"));
    expect!(e, Error::Kernel(KernelError::LocationNotRadial), "location", "radial");
    let e = error(&located.replace("inducing", "location = { type = 'rbf', lengthscale = [1.0] }\ninducing"));
    expect!(e, Error::Kernel(KernelError::LengthscaleCount { found: 1, expected: 2 }), "1 lengthscales");
    let spec = ModelSpec::from_toml(&GOOD.replace(rbf, "type = 'rbf', lengthscale = 'median'")).unwrap();
    let e = Model::new(&spec, None, &mut Rng::new(0)).unwrap_err();
    expect!(e, Error::Kernel(KernelError::MedianWithoutData), "median");
}

#[test]
fn numbers_that_must_be_positive() {
    for (field, name) in [
        ("variance = 0.0", "conv.kernel.variance"),
        ("variance = -1.0", "conv.kernel.variance"),
        ("variance = nan", "conv.kernel.variance"),
        ("lengthscale = -2.0", "conv.kernel.lengthscale"),
        ("lengthscale = inf", "conv.kernel.lengthscale"),
        ("lengthscale = [1.0, 1.0, 0.0, 1.0, 1.0, 1.0]", "conv.kernel.lengthscales"),
    ] {
        let e = change("type = 'rbf'", &format!("type = 'rbf', {field}"));
        expect!(e, Error::Param(ParamError::Invalid { .. }), name, "positive and finite");
    }
    let e = change("inducing", "white = 0.0\ninducing");
    expect!(e, Error::Param(ParamError::Invalid { .. }), "conv.white");
    let Setup { model, mut values, .. } = Setup::new(GOOD, 5, 0);
    let mut set = |name: &str, new: &[f64]| model.layout().set(&mut values, name, new).unwrap_err();
    expect!(set("conv.kernel.variance", &[-1.0]), ParamError::Invalid { .. }, "conv.kernel.variance", "-1");
    expect!(set("conv.z", &[f64::NAN; 24]), ParamError::Invalid { .. }, "conv.z", "NaN", "finite");
    expect!(set("conv.z", &[0.0; 23]), ParamError::Length { .. }, "conv.z", "24", "23");
    expect!(set("conv.y", &[0.0]), ParamError::Unknown { .. }, "conv.y", "conv.weights");
    expect!(set("q.factor", &[0.0; 10]), ParamError::Invalid { .. }, "q.factor", "positive");
}

#[test]
fn likelihoods() {
    for (new, word) in [
        ("type = 'gaussian', variance = 0.0", "variance is 0"),
        ("type = 'probit', link_jitter = 0.5", "jitter is 0.5"),
        ("type = 'robust-max', classes = 1", "1 class(es)"),
        ("type = 'robust-max', classes = 3, epsilon = 0.0", "epsilon is 0"),
        ("type = 'robust-max', classes = 3, epsilon = 1.0", "epsilon is 1"),
        ("type = 'robust-max', classes = 3, epsilon = nan, learn_epsilon = true", "epsilon is NaN"),
        ("type = 'robust-max', classes = 3, squash = 0.5", "squash is 0.5"),
        ("type = 'softmax', classes = 0", "0 class(es)"),
        ("type = 'softmax', classes = 3, samples = 3", "3 samples"),
        ("type = 'softmax', classes = 3, predict_samples = 0", "0 samples"),
    ] {
        expect!(change("type = 'probit'", new), Error::Likelihood(_), word);
    }
    let e =
        LikelihoodSpec::Gaussian { variance: f64::INFINITY, units: Default::default() }.build().unwrap_err();
    expect!(e, LikelihoodError::Variance { .. }, "inf");
}

/// Data that do not go with the model, at the bound and at prediction.
#[test]
fn data_of_the_wrong_kind() {
    let Setup { model, values, data } = Setup::new(GOOD, 5, 0);
    let mut ws = Workspace::default();
    let mut elbo = |values: &Params, batch: &Batch| {
        model.elbo_and_grad(&Reference, values, batch.of(5), &mut ws).unwrap_err()
    };
    let with = |targets| Dataset::new(data.images().clone(), targets).unwrap();
    let three = with(Targets::classes(vec![0, 1, 2, 0, 1], 3).unwrap());
    let real = with(Targets::real(vec![0.0; 5]).unwrap());
    for (data, word) in [(&three, "labels of 3 classes"), (&real, "real numbers")] {
        let e = elbo(&values, &data.batch(&[0, 1]));
        expect!(e, Error::Data(DataError::TargetKind { .. }), "labels of 2 classes", word);
        let predictor = Predictor::new(&model, &Reference, &values).unwrap();
        let e = predictor.log_density(data).unwrap_err();
        expect!(e, Error::Data(DataError::TargetKind { .. }), "labels of 2 classes", word);
    }
    let wide = ImageShape::new(4, 5, 1).unwrap();
    let wide = noise_images(wide, 2, &mut Rng::new(0));
    let e = elbo(&values, &Batch::of_images(&wide, &[0]));
    expect!(e, Error::Data(DataError::ShapeMismatch { .. }), "4x5x1", "5x4x1");
    let predictor = Predictor::new(&model, &Reference, &values).unwrap();
    for e in [predictor.latents(&wide).unwrap_err(), predictor.joint(&wide).unwrap_err()] {
        expect!(e, Error::Data(DataError::ShapeMismatch { .. }), "4x5x1", "5x4x1");
    }
    let e = Model::new(model.spec(), Some(&wide), &mut Rng::new(0)).unwrap_err();
    expect!(e, Error::Data(DataError::ShapeMismatch { .. }), "4x5x1", "5x4x1");
    expect!(elbo(&values, &data.batch(&[])), Error::Data(DataError::Empty), "no images");
    let e = model.params(values[1..].to_vec(), Form::Covariance).unwrap_err();
    expect!(e, Error::Param(ParamError::Length { .. }), "values");
    let other = Setup::new(&GOOD.replace("count = 4", "count = 3"), 5, 0).values;
    expect!(elbo(&other, &data.batch(&[0])), Error::Param(ParamError::Length { .. }), "values");
    let e = Predictor::new(&model, &Reference, &other).unwrap_err();
    expect!(e, Error::Param(ParamError::Length { .. }), "values");

    // A batch for prediction has no targets to compute a bound with.
    let regression = Setup::new(&GOOD.replace("'probit'", "'gaussian'"), 5, 0);
    let batch = Batch::of_images(data.images(), &[0, 1]);
    let e = regression.model.elbo(&Reference, &regression.values, batch.of(5), &mut Workspace::default());
    expect!(e.unwrap_err(), Error::Data(DataError::TargetCount { images: 2, targets: 0 }), "2 images");
}

#[test]
fn natural_steps_need_a_whitened_posterior() {
    let text = GOOD.replace("structure = 'full'", "whiten = false");
    let Setup { model, mut values, .. } = Setup::new(&text, 5, 0);
    let e = model.set_form(Form::Natural, &mut values).unwrap_err();
    expect!(e, Error::Spec(SpecError::NaturalUnwhitened), "whiten");
}

/// Indefinite matrices name the component and the inducing inputs to blame.
#[test]
fn duplicate_inducing_inputs() {
    let text = GOOD.replace("relative = 1e-4", "absolute = 1e-30");
    let Setup { model, mut values, data } = Setup::new(&text, 5, 0);
    let e = model.components()[0].view_len();
    let z = model.components()[0].z_slot().of_mut(&mut values);
    z.copy_within(e..2 * e, 3 * e);
    let mut ws = Workspace::default();
    let bound = model.elbo(&Reference, &values, data.batch(&[0, 1]).of(5), &mut ws);
    for e in [bound.unwrap_err(), Predictor::new(&model, &Reference, &values).unwrap_err()] {
        expect!(
            e,
            Error::Numerical(NumericalError::NotPositiveDefinite {
                row: 3,
                size: 4,
                first: 1,
                second: 3,
                ..
            }),
            "conv",
            "row 3 of 4",
            "inducing inputs 1 and 3",
            "0.00e0 apart",
            "6 tries",
            "jitter"
        );
    }
    // With the default jitter the same inputs are no trouble, and nothing has to be raised.
    let mended = Setup::new(GOOD, 5, 0);
    let bound = mended.model.elbo(&Reference, &values, data.batch(&[0, 1]).of(5), &mut ws).unwrap();
    assert_eq!((bound.jitter_raised, bound.elbo.is_finite()), (0, true));
    // Jitter that is somewhat too small is raised, which is reported.
    let raised = Setup::new(&GOOD.replace("1e-4", "1e-19"), 5, 0);
    let bound = raised.model.elbo(&Reference, &values, data.batch(&[0, 1]).of(5), &mut ws).unwrap();
    assert!(bound.jitter_raised > 0 && bound.jitter > 9e-19 && bound.elbo.is_finite(), "{bound:?}");
}

/// Parameters that went astray are named, before a kernel can hide them.
#[test]
fn parameters_that_are_not_numbers() {
    let Setup { model, values, data } = Setup::new(GOOD, 5, 0);
    for entry in model.layout().entries() {
        for bad in [f64::NAN, f64::INFINITY] {
            let mut values = values.clone();
            values[entry.slot.range().end - 1] = bad;
            let batch = data.batch(&[0, 1]);
            let bound = model.elbo_and_grad(&Reference, &values, batch.of(5), &mut Workspace::default());
            for e in [bound.unwrap_err(), Predictor::new(&model, &Reference, &values).unwrap_err()] {
                let pattern = Error::Numerical(NumericalError::ParameterNotFinite {
                    name: entry.name.clone(),
                    value: bad,
                });
                assert_eq!(e.to_string(), pattern.to_string());
                says(&e, &[&entry.name, &bad.to_string()]);
            }
        }
    }
}

/// Components made by hand.
#[test]
fn parts_that_do_not_fit() {
    let spec = ModelSpec::from_toml(GOOD).unwrap();
    let windows = |shape: (usize, usize), patch: (usize, usize)| -> Arc<dyn Views> {
        let shape = ImageShape::new(shape.0, shape.1, 1).unwrap();
        Arc::new(Windows::new(shape, patch, (1, 1), Channels::All).unwrap())
    };
    let parts = |views: Vec<Arc<dyn Views>>, z: usize, reads: usize| ComponentParts {
        name: "made".into(),
        kernel: Arc::new(Stationary::new(&Rbf, Dims::all(reads), 1.0, 1.0)),
        views,
        weights: Weights::Ones,
        pooling: None,
        image_norm: ImageNorm::None,
        normalise: false,
        white: None,
        z: (0..z).map(|i| i as f64).collect(),
    };
    let build =
        |parts| Model::from_parts(spec.clone(), parts, LikelihoodSpec::probit().build().unwrap()).map(|_| ());
    let fail = |parts| build(parts).unwrap_err();
    let good = || parts(vec![windows((5, 4), (3, 2))], 12, 6);
    build(vec![good()]).unwrap();
    expect!(fail(vec![]), Error::Spec(SpecError::NoComponents), "components");
    expect!(fail(vec![parts(vec![], 12, 6)]), Error::Spec(SpecError::NoViews { .. }), "made", "views");
    let unequal = vec![windows((5, 4), (3, 2)), windows((5, 4), (2, 2))];
    let e = fail(vec![parts(unequal, 12, 6)]);
    expect!(e, Error::Spec(SpecError::UnequalViews { .. }), "made", "6 and 4");
    let e = fail(vec![parts(vec![windows((4, 5), (3, 2))], 12, 6)]);
    expect!(e, Error::Data(DataError::ShapeMismatch { .. }), "4x5x1", "5x4x1");
    for z in [0, 13] {
        let e = fail(vec![parts(vec![windows((5, 4), (3, 2))], z, 6)]);
        expect!(e, Error::Init(InitError::InducingLength { .. }), "made", &format!("{z} numbers"), "6");
    }
    let e = fail(vec![parts(vec![windows((5, 4), (3, 2))], 12, 7)]);
    expect!(e, Error::Kernel(KernelError::DimsOutOfRange { .. }), "0..7");
    expect!(fail(vec![good(), good()]), Error::Param(ParamError::Duplicate { .. }), "made.kernel.variance");
    let spec = ModelSpec::from_toml(&GOOD.replace("1e-4", "2.0")).unwrap();
    let e = Model::from_parts(spec, vec![good()], LikelihoodSpec::probit().build().unwrap()).unwrap_err();
    expect!(e, Error::Spec(SpecError::Jitter { .. }), "jitter");
}

/// Specs put together at random, most of them wrong: an error or a model with a bound, never a panic.
#[test]
fn random_specs_do_not_panic() {
    let mut rng = Rng::new(5);
    let (mut models, mut errors) = (0, 0);
    for _ in 0..600 {
        let mut pick = |options: &[&str]| options[rng.below(options.len())].to_string();
        let number = ["0.0", "-1.0", "1.0", "0.5", "nan", "1e300", "1e-300", "2.0", "1.5"];
        let text = format!(
            "image = {{ height = {}, width = {}, channels = {} }}\nlikelihood = {{ {} }}\njitter = {{ relative = {} }}
             [[components]]\nviews = {{ {} }}\nweights = '{}'\nkernel = {{ type = '{}', lengthscale = {} }}\ninducing = {{ count = {}, init = '{}' }}",
            pick(&["0", "1", "3", "4"]),
            pick(&["1", "3", "5"]),
            pick(&["1", "2"]),
            pick(&["type = 'probit'", "type = 'gaussian', variance = 1e-300", "type = 'robust-max', classes = 3", "type = 'softmax', classes = 2", "type = 'robust-max', classes = 1"]),
            pick(&["1e-4", "1e-300", "0.9", "1.0"]),
            pick(&["type = 'image'", "type = 'pixels'", "type = 'patches', patch = 0", "type = 'patches', patch = [1, 3]", "type = 'patches', patch = 3, stride = 9", "type = 'patches', patch = 1, channels = 'each'", "type = 'patches', patch = [3, 1], channels = 'all', orbit = ['square-symmetries']", "type = 'patches', patch = 1, stride = 0", "type = 'image', orbit = [{ shifts = 2 }]"]),
            pick(&["ones", "learned"]),
            pick(&["rbf", "matern12", "additive", "channels", "sum"]),
            pick(&number),
            pick(&["0", "1", "3", "300"]),
            pick(&["uniform", "views", "k-means"]),
        );
        let Ok(spec) = ModelSpec::from_toml(&text) else {
            errors += 1;
            continue;
        };
        let images = noise_images(spec.image, 3, &mut Rng::new(1));
        let Ok((model, values)) = Model::new(&spec, Some(&images), &mut Rng::new(2)) else {
            errors += 1;
            continue;
        };
        models += 1;
        let targets = common::random_targets(&spec.likelihood, 3, &mut Rng::new(3));
        let batch = Dataset::new(images, targets).unwrap().batch(&[0, 1, 2]);
        let bound = model.elbo_and_grad(&Reference, &values, batch.of(3), &mut Workspace::default());
        assert!(matches!(bound, Ok(_) | Err(Error::Numerical(_))), "{bound:?}\n{text}");
    }
    assert!(models > 30 && errors > 30, "{models} models, {errors} errors");
}
