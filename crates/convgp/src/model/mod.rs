//! The model: structure built from a [`ModelSpec`], the bound as a pure function of parameters and data, prediction.

mod bound;
mod init;
mod leave_one_out;
mod predict;
mod restore;
mod spec;

pub(crate) use bound::Wanted;
pub use bound::{Bound, Workspace};
pub use init::Inducing;
pub(crate) use predict::sampling_factor;
pub use predict::{JointPrediction, Predictor};
pub use spec::{ComponentSpec, InducingInit, InducingSpec, Jitter, ModelSpec, PosteriorSpec, Weights};

use crate::component::{Component, ComponentParts};
use crate::data::{Batch, DataError, ImageShape, Images};
use crate::error::{NumericalError, SpecError};
use crate::kernel::{Dims, Kernel, Product, ViewDims};
use crate::likelihood::Likelihood;
use crate::linalg::all_finite;
use crate::params::{Layout, ParamError, Slot};
use crate::rng::Rng;
use crate::variational::{Form, Variational};
use crate::views::Views;
use crate::{Error, Result};
use std::sync::Arc;

/// Structure of a model: what is connected to what. The numbers are a separate vector, so that the bound is a pure
/// function of both and a checkpoint is just the numbers.
#[derive(Debug)]
pub struct Model {
    spec: ModelSpec,
    components: Vec<Component>,
    likelihood: Box<dyn Likelihood>,
    theta: Slot,
    variational: Variational,
    layout: Layout,
}

impl Model {
    /// Builds the model and its initial parameter vector. `images` are the training images, from which inducing inputs
    /// and median lengthscales are taken; `None` is enough when the spec asks for neither.
    pub fn new(spec: &ModelSpec, images: Option<&Images>, rng: &mut Rng) -> Result<(Self, Vec<f64>)> {
        let likelihood = spec.likelihood.build()?;
        Self::assemble(spec, likelihood, images, rng)
    }

    /// The same with a likelihood from outside the crate; the one named in the spec is not used.
    pub fn with_likelihood(
        spec: &ModelSpec,
        likelihood: Box<dyn Likelihood>,
        images: Option<&Images>,
        rng: &mut Rng,
    ) -> Result<(Self, Vec<f64>)> {
        Self::assemble(spec, likelihood, images, rng)
    }

    fn assemble(
        spec: &ModelSpec,
        likelihood: Box<dyn Likelihood>,
        images: Option<&Images>,
        rng: &mut Rng,
    ) -> Result<(Self, Vec<f64>)> {
        spec.check()?;
        if let Some(images) = images {
            check_shape(images.shape(), spec.image)?;
        }
        let parts = spec
            .components
            .iter()
            .enumerate()
            .map(|(i, c)| component_parts(c, &spec.component_name(i), spec.image, images, rng))
            .collect::<Result<Vec<_>>>()?;
        Self::from_parts(spec.clone(), parts, likelihood)
    }

    /// A model from components made by hand (kernels or views from outside the crate). `spec.components` is not used.
    pub fn from_parts(
        spec: ModelSpec,
        parts: Vec<ComponentParts>,
        likelihood: Box<dyn Likelihood>,
    ) -> Result<(Self, Vec<f64>)> {
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
        let PosteriorSpec { structure, whiten } = spec.posterior;
        let variational =
            Variational::register(likelihood.latents(), &sizes, structure, whiten, &mut layout, &mut values)?;
        Ok((Self { spec, components, likelihood, theta, variational, layout }, values))
    }

    /// The spec it was built from.
    pub fn spec(&self) -> &ModelSpec {
        &self.spec
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
    /// Names and constraints of the parameter vector.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
    /// Names and constraints, to freeze or free parameters.
    pub fn layout_mut(&mut self) -> &mut Layout {
        &mut self.layout
    }

    /// Rewrites `q` in the form natural-gradient or gradient steps need.
    pub fn set_form(&mut self, form: Form, values: &mut [f64]) -> Result<()> {
        if form == Form::Natural && !self.variational.whitened() {
            return Err(SpecError::NaturalUnwhitened.into());
        }
        self.variational
            .set_form(form, &mut self.layout, values)
            .map_err(|_| Error::Numerical(crate::error::NumericalError::IndefinitePosterior { latent: 0 }))
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

fn component_parts(
    spec: &ComponentSpec,
    name: &str,
    image: ImageShape,
    images: Option<&Images>,
    rng: &mut Rng,
) -> Result<ComponentParts> {
    let views = spec.views.build(image)?;
    let kernel = build_kernel(spec, name, &views, images, rng)?;
    let z = init::inducing_inputs(&spec.inducing, name, &views, images, rng)?;
    Ok(ComponentParts {
        name: name.into(),
        kernel,
        views,
        weights: spec.weights,
        normalise: spec.normalise,
        white: spec.white,
        z,
    })
}

/// The base kernel, times the location kernel for located views.
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
