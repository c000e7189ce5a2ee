//! Pooled patches for the closed-form solver: sizes from the data, the rest by leave-one-out on some of the images.

use super::{Aspect, Decision, PresetError, ResolvedConfig};
use crate::Result;
use crate::closed_form::{Options, Summary};
use crate::component::{ImageNorm, Pooling};
use crate::cov::Fused;
use crate::data::{Dataset, ImageShape, Targets};
use crate::kernel::{Family, KernelSpec, Lengthscale};
use crate::likelihood::LikelihoodSpec;
use crate::model::{ComponentSpec, InducingInit, InducingSpec, Jitter, ModelSpec, PosteriorSpec};
use crate::rng::Rng;
use crate::train::{ExperimentSpec, TrainSpec};
use crate::variational::Structure;
use crate::views::{Augmentation, ChannelSpec, MapSet, Pair, PatchTransform, ViewSpec};

/// Images on which candidates are compared: an eighth of all where they are grey, at least and at most so many.
const COMPARED: [usize; 2] = [400, 1000];
/// Fewer images than this do not tell sizes apart.
const COMPARED_BY_SIZE: usize = 400;
/// Images are at least so high and wide.
pub(super) const LEAST_SIDE: usize = 3;
/// Below so many images fewer inducing inputs do.
const FEW: usize = 2000;
/// From so many images on, there are many: patches of colour images are then two pixels apart.
const MANY: usize = 10_000;
/// Windows of grey images from so many images on, in a line.
const MANY_WINDOWS: usize = 5;
/// Places in a line are no more than about this many.
const PLACES: usize = 32;
/// Added to the variance of a patch before its contrast is taken: that of noise in photographs, of pixels in 0 to 1.
const CONTRAST: f64 = 10.0 / (255.0 * 255.0);
/// Factors on the median distance of patches that are compared.
const LENGTHSCALES: [f64; 3] = [0.35, 0.5, 0.7];

/// The same of responses, for a second stage: the first one where there are copies of few images.
const SECOND_LENGTHSCALES: [f64; 2] = [2.0, 1.0];

/// Maps that copies of training images are made with; shifts are in pixels of an image 28 pixels wide.
const MAPS: Augmentation =
    Augmentation { copies: 0, rotation: 10.0, shift: 1.0, scaling: 0.08, shear: 0.12, mirror: false };
/// An image has no more copies than this.
const MOST_COPIES: usize = 20;

/// How large a model may be.
#[derive(Clone, Copy)]
struct Size {
    /// Inducing patches.
    inducing: usize,
    /// Images and their copies.
    columns: usize,
    /// Inducing images of a second stage, and fewer of them where there are copies.
    second: usize,
    second_with_copies: usize,
}

/// Most images with their copies, in the model itself.
const MOST_WITH_COPIES: usize = 5000;
/// Models that are compared.
const COMPARED_SIZE: Size = Size { inducing: 200, columns: 1600, second: 1000, second_with_copies: 800 };

impl Size {
    fn of(data: &Dataset, second: bool) -> Self {
        let inducing = inducing(data, second);
        Self { inducing, columns: MOST_WITH_COPIES, second: 5000, second_with_copies: 1500 }
    }
}

/// Standard errors, image by image, that a gain in log predictive probability must exceed to move a default. Copies of
/// grey images are taken where they gain at all: few images cannot show more.
const STANDARD_ERRORS: f64 = 2.0;

/// What is decided by leave-one-out.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Choice {
    /// Whether patches are taken relative to their own mean and spread, as in photographs.
    contrast: bool,
    /// Whether images and their mirror images are alike.
    mirror: bool,
    /// Whether there are copies of images under small maps.
    copies: bool,
    /// Height and width of patches.
    patch: usize,
    /// Pixels from one patch to the next, the same in all comparisons.
    apart: usize,
    lengthscale: f64,
    grid: usize,
    /// Lengthscale of a kernel on the responses; none where they add up.
    second: Option<f64>,
}

/// One of the things decided: what may be instead, and in words.
struct Question {
    aspect: Aspect,
    instead: fn(Choice) -> Vec<Choice>,
    value: fn(Choice) -> String,
}

