//! Models by name, fitted to data: geometry, likelihood and size are chosen here, with reasons.

mod chosen;

pub use chosen::{Chosen, Settled, write_out_defaults};

use crate::data::{Dataset, Targets};
use crate::kernel::{Lengthscale, Median};
use crate::likelihood::LikelihoodSpec;
use crate::model::{ComponentSpec, Weights};
use crate::train::{ExperimentSpec, TrainSpec};
use crate::views::{Pair, ViewSpec};
use serde::{Deserialize, Serialize};
use std::str::FromStr;
use std::time::Duration;

/// The paper's experiments by name.
pub const PAPER: [(&str, &str); 18] = [
    ("cifar-additive", include_str!("../specs/cifar-additive.toml")),
    ("cifar-colour-patch", include_str!("../specs/cifar-colour-patch.toml")),
    ("cifar-contrast", include_str!("../specs/cifar-contrast.toml")),
    ("cifar-contrast-rbf", include_str!("../specs/cifar-contrast-rbf.toml")),
    ("cifar-located", include_str!("../specs/cifar-located.toml")),
    ("cifar-located-rbf", include_str!("../specs/cifar-located-rbf.toml")),
    ("cifar-multichannel", include_str!("../specs/cifar-multichannel.toml")),
    ("cifar-weighted", include_str!("../specs/cifar-weighted.toml")),
    ("mnist-additive", include_str!("../specs/mnist-additive.toml")),
    ("mnist-flips", include_str!("../specs/mnist-flips.toml")),
    ("mnist-invariant", include_str!("../specs/mnist-invariant.toml")),
    ("mnist-located", include_str!("../specs/mnist-located.toml")),
    ("mnist-located-rbf", include_str!("../specs/mnist-located-rbf.toml")),
    ("mnist-rbf", include_str!("../specs/mnist-rbf.toml")),
    ("mnist-weighted", include_str!("../specs/mnist-weighted.toml")),
    ("mnist-weighted-rbf", include_str!("../specs/mnist-weighted-rbf.toml")),
    ("rectangles-invariant", include_str!("../specs/rectangles-invariant.toml")),
    ("rectangles-weighted", include_str!("../specs/rectangles-weighted.toml")),
];

/// The text of one of the paper's experiments.
pub fn paper_spec(name: &str) -> Option<&'static str> {
    PAPER.iter().find(|(n, _)| *n == name).map(|(_, text)| *text)
}

/// An enum of things with names: each a variant, its name, and a line about it.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $Type:ident ($what:literal) {
        $($(#[$attribute:meta])* $Variant:ident = $name:literal, $about:literal;)*
    }) => {
        $(#[$meta])*
        pub enum $Type {
            $(#[doc = $about] $(#[$attribute])* $Variant,)*
        }

        impl $Type {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$Variant),*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$Variant => $name,)* }
            }
            /// What it is, in one line.
            pub fn about(self) -> &'static str {
                match self { $(Self::$Variant => $about,)* }
            }
        }

        impl FromStr for $Type {
            type Err = PresetError;
            fn from_str(name: &str) -> Result<Self, PresetError> {
                let unknown = || PresetError::Unknown { what: $what, name: name.into(), known: vec![$($name),*] };
                Self::ALL.into_iter().find(|t| t.name() == name).ok_or_else(unknown)
            }
        }
    };
}

named! {
    /// A model of the paper or beyond it, whatever the data.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Named ("model") {
        Weighted = "weighted", "Patches with one learned weight per place";
        Invariant = "invariant", "Patches, all places alike";
        Rbf = "rbf", "Whole images";
        WeightedRbf = "weighted+rbf", "The sum of weighted patches and whole images";
        Located = "located", "Patches whose place matters too";
        LocatedRbf = "located+rbf", "The sum of located patches and whole images";
        Contrast = "contrast", "Located patches of local contrast";
        ContrastRbf = "contrast+rbf", "The sum of located patches of local contrast and whole images";
        Additive = "additive", "A function per pixel (grey), or per colour channel of a patch";
        Flips = "flips", "Whole images, alike when flipped";
        ColourPatch = "colour-patch", "Patches through all colours";
        MultiChannel = "multi-channel", "A function per colour channel";
    }
}

named! {
    /// Where settings come from.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Recipe ("recipe") {
        #[default]
        Fast = "fast", "Softmax or probit with natural-gradient steps: minutes instead of hours";
        Paper = "paper", "As published: robust-max and Adam";
    }
}

/// A model that cannot be had by this name.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum PresetError {
    #[error("model multi-channel: the images have one channel; try located")]
    OneChannel,
    #[error("a size of patches is given, and the model has no patches")]
    NoPatches,
    #[error("there is no {what} `{name}`; there are {}", known.join(", "))]
    Unknown { what: &'static str, name: String, known: Vec<&'static str> },
}

