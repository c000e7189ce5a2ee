//! Orbits: the views of an image under a set of transformations (*appendix D* of the paper).

use super::{GeometryError, ImageMap, Layout, Views, ViewsSize, Windows};

/// Windows of every mapped image; with [`Windows::image`] the mapped images themselves.
///
/// View index: map slowest, then the order of the windows. Located windows have their coordinates in the mapped image.
#[derive(Debug, Clone, PartialEq)]
pub struct Orbit {
    maps: Vec<ImageMap>,
    windows: Windows,
}

impl Orbit {
    /// Checks that there is a map and that all shapes agree. Equal maps are kept: each counts as a view.
    pub fn new(maps: Vec<ImageMap>, windows: Windows) -> Result<Self, GeometryError> {
        let expected = windows.image_shape();
        if maps.is_empty() {
            return Err(GeometryError::EmptyOrbit);
        }
        if let Some(index) = maps.iter().position(|map| map.shape() != expected) {
            return Err(GeometryError::OrbitShape { index, found: maps[index].shape(), expected });
        }
        Ok(Self { maps, windows })
    }

    /// The maps, in view order.
    pub fn maps(&self) -> &[ImageMap] {
        &self.maps
    }

    /// The windows cut from every mapped image.
    pub fn inner(&self) -> &Windows {
        &self.windows
    }

    /// Numbers in all views of one mapped image.
    fn block(&self) -> usize {
        self.windows.count() * self.windows.len()
    }
}

impl Views for Orbit {
    fn size(&self) -> ViewsSize {
        ViewsSize { count: self.maps.len() * self.windows.count(), ..self.windows.size() }
    }

    fn write(&self, image: &[f64], out: &mut [f64]) {
        let mut mapped = vec![0.0; image.len()];
        for (map, block) in self.maps.iter().zip(out.chunks_exact_mut(self.block())) {
            map.apply(image, &mut mapped);
            self.windows.write(&mapped, block);
        }
    }

    fn pullback(&self, image: &[f64], views_bar: &[f64], image_bar: &mut [f64]) {
        let (mut mapped, mut mapped_bar) = (vec![0.0; image.len()], vec![0.0; image.len()]);
        for (map, block_bar) in self.maps.iter().zip(views_bar.chunks_exact(self.block())) {
            mapped_bar.fill(0.0);
            map.apply(image, &mut mapped);
            self.windows.pullback(&mapped, block_bar, &mut mapped_bar);
            map.pullback(&mapped_bar, image_bar);
        }
    }

    fn layout(&self) -> Layout {
        let inner = self.windows.layout();
        let named = |map: &ImageMap, plane: &String| match plane.as_str() {
            "" => map.name().to_owned(),
            plane => format!("{}, {plane}", map.name()),
        };
        let planes = self.maps.iter().flat_map(|map| inner.planes.iter().map(move |plane| named(map, plane)));
        Layout { planes: planes.collect(), ..inner }
    }

    fn windows(&self) -> Option<&Windows> {
        match self.maps.as_slice() {
            [only] if only.is_identity() => Some(&self.windows),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Affine, Channels, check_views};
    use super::*;
    use crate::data::ImageShape;

    fn shape() -> ImageShape {
        ImageShape::new(4, 5, 3).unwrap()
    }

    fn maps(affines: &[Affine]) -> Vec<ImageMap> {
        affines.iter().map(|affine| ImageMap::from_affine(shape(), affine)).collect()
    }

    fn written(views: &dyn Views, image: &[f64]) -> Vec<f64> {
        let mut out = vec![f64::NAN; views.count() * views.len()];
        views.write(image, &mut out);
        out
    }

    #[test]
    fn maps_are_slowest_and_coordinates_are_the_mapped_ones() {
        let windows = Windows::new(shape(), (2, 3), (1, 2), Channels::Pooled).unwrap().location_aware();
        let affines = [Affine::identity(), Affine::flip_horizontal(), Affine::rotation(12.0)];
        let orbit = Orbit::new(maps(&affines), windows.clone()).unwrap();
        check_views(&orbit, 2).unwrap();
        let image: Vec<f64> = (0..60).map(|i| (i * 7 % 11) as f64).collect();
        let views = written(&orbit, &image);
        for (map, block) in orbit.maps().iter().zip(views.chunks(views.len() / 3)) {
            let mut mapped = vec![0.0; 60];
            map.apply(&image, &mut mapped);
            assert_eq!(written(&windows, &mapped), block);
        }
        let layout = orbit.layout();
        assert_eq!(layout.planes[4], "flip-horizontal, channel 1");
        assert_eq!((layout.count(), orbit.windows()), (orbit.count(), None));
    }

    #[test]
    fn permutations_of_the_whole_image_gather() {
        let table: Vec<usize> = (0..60).map(|i| (i * 7 + 3) % 60).collect();
        let map = ImageMap::from_permutation(shape(), "scramble", &table).unwrap();
        let orbit = Orbit::new(vec![map], Windows::image(shape())).unwrap();
        check_views(&orbit, 3).unwrap();
        let image: Vec<f64> = (0..60).map(|i| (i as f64).sin()).collect();
        let expected: Vec<f64> = table.iter().map(|&i| image[i]).collect();
        assert_eq!(written(&orbit, &image), expected);
        assert_eq!(orbit.layout().planes, ["scramble"]);
    }

    #[test]
    fn the_identity_alone_is_plain_windows() {
        let windows = Windows::new(shape(), (2, 2), (1, 1), Channels::All).unwrap();
        let orbit = Orbit::new(maps(&[Affine::scaling(1.0)]), windows.clone()).unwrap();
        assert_eq!(orbit.windows(), Some(&windows));
        check_views(&orbit, 4).unwrap();
    }

    #[test]
    fn mismatches_are_named() {
        let windows = Windows::image(shape());
        assert_eq!(Orbit::new(vec![], windows.clone()).unwrap_err(), GeometryError::EmptyOrbit);
        let found = ImageShape::new(5, 4, 3).unwrap();
        let mut list = maps(&[Affine::identity()]);
        list.push(ImageMap::from_affine(found, &Affine::identity()));
        let expected = GeometryError::OrbitShape { index: 1, found, expected: shape() };
        assert_eq!(Orbit::new(list, windows).unwrap_err(), expected);
    }
}
