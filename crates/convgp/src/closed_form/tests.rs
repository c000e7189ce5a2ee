//! Statistics as sums: order, parts, images added and removed.

use super::*;
use crate::cov::Fused;
use crate::data::{ImageShape, Images, Pixels, Targets};
use crate::linalg::Mat;
use crate::model::{ModelSpec, Predictor};
use crate::rng::Rng;
use crate::views::Augmentation;

const SIDE: usize = 6;

fn data(first: usize, count: usize) -> Dataset {
    let shape = ImageShape::new(SIDE, SIDE, 1).unwrap();
    let mut pixels = Vec::new();
    let mut labels = Vec::new();
    for n in first..first + count {
        let mut rng = Rng::new(n as u64);
        labels.push((n % 3) as u32);
        pixels.extend((0..shape.len()).map(|i| rng.uniform() + f64::from(u8::from(i % 3 == n % 3))));
    }
    let images = Images::new(shape, Pixels::F64(pixels)).unwrap();
    Dataset::new(images, Targets::classes(labels, 3).unwrap()).unwrap()
}

/// Sixteen inducing outputs; `rank` as in the spec.
fn model(rank: Option<usize>) -> (Model, Params) {
    augmented(rank, 0)
}

fn augmented(rank: Option<usize>, copies: usize) -> (Model, Params) {
    let rank = rank.map_or(String::new(), |rank| format!("rank = {rank}"));
    let text = format!(
        r#"
        image = {{ height = {SIDE}, width = {SIDE} }}
        likelihood = {{ type = "labels", classes = 3 }}
        posterior = {{ structure = "shared", {rank} }}
        [[components]]
        name = "conv"
        views = {{ type = "patches", patch = 3, transform = {{ whiten = 0.1, unit = 1.0 }} }}
        pooling = {{ grid = [2, 2] }}
        image_norm = "nystrom"
        kernel = {{ type = "rbf", lengthscale = 1.0 }}
        inducing = {{ count = 4, init = "views" }}
        "#
    );
    let mut spec = ModelSpec::from_toml(&text).unwrap();
    let small = Augmentation { copies, rotation: 8.0, shift: 0.5, scaling: 0.1, shear: 0.1, mirror: true };
    spec.augmentation = Some(small).filter(|_| copies > 0);
    Model::new(&spec, Some(data(0, 40).images()), &mut Rng::new(0)).unwrap()
}

const DOUBLE: Options = Options { precision: Precision::Double, lambda: None };

fn engine() -> Fused<f64> {
    Fused::default()
}

fn fitted((model, mut values): (Model, Params), data: &Dataset, options: &Options) -> (Model, Params) {
    model.fit_closed_form(&engine(), &mut values, data, options, &mut |_, _| true).unwrap().unwrap();
    (model, values)
}

/// Probabilities and variances at images that none was fitted on.
fn answers((model, values): &(Model, Params)) -> Vec<f64> {
    let engine = engine();
    let predictor = Predictor::new(model, &engine, values).unwrap();
    let images = data(1000, 9);
    let mut all = predictor.latents(images.images()).unwrap().var;
    all.extend(predictor.log_density(&images).unwrap());
    all
}

