//! Initial inducing inputs and lengthscales.

use super::Source;
use super::spec::{InducingInit, InducingSpec};
use crate::component::ComponentParts;
use crate::data::{ImageShape, Images, image_id};
use crate::error::{InitError, SpecError};
use crate::linalg::{Accumulate, Mat, MatRef, gemm};
use crate::rng::Rng;
use crate::views::{Augmentation, Views};
use crate::{Error, Result};
use rayon::prelude::*;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// Inducing inputs, `M x E` row-major.
pub type Inducing = Vec<f64>;

/// Draws in a row that bring nothing new before every view there is gets looked at.
const IDLE_DRAWS: usize = 2000;
/// Views sampled per cluster for k-means, and its iterations.
const KMEANS_VIEWS: usize = 40;
const KMEANS_ROUNDS: usize = 15;
/// Views compared with all centres at once.
const KMEANS_BLOCK: usize = 256;
/// Images whose only views are computed together.
const BLOCK: usize = 256;
/// Views sampled for the median distance.
const MEDIAN_VIEWS: usize = 400;

/// Views are of the model's images and equally long; inducing inputs and kernel agree with them.
pub(super) fn check_parts(parts: &ComponentParts, image: ImageShape) -> Result<()> {
    let name = || parts.name.clone();
    let view_len = parts.views.first().ok_or_else(|| SpecError::NoViews { name: name() })?.len();
    for views in &parts.views {
        super::check_shape(views.image_shape(), image)?;
        if views.len() != view_len {
            return Err(SpecError::UnequalViews { name: name(), first: view_len, other: views.len() }.into());
        }
    }
    if parts.z.is_empty() || !parts.z.len().is_multiple_of(view_len) {
        let found = parts.z.len();
        return Err(InitError::InducingLength { component: parts.name.clone(), found, view_len }.into());
    }
    parts.kernel.check_len(view_len)?;
    Ok(())
}

pub(super) fn inducing_inputs(
    spec: &InducingSpec,
    name: &str,
    views: &[Arc<dyn Views>],
    source: Source<'_>,
    rng: &mut Rng,
) -> Result<Inducing> {
    let images = || source.images.ok_or(Error::Init(InitError::NoImages));
    match spec.init {
        InducingInit::Uniform => Ok(uniform(spec.count, views[0].as_ref(), rng)),
        InducingInit::Views if is_of_images(views) => {
            let (view, images) = (views[0].as_ref(), images()?);
            let own = of_images(view, images, rng);
            let copies = source.augmentation.map(|a| of_copies(view, images, a, rng));
            let mut distinct = Distinct::new(spec.count);
            for view in own.chain(copies.into_iter().flatten()) {
                distinct.offer(&view);
                if distinct.is_full() {
                    break;
                }
            }
            distinct.finish(name)
        }
        InducingInit::Views => distinct_views(spec.count, name, views, images()?, rng),
        InducingInit::KMeans => k_means(spec.count, name, views, images()?, rng),
    }
}

/// Pixels uniform in `[0, 1]`, coordinates uniform over the grid of places.
fn uniform(count: usize, views: &dyn Views, rng: &mut Rng) -> Inducing {
    let (e, coordinates) = (views.len(), views.coordinates());
    let layout = views.layout();
    let reach = [(layout.rows - 1) * layout.stride.0, (layout.cols - 1) * layout.stride.1];
    let mut z = Vec::with_capacity(count * e);
    for _ in 0..count {
        z.extend((0..e - coordinates).map(|_| rng.uniform()));
        z.extend((0..coordinates).map(|i| rng.uniform() * reach[i % 2] as f64));
    }
    z
}

/// Whether the views are whole responses of images: dear to compute one by one, and few.
fn is_of_images(views: &[Arc<dyn Views>]) -> bool {
    views.len() == 1 && views[0].is_staged() && views[0].count() == 1
}

/// The only view of each image, in random order.
fn of_images<'a>(
    view: &'a dyn Views,
    images: &'a Images,
    rng: &mut Rng,
) -> impl Iterator<Item = Vec<f64>> + 'a {
    let order = rng.choose(images.count(), images.count());
    in_blocks(view, images.shape(), order, |n, out| images.write_image(n, out))
}

/// The same of the copies of images.
fn of_copies<'a>(
    view: &'a dyn Views,
    images: &'a Images,
    augmentation: &'a Augmentation,
    rng: &mut Rng,
) -> impl Iterator<Item = Vec<f64>> + 'a {
    let count = images.count() * augmentation.copies;
    let write = |n: usize, out: &mut [f64]| {
        let mut own = vec![0.0; out.len()];
        images.write_image(n / augmentation.copies, &mut own);
        augmentation.write_one(images.shape(), &own, image_id(&own), n % augmentation.copies, out);
    };
    in_blocks(view, images.shape(), rng.choose(count, count), write)
}

