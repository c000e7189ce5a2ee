//! The model: structure built from a [`ModelSpec`], the bound as a pure function of parameters and data, prediction.

mod bound;
mod init;
mod leave_one_out;
mod predict;
mod restore;
mod spec;
mod stage;

pub use crate::component::Weights;
pub use crate::variational::PosteriorSpec;
pub use bound::{Bound, Evaluation, Workspace};
pub(crate) use bound::{Wanted, pull_jitter};
pub use init::Inducing;
pub(crate) use predict::sampling_factor;
pub use predict::{JointPrediction, Predictor};
pub use spec::{ComponentSpec, InducingInit, InducingSpec, Jitter, ModelSpec};
use stage::{FirstStage, Staged};

use crate::Result;
use crate::component::{Component, ComponentParts, ImageNorm};
use crate::data::{Batch, DataError, ImageShape, Images};
use crate::error::{NumericalError, SpecError};
use crate::kernel::{Dims, Kernel, Product, ViewDims};
use crate::likelihood::Likelihood;
use crate::linalg::all_finite;
use crate::params::{Layout, ParamError, Params, Slot};
use crate::rng::Rng;
use crate::variational::{Form, Variational};
use crate::views::{Augmentation, Constant, GeometryError, ViewSpec, Views, Whitening};
use std::sync::Arc;

/// Structure of a model: what is connected to what. It never changes; the numbers are [`Params`], so that the bound is a
/// pure function of both.
///
/// ```
/// use convgp::{Model, ModelSpec, data::{Dataset, Images, Pixels, Targets}, rng::Rng};
/// let spec = ModelSpec::from_toml(r#"
///     image = { height = 4, width = 4 }
///     likelihood = { type = "gaussian" }
///     [[components]]
///     views = { type = "patches", patch = [2, 2] }
///     kernel = { type = "rbf" }
///     inducing = { count = 3 }
/// "#)?;
/// let images = Images::new(spec.image, Pixels::F64((0..96).map(|i| f64::from(i * i % 17) / 17.0).collect()))?;
/// let data = Dataset::new(images, Targets::real(vec![0.1, -0.4, 0.7, 0.2, 0.0, 0.3])?)?;
/// let (model, params) = Model::new(&spec, Some(data.images()), &mut Rng::new(1))?;
/// let batch = data.batch(&[0, 1, 2, 3, 4, 5]);
/// let mut workspace = convgp::model::Workspace::default();
/// let bound = model.elbo(&convgp::cov::Reference, &params, batch.of(data.len()), &mut workspace)?;
/// assert_eq!(bound.elbo, bound.expectation - bound.kl);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Model {
    spec: ModelSpec,
    components: Vec<Component>,
    likelihood: Box<dyn Likelihood>,
    pub(crate) theta: Slot,
    variational: Variational,
    layout: Arc<Layout>,
    /// What was given by hand and is not in the spec.
    by_hand: Option<&'static str>,
}

impl Model {
    /// Builds the model and its initial parameters. `images` are the training images, from which inducing inputs
    /// and median lengthscales are taken; `None` is enough when the spec asks for neither.
    pub fn new(spec: &ModelSpec, images: Option<&Images>, rng: &mut Rng) -> Result<(Self, Params)> {
        let likelihood = spec.likelihood.build()?;
        Self::assemble(spec, likelihood, images, None, rng)
    }

    /// The same with a likelihood from outside the crate; the one named in the spec is not used. Such a model cannot be
    /// saved, for a file holds a spec.
    pub fn with_likelihood(
        spec: &ModelSpec,
        likelihood: Box<dyn Likelihood>,
        images: Option<&Images>,
        rng: &mut Rng,
    ) -> Result<(Self, Params)> {
        let (model, params) = Self::assemble(spec, likelihood, images, None, rng)?;
        Ok((Self { by_hand: Some("likelihood"), ..model }, params))
    }

    fn assemble(
        spec: &ModelSpec,
        likelihood: Box<dyn Likelihood>,
        images: Option<&Images>,
        saved: Option<Saved<'_>>,
        rng: &mut Rng,
    ) -> Result<(Self, Params)> {
        spec.check()?;
        spec.augmentation.map_or(Ok(()), |a| a.check())?;
        if let Some(images) = images {
            check_shape(images.shape(), spec.image)?;
        }
        let augmentation = spec.augmentation.as_ref();
        let source = Source { image: spec.image, jitter: spec.jitter, images, augmentation, saved };
        let parts = spec
            .components
            .iter()
            .enumerate()
            .map(|(i, c)| component_parts(c, &spec.component_name(i), source, rng))
            .collect::<Result<Vec<_>>>()?;
        let (model, params) = Self::from_parts(spec.clone(), parts, likelihood)?;
        Ok((Self { by_hand: None, ..model }, params))
    }

