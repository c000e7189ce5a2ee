//! Two stages: views of the responses of a component, instead of pixels.
//!
//! The responses of a first stage are an image: a pixel for every window, a channel for every inducing input,
//! `a(x) = F^{-1} Kuf(x)` as the closed-form solver sees them. The distance of two such images is that of the first stage's
//! kernel, `|a - b|^2 = k(x, x) - 2 k(x, y) + k(y, y)` as far as its inducing inputs tell, so a radial kernel on them is a
//! kernel on images. Nothing of the first stage is learned: its kernel, inducing inputs and whitening are constants.

use super::{ComponentSpec, FIRST_STAGE, Source, bound, component_parts, init};
use crate::Result;
use crate::component::{Component, ImageNorm, Weights};
use crate::cov::{Cov, Engine, Fused, Need};
use crate::data::{Batch, ImageShape, Images, Pixels};
use crate::error::SpecError;
use crate::kernel::PairBar;
use crate::linalg::{
    Accumulate, CholeskyScratch, Mat, MatRef, dot, gemm, norm_squared, par_gemm, solve_lower, solve_lower_t,
};
use crate::params::Layout as ParamLayout;
use crate::rng::Rng;
use crate::views::{Constant, Layout, Views, ViewsSize};
use rayon::prelude::*;
use std::sync::{Arc, Mutex};

/// Images whose responses are computed together; fixed, so that bits do not depend on the number of threads.
const GROUP: usize = 32;
/// Images on whose responses whitening of the second stage is fitted.
const FIT_IMAGES: usize = 500;

type Buffers = (Batch, <Fused<f32> as Engine>::Saved, Cov);

/// A component with fixed numbers, and the images that its responses are.
#[derive(Debug)]
pub struct FirstStage {
    component: Component,
    values: Vec<f64>,
    factor: Mat,
    shape: ImageShape,
    pool: Mutex<Vec<Buffers>>,
}

impl FirstStage {
    /// Takes kernel, whitening and inducing inputs from images, or from what was saved.
    pub(super) fn new(spec: &ComponentSpec, name: &str, source: Source<'_>, rng: &mut Rng) -> Result<Self> {
        let Source { image, jitter, saved, .. } = source;
        if spec.weights != Weights::Ones || spec.white.is_some() || spec.image_norm == ImageNorm::Kff {
            return Err(SpecError::FirstStage { name: name.into() }.into());
        }
        let parts = component_parts(spec, name, source, rng)?;
        init::check_parts(&parts, image)?;
        let mut values = Vec::new();
        let component = Component::register(parts, &mut ParamLayout::default(), &mut values)?;
        if let Some(saved) = saved {
            let missing = |what: &str| SpecError::MissingConstant { name: format!("{name}.{what}") };
            for (what, slot) in [("kernel", component.theta_slot()), ("z", component.z_slot())] {
                let found = saved(&format!("{name}.{what}")).filter(|v| v.len() == slot.len());
                slot.of_mut(&mut values).copy_from_slice(&found.ok_or_else(|| missing(what))?);
            }
        }
        let (mut kuu, mut factor) = (Mat::default(), Mat::default());
        Fused::<f32>::default().kuu(&component, &values, &mut kuu);
        bound::factorise(&component, &values, jitter, &kuu, &mut factor, &mut CholeskyScratch::default())?;
        let [rows, cols] = spec.pooling.map_or([1, 1], |p| p.grid);
        let sets = component.responses().len() / (rows * cols);
        let shape = ImageShape::new(rows, cols, component.inducing() * sets)?;
        Ok(Self { component, values, factor, shape, pool: Mutex::default() })
    }

    /// Shape of the images that responses are.
    pub fn shape(&self) -> ImageShape {
        self.shape
    }

    /// Responses of images that lie one after the other; so do they.
    pub fn write(&self, images: &[f64], out: &mut [f64]) {
        let shape = self.component.responses()[0].views().image_shape();
        let groups = images.par_chunks(GROUP * shape.len());
        groups.zip(out.par_chunks_mut(GROUP * self.shape.len())).for_each(|(images, out)| {
            let lock = || self.pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let taken = lock().pop();
            let mut buffers =
                taken.unwrap_or_else(|| (Batch::empty(shape), Default::default(), Cov::default()));
            buffers.0.pixels_mut(shape, images.len() / shape.len()).copy_from_slice(images);
            self.write_group(&mut buffers, out);
            lock().push(buffers);
        });
    }