/// Views of images that are written by number, computed block by block.
fn in_blocks<'a>(
    view: &'a dyn Views,
    shape: ImageShape,
    order: Vec<usize>,
    write: impl Fn(usize, &mut [f64]) + Sync + 'a,
) -> impl Iterator<Item = Vec<f64>> + 'a {
    let blocks: Vec<Vec<usize>> = order.chunks(BLOCK).map(<[_]>::to_vec).collect();
    let block = move |block: Vec<usize>| {
        let mut pixels = vec![0.0; block.len() * shape.len()];
        pixels.par_chunks_exact_mut(shape.len()).zip(&block).for_each(|(image, n)| write(*n, image));
        let mut out = vec![0.0; block.len() * view.len()];
        view.write_many(&pixels, &mut out);
        out.chunks_exact(view.len()).map(<[_]>::to_vec).collect::<Vec<_>>()
    };
    blocks.into_iter().flat_map(block)
}

/// Views that differ from one another.
struct Distinct {
    wanted: usize,
    z: Inducing,
    seen: HashSet<u64>,
}

impl Distinct {
    fn new(wanted: usize) -> Self {
        Self { wanted, z: Vec::new(), seen: HashSet::new() }
    }

    /// Takes a view if it is new and one is wanted; says whether.
    fn offer(&mut self, view: &[f64]) -> bool {
        let mut hash = DefaultHasher::new();
        view.iter().for_each(|x| x.to_bits().hash(&mut hash));
        let new = !self.is_full() && self.seen.insert(hash.finish());
        if new {
            self.z.extend_from_slice(view);
        }
        new
    }

    fn is_full(&self) -> bool {
        self.seen.len() == self.wanted
    }

    fn finish(self, name: &str) -> Result<Inducing> {
        let Self { wanted, z, seen } = self;
        let found = seen.len();
        if found == wanted {
            Ok(z)
        } else {
            Err(InitError::TooFewViews { component: name.into(), wanted, found }.into())
        }
    }
}

/// All views of one random image of one random response, without blank ones.
fn random_views(views: &[Arc<dyn Views>], images: &Images, rng: &mut Rng) -> (Vec<f64>, usize) {
    let views = &views[rng.below(views.len())];
    let mut image = vec![0.0; images.shape().len()];
    images.write_image(rng.below(images.count()), &mut image);
    let mut out = vec![0.0; views.count() * views.len()];
    views.write(&image, &mut out);
    drop_blank(views.as_ref(), &image, &mut out);
    let count = out.len() / views.len();
    (out, count)
}

/// Takes blank views out of all views of an image.
fn drop_blank(views: &dyn Views, image: &[f64], all: &mut Vec<f64>) {
    let blank = views.blank(image);
    if blank.contains(&true) {
        let kept = all.chunks_exact(views.len()).zip(&blank).filter(|(_, blank)| !**blank);
        *all = kept.flat_map(|(view, _)| view.iter().copied()).collect();
    }
}

/// `count` different views, each of another random image as far as possible.
fn distinct_views(
    count: usize,
    name: &str,
    views: &[Arc<dyn Views>],
    images: &Images,
    rng: &mut Rng,
) -> Result<Inducing> {
    let e = views[0].len();
    let (mut distinct, mut idle) = (Distinct::new(count), 0);
    while idle < IDLE_DRAWS && !distinct.is_full() {
        let (all, p) = random_views(views, images, rng);
        if p == 0 {
            idle += 1;
            continue;
        }
        let pick = rng.below(p);
        idle = if distinct.offer(&all[pick * e..(pick + 1) * e]) { 0 } else { idle + 1 };
    }
    // Distinct views are rare: look at every one there is before giving up.
    let mut image = vec![0.0; images.shape().len()];
    for views in views {
        if distinct.is_full() {
            break;
        }
        let mut all = vec![0.0; views.count() * e];
        for n in 0..images.count() {
            images.write_image(n, &mut image);
            views.write(&image, &mut all);
            all.chunks_exact(e).for_each(|view| {
                distinct.offer(view);
            });
        }
    }
    distinct.finish(name)
}