    /// A model from components made by hand (kernels or views from outside the crate). `spec.components` is not used, and
    /// such a model cannot be saved, for a file holds a spec.
    pub fn from_parts(
        spec: ModelSpec,
        parts: Vec<ComponentParts>,
        likelihood: Box<dyn Likelihood>,
    ) -> Result<(Self, Params)> {
        if parts.is_empty() {
            return Err(SpecError::NoComponents.into());
        }
        spec.check_jitter()?;
        let (mut layout, mut values) = (Layout::default(), Vec::new());
        let mut components = Vec::new();
        for parts in parts {
            init::check_parts(&parts, spec.image)?;
            components.push(Component::register(parts, &mut layout, &mut values)?);
        }
        let theta = Slot::empty_at(values.len());
        for init in likelihood.parameters() {
            layout.add(&mut values, "likelihood", init)?;
        }
        let theta = theta.with_len(values.len() - theta.range().start);
        let sizes: Vec<_> = components.iter().map(|c| (c.inducing(), c.responses().len())).collect();
        let variational =
            Variational::register(likelihood.latents(), &sizes, spec.posterior, &mut layout, &mut values)?;
        let (layout, by_hand) = (Arc::new(layout), Some("components"));
        let params = Params::new(Arc::clone(&layout), values);
        Ok((Self { spec, components, likelihood, theta, variational, layout, by_hand }, params))
    }

    /// The spec it was built from.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
    }
    /// The spec, if it says everything about the model.
    pub(crate) fn whole_spec(&self) -> std::result::Result<&ModelSpec, SpecError> {
        self.by_hand.map_or(Ok(&self.spec), |what| Err(SpecError::MadeByHand { what }))
    }
    /// The components.
    pub fn components(&self) -> &[Component] {
        &self.components
    }
    /// The likelihood.
    pub fn likelihood(&self) -> &dyn Likelihood {
        self.likelihood.as_ref()
    }
    /// Current parameters of the likelihood.
    pub fn likelihood_theta<'a>(&self, values: &'a [f64]) -> &'a [f64] {
        self.theta.of(values)
    }
    /// Structure of the posterior.
    pub fn variational(&self) -> &Variational {
        &self.variational
    }
    /// Names and constraints of the parameters as they are at first: `q` in covariance form, nothing frozen by a user.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Parameters from a flat vector whose numbers of `q` are in this form.
    pub fn params(&self, values: Vec<f64>, form: Form) -> Result<Params> {
        self.check_values(&values)?;
        self.check_form(form)?;
        let mut params = Params::new(Arc::clone(&self.layout), values);
        self.variational.assume_form(form, &mut params);
        Ok(params)
    }

    /// Rewrites `q` in the form natural-gradient or gradient steps need.
    pub fn set_form(&self, form: Form, params: &mut Params) -> Result<()> {
        self.check_form(form)?;
        self.variational.set_form(form, params).map_err(|e| NumericalError::from(e).into())
    }

    fn check_form(&self, form: Form) -> std::result::Result<(), SpecError> {
        let possible = form == Form::Covariance || self.variational.whitened();
        if possible { Ok(()) } else { Err(SpecError::NaturalUnwhitened) }
    }

    /// Arrays that are no parameters: fitted whitenings, and what first stages are made of.
    pub fn constants(&self) -> Vec<Constant<'_>> {
        let mut out = Vec::new();
        self.components.iter().for_each(|c| c.constants(c.name(), &mut out));
        out
    }

    /// Whether only the closed-form solver can fit it.
    pub fn is_closed_form(&self) -> bool {
        self.variational.shared().is_some()
            || self.components.iter().any(|c| c.image_norm() != ImageNorm::None)
    }

    /// Whether images of this shape can be used.
    pub fn check_images(&self, shape: ImageShape) -> Result<()> {
        check_shape(shape, self.spec.image)
    }

    /// Whether a batch has images of the right shape and a target of the right kind for each.
    fn check_batch(&self, batch: &Batch) -> Result<()> {
        self.check_images(batch.shape())?;
        if batch.is_empty() {
            return Err(DataError::Empty.into());
        }
        self.likelihood.check_targets(batch.targets())?;
        let (images, targets) = (batch.len(), batch.targets().len());
        if images == targets { Ok(()) } else { Err(DataError::TargetCount { images, targets }.into()) }
    }

    /// Whether a parameter vector has the model's length and is finite. Kernels need not pass a NaN on to the bound.
    pub(crate) fn check_values(&self, values: &[f64]) -> Result<()> {
        let (expected, found) = (self.layout.len(), values.len());
        if found != expected {
            return Err(ParamError::Length { name: "all".into(), expected, found }.into());
        }
        if all_finite(values) {
            return Ok(());
        }
        let bad = values.iter().position(|v| !v.is_finite()).unwrap_or(0);
        let entry = self.layout.entries().iter().find(|e| e.slot.range().contains(&bad));
        let name = entry.map_or_else(String::new, |e| e.name.clone());
        Err(NumericalError::ParameterNotFinite { name, value: values[bad] }.into())
    }
}

