//! The named models: what each is made of, for images of a shape.

use super::{Named, PresetError};
use crate::data::ImageShape;
use crate::kernel::{AdditiveSpec, ChannelsSpec, Family, KernelSpec, Lengthscale, RadialSpec};
use crate::model::{ComponentSpec, InducingInit, InducingSpec, PosteriorSpec, Weights};
use crate::variational::Structure;
use crate::views::{ChannelSpec, Contrast, MapSet, Pair, ViewSpec};

/// Images below this side get 3x3 patches at every place.
const SMALL_SIDE: usize = 20;
/// Lengthscale of places at which it starts, as a part of the image's shorter side: three pixels of MNIST.
const LOCATION: f64 = 3.0 / 28.0;
/// Local contrast: pixels beside the mean around them, divided by their spread.
const CONTRAST: Contrast = Contrast { radius: 3.0, floor: 0.1 };
/// Initial variance of white noise, of convolutions and of whole images.
const WHITE: [f64; 2] = [1e-3, 1e-2];

impl Named {
    /// Whether places matter to it.
    pub(super) fn is_location_aware(self) -> bool {
        matches!(self, Named::Located | Named::LocatedRbf | Named::Contrast | Named::ContrastRbf)
    }

    /// Its components, for so many inducing inputs each, and its approximate posterior.
    pub(super) fn parts(
        self,
        shape: ImageShape,
        inducing: usize,
    ) -> Result<(Vec<ComponentSpec>, PosteriorSpec), PresetError> {
        let colour = shape.channels() > 1;
        let parts = Parts { shape, inducing };
        let through = if colour { ChannelSpec::All } else { ChannelSpec::Pooled };
        let weighted = parts.conv(ChannelSpec::Pooled);
        let located = parts.located(through);
        let white = |c: ComponentSpec| ComponentSpec { white: Some(WHITE[0]), ..c };
        let components = match self {
            Named::MultiChannel if !colour => return Err(PresetError::OneChannel),
            Named::Pooled => unreachable!("`pooled::choose` has it"),
            Named::Weighted if colour => vec![weighted],
            Named::Weighted => vec![white(weighted)],
            Named::Invariant => vec![white(ComponentSpec { weights: Weights::Ones, ..weighted })],
            Named::Rbf => vec![parts.whole(None)],
            Named::WeightedRbf => vec![white(weighted), parts.whole(Some(WHITE[1]))],
            Named::Located => vec![located],
            Named::LocatedRbf => vec![located, parts.whole(Some(WHITE[1]))],
            Named::Contrast => vec![parts.contrast(located)],
            Named::ContrastRbf => vec![parts.contrast(located), parts.whole(Some(WHITE[1]))],
            Named::Additive if colour => {
                let lengthscale = Some(Lengthscale::One(0.5));
                let kernel = KernelSpec::Channels(ChannelsSpec { lengthscale, ..ChannelsSpec::default() });
                vec![ComponentSpec { kernel, ..parts.conv(ChannelSpec::All) }]
            }
            Named::Additive => {
                let kernel = KernelSpec::Additive(AdditiveSpec::default());
                vec![ComponentSpec { kernel, ..parts.whole(None) }]
            }
            Named::Flips => {
                let orbit = vec![MapSet::FlipHorizontal, MapSet::FlipVertical];
                let views = ViewSpec::Image { orbit, contrast: None };
                vec![ComponentSpec { views, normalise: true, ..parts.whole(None) }]
            }
            Named::ColourPatch => vec![parts.conv(ChannelSpec::All)],
            Named::MultiChannel => vec![parts.conv(ChannelSpec::Each)],
        };
        let structure = match self {
            Named::MultiChannel => Structure::MeanField,
            _ if components.len() > 1 => Structure::MeanField,
            _ => Structure::Full,
        };
        Ok((components, PosteriorSpec { structure, ..PosteriorSpec::default() }))
    }
}

/// What components of all models share.
#[derive(Clone, Copy)]
struct Parts {
    shape: ImageShape,
    inducing: usize,
}

impl Parts {
    /// Shorter side of the images.
    fn side(self) -> usize {
        self.shape.height().min(self.shape.width())
    }

    fn component(self, name: &str, views: ViewSpec) -> ComponentSpec {
        let inducing = InducingSpec { count: self.inducing, init: InducingInit::Views };
        let kernel = KernelSpec::radial(Family::Rbf, 1.0, 1.0);
        ComponentSpec { name: Some(name.into()), ..ComponentSpec::new(views, kernel, inducing) }
    }

    fn whole(self, white: Option<f64>) -> ComponentSpec {
        let views = ViewSpec::Image { orbit: Vec::new(), contrast: None };
        ComponentSpec { white, ..self.component("rbf", views) }
    }

    /// Patches at every place, each with its own weight.
    fn conv(self, channels: ChannelSpec) -> ComponentSpec {
        let patch = if self.side() < SMALL_SIDE { 3 } else { 5 };
        let component = self.component("conv", patches(patch, 1, channels, false, None));
        ComponentSpec { weights: Weights::Learned, normalise: true, ..component }
    }

    fn located(self, channels: ChannelSpec) -> ComponentSpec {
        let mut component = self.conv(channels);
        if let ViewSpec::Patches { location_aware, .. } = &mut component.views {
            *location_aware = true;
        }
        let lengthscale = LOCATION * self.side() as f64;
        let location =
            RadialSpec { lengthscale: Some(Lengthscale::One(lengthscale)), ..RadialSpec::default() };
        ComponentSpec { location: Some(KernelSpec::of_family(Family::Matern32, location)), ..component }
    }

    fn contrast(self, located: ComponentSpec) -> ComponentSpec {
        let (patch, apart) = if self.side() < SMALL_SIDE { (3, 1) } else { (4, 2) };
        let views = patches(patch, apart, ChannelSpec::All, true, Some(CONTRAST));
        ComponentSpec { views, weights: Weights::Ones, ..located }
    }
}

fn patches(
    patch: usize,
    apart: usize,
    channels: ChannelSpec,
    location_aware: bool,
    contrast: Option<Contrast>,
) -> ViewSpec {
    let [patch, stride] = [patch, apart].map(Pair::Both);
    ViewSpec::Patches {
        patch,
        stride,
        channels,
        location_aware,
        orbit: Vec::new(),
        contrast,
        transform: None,
    }
}