    fn write_group(&self, (batch, saved, cov): &mut Buffers, out: &mut [f64]) {
        let (c, count) = (&self.component, batch.len());
        Fused::<f32>::default().images(c, &self.values, batch, Need::Mean, saved, cov);
        let (k, responses) = (c.inducing(), c.responses().len());
        let mut a = Mat::zeros(k, count * responses);
        for (r, kuf) in cov.kuf.iter().enumerate() {
            (0..count).for_each(|n| a.col_mut(n * responses + r).copy_from_slice(kuf.col(n)));
        }
        solve_lower(self.factor.view(), a.view_mut());
        let size = self.shape.len();
        for (out, a) in out.chunks_exact_mut(size).zip(a.data().chunks_exact(size)) {
            let scale = 1.0 / self.length(a);
            out.iter_mut().zip(a).for_each(|(o, a)| *o = scale * a);
        }
    }

    /// What the responses of an image are divided by.
    fn length(&self, a: &[f64]) -> f64 {
        match self.component.image_norm() {
            ImageNorm::None => 1.0,
            _ => norm_squared(a).max(f64::MIN_POSITIVE).sqrt(),
        }
    }

    /// `<a(x), other>` by places of the image: `a(x)` is a sum over them.
    fn products(&self, image: &[f64], others: &[f64]) -> (Layout, Mat) {
        let (c, k, size) = (&self.component, self.component.inducing(), self.shape.len());
        let views = c.responses()[0].views();
        let all = views_of(views, image);
        let view = |p: usize| &all[p * views.len()..(p + 1) * views.len()];
        let value =
            |m: usize, p: usize| c.kernel().value(c.theta(&self.values), view(p), c.z(&self.values, m));
        let mut whitened = Mat::from_fn(k, views.count(), value);
        solve_lower(self.factor.view(), whitened.view_mut());
        let weights: Vec<Vec<f64>> = c.responses().iter().map(|r| r.weights(&self.values)).collect();
        let phi = Mat::from_fn(views.count(), weights.len(), |p, r| weights[r][p]);
        let mut a = Mat::zeros(k, weights.len());
        gemm(a.view_mut(), Accumulate::Set, 1.0, whitened.view(), phi.view());
        let scale = 1.0 / self.length(a.data());
        let others = MatRef::from_column_major_slice(others, size, others.len() / size);
        let mut out = Mat::zeros(others.ncols(), views.count());
        for (r, weights) in weights.iter().enumerate() {
            let used: Vec<usize> = (0..weights.len()).filter(|&p| weights[p] != 0.0).collect();
            let places =
                Mat::from_fn(k, used.len(), |i, j| scale * weights[used[j]] * whitened[(i, used[j])]);
            let mut products = Mat::zeros(others.ncols(), used.len());
            let own = others.subrows(r * k, k).transpose();
            par_gemm(products.view_mut(), Accumulate::Set, 1.0, own, places.view());
            for (j, &p) in used.iter().enumerate() {
                out.col_mut(p).iter_mut().zip(products.col(j)).for_each(|(o, x)| *o += x);
            }
        }
        (views.layout(), out)
    }

    /// Responses of some random images, as images.
    pub(super) fn sample(&self, images: &Images, rng: &mut Rng) -> Result<Images> {
        let chosen = rng.choose(images.count(), FIT_IMAGES.min(images.count()));
        let mut pixels = vec![0.0; chosen.len() * images.shape().len()];
        pixels.chunks_exact_mut(images.shape().len()).zip(chosen).for_each(|(p, n)| images.write_image(n, p));
        let mut out = vec![0.0; pixels.len() / images.shape().len() * self.shape.len()];
        self.write(&pixels, &mut out);
        Ok(Images::new(self.shape, Pixels::F64(out))?)
    }

