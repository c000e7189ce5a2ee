//! Files of `fixtures/closed_form`: one component with windows, patch transforms and normalised images.

use crate::GoldenError;
use crate::compare::{Found, by_rows, condition};
use crate::error::At;
use crate::fixture::image_shape;
use crate::kernel::read_kernel;
use crate::node::Node;
use crate::report::{Precision, Report};
use crate::views::read_views;
use convgp::component::{Component, ComponentParts, ImageNorm, Pooling};
use convgp::cov::{Cov, Engine, Need};
use convgp::data::{Batch, ImageShape, Images, Pixels};
use convgp::likelihood::LikelihoodSpec;
use convgp::linalg::{CholeskyScratch, Mat, cholesky};
use convgp::model::{Jitter, PosteriorSpec, Weights};
use convgp::params::Params;
use convgp::rng::Rng;
use convgp::views::{PatchTransform, Transformed, Views, Whitening};
use convgp::{Model, ModelSpec};
use std::sync::Arc;

type Result<T> = std::result::Result<T, GoldenError>;

/// The largest error the schema allows.
const TOLERANCE: f64 = 1e-9;

/// The model of a file and its images.
#[derive(Debug)]
pub struct Setup {
    pub model: Model,
    pub values: Params,
    pub images: Images,
    jitter: f64,
}

/// Covariances of some images, not normalised.
pub struct Covariances<E: Engine> {
    pub batch: Batch,
    pub kuu: Mat,
    pub chol: Mat,
    pub cov: Cov,
    pub saved: E::Saved,
}

impl Setup {
    pub fn read(root: &Node, likelihood: LikelihoodSpec, posterior: PosteriorSpec) -> Result<Self> {
        let image = image_shape(&root.get("image")?)?;
        let images = read_images(root, "X", image)?;
        let (jitter, part) = (root.get("jitter")?.number()?, &root.get("components")?.list_of(1)?[0]);
        let views = transformed(part, image)?;
        let (z, len) = (&root.get("inducing")?.list_of(1)?[0], views.len());
        let kernel = read_kernel(&root.get("kernels")?.list_of(1)?[0], len)?.kernel;
        let grid = part.find("pooling").map(|p| read_grid(&p)).transpose()?;
        let parts = ComponentParts {
            name: "component".into(),
            kernel,
            views: vec![views],
            weights: Weights::Ones,
            pooling: grid.map(|grid| Pooling { grid }),
            image_norm: image_norm(&root.get("normalise")?)?,
            normalise: false,
            white: None,
            z: z.array(&[z.list()?.len(), len])?,
        };
        let built = likelihood.build().at("likelihood")?;
        let jitter_spec = Jitter::Absolute(jitter);
        let spec = ModelSpec {
            image,
            likelihood,
            posterior,
            jitter: jitter_spec,
            augmentation: None,
            components: Vec::new(),
        };
        let (model, values) = Model::from_parts(spec, vec![parts], built).at("components")?;
        Ok(Self { model, values, images, jitter })
    }

    pub fn component(&self) -> &Component {
        &self.model.components()[0]
    }

    pub fn covariances<E: Engine>(&self, engine: &E, images: &Images) -> Result<Covariances<E>> {
        let batch = Batch::of_images(images, &(0..images.count()).collect::<Vec<_>>());
        let (mut kuu, mut cov, mut saved) = (Mat::default(), Cov::default(), E::Saved::default());
        engine.kuu(self.component(), &self.values, &mut kuu);
        engine.images(self.component(), &self.values, &batch, Need::Gradient, &mut saved, &mut cov);
        let mut chol = kuu.clone();
        (0..chol.rows()).for_each(|i| chol[(i, i)] += self.jitter);
        cholesky(chol.view_mut(), &mut CholeskyScratch::default())
            .map_err(|_| GoldenError::field("jitter", "leaves `Kuu + jitter I` indefinite"))?;
        Ok(Covariances { batch, kuu, chol, cov, saved })
    }

    /// Windows and the covariances that every kind of file has.
    pub fn compare<E: Engine>(&self, outputs: &Node, ours: &Covariances<E>, found: &mut Found) -> Result<()> {
        let (c, m) = (self.component(), ours.kuu.rows());
        let (windows, places) = (c.responses().len(), c.responses()[0].views().count());
        let weight = |p: usize, r: usize| c.responses()[r].window().map_or(1.0, |w| w[p]);
        let phi: Vec<f64> = (0..places).flat_map(|p| (0..windows).map(move |r| weight(p, r))).collect();
        found.compare("phi", &outputs.get("phi")?, &[places, windows], &phi)?;
        found.compare("Kuu", &outputs.get("Kuu")?, &[m, m], &by_rows(&ours.kuu))?;
        compare_images(outputs, ["Kuf", "kff"], &ours.cov, found)
    }