impl Named {
    fn spec_name(self, colour: bool) -> &'static str {
        match self {
            Named::Weighted if colour => "cifar-weighted",
            Named::Weighted => "mnist-weighted",
            Named::Invariant => "mnist-invariant",
            Named::Rbf => "mnist-rbf",
            Named::WeightedRbf => "mnist-weighted-rbf",
            Named::Located if colour => "cifar-located",
            Named::Located => "mnist-located",
            Named::LocatedRbf if colour => "cifar-located-rbf",
            Named::LocatedRbf => "mnist-located-rbf",
            Named::Contrast => "cifar-contrast",
            Named::ContrastRbf => "cifar-contrast-rbf",
            Named::Additive if colour => "cifar-additive",
            Named::Additive => "mnist-additive",
            Named::Flips => "mnist-flips",
            Named::ColourPatch => "cifar-colour-patch",
            Named::MultiChannel => "cifar-multichannel",
        }
    }
}

/// Images below this side get 3x3 patches at every place.
const SMALL_SIDE: usize = 20;
/// Kernel variances at which the fast recipe starts, of convolutions and of whole images: for classes, and for targets
/// of unit size.
const CONV_VARIANCE: [f64; 2] = [500.0, 50.0];
/// The same where all places are alike: the mean over places leaves little of the variance of a function of patches,
/// and no weights can make up for it.
const ALIKE_VARIANCE: [f64; 2] = [10_000.0, 50.0];
const IMAGE_VARIANCE: [f64; 2] = [5.0, 1.0];
/// Lengthscale of places at which it starts, as a part of the image's shorter side: three pixels of MNIST.
const LOCATION: f64 = 3.0 / 28.0;
/// A run shorter than this gets fewer inducing inputs than it could have.
const SHORT: Duration = Duration::from_secs(600);
/// Below this many images a location-aware kernel says enough about places; weights of their own are fitted to noise.
const FEW_IMAGES: usize = 500;

/// A spec for these data, to be trained for so long.
pub fn choose(
    named: Option<Named>,
    recipe: Recipe,
    data: &Dataset,
    time: Option<Duration>,
) -> crate::Result<Chosen> {
    let shape = data.images().shape();
    let (side, colour) = (shape.height().min(shape.width()), shape.channels() > 1);
    let mut reasons = Vec::new();
    let named = named.unwrap_or_else(|| {
        let (named, why) = match (side, colour) {
            (..3, _) => (Named::Rbf, "images are too small for patches"),
            (_, true) => (Named::ContrastRbf, "images have several channels"),
            _ => (Named::Located, "images are grey"),
        };
        reasons.push(format!("model: {} ({why})", named.name()));
        named
    });
    if named == Named::MultiChannel && !colour {
        return Err(PresetError::OneChannel.into());
    }
    let text = paper_spec(named.spec_name(colour)).expect("every name has a spec");
    let mut experiment = ExperimentSpec::from_toml(text)?;
    experiment.model.image = shape;
    let located = experiment.model.components.iter().any(|c| c.location.is_some());
    let (inducing, why) = inducing(data.len(), located, time);
    for component in &mut experiment.model.components {
        component.inducing.count = inducing;
        if let ViewSpec::Patches { patch, stride, contrast, .. } = &mut component.views {
            let (size, apart) = match contrast {
                _ if side < SMALL_SIDE => (3, 1),
                None => (5, 1),
                Some(_) => (4, 2),
            };
            (*patch, *stride) = (Pair::Both(size), Pair::Both(apart));
            let image = format!("images are {}x{}", shape.height(), shape.width());
            reasons.push(format!("patches: {size}x{size}, {apart} apart ({image})"));
        } else {
            component.inducing.count = inducing.min(data.len());
        }
    }
    if located && recipe == Recipe::Fast && data.len() < FEW_IMAGES {
        experiment.model.components.iter_mut().for_each(|c| c.weights = Weights::Ones);
        reasons.push(format!("weights: none ({} training images)", data.len()));
    }
    reasons.push(format!("inducing inputs: M = {inducing} ({why})"));
    experiment.model.likelihood = likelihood(data, recipe, &mut reasons);
    if recipe == Recipe::Fast {
        experiment.model.components.iter_mut().for_each(|c| start_values(c, data, side));
        experiment.train = TrainSpec { batch_size: batch_size(data), ..TrainSpec::default() };
    }
    let name = named.name().replace('+', "-");
    let free_steps = recipe == Recipe::Fast;
    let mut chosen = Chosen { experiment, name, reasons, free_inducing: true, free_steps };
    chosen.fit_steps(data);
    Ok(chosen)
}

