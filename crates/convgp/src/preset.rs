//! Models by name, fitted to data: geometry, likelihood and size are chosen here, with reasons.

mod decision;
mod family;
mod pooled;
mod resolved;

pub use decision::{Aspect, Decision};
pub use resolved::{Overrides, ResolvedConfig, write_out_defaults};

use crate::data::{Dataset, Targets};
use crate::kernel::{KernelSpec, Lengthscale, Median};
use crate::likelihood::{LikelihoodSpec, TargetUnits};
use crate::model::{ComponentSpec, Jitter, ModelSpec, Weights};
use crate::train::{ExperimentSpec, TrainSpec};
use crate::views::ViewSpec;
use serde::Deserialize;
use std::str::FromStr;
use std::time::Duration;

/// An enum of things with names: each a variant, its name, and a line about it.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $Type:ident ($what:literal) {
        $($(#[$attribute:meta])* $Variant:ident = $name:literal, $about:literal;)*
    }) => {
        $(#[$meta])*
        pub enum $Type {
            $(#[doc = $about] #[serde(rename = $name)] $(#[$attribute])* $Variant,)*
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
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
    pub enum Named ("model") {
        Pooled = "pooled", "Patches pooled in windows, solved in closed form in seconds: the default for classes";
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

/// A model that cannot be had by this name.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum PresetError {
    #[error("model multi-channel: the images have one channel; try located")]
    OneChannel,
    #[error("model pooled: the images are smaller than 3x3; try rbf")]
    TooSmall,
    #[error("a size of patches is given, and the model has no patches")]
    NoPatches,
    #[error("there is no {what} `{name}`; there are {}", known.join(", "))]
    Unknown { what: &'static str, name: String, known: Vec<&'static str> },
}

/// Kernel variances at which training starts, of convolutions and of whole images: for classes, and for targets
/// of unit size.
const CONV_VARIANCE: [f64; 2] = [500.0, 50.0];
/// The same where all places are alike: the mean over places leaves little of the variance of a function of patches,
/// and no weights can make up for it.
const ALIKE_VARIANCE: [f64; 2] = [10_000.0, 50.0];
const IMAGE_VARIANCE: [f64; 2] = [5.0, 1.0];
/// A run shorter than this gets fewer inducing inputs than it could have.
const SHORT: Duration = Duration::from_secs(600);
/// Below this many images a location-aware kernel says enough about places; weights of their own are fitted to noise.
const FEW_IMAGES: usize = 500;

/// A spec for these data, to be trained for so long.
///
/// ```
/// use convgp::data::{Dataset, ImageShape, Images, Pixels, Targets};
///
/// let pixels = Pixels::U8((0..20 * 64).map(|i| (i * i % 251) as u8).collect());
/// let images = Images::new(ImageShape::new(8, 8, 1)?, pixels)?;
/// let data = Dataset::new(images, Targets::classes((0..20).map(|n| n % 2).collect(), 2)?)?;
/// let chosen = convgp::preset::choose(None, &data, None)?;
/// assert!(!chosen.decisions.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn choose(named: Option<Named>, data: &Dataset, time: Option<Duration>) -> crate::Result<ResolvedConfig> {
    let shape = data.images().shape();
    let mut decisions = Vec::new();
    if named == Some(Named::Pooled) {
        return pooled::choose(data, decisions);
    }
    let named = named.unwrap_or_else(|| {
        let (named, why) = match (shape.height().min(shape.width()), shape.channels()) {
            (..3, _) => (Named::Rbf, "images are too small for patches"),
            (_, 2..) => (Named::ContrastRbf, "images have several channels"),
            _ => (Named::Located, "images are grey"),
        };
        decisions.push(Decision::new(Aspect::Model, named.name(), why));
        named
    });
    let located = named.is_location_aware();
    let (inducing, why) = inducing(data.len(), located, time);
    let (mut components, posterior) = named.parts(shape, inducing)?;
    for component in &mut components {
        if let ViewSpec::Patches { patch, stride, .. } = &component.views {
            let ((size, _), (apart, _)) = ((*patch).into(), (*stride).into());
            let image = format!("images are {}x{}", shape.height(), shape.width());
            decisions.push(Decision::new(Aspect::Patches, format!("{size}x{size}, {apart} apart"), image));
        } else {
            component.inducing.count = inducing.min(data.len());
        }
    }
    if located && data.len() < FEW_IMAGES {
        components.iter_mut().for_each(|c| c.weights = Weights::Ones);
        let why = format!("{} training images", data.len());
        decisions.push(Decision::new(Aspect::Weights, "none", why));
    }
    decisions.push(Decision::new(Aspect::Inducing, format!("M = {inducing}"), why));
    let likelihood = likelihood(data.targets());
    decisions.push(likelihood_decision(data.targets()));
    components.iter_mut().for_each(|c| start_values(c, data));
    let jitter = Jitter::default();
    let model = ModelSpec { image: shape, likelihood, posterior, jitter, augmentation: None, components };
    let train = TrainSpec { batch_size: batch_size(data), ..TrainSpec::default() };
    let experiment = ExperimentSpec { model, train };
    let name = named.name().replace('+', "-");
    let mut chosen = ResolvedConfig { experiment, name, decisions, free_inducing: true, free_steps: true };
    chosen.fit_steps(data);
    Ok(chosen)
}

/// The model taken where none is named: pooled patches in closed form, unless it is to be trained in steps (none here; see
/// [`choose`]) or images are too small for patches.
pub fn default_model(data: &Dataset, in_steps: bool) -> Option<Named> {
    let shape = data.images().shape();
    (!in_steps && shape.height().min(shape.width()) >= pooled::LEAST_SIDE).then_some(Named::Pooled)
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

/// The likelihood for such targets; numbers are standardised.
pub fn likelihood(targets: &Targets) -> LikelihoodSpec {
    match targets {
        Targets::Classes { classes: 2, .. } => LikelihoodSpec::probit(),
        Targets::Classes { classes, .. } => LikelihoodSpec::softmax(*classes),
        Targets::Real(y) => LikelihoodSpec::standardised(y),
    }
}

fn likelihood_decision(targets: &Targets) -> Decision {
    let (value, why) = match targets {
        Targets::Classes { classes: 2, .. } => ("probit", "two classes".into()),
        Targets::Classes { classes, .. } => ("softmax", format!("{classes} classes")),
        Targets::Real(y) => {
            let TargetUnits { offset, scale } = TargetUnits::of(y);
            let why = format!("targets are numbers around {offset:.4}, standard deviation {scale:.4}");
            ("Gaussian noise on standardised targets", why)
        }
    };
    Decision::new(Aspect::Likelihood, value, why)
}

/// Starting values of kernel and noise.
fn start_values(component: &mut ComponentSpec, data: &Dataset) {
    let patches = matches!(component.views, ViewSpec::Patches { .. });
    let alike = component.weights == Weights::Ones && component.location.is_none();
    let [of_classes, of_numbers] = match (patches, alike) {
        (true, true) => ALIKE_VARIANCE,
        (true, false) => CONV_VARIANCE,
        (false, _) => IMAGE_VARIANCE,
    };
    component.kernel.set_variance(match data.targets() {
        Targets::Classes { .. } => of_classes,
        Targets::Real(_) => of_numbers,
    });
    if !patches && matches!(component.kernel, KernelSpec::Rbf(_)) {
        component.kernel.set_lengthscale(Lengthscale::Named(Median::Median));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{ImageShape, Images, Pixels};
    use crate::rng::Rng;
    use crate::views::Pair;

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
        let grey = choose(None, &data((28, 28, 1), 30, classes(30, 10)), None).unwrap();
        assert_eq!(
            (grey.name.as_str(), &grey.experiment.model.likelihood),
            ("located", &LikelihoodSpec::softmax(10))
        );
        let patch = |c: &ResolvedConfig| match &c.experiment.model.components[0].views {
            ViewSpec::Patches { patch, .. } => *patch,
            other => panic!("{other:?}"),
        };
        assert_eq!(patch(&grey), Pair::Both(5));
        let small = choose(None, &data((9, 30, 1), 30, classes(30, 2)), None).unwrap();
        assert_eq!(
            (patch(&small), &small.experiment.model.likelihood),
            (Pair::Both(3), &LikelihoodSpec::probit())
        );
        let colour = choose(None, &data((24, 24, 3), 30, classes(30, 3)), None).unwrap();
        assert_eq!((colour.name.as_str(), patch(&colour)), ("contrast-rbf", Pair::Both(4)));
        let tiny = choose(None, &data((2, 2, 1), 30, classes(30, 2)), None).unwrap();
        assert_eq!((tiny.name.as_str(), tiny.experiment.model.components[0].inducing.count), ("rbf", 30));
        let real = Targets::real((0..30).map(f64::from).collect()).unwrap();
        let real = choose(None, &data((24, 24, 1), 30, real), None).unwrap();
        assert!(matches!(real.experiment.model.likelihood, LikelihoodSpec::Gaussian { .. }));
        for c in [grey, small, colour, tiny] {
            assert!(c.decisions.iter().any(|d| d.what == Aspect::Model), "{:?}", c.decisions);
        }
    }

    #[test]
    fn few_images_need_a_patch_for_every_place_and_no_weights() {
        let chosen = |images| {
            let data = data((9, 9, 1), images as usize, classes(images, 10));
            let chosen = choose(Some(Named::Located), &data, None).unwrap();
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
            let chosen = choose(Some(named), &data, None).unwrap();
            chosen.experiment.model.components[0].kernel.variance().unwrap()
        };
        assert_eq!(variance(Named::Invariant), ALIKE_VARIANCE[0]);
        assert_eq!(variance(Named::Weighted), CONV_VARIANCE[0]);
        assert_eq!(variance(Named::Located), CONV_VARIANCE[0], "no weights of so few images, but places");
    }

    #[test]
    fn every_named_model_can_be_built() {
        let data = data((22, 22, 3), 120, classes(120, 3));
        for named in Named::ALL {
            assert_eq!(named.name().parse(), Ok(named));
            let mut chosen = choose(Some(named), &data, None).unwrap();
            chosen.experiment.train.check().unwrap();
            chosen.build(&data).unwrap_or_else(|e| panic!("{named:?}: {e}"));
        }
    }

    #[test]
    fn natural_steps_follow_what_a_user_sets() {
        let data = data((9, 9, 1), 3000, classes(3000, 10));
        let gamma = |overrides: Overrides| {
            let mut chosen = choose(Some(Named::Weighted), &data, None).unwrap();
            chosen.apply(&overrides, &data).unwrap();
            let told = chosen.decisions.iter().filter(|d| d.what == Aspect::Training).count();
            assert_eq!(told, 1, "{:?}", chosen.decisions);
            chosen.experiment.train.natural.gamma
        };
        assert_eq!(gamma(Overrides::default()), 50.0 / (8.0 * 256.0));
        assert_eq!(gamma(Overrides { inducing: Some(50), ..Overrides::default() }), 50.0 / 400.0);
        let all = Overrides { inducing: Some(750), batch_size: Some(150), ..Overrides::default() };
        assert_eq!(gamma(all), 150.0 / 3000.0, "no more images than there are");
        assert_eq!(gamma(Overrides { batch_size: Some(3000), ..Overrides::default() }), 0.5);

        let mut given = choose(Some(Named::Rbf), &data, None).unwrap();
        given.free_steps = false;
        let before = given.experiment.train.natural.gamma;
        given
            .apply(&Overrides { batch_size: Some(7), seed: Some(3), ..Overrides::default() }, &data)
            .unwrap();
        let TrainSpec { batch_size, seed, natural, .. } = given.experiment.train;
        assert_eq!(
            (batch_size, seed, natural.gamma),
            (7, 3, before),
            "steps that are not ours to choose stay"
        );
        let patch = Overrides { patch: Some([3, 3]), ..Overrides::default() };
        assert_eq!(given.apply(&patch, &data), Err(PresetError::NoPatches));
    }

    #[test]
    fn unknown_names_are_answered_with_the_known() {
        let message = "weigthed".parse::<Named>().unwrap_err().to_string();
        assert!(message.contains("`weigthed`") && message.contains("weighted+rbf"), "{message}");
        let grey = data((9, 9, 1), 30, classes(30, 2));
        assert!(choose(Some(Named::MultiChannel), &grey, None).is_err());
    }
}