    /// The verdict on a file.
    pub fn report<E: Engine>(&self, ours: &Covariances<E>, precision: Precision, found: Found) -> Report {
        let jitter = |i, j| if i == j { self.jitter } else { 0.0 };
        let m = ours.kuu.rows();
        let condition = condition(Mat::from_fn(m, m, |i, j| ours.kuu[(i, j)] + jitter(i, j)));
        let tolerance = TOLERANCE.max(precision.tolerance(1.0));
        Report { quantities: found.0, condition, tolerance }
    }
}

/// `Kuf[R][K][N]` and `kff[N]` under these names.
pub fn compare_images(outputs: &Node, names: [&'static str; 2], cov: &Cov, found: &mut Found) -> Result<()> {
    let [kuf, kff] = names;
    let shape = [cov.kuf.len(), cov.kuf[0].rows(), cov.kuf[0].cols()];
    let rows: Vec<f64> = cov.kuf.iter().flat_map(by_rows).collect();
    found.compare(kuf, &outputs.get(kuf)?, &shape, &rows)?;
    found.compare(kff, &outputs.get(kff)?, &shape[2..], &total_kff(cov))
}

/// `kff` over all windows.
pub fn total_kff(cov: &Cov) -> Vec<f64> {
    (0..cov.kuf[0].cols()).map(|n| cov.kff.iter().map(|k| k[n]).sum()).collect()
}

/// Derivatives in kernel and inducing inputs, as far as the file has them.
pub fn compare_gradients(grads: &Node, setup: &Setup, grad: &[f64], found: &mut Found) -> Result<()> {
    let (c, kernel) = (setup.component(), &grads.get("kernels")?.list_of(1)?[0]);
    for (field, ours) in ["variance", "lengthscale"].iter().zip(c.theta_slot().of(grad)) {
        found.compare("grad kernel", &kernel.get(field)?, &[], &[*ours])?;
    }
    match grads.find("inducing") {
        Some(z) => {
            let shape = [c.inducing(), c.view_len()];
            found.compare("grad Z", &z.list_of(1)?[0], &shape, c.z_slot().of(grad))
        }
        None => Ok(()),
    }
}

/// Images of one field.
pub fn read_images(root: &Node, field: &str, image: ImageShape) -> Result<Images> {
    let x = root.get(field)?;
    Images::new(image, Pixels::F64(x.array(&[x.list()?.len(), image.len()])?)).at(field)
}

fn read_grid(node: &Node) -> Result<[usize; 2]> {
    let sides = node.get("grid")?.list_of(2)?;
    Ok([sides[0].whole()?, sides[1].whole()?])
}

fn image_norm(node: &Node) -> Result<ImageNorm> {
    match node.text()? {
        "none" => Ok(ImageNorm::None),
        "kff" => Ok(ImageNorm::Kff),
        "nystrom" => Ok(ImageNorm::Nystrom),
        other => Err(node.refuse(format!("is `{other}`; expected `none`, `kff` or `nystrom`"))),
    }
}

/// The transform of a component, and its whitening if there is one.
fn read_transform<'a>(part: &Node<'a>) -> Result<Option<(PatchTransform, Option<Node<'a>>)>> {
    let Some(node) = part.find("transform") else { return Ok(None) };
    let number = |field: &str| node.find(field).map(|n| n.number()).transpose();
    let whiten = node.find("whiten");
    let epsilon = whiten.as_ref().and_then(|w| w.find("fit")).map(|f| f.get("epsilon")?.number());
    let transform = PatchTransform {
        contrast: number("contrast")?,
        // Where numbers are given the library is not asked to fit.
        whiten: if whiten.is_some() { Some(epsilon.transpose()?.unwrap_or(1.0)) } else { None },
        unit: number("unit")?,
    };
    Ok((transform != PatchTransform::default()).then_some((transform, whiten)))
}

/// The file's views with its transform.
fn transformed(part: &Node, image: ImageShape) -> Result<Arc<dyn Views>> {
    let views = read_views(&part.get("views")?, image)?;
    let Some((transform, whiten)) = read_transform(part)? else { return Ok(views) };
    let len = views.len();
    let mut views = Transformed::new(views, transform).at("components[0].transform")?;
    if let Some(w) = whiten {
        let (mean, matrix) = (w.get("mean")?.array(&[len])?, w.get("matrix")?.array(&[len, len])?);
        views = views.whitened(Whitening { mean, matrix }).at(w.path())?;
    }
    Ok(Arc::new(views))
}

/// The whitening that the library fits on the file's images, where the file says how its own was fitted.
pub fn compare_whitening(root: &Node, images: &Images, found: &mut Found) -> Result<()> {
    let part = &root.get("components")?.list_of(1)?[0];
    let Some((transform, Some(whiten))) = read_transform(part)? else { return Ok(()) };
    if whiten.find("fit").is_none() {
        return Ok(());
    }
    let views = read_views(&part.get("views")?, images.shape())?;
    let len = views.len();
    let views = Transformed::new(views, transform).at("components[0].transform")?;
    let fitted = views.fit_whitening(images, &mut Rng::new(0));
    found.compare("whitening", &whiten.get("mean")?, &[len], &fitted.mean)?;
    found.compare("whitening", &whiten.get("matrix")?, &[len, len], &fitted.matrix)
}