fn check_shape(found: ImageShape, expected: ImageShape) -> Result<()> {
    if found == expected { Ok(()) } else { Err(DataError::ShapeMismatch { found, expected }.into()) }
}

/// What the name of a first stage adds to that of its component.
pub(crate) const FIRST_STAGE: &str = ".first";

/// Gives saved constants by name.
type Saved<'a> = &'a dyn Fn(&str) -> Option<Vec<f64>>;

/// What the parts of a model are made from: images of a shape, or what was saved.
#[derive(Clone, Copy)]
struct Source<'a> {
    image: ImageShape,
    jitter: Jitter,
    images: Option<&'a Images>,
    augmentation: Option<&'a Augmentation>,
    saved: Option<Saved<'a>>,
}

fn component_parts(
    spec: &ComponentSpec,
    name: &str,
    source: Source<'_>,
    rng: &mut Rng,
) -> Result<ComponentParts> {
    let images = source.images;
    let views = match &spec.first_stage {
        None => build_views(&spec.views, name, source, rng)?,
        Some(first) => {
            let first = Arc::new(FirstStage::new(first, &format!("{name}{FIRST_STAGE}"), source, rng)?);
            let responses = images.map(|images| first.sample(images, rng)).transpose()?;
            let source = Source { image: first.shape(), images: responses.as_ref(), ..source };
            let views = build_views(&spec.views, name, source, rng)?;
            let staged = |views| Arc::new(Staged { first: first.clone(), views }) as Arc<dyn Views>;
            views.into_iter().map(staged).collect()
        }
    };
    let kernel = build_kernel(spec, name, &views, images, rng)?;
    let z = init::inducing_inputs(&spec.inducing, name, &views, source, rng)?;
    Ok(ComponentParts {
        name: name.into(),
        kernel,
        views,
        weights: spec.weights,
        pooling: spec.pooling,
        image_norm: spec.image_norm,
        normalise: spec.normalise,
        white: spec.white,
        z,
    })
}

/// The views of images of this shape, whitening fitted on some or as it was saved.
fn build_views(
    spec: &ViewSpec,
    name: &str,
    source: Source<'_>,
    rng: &mut Rng,
) -> Result<Vec<Arc<dyn Views>>> {
    let mut set = 0;
    let views = spec.build_with(source.image, &mut |views| {
        let found = match (source.saved, source.images) {
            (Some(saved), _) => Whitening::saved(name, set, saved),
            (None, Some(images)) => Some(views.fit_whitening(images, rng)),
            (None, None) => None,
        };
        set += 1;
        found.ok_or(GeometryError::WhiteningWithoutImages)
    })?;
    Ok(views)
}

/// The base kernel, times the location kernel for location-aware views.
fn build_kernel(
    spec: &ComponentSpec,
    name: &str,
    views: &[Arc<dyn Views>],
    images: Option<&Images>,
    rng: &mut Rng,
) -> Result<Arc<dyn Kernel>> {
    let view = views[0].as_ref();
    let len = view.len() - view.coordinates();
    let median = match images {
        Some(images) if spec.kernel.wants_median() => Some(init::median_distance(view, images, rng)),
        _ => None,
    };
    let kernel = spec.kernel.build(ViewDims { len, channels: view.layout().view.channels() }, median)?;
    match (&spec.location, view.coordinates()) {
        (None, 0) => Ok(kernel),
        (None, _) => Err(SpecError::CoordinatesWithoutLocation { name: name.into() }.into()),
        (Some(_), 0) => Err(SpecError::LocationWithoutCoordinates { name: name.into() }.into()),
        (Some(location), coordinates) => {
            let location = location.build_location(Dims { start: len, len: coordinates, step: 1 })?;
            Ok(Arc::new(Product::new(vec![kernel, location])?))
        }
    }
}