/// Lloyd's algorithm on sampled views, started from distinct ones; empty clusters keep their centre.
fn k_means(
    count: usize,
    name: &str,
    views: &[Arc<dyn Views>],
    images: &Images,
    rng: &mut Rng,
) -> Result<Inducing> {
    let e = views[0].len();
    let mut centres = distinct_views(count, name, views, images, rng)?;
    let mut sample = Vec::with_capacity(count * KMEANS_VIEWS * e);
    while sample.len() < count * KMEANS_VIEWS * e {
        let (all, p) = random_views(views, images, rng);
        if p == 0 {
            sample.extend_from_slice(&centres[..e]);
        }
        for _ in 0..KMEANS_VIEWS.min(p) {
            let pick = rng.below(p);
            sample.extend_from_slice(&all[pick * e..(pick + 1) * e]);
        }
    }
    for _ in 0..KMEANS_ROUNDS {
        let (mut sums, mut counts) = (vec![0.0; count * e], vec![0usize; count]);
        for (view, nearest) in sample.chunks_exact(e).zip(nearest_centres(&centres, &sample, e)) {
            counts[nearest] += 1;
            sums[nearest * e..(nearest + 1) * e].iter_mut().zip(view).for_each(|(s, v)| *s += v);
        }
        for (c, &n) in counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            let sum = &sums[c * e..(c + 1) * e];
            centres[c * e..(c + 1) * e].iter_mut().zip(sum).for_each(|(z, s)| *z = s / n as f64);
        }
    }
    Ok(centres)
}

/// For every view the centre at the smallest distance, `|c|^2 - 2 c^T v` up to what all centres share.
fn nearest_centres(centres: &[f64], views: &[f64], e: usize) -> Vec<usize> {
    let squares: Vec<f64> = centres.chunks_exact(e).map(|c| c.iter().map(|x| x * x).sum()).collect();
    let centres = MatRef::from_column_major_slice(centres, e, squares.len());
    let nearest = |block: &[f64]| -> Vec<usize> {
        let views = MatRef::from_column_major_slice(block, e, block.len() / e);
        let mut products = Mat::zeros(squares.len(), views.ncols());
        gemm(products.view_mut(), Accumulate::Set, -2.0, centres.transpose(), views);
        let smallest = |products: &[f64]| {
            let distances = products.iter().zip(&squares).map(|(p, s)| p + s).enumerate();
            distances.fold((0, f64::INFINITY), |best, d| if d.1 < best.1 { d } else { best }).0
        };
        (0..products.cols()).map(|j| smallest(products.col(j))).collect()
    };
    views.par_chunks(KMEANS_BLOCK * e).flat_map_iter(nearest).collect()
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// Median Euclidean distance between pairs of sampled views that differ, coordinates left out. Falls back on 1 when
/// every sampled pair is equal.
pub(super) fn median_distance(views: &dyn Views, images: &Images, rng: &mut Rng) -> f64 {
    let (e, pixels) = (views.len(), views.len() - views.coordinates());
    let draw = |(n, pick): (usize, u64)| {
        let (mut image, mut all) = (vec![0.0; images.shape().len()], vec![0.0; views.count() * e]);
        images.write_image(n, &mut image);
        views.write(&image, &mut all);
        drop_blank(views, &image, &mut all);
        let count = all.len() / e;
        let p = (pick % count.max(1) as u64) as usize * e;
        (count > 0).then(|| all[p..p + pixels].to_vec())
    };
    let sample: Vec<Vec<f64>> = match views.is_staged() && views.count() == 1 {
        true => of_images(views, images, rng).take(MEDIAN_VIEWS).collect(),
        false => {
            let chosen: Vec<_> = (0..MEDIAN_VIEWS).map(|_| (rng.below(images.count()), rng.bits())).collect();
            chosen.into_par_iter().filter_map(draw).collect()
        }
    };
    let mut distances: Vec<f64> = (0..sample.len())
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .map(|(i, j)| squared_distance(&sample[i], &sample[j]).sqrt())
        .filter(|d| *d > 0.0)
        .collect();
    distances.sort_by(f64::total_cmp);
    distances.get(distances.len() / 2).copied().unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_centres_are_those_of_an_exhaustive_search() {
        let (mut rng, e) = (Rng::new(3), 7);
        let mut numbers = |n: usize| -> Vec<f64> { (0..n * e).map(|_| rng.uniform()).collect() };
        let (centres, views) = (numbers(11), numbers(2 * KMEANS_BLOCK + 5));
        let found = nearest_centres(&centres, &views, e);
        assert_eq!(found.len(), views.len() / e);
        for (view, found) in views.chunks_exact(e).zip(found) {
            let distance = |c: usize| squared_distance(&centres[c * e..(c + 1) * e], view);
            assert!((0..11).all(|c| distance(found) <= distance(c) + 1e-12));
        }
    }
}