fn assert_close(a: &[f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{a} and {b}"));
}

/// Statistics of the first `count` images.
fn statistics((model, values): &(Model, Params), count: usize) -> Statistics {
    let mut s = model.new_statistics(values, Precision::Double, count).unwrap();
    model.add_to_statistics(&engine(), values, &data(0, count), 0, &mut s, &mut |_, _| true).unwrap();
    s
}

/// After adding and removing, the model is that of the images that are left.
fn check_update(
    model: &dyn Fn(Option<usize>) -> (Model, Params),
    rank: bool,
    [before, added, removed]: [usize; 3],
) {
    let width = 1 + model(None).0.spec().augmentation.map_or(0, |a| a.copies);
    let rank = |images: usize| Some(images).filter(|n| rank && *n * width <= if width > 1 { 8 } else { 16 });
    // With copies of so few images the best noise is next to nothing, and rounding shows.
    let options = Options { lambda: Some(0.01).filter(|_| width > 1), ..DOUBLE };
    let (old, old_values) = fitted(model(rank(before)), &data(0, before), &options);
    let mut s = statistics(&model(rank(before)), before);
    old.add_to_statistics(&engine(), &old_values, &data(before, added), 0, &mut s, &mut |_, _| true).unwrap();
    old.remove_from_statistics(&engine(), &old_values, &data(0, removed), &mut s).unwrap();
    let (new, mut values) = old.resized(&old_values, &s).unwrap();
    new.solve(&mut values, s, &options).unwrap();
    let left = before + added - removed;
    let fresh = fitted(model(rank(left)), &data(removed, left), &options);
    assert_close(&answers(&(new, values)), &answers(&fresh));
}

#[test]
fn images_are_added_and_removed_exactly() {
    for (rank, images) in
        [(true, [10, 5, 3]), (true, [10, 30, 2]), (false, [40, 20, 15]), (false, [40, 1, 1])]
    {
        check_update(&model, rank, images);
    }
    check_update(&|rank| augmented(rank, 1), true, [2, 2, 1]);
    check_update(&|rank| augmented(rank, 1), true, [4, 20, 3]);
    check_update(&|rank| augmented(rank, 2), false, [30, 5, 7]);
}

/// An image is left out with its copies: the residual is that of a fit to all others.
#[test]
fn images_are_left_out_with_their_copies() {
    let (images, lambda, copies) = (9, 0.1, 2);
    let options = Options { lambda: Some(lambda), ..DOUBLE };
    for rank in [true, false] {
        let model = |n: usize| augmented(Some(n).filter(|_| rank), copies);
        let summary = |n: usize, data: &Dataset| {
            let (model, mut values) = model(n);
            let s = model.fit_closed_form(&engine(), &mut values, data, &options, &mut |_, _| true);
            (s.unwrap().unwrap(), (model, values))
        };
        let mut squares = 0.0;
        for out in 0..images {
            let others: Vec<usize> = (0..images).filter(|n| *n != out).collect();
            let (_, (model, values)) = summary(images - 1, &data(0, images).select(&others).unwrap());
            let engine = engine();
            let mean = Predictor::new(&model, &engine, &values).unwrap();
            let mean = mean.means(data(out, 1).images()).unwrap();
            let target = |c: usize| f64::from(u8::from(c == out % 3)) - 1.0 / 3.0;
            squares += (0..3).map(|c| (target(c) - mean[c]).powi(2)).sum::<f64>();
        }
        let (found, _) = summary(images, &data(0, images));
        assert_close(&[found.chosen.mse], &[squares / (3 * images) as f64]);
    }
}

#[test]
fn an_image_that_was_never_added_cannot_be_removed() {
    for rank in [Some(12), None] {
        let (model, values) = model(rank);
        let mut s = statistics(&self::model(rank), 12);
        let before = s.clone();
        let error = model.remove_from_statistics(&engine(), &values, &data(10, 4), &mut s).unwrap_err();
        assert!(error.to_string().contains("image 2"), "{error}");
        assert_eq!(s, before, "nothing is lost");
    }
}

#[test]
fn parts_give_the_same_bits_as_the_whole() {
    let (model, values) = model(None);
    let whole = statistics(&self::model(None), 700);
    let mut parts = model.new_statistics(&values, Precision::Double, 700).unwrap();
    let all = data(0, 700);
    let mut stop_at = |at: usize| {
        let first = parts.len();
        let mut watch = |read: usize, _: usize| read < at;
        model.add_to_statistics(&engine(), &values, &all, first, &mut parts, &mut watch).unwrap();
    };
    stop_at(100);
    stop_at(300);
    stop_at(usize::MAX);
    assert_eq!(parts, whole);
}

#[test]
fn files_give_the_same_statistics_back_and_only_to_their_model() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("statistics.safetensors");
    for (rank, count) in [(Some(12), 12), (None, 40)] {
        let (model, values) = model(rank);
        let s = statistics(&self::model(rank), count);
        s.save(&path).unwrap();
        assert_eq!(Statistics::load(&path, &model, &values).unwrap(), s);
        assert_eq!(Statistics::from_bytes(&s.to_bytes().unwrap(), &model, &values).unwrap(), s);
        let mut other = values.clone();
        other[0] *= 2.0;
        let error = Statistics::load(&path, &model, &other).unwrap_err().to_string();
        assert!(error.contains("another model") && error.contains("statistics.safetensors"), "{error}");
        let bytes = std::fs::read(&path).unwrap();
        for cut in [0, 9, 200, bytes.len() - 8] {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            assert!(Statistics::load(&path, &model, &values).is_err(), "cut at {cut}");
        }
    }
}

#[test]
fn few_images_without_a_mistake_leave_room_for_one() {
    let targets = Mat::from_fn(2, 6, |l, n| if n % 2 == l { 0.5 } else { -0.5 });
    let perfect = LeftOut { residuals: Mat::zeros(2, 6), targets, ..LeftOut::default() };
    let [few, many] = [6, 6_000_000].map(|images| figures(&perfect, images, true, 1.0, 1.0));
    // Of six images, the seventh half wrong: p(true) is 13/14, so 1/T = log 13.
    assert!((few.temperature * 13f64.ln() - 1.0).abs() < 0.05, "{}", few.temperature);
    assert!(many.temperature < 0.2 * few.temperature, "{}", many.temperature);
}

#[test]
fn log_predictive_is_what_the_figures_are_means_of_and_compares_by_image() {
    let data = data(0, 40);
    let summary = |rank: Option<usize>| {
        let (model, mut values) = model(rank);
        model.fit_closed_form(&engine(), &mut values, &data, &DOUBLE, &mut |_, _| true).unwrap().unwrap()
    };
    let (few, many) = (summary(Some(40)), summary(None));
    let mean = |s: &Summary| s.log_predictive.0.iter().map(|(_, p)| p).sum::<f64>() / 40.0;
    for s in [&few, &many] {
        assert!((mean(s) + s.chosen.nlpp).abs() < 1e-12);
        assert_eq!(s.log_predictive.gain_over(&s.log_predictive), (0.0, 0.0));
    }
    // The same model by way of few and of many images: ids put images in one order.
    let (gain, error) = few.log_predictive.gain_over(&many.log_predictive);
    assert!(gain.abs() < 1e-6 && error < 1e-6, "{gain} {error}");
}