const QUESTIONS: [Question; 7] = [
    Question {
        aspect: Aspect::Contrast,
        instead: |c| vec![Choice { contrast: !c.contrast, ..c }],
        value: |c| yes(c.contrast),
    },
    Question {
        aspect: Aspect::Mirror,
        instead: |c| vec![Choice { mirror: true, ..c }],
        value: |c| yes(c.mirror),
    },
    Question {
        aspect: Aspect::Stages,
        instead: |c| {
            let factors = SECOND_LENGTHSCALES.map(Some).into_iter().chain([None]);
            factors.map(|second| Choice { second, ..c }).collect()
        },
        value: |c| match c.second {
            None => "one".into(),
            Some(factor) => format!("two, the second with {factor} times the median distance of responses"),
        },
    },
    Question {
        aspect: Aspect::Patches,
        instead: |c| [c.patch + 2, c.patch.saturating_sub(2)].map(|patch| Choice { patch, ..c }).to_vec(),
        value: |c| format!("{0}x{0}", c.patch),
    },
    Question {
        aspect: Aspect::Lengthscale,
        instead: |c| LENGTHSCALES.map(|lengthscale| Choice { lengthscale, ..c }).to_vec(),
        value: |c| format!("{} times the median distance of patches", c.lengthscale),
    },
    Question {
        aspect: Aspect::Windows,
        instead: |c| [c.grid + 1, c.grid - 1].map(|grid| Choice { grid, ..c }).to_vec(),
        value: |c| format!("{0}x{0}", c.grid),
    },
    Question {
        aspect: Aspect::Copies,
        instead: |c| vec![Choice { copies: true, ..c }],
        value: |c| if c.copies { "under small maps" } else { "none" }.into(),
    },
];

fn yes(is: bool) -> String {
    if is { "yes" } else { "no" }.into()
}

/// A spec for these data.
pub fn choose(data: &Dataset, mut decisions: Vec<Decision>) -> Result<ResolvedConfig> {
    let shape = data.images().shape();
    if shape.height().min(shape.width()) < LEAST_SIDE {
        return Err(PresetError::TooSmall.into());
    }
    decisions.push(Decision::new(Aspect::Solver, "closed form", "nothing is held back"));
    let grey = shape.channels() == 1;
    let grid = if grey { 4 } else { 3 };
    // Responses of drawings are alike or not as wholes; those of photographs add up.
    let room_for_copies = 2 * data.len() <= MOST_WITH_COPIES;
    let second = grey.then_some(SECOND_LENGTHSCALES[usize::from(!room_for_copies)]);
    let (patch, apart) = geometry(shape, data.len());
    let first = Choice {
        contrast: !grey,
        mirror: false,
        copies: false,
        patch,
        apart,
        lengthscale: 0.5,
        grid,
        second,
    };
    let share = if grey { data.len() / 8 } else { data.len() };
    let compared = share.clamp(COMPARED[0], COMPARED[1]).min(data.len());
    let some = Rng::new(0).choose(data.len(), compared);
    let some = data.select(&some)?;
    let mut best = compare(first, &some, room_for_copies, &mut decisions)?;
    if grey && data.len() >= MANY && best.second.is_none() {
        // A comparison on some of the images prefers fewer windows than all of them can fill.
        best.grid = best.grid.max(MANY_WINDOWS);
        decisions.retain(|decision| decision.what != Aspect::Windows);
        let why = format!("{} training images", data.len());
        decisions.push(Decision::new(Aspect::Windows, format!("{0}x{0}", best.grid), why));
    }
    let model = spec(best, data, Size::of(data, best.second.is_some()));
    let experiment = ExperimentSpec { model, train: TrainSpec::default() };
    let image = format!("images are {}x{}", shape.height(), shape.width());
    decisions.push(Decision::new(Aspect::Stride, apart.to_string(), image));
    let conv = &experiment.model.components[0];
    let count = match &conv.first_stage {
        None => format!("M = {}", conv.inducing.count),
        Some(first) => {
            format!("M = {} patches, then M = {} images", first.inducing.count, conv.inducing.count)
        }
    };
    let why = format!("{} training images", data.len());
    decisions.push(Decision::new(Aspect::Inducing, count, why));
    Ok(ResolvedConfig {
        experiment,
        name: "pooled".into(),
        decisions,
        free_inducing: true,
        free_steps: false,
    })
}

/// Improves one choice after the other.
fn compare(
    first: Choice,
    data: &Dataset,
    room_for_copies: bool,
    decisions: &mut Vec<Decision>,
) -> Result<Choice> {
    let mut best = (first, score(first, data)?);
    let grey = data.images().shape().channels() == 1;
    for Question { aspect, instead, value } in QUESTIONS {
        let of_size = matches!(aspect, Aspect::Patches | Aspect::Lengthscale | Aspect::Windows);
        if (aspect == Aspect::Copies && !room_for_copies) || (of_size && data.len() < COMPARED_BY_SIZE) {
            continue;
        }
        for candidate in instead(best.0) {
            // Patches are no larger than images, and more windows than places are as many as there are places.
            let side = data.images().shape().height().min(data.images().shape().width());
            if !(LEAST_SIDE..=side).contains(&candidate.patch) {
                continue;
            }
            if spec(candidate, data, COMPARED_SIZE) == spec(best.0, data, COMPARED_SIZE) {
                continue;
            }
            let found = score(candidate, data)?;
            // Differences within chance do not move a default.
            let (gain, error) = found.log_predictive.gain_over(&best.1.log_predictive);
            let certain = if grey && aspect == Aspect::Copies { 0.0 } else { STANDARD_ERRORS };
            if gain > certain * error {
                best = (candidate, found);
            }
        }
        let why = format!("leave-one-out NLPP {:.4} on {} images", best.1.chosen.nlpp, data.len());
        decisions.push(Decision::new(aspect, value(best.0), why));
    }
    Ok(best.0)
}

