//! `kernels[k]` as a [`Kernel`], and where each field of it went.

use crate::GoldenError;
use crate::error::At;
use crate::node::Node;
use convgp::kernel::{Additive, Dims, Family, Kernel, Product, RadialFn, Rbf, Stationary, Sum};
use std::sync::Arc;

/// A kernel and, for each parameter field of the file, the places of its numbers among the kernel's parameters.
#[derive(Debug, Clone)]
pub struct ReadKernel {
    pub kernel: Arc<dyn Kernel>,
    pub fields: Vec<(&'static str, Vec<usize>)>,
}

/// Whether the gradient of a field is a bare number in the file.
pub fn is_scalar(field: &str) -> bool {
    !matches!(field, "lengthscales" | "channel_weights")
}

/// The kernel a file describes, on views of `len` numbers.
pub fn read_kernel(node: &Node, len: usize) -> Result<ReadKernel, GoldenError> {
    let kind = node.get("type")?;
    match kind.text()? {
        "additive_channels" => additive_channels(node, len),
        "additive_dims" => {
            let (variance, ell) = (number(node, "variance")?, number(node, "lengthscale")?);
            let kernel = Arc::new(Additive::new(&Rbf, Dims::all(len), variance, ell));
            Ok(ReadKernel { kernel, fields: scalars(&["variance", "lengthscale"]) })
        }
        "rbf_located" => located(node, len),
        name => {
            let family = name.strip_suffix("_ard").unwrap_or(name);
            let Some(known) = Family::ALL.iter().find(|known| known.name() == family) else {
                return Err(kind.refuse(format!("is `{name}`, which the schema does not have")));
            };
            stationary(node, known.radial(), name != family, len)
        }
    }
}

fn number(node: &Node, field: &str) -> Result<f64, GoldenError> {
    node.get(field)?.number()
}

/// Fields of one number each, in the order of the parameters.
fn scalars(fields: &[&'static str]) -> Vec<(&'static str, Vec<usize>)> {
    fields.iter().enumerate().map(|(i, field)| (*field, vec![i])).collect()
}

fn stationary(
    node: &Node,
    radial: &'static dyn RadialFn,
    ard: bool,
    len: usize,
) -> Result<ReadKernel, GoldenError> {
    let variance = number(node, "variance")?;
    let plain = |ell| Stationary::new(radial, Dims::all(len), variance, ell);
    if !ard {
        let kernel = Arc::new(plain(number(node, "lengthscale")?));
        return Ok(ReadKernel { kernel, fields: scalars(&["variance", "lengthscale"]) });
    }
    let each = node.get("lengthscales")?.array(&[len])?;
    let kernel = Arc::new(plain(1.0).with_lengthscales(each).at(node.path())?);
    Ok(ReadKernel { kernel, fields: vec![("variance", vec![0]), ("lengthscales", (1..=len).collect())] })
}

/// One kernel per channel of a colour patch, channels interleaved.
fn additive_channels(node: &Node, len: usize) -> Result<ReadKernel, GoldenError> {
    let weights = node.get("channel_weights")?.numbers()?;
    let channels = weights.len();
    let ells = node.get("lengthscales")?.array(&[channels])?;
    if channels == 0 || !len.is_multiple_of(channels) {
        return Err(node.refuse(format!("has {channels} channels; views have {len} numbers")));
    }
    let part = |c: usize| -> Arc<dyn Kernel> {
        let dims = Dims { start: c, len: len / channels, step: channels };
        Arc::new(Stationary::new(&Rbf, dims, weights[c], ells[c]))
    };
    let kernel = Arc::new(Sum::new((0..channels).map(part).collect()).at(node.path())?);
    let every_other = |first| (0..channels).map(|c| first + 2 * c).collect();
    Ok(ReadKernel {
        kernel,
        fields: vec![("channel_weights", every_other(0)), ("lengthscales", every_other(1))],
    })
}

/// A kernel of the patch times one of its place, the last two numbers of a view.
fn located(node: &Node, len: usize) -> Result<ReadKernel, GoldenError> {
    if len < 3 {
        return Err(node.refuse(format!("needs a patch and a place, but views have {len} numbers")));
    }
    let (variance, ell) = (number(node, "variance")?, number(node, "lengthscale")?);
    let patch = Stationary::new(&Rbf, Dims::all(len - 2), variance, ell);
    let place = Dims { start: len - 2, len: 2, step: 1 };
    let location =
        Stationary::new(&Rbf, place, 1.0, number(node, "location_lengthscale")?).without_variance();
    let kernel = Arc::new(Product::new(vec![Arc::new(patch), Arc::new(location)]).at(node.path())?);
    Ok(ReadKernel { kernel, fields: scalars(&["variance", "lengthscale", "location_lengthscale"]) })
}