/// Inducing inputs for so many images. In a short time more steps are worth more than more inducing inputs. With few
/// images a patch is needed for every place: too few make the bound prefer kernels that do not tell places apart.
fn inducing(images: usize, located: bool, time: Option<Duration>) -> (usize, String) {
    let short = time.is_some_and(|t| t < SHORT);
    match images {
        ..20_000 if located => (750, format!("{images} training images, and places matter")),
        ..2000 => (100, format!("{images} training images")),
        2000..20_000 => (256, format!("{images} training images")),
        _ if short => (256, format!("{images} training images, but little time")),
        _ => (750, format!("{images} training images")),
    }
}

/// Images per step. Kernel, weights and inducing inputs need a number of steps, however few the images.
fn batch_size(data: &Dataset) -> usize {
    let batch = match (data.targets(), data.len()) {
        (Targets::Classes { .. }, ..20_000) => 50,
        _ => TrainSpec::default().batch_size,
    };
    batch.min(data.len())
}

fn likelihood(data: &Dataset, recipe: Recipe, reasons: &mut Vec<String>) -> LikelihoodSpec {
    let (spec, text) = match (data.targets(), recipe) {
        (Targets::Classes { classes: 2, .. }, _) => (LikelihoodSpec::probit(), "probit (two classes)".into()),
        (Targets::Classes { classes, .. }, Recipe::Fast) => {
            (LikelihoodSpec::softmax(*classes), format!("softmax ({classes} classes)"))
        }
        (Targets::Classes { classes, .. }, Recipe::Paper) => {
            (LikelihoodSpec::robust_max(*classes), format!("robust-max ({classes} classes)"))
        }
        (Targets::Real(y), _) => {
            let variance = (0.1 * spread(y)).max(1e-6);
            let text = format!("Gaussian noise, variance {variance:.3e} to start with (targets are numbers)");
            (LikelihoodSpec::Gaussian { variance }, text)
        }
    };
    reasons.push(format!("likelihood: {text}"));
    spec
}

/// Mean square of targets: their spread around the prior's mean, which is zero.
fn spread(y: &[f64]) -> f64 {
    y.iter().map(|y| y * y).sum::<f64>() / y.len() as f64
}