/// Leave-one-out figures of a small model.
fn score(choice: Choice, data: &Dataset) -> Result<Summary> {
    let spec = spec(choice, data, COMPARED_SIZE);
    let experiment = ExperimentSpec { model: spec, train: TrainSpec::default() };
    let mut chosen = ResolvedConfig {
        experiment,
        name: String::new(),
        decisions: Vec::new(),
        free_inducing: true,
        free_steps: false,
    };
    let (model, mut params) = chosen.build(data)?;
    let engine = Fused::<f32>::default();
    let fitted = model.fit_closed_form(&engine, &mut params, data, &Options::default(), &mut |_, _| true)?;
    Ok(fitted.expect("was not stopped"))
}

/// Inducing patches for these data; a second stage needs fewer of grey images.
fn inducing(data: &Dataset, second: bool) -> usize {
    match (data.images().shape().channels(), data.len()) {
        (_, ..FEW) => 256,
        (1, _) if second => 256,
        (1, _) => 400,
        (_, ..MANY) => 400,
        _ => 1088,
    }
}

/// Patch size to start from, and stride, for images of this shape.
fn geometry(shape: ImageShape, images: usize) -> (usize, usize) {
    let side = shape.height().min(shape.width());
    let apart = (side / PLACES).max(if shape.channels() > 1 && images >= MANY && side >= 20 { 2 } else { 1 });
    let size = match (side, shape.channels()) {
        (..20, _) => 3,
        (_, 1) => 5,
        _ => 6,
    };
    ((size + 2 * (side / PLACES).saturating_sub(1)).min(side), apart)
}

/// Copies, where there is room for so many images instead of one.
fn copies(side: usize, room: usize) -> Option<Augmentation> {
    let copies = room.saturating_sub(1).min(MOST_COPIES);
    (copies > 0).then_some(Augmentation { copies, shift: MAPS.shift * side as f64 / 28.0, ..MAPS })
}

/// The model.
fn spec(choice: Choice, data: &Dataset, size: Size) -> ModelSpec {
    let shape = data.images().shape();
    let side = shape.height().min(shape.width());
    let places = (side - choice.patch) / choice.apart + 1;
    let grid = choice.grid.clamp(1, places);
    let transform = match choice.contrast {
        true => PatchTransform { contrast: Some(CONTRAST), whiten: Some(0.1), unit: Some(1e-3) },
        false => PatchTransform { contrast: None, whiten: Some(0.1), unit: Some(1.0) },
    };
    let mut kernel = KernelSpec::radial(Family::Rbf, 1.0, 1.0);
    kernel.set_lengthscale(Lengthscale::TimesMedian { median: choice.lengthscale });
    let views = ViewSpec::Patches {
        patch: Pair::Both(choice.patch),
        stride: Pair::Both(choice.apart),
        channels: ChannelSpec::All,
        location_aware: false,
        orbit: if choice.mirror { vec![MapSet::FlipHorizontal] } else { Vec::new() },
        contrast: None,
        transform: Some(transform),
    };
    let mut conv = ComponentSpec {
        name: Some("conv".into()),
        pooling: Some(Pooling { grid: [grid, grid] }),
        image_norm: ImageNorm::Nystrom,
        ..ComponentSpec::new(views, kernel, InducingSpec { count: size.inducing, init: InducingInit::Views })
    };
    let augmentation = if choice.copies { copies(side, size.columns / data.len()) } else { None };
    let columns = data.len() * (1 + augmentation.map_or(0, |a| a.copies));
    let mut outputs = size.inducing * grid * grid;
    if let Some(factor) = choice.second {
        let views = ViewSpec::Image { orbit: Vec::new(), contrast: None };
        let mut kernel = KernelSpec::radial(Family::Rbf, 1.0, 1.0);
        kernel.set_lengthscale(Lengthscale::TimesMedian { median: factor });
        outputs = columns.min(if augmentation.is_some() { size.second_with_copies } else { size.second });
        let inducing = InducingSpec { count: outputs, init: InducingInit::Views };
        let first_stage = Some(Box::new(ComponentSpec { name: None, ..conv }));
        conv = ComponentSpec {
            name: Some("conv".into()),
            first_stage,
            ..ComponentSpec::new(views, kernel, inducing)
        };
    }
    ModelSpec {
        image: shape,
        likelihood: match data.targets() {
            Targets::Classes { classes, .. } => LikelihoodSpec::Labels { classes: *classes },
            Targets::Real(y) => LikelihoodSpec::standardised(y),
        },
        posterior: PosteriorSpec {
            structure: Structure::Shared,
            whiten: true,
            rank: Some(data.len()).filter(|_| 2 * columns <= outputs),
        },
        jitter: Jitter::Relative(1e-3),
        augmentation,
        components: vec![conv],
    }
}