    /// Adds the pullback of the responses at one image: the naive way, for what is not asked for in training.
    fn pullback(&self, image: &[f64], bar: &[f64], image_bar: &mut [f64]) {
        let (c, theta) = (&self.component, self.component.theta(&self.values));
        let (k, mut theta_bar) = (c.inducing(), vec![0.0; theta.len()]);
        let (weights, views) = (
            c.responses().iter().map(|r| r.weights(&self.values)).collect::<Vec<_>>(),
            c.responses().iter().map(|r| (r.views(), views_of(r.views(), image))).collect::<Vec<_>>(),
        );
        let mut a = Mat::zeros(k, weights.len());
        for (r, (view, all)) in views.iter().enumerate() {
            for m in 0..k {
                let value = |p: usize| {
                    c.kernel().value(theta, &all[p * view.len()..(p + 1) * view.len()], c.z(&self.values, m))
                };
                a[(m, r)] = weights[r].iter().enumerate().map(|(p, w)| w * value(p)).sum();
            }
        }
        solve_lower(self.factor.view(), a.view_mut());
        let mut a_bar = Mat::from_columns(bar.to_vec(), k);
        if c.image_norm() != ImageNorm::None {
            let length = self.length(a.data());
            let along = dot(a.data(), bar) / (length * length);
            let both = a_bar.data_mut().iter_mut().zip(a.data());
            both.for_each(|(b, a)| *b = (*b - along * a) / length);
        }
        solve_lower_t(self.factor.view(), a_bar.view_mut());
        for (r, (view, all)) in views.iter().enumerate() {
            let mut views_bar = vec![0.0; all.len()];
            let pixels = view.len() - view.coordinates();
            for (p, own) in views_bar.chunks_exact_mut(view.len()).enumerate() {
                let x = &all[p * view.len()..(p + 1) * view.len()];
                for m in 0..k {
                    let g = weights[r][p] * a_bar[(m, r)];
                    let bar = &mut PairBar { theta: &mut theta_bar, b: Some(&mut *own) };
                    c.kernel().pullback(theta, c.z(&self.values, m), x, g, bar);
                }
                own[pixels..].fill(0.0);
            }
            view.pullback(image, &views_bar, image_bar);
        }
    }
}

fn views_of(views: &dyn Views, image: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; views.count() * views.len()];
    views.write(image, &mut out);
    out
}

/// Views of the responses of a first stage.
#[derive(Debug)]
pub(super) struct Staged {
    pub first: Arc<FirstStage>,
    pub views: Arc<dyn Views>,
}

impl Staged {
    fn responses(&self, images: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; images.len() / self.image_shape().len() * self.first.shape.len()];
        self.first.write(images, &mut out);
        out
    }
}

impl Views for Staged {
    fn size(&self) -> ViewsSize {
        let image = self.first.component.responses()[0].views().image_shape();
        ViewsSize { image, ..self.views.size() }
    }
    fn is_linear(&self) -> bool {
        false
    }
    fn layout(&self) -> Layout {
        self.views.layout()
    }
    fn write(&self, image: &[f64], out: &mut [f64]) {
        self.views.write(&self.responses(image), out);
    }
    fn write_many(&self, images: &[f64], out: &mut [f64]) {
        self.views.write_many(&self.responses(images), out);
    }
    fn pullback(&self, image: &[f64], views_bar: &[f64], image_bar: &mut [f64]) {
        let responses = self.responses(image);
        let mut bar = vec![0.0; responses.len()];
        self.views.pullback(&responses, views_bar, &mut bar);
        self.first.pullback(image, &bar, image_bar);
    }
    fn is_staged(&self) -> bool {
        true
    }
    fn products_by_place(&self, image: &[f64], others: &[f64]) -> Option<(Layout, Mat)> {
        let whole = self.views.windows().is_some_and(|w| (w.count(), w.len()) == (1, self.first.shape.len()));
        let one_set = self.first.component.responses().len() == self.first.component.windows();
        (whole && one_set).then(|| self.first.products(image, others))
    }
    fn constants<'a>(&'a self, name: &str, set: usize, out: &mut Vec<Constant<'a>>) {
        let (c, first) = (&self.first.component, format!("{name}{FIRST_STAGE}"));
        if set == 0 {
            let z = c.z_slot().of(&self.first.values);
            let shape = vec![c.inducing(), c.view_len()];
            out.push(Constant { name: format!("{first}.z"), shape, values: z });
            let theta = c.theta(&self.first.values);
            out.push(Constant { name: format!("{first}.kernel"), shape: vec![theta.len()], values: theta });
            c.constants(&first, out);
        }
        self.views.constants(name, set, out);
    }
}

#[cfg(test)]
mod tests;