/// Starting values of the fast recipe.
fn start_values(component: &mut ComponentSpec, data: &Dataset, side: usize) {
    let patches = matches!(component.views, ViewSpec::Patches { .. });
    let alike = component.weights == Weights::Ones && component.location.is_none();
    let [of_classes, of_numbers] = match (patches, alike) {
        (true, true) => ALIKE_VARIANCE,
        (true, false) => CONV_VARIANCE,
        (false, _) => IMAGE_VARIANCE,
    };
    let (variance, scale) = match data.targets() {
        Targets::Classes { .. } => (of_classes, 1.0),
        Targets::Real(y) => (of_numbers, spread(y).max(1e-6)),
    };
    component.kernel.variance = Some(variance * scale);
    component.white = component.white.map(|w| w * scale);
    if let Some(location) = &mut component.location {
        location.lengthscale = Some(Lengthscale::One(LOCATION * side as f64));
    }
    if !patches && component.kernel.kind == "rbf" {
        component.kernel.lengthscale = Some(Lengthscale::Named(Median::Median));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ImageShape, Images, Pixels};
    use crate::rng::Rng;

    fn data(shape: (usize, usize, usize), images: usize, targets: Targets) -> Dataset {
        let shape = ImageShape::new(shape.0, shape.1, shape.2).unwrap();
        let rng = &mut Rng::new(1);
        let pixels = (0..images * shape.len()).map(|_| rng.bits() as u8).collect();
        Dataset::new(Images::new(shape, Pixels::U8(pixels)).unwrap(), targets).unwrap()
    }

    fn classes(images: u32, classes: u32) -> Targets {
        Targets::classes((0..images).map(|i| i % classes).collect(), classes as usize).unwrap()
    }

    #[test]
    fn defaults_follow_the_data() {
        let grey = choose(None, Recipe::Fast, &data((28, 28, 1), 30, classes(30, 10)), None).unwrap();
        assert_eq!(
            (grey.name.as_str(), &grey.experiment.model.likelihood),
            ("located", &LikelihoodSpec::softmax(10))
        );
        let patch = |c: &Chosen| match &c.experiment.model.components[0].views {
            ViewSpec::Patches { patch, .. } => *patch,
            other => panic!("{other:?}"),
        };
        assert_eq!(patch(&grey), Pair::Both(5));
        let small = choose(None, Recipe::Fast, &data((9, 30, 1), 30, classes(30, 2)), None).unwrap();
        assert_eq!(
            (patch(&small), &small.experiment.model.likelihood),
            (Pair::Both(3), &LikelihoodSpec::probit())
        );
        let colour = choose(None, Recipe::Fast, &data((24, 24, 3), 30, classes(30, 3)), None).unwrap();
        assert_eq!((colour.name.as_str(), patch(&colour)), ("contrast-rbf", Pair::Both(4)));
        let tiny = choose(None, Recipe::Fast, &data((2, 2, 1), 30, classes(30, 2)), None).unwrap();
        assert_eq!((tiny.name.as_str(), tiny.experiment.model.components[0].inducing.count), ("rbf", 30));
        let real = Targets::real((0..30).map(f64::from).collect()).unwrap();
        let real = choose(None, Recipe::Fast, &data((24, 24, 1), 30, real), None).unwrap();
        assert!(matches!(real.experiment.model.likelihood, LikelihoodSpec::Gaussian { .. }));
        for c in [grey, small, colour, tiny] {
            assert!(c.reasons.iter().any(|r| r.starts_with("model: ")), "{:?}", c.reasons);
        }
    }

    #[test]
    fn few_images_need_a_patch_for_every_place_and_no_weights() {
        let chosen = |images| {
            let data = data((9, 9, 1), images as usize, classes(images, 10));
            let chosen = choose(Some(Named::Located), Recipe::Fast, &data, None).unwrap();
            let component = &chosen.experiment.model.components[0];
            (component.inducing.count, component.weights)
        };
        assert_eq!(chosen(100), (750, Weights::Ones));
        assert_eq!(chosen(1000), (750, Weights::Learned));
        assert_eq!(chosen(30_000), (750, Weights::Learned));
    }

    #[test]
    fn only_places_that_are_alike_start_from_a_larger_variance() {
        let data = data((9, 9, 1), 100, classes(100, 10));
        let variance = |named| {
            let chosen = choose(Some(named), Recipe::Fast, &data, None).unwrap();
            chosen.experiment.model.components[0].kernel.variance.unwrap()
        };
        assert_eq!(variance(Named::Invariant), ALIKE_VARIANCE[0]);
        assert_eq!(variance(Named::Weighted), CONV_VARIANCE[0]);
        assert_eq!(variance(Named::Located), CONV_VARIANCE[0], "no weights of so few images, but places");
    }

    #[test]
    fn every_named_model_can_be_built_by_both_recipes() {
        let data = data((22, 22, 3), 120, classes(120, 3));
        for named in Named::ALL {
            assert_eq!(named.name().parse(), Ok(named));
            for recipe in Recipe::ALL {
                assert_eq!(recipe.name().parse(), Ok(recipe));
                let mut chosen = choose(Some(named), recipe, &data, None).unwrap();
                chosen.experiment.train.check().unwrap();
                chosen.build(&data).unwrap_or_else(|e| panic!("{named:?}, {recipe:?}: {e}"));
            }
        }
    }

    #[test]
    fn natural_steps_follow_what_a_user_settles() {
        let data = data((9, 9, 1), 3000, classes(3000, 10));
        let gamma = |settled: Settled| {
            let mut chosen = choose(Some(Named::Weighted), Recipe::Fast, &data, None).unwrap();
            chosen.settle(&settled, &data).unwrap();
            let told = chosen.reasons.iter().filter(|r| r.starts_with("training: ")).count();
            assert_eq!(told, 1, "{:?}", chosen.reasons);
            chosen.experiment.train.natural.gamma
        };
        assert_eq!(gamma(Settled::default()), 50.0 / (8.0 * 256.0));
        assert_eq!(gamma(Settled { inducing: Some(50), ..Settled::default() }), 50.0 / 400.0);
        let all = Settled { inducing: Some(750), batch_size: Some(150), ..Settled::default() };
        assert_eq!(gamma(all), 150.0 / 3000.0, "no more images than there are");
        assert_eq!(gamma(Settled { batch_size: Some(3000), ..Settled::default() }), 0.5);

        let mut given = choose(Some(Named::Rbf), Recipe::Paper, &data, None).unwrap();
        let before = given.experiment.train.natural.gamma;
        given.settle(&Settled { batch_size: Some(7), seed: Some(3), ..Settled::default() }, &data).unwrap();
        let TrainSpec { batch_size, seed, natural, .. } = given.experiment.train;
        assert_eq!((batch_size, seed, natural.gamma), (7, 3, before), "published steps stay");
        let patch = Settled { patch: Some([3, 3]), ..Settled::default() };
        assert_eq!(given.settle(&patch, &data), Err(PresetError::NoPatches));
    }

    #[test]
    fn unknown_names_are_answered_with_the_known() {
        let message = "weigthed".parse::<Named>().unwrap_err().to_string();
        assert!(message.contains("`weigthed`") && message.contains("weighted+rbf"), "{message}");
        let grey = data((9, 9, 1), 30, classes(30, 2));
        assert!(choose(Some(Named::MultiChannel), Recipe::Fast, &grey, None).is_err());
    }
}
