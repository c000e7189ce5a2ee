//! The configurations that are measured, by name.

use convgp::ModelSpec;
use convgp::data::ImageShape;
use convgp::kernel::{Family, KernelSpec, Lengthscale, RadialSpec};
use convgp::likelihood::LikelihoodSpec;
use convgp::model::{ComponentSpec, InducingInit, InducingSpec, Jitter, PosteriorSpec, Weights};
use convgp::variational::Structure;
use convgp::views::{ChannelSpec, Pair, ViewSpec};
use serde::{Deserialize, Serialize};

/// Which images a configuration is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// 28x28, two classes.
    Rectangles,
    /// 28x28, ten classes.
    Mnist,
    /// 32x32x3, ten classes.
    Cifar10,
}

impl Source {
    /// Name of the data set and of its folder.
    pub fn name(self) -> &'static str {
        match self {
            Source::Rectangles => "rectangles",
            Source::Mnist => "mnist",
            Source::Cifar10 => "cifar10",
        }
    }
}

/// A component: patches `side x side`, or the whole image.
#[derive(Debug, Clone, Copy)]
enum Part {
    Patches { side: usize, channels: ChannelSpec, weighted: bool, location_aware: bool },
    Image,
}

const fn weighted(side: usize, channels: ChannelSpec) -> Part {
    Part::Patches { side, channels, weighted: true, location_aware: false }
}

/// One configuration.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Its images.
    pub source: Source,
    /// Inducing inputs of each component, `M`.
    pub inducing: usize,
    /// Images per step, `B`.
    pub batch: usize,
    parts: &'static [Part],
    structure: Structure,
}

const fn config(
    (name, about): (&'static str, &'static str),
    source: Source,
    (inducing, batch): (usize, usize),
    parts: &'static [Part],
) -> Config {
    Config { name, about, source, inducing, batch, parts, structure: Structure::Full }
}

const CONV: Part = weighted(5, ChannelSpec::Pooled);
const INVARIANT: Part =
    Part::Patches { side: 3, channels: ChannelSpec::Pooled, weighted: false, location_aware: false };
const LOCATION_AWARE: Part =
    Part::Patches { side: 5, channels: ChannelSpec::Pooled, weighted: true, location_aware: true };

/// All of them: the table of the issue, R in both kinds, and L1, the location-aware M1.
pub const CONFIGS: &[Config] = &[
    config(("R", "weighted conv 3x3"), Source::Rectangles, (16, 100), &[weighted(3, ChannelSpec::Pooled)]),
    config(("Rinv", "invariant conv 3x3"), Source::Rectangles, (16, 100), &[INVARIANT]),
    config(("M1s", "weighted conv 5x5"), Source::Mnist, (100, 100), &[CONV]),
    config(("M1", "weighted conv 5x5"), Source::Mnist, (750, 200), &[CONV]),
    config(("L1", "location-aware conv 5x5"), Source::Mnist, (750, 200), &[LOCATION_AWARE]),
    config(("M2", "weighted conv 5x5 + RBF, full S"), Source::Mnist, (750, 200), &[CONV, Part::Image]),
    config(("RBF", "RBF on whole images"), Source::Mnist, (750, 200), &[Part::Image]),
    config(("C1", "colour weighted baseline 5x5"), Source::Cifar10, (1000, 40), &[CONV]),
    config(("C1cp", "colour-patch 5x5x3"), Source::Cifar10, (1000, 40), &[weighted(5, ChannelSpec::All)]),
    Config {
        structure: Structure::MeanField,
        ..config(
            ("CMC", "multi-channel 5x5, mean-field"),
            Source::Cifar10,
            (1000, 40),
            &[weighted(5, ChannelSpec::Each)],
        )
    },
];

/// Sizes other than the configuration's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// `B`.
    pub batch: Option<usize>,
    /// `M`.
    pub inducing: Option<usize>,
    /// Rows and columns of an image; made-up images only.
    pub side: Option<usize>,
    /// Classes, `L`; made-up images only.
    pub classes: Option<usize>,
}

impl Config {
    /// The configuration of that name.
    pub fn find(name: &str) -> anyhow::Result<&'static Self> {
        CONFIGS.iter().find(|c| c.name == name).ok_or_else(|| {
            let known: Vec<_> = CONFIGS.iter().map(|c| c.name).collect();
            anyhow::anyhow!("there is no configuration `{name}`; known are {}", known.join(", "))
        })
    }

    /// Shape of the images and number of classes.
    pub fn images(&self, sizes: Sizes) -> anyhow::Result<(ImageShape, usize)> {
        let (side, channels, classes) = match self.source {
            Source::Rectangles => (28, 1, 2),
            Source::Mnist => (28, 1, 10),
            Source::Cifar10 => (32, 3, 10),
        };
        let side = sizes.side.unwrap_or(side);
        Ok((ImageShape::new(side, side, channels)?, sizes.classes.unwrap_or(classes)))
    }

    /// The model.
    pub fn model(&self, sizes: Sizes) -> anyhow::Result<ModelSpec> {
        let (image, classes) = self.images(sizes)?;
        let likelihood = match self.source {
            Source::Rectangles => LikelihoodSpec::Probit { link_jitter: 0.0 },
            _ => LikelihoodSpec::RobustMax { classes, epsilon: 1e-3, learn_epsilon: false, squash: 1e-6 },
        };
        let init =
            if self.source == Source::Rectangles { InducingInit::Uniform } else { InducingInit::Views };
        let inducing = InducingSpec { count: sizes.inducing.unwrap_or(self.inducing), init };
        Ok(ModelSpec {
            image,
            likelihood,
            posterior: PosteriorSpec { structure: self.structure, whiten: true, rank: None },
            jitter: Jitter::default(),
            augmentation: None,
            components: self.parts.iter().map(|part| component(*part, inducing)).collect(),
        })
    }
}

/// Sums over patches are divided by their number, as the peers do.
fn component(part: Part, inducing: InducingSpec) -> ComponentSpec {
    let views = ViewSpec::Image { orbit: Vec::new(), contrast: None };
    let kernel = KernelSpec::radial(Family::Rbf, 1.0, 5.0);
    let plain = ComponentSpec { normalise: true, ..ComponentSpec::new(views, kernel, inducing) };
    let Part::Patches { side, channels, weighted, location_aware } = part else { return plain };
    let lengthscale = Some(Lengthscale::One(3.0));
    let place = KernelSpec::Matern32(RadialSpec { lengthscale, ..RadialSpec::default() });
    ComponentSpec {
        views: ViewSpec::Patches {
            patch: Pair::Both(side),
            stride: Pair::Both(1),
            channels,
            location_aware,
            orbit: Vec::new(),
            contrast: None,
            transform: None,
        },
        weights: if weighted { Weights::Learned } else { Weights::Ones },
        kernel: KernelSpec::radial(Family::Rbf, 1.0, 1.0),
        location: location_aware.then_some(place),
        ..plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_configuration_is_a_model() {
        for c in CONFIGS {
            let sizes = Sizes { inducing: Some(3), ..Sizes::default() };
            let spec = c.model(sizes).unwrap();
            let data = crate::bench::images::random(c, sizes, 4, 0).unwrap();
            let rng = &mut convgp::rng::Rng::new(0);
            convgp::Model::new(&spec, Some(data.images()), rng).unwrap();
        }
        assert!(Config::find("M3").is_err());
    }
}
