//! A golden file as a model, its parameters and its data.

use crate::GoldenError;
use crate::error::At;
use crate::kernel::{ReadKernel, read_kernel};
use crate::likelihood::read_likelihood;
use crate::node::Node;
use crate::posterior::write_q;
use crate::views::read_views;
use convgp::component::{ComponentParts, ImageNorm};
use convgp::data::{Dataset, ImageShape, Images, Pixels};
use convgp::likelihood::LikelihoodSpec;
use convgp::model::{Jitter, PosteriorSpec, Weights};
use convgp::params::Params;
use convgp::variational::Structure;
use convgp::views::Views;
use convgp::{Model, ModelSpec};
use std::sync::Arc;

/// A model with a posterior, as a golden file describes it.
///
/// Neighbouring components of the file that share kernel and inducing inputs become one component with several
/// responses; other sharing is undone (each component has its own copy) and gradients are summed when compared.
#[derive(Debug)]
pub struct Fixture {
    pub(crate) model: Model,
    pub(crate) values: Params,
    pub(crate) data: Dataset,
    pub(crate) num_data: usize,
    /// What the model's components were made from.
    pub(crate) sources: Vec<Source>,
    /// Component and response of the model for each component of the file.
    pub(crate) places: Vec<(usize, usize)>,
}

/// Where a component of the model comes from.
#[derive(Debug)]
pub(crate) struct Source {
    pub kernel: usize,
    pub inducing: usize,
    pub fields: Vec<(&'static str, Vec<usize>)>,
}

/// A component of the file.
struct Entry {
    kernel: usize,
    inducing: usize,
    views: Arc<dyn Views>,
    weights: Option<Vec<f64>>,
}

impl Entry {
    /// Whether both can be responses of one component.
    fn joins(&self, other: &Entry) -> bool {
        self.kernel == other.kernel
            && self.inducing == other.inducing
            && self.weights.is_some() == other.weights.is_some()
    }
}

impl Fixture {
    /// Builds the model of a file.
    pub fn new(root: &Node) -> Result<Self, GoldenError> {
        let image = image_shape(&root.get("image")?)?;
        let x = root.get("X")?;
        let images = x.list()?.len();
        let pixels = Pixels::F64(x.array(&[images, image.len()])?);
        let entries = root.get("components")?.list()?;
        let entries = entries.iter().map(|c| read_entry(root, c, image)).collect::<Result<Vec<_>, _>>()?;
        let latents = root.get("q_mu")?.list()?.len();
        let (likelihood, targets) = read_likelihood(root, latents, images)?;
        let spec = ModelSpec {
            image,
            likelihood: LikelihoodSpec::gaussian(), // not used: the real one is handed over
            posterior: posterior(root)?,
            jitter: Jitter::Absolute(root.get("jitter")?.number()?),
            augmentation: None,
            components: Vec::new(),
        };
        let (parts, sources, places) = join(root, &entries)?;
        let (model, mut values) = Model::from_parts(spec, parts, likelihood).at("components")?;
        for (entry, &(component, response)) in entries.iter().zip(&places) {
            let slot = model.components()[component].responses()[response].weights_slot();
            if let (Some(weights), Some(slot)) = (&entry.weights, slot) {
                slot.of_mut(&mut values).copy_from_slice(weights);
            }
        }
        write_q(root, model.variational(), &mut values)?;
        let num_data = root.get("n_data")?.whole()?;
        let data = Images::new(image, pixels).and_then(|images| Dataset::new(images, targets)).at("X")?;
        Ok(Self { model, values, data, num_data, sources, places })
    }
}

pub(crate) fn image_shape(node: &Node) -> Result<ImageShape, GoldenError> {
    let channels = node.find("channels").map_or(Ok(1), |c| c.whole())?;
    ImageShape::new(node.get("height")?.whole()?, node.get("width")?.whole()?, channels).at(node.path())
}

fn posterior(root: &Node) -> Result<PosteriorSpec, GoldenError> {
    let form = root.get("q_form")?;
    let structure = match form.text()? {
        "full" => Structure::Full,
        "mean_field" => Structure::MeanField,
        other => return Err(form.refuse(format!("is `{other}`; expected `full` or `mean_field`"))),
    };
    Ok(PosteriorSpec { structure, whiten: root.get("whiten")?.truth()?, rank: None })
}

fn read_entry(root: &Node, node: &Node, image: ImageShape) -> Result<Entry, GoldenError> {
    let index = |field: &str, of: &str| -> Result<usize, GoldenError> {
        let (at, count) = (node.get(field)?, root.get(of)?.list()?.len());
        match at.whole()? {
            i if i < count => Ok(i),
            i => Err(at.refuse(format!("is {i}, but `{of}` has {count} elements"))),
        }
    };
    let views = read_views(&node.get("views")?, image)?;
    let weights = node.find("weights").map(|w| w.array(&[views.count()])).transpose()?;
    Ok(Entry {
        kernel: index("kernel", "kernels")?,
        inducing: index("inducing", "inducing")?,
        views,
        weights,
    })
}

type Joined = (Vec<ComponentParts>, Vec<Source>, Vec<(usize, usize)>);

/// Components of the model from those of the file.
fn join(root: &Node, entries: &[Entry]) -> Result<Joined, GoldenError> {
    let (mut parts, mut sources, mut places): Joined = Default::default();
    let mut rest = entries;
    while let Some(first) = rest.first() {
        let (same, others) = rest.split_at(rest.iter().take_while(|e| e.joins(first)).count());
        rest = others;
        let inducing = &root.get("inducing")?.list()?[first.inducing];
        let (rows, len) = (inducing.list()?.len(), first.views.len());
        let z = inducing.array(&[rows, len])?;
        if let Some(other) = same.iter().find(|e| e.views.len() != len) {
            let problem = format!("is used with views of {len} and of {} numbers", other.views.len());
            return Err(inducing.refuse(problem));
        }
        let ReadKernel { kernel, fields } = read_kernel(&root.get("kernels")?.list()?[first.kernel], len)?;
        places.extend((0..same.len()).map(|response| (parts.len(), response)));
        sources.push(Source { kernel: first.kernel, inducing: first.inducing, fields });
        parts.push(ComponentParts {
            name: format!("component-{}", parts.len()),
            kernel,
            views: same.iter().map(|e| e.views.clone()).collect(),
            weights: if first.weights.is_some() { Weights::Learned } else { Weights::Ones },
            pooling: None,
            image_norm: ImageNorm::None,
            normalise: false,
            white: None,
            z,
        });
    }
    Ok((parts, sources, places))
}
