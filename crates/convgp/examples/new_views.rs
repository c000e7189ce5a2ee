//! Views from outside the crate: patches with gaps between their pixels ("dilated" windows), which see further than plain
//! ones of the same size.
//!
//! `cargo run --example new_views`

#![allow(clippy::print_stdout)]

use convgp::component::{ComponentParts, ImageNorm};
use convgp::cov::Reference;
use convgp::data::{Dataset, ImageShape, Images, Pixels, Targets};
use convgp::kernel::{Dims, Rbf, Stationary};
use convgp::likelihood::LikelihoodSpec;
use convgp::model::{Jitter, PosteriorSpec, Weights, Workspace};
use convgp::rng::Rng;
use convgp::views::{Layout, Views, ViewsSize, check_views};
use convgp::{Model, ModelSpec};
use std::sync::Arc;

/// All `side x side` patches whose pixels lie `gap` apart, of images with one channel.
#[derive(Debug)]
struct Dilated {
    shape: ImageShape,
    side: usize,
    gap: usize,
}

impl Dilated {
    /// Rows and columns of the grid of corners.
    fn grid(&self) -> (usize, usize) {
        let reach = (self.side - 1) * self.gap;
        (self.shape.height() - reach, self.shape.width() - reach)
    }

    /// The pixel that element `e` of view `p` shows.
    fn pixel(&self, p: usize, e: usize) -> usize {
        let (_, cols) = self.grid();
        let (row, col) = (p / cols + e / self.side * self.gap, p % cols + e % self.side * self.gap);
        row * self.shape.width() + col
    }
}

impl Views for Dilated {
    fn size(&self) -> ViewsSize {
        let (count, len) = (self.grid().0 * self.grid().1, self.side * self.side);
        ViewsSize { image: self.shape, count, len, coordinates: 0 }
    }
    fn write(&self, image: &[f64], out: &mut [f64]) {
        for (p, view) in out.chunks_exact_mut(self.len()).enumerate() {
            view.iter_mut().enumerate().for_each(|(e, value)| *value = image[self.pixel(p, e)]);
        }
    }
    fn pullback(&self, _image: &[f64], views_bar: &[f64], image_bar: &mut [f64]) {
        for (p, bar) in views_bar.chunks_exact(self.len()).enumerate() {
            bar.iter().enumerate().for_each(|(e, bar)| image_bar[self.pixel(p, e)] += bar);
        }
    }
    fn layout(&self) -> Layout {
        let view = ImageShape::new(self.side, self.side, 1).expect("a patch has at least one pixel");
        Layout { planes: vec![String::new()], rows: self.grid().0, cols: self.grid().1, stride: (1, 1), view }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let shape = ImageShape::new(9, 7, 1)?;
    let views = Dilated { shape, side: 3, gap: 2 };
    check_views(&views, 1)?;
    println!("{} views of {} numbers keep the contract", views.count(), views.len());

    let mut rng = Rng::new(1);
    let images = Images::new(shape, Pixels::F64((0..20 * shape.len()).map(|_| rng.uniform()).collect()))?;
    let targets = Targets::real((0..20).map(|_| rng.normal()).collect())?;
    let data = Dataset::new(images, targets)?;
    let parts = ComponentParts {
        name: "dilated".into(),
        kernel: Arc::new(Stationary::new(&Rbf, Dims::all(9), 1.0, 1.0)),
        views: vec![Arc::new(views)],
        weights: Weights::Learned,
        pooling: None,
        image_norm: ImageNorm::None,
        normalise: false,
        white: None,
        z: (0..10 * 9).map(|_| rng.uniform()).collect(),
    };
    let spec = ModelSpec {
        image: shape,
        likelihood: LikelihoodSpec::gaussian(),
        posterior: PosteriorSpec::default(),
        jitter: Jitter::default(),
        augmentation: None,
        components: Vec::new(), // made by hand above
    };
    let likelihood = spec.likelihood.build()?;
    let (model, values) = Model::from_parts(spec, vec![parts], likelihood)?;
    let (batch, mut ws) = (data.batch(&[0, 1, 2, 3]), Workspace::default());
    let bound = model.elbo_and_grad(&Reference, &values, batch.of(data.len()), &mut ws)?;
    println!("bound {:.3}, {} derivatives", bound.elbo, ws.grad.len());
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
