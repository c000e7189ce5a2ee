//! Views as written in a model file.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Channels, Contrast, Contrasted, GeometryError, MapSet, Orbit, PatchTransform, Transformed, Views,
    Whitening, Windows, compose_sets,
};
use crate::data::ImageShape;

/// What a component looks at; becomes [`Views`] once the image shape is known.
///
/// ```
/// use convgp::{data::ImageShape, views::{ViewSpec, Views}};
///
/// let spec: ViewSpec = toml::from_str(r#"
///     type = "patches"
///     patch = [5, 5]
///     orbit = ["flip-horizontal", { shifts = 1 }]
/// "#).unwrap();
/// let views = spec.build(ImageShape::new(28, 28, 1).unwrap())?;
/// assert_eq!(views[0].count(), 2 * 9 * 24 * 24);
/// # Ok::<(), convgp::views::GeometryError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ViewSpec {
    /// The whole image, or its orbit.
    Image {
        /// Sets of maps, of which all products are taken; see [`compose_sets`].
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        orbit: Vec<MapSet>,
        /// Look at local contrast instead of pixels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contrast: Option<Contrast>,
    },
    /// Every pixel of every channel by itself.
    Pixels {},
    /// Patches on a grid.
    Patches {
        /// Rows and columns of a patch.
        patch: Pair,
        /// Rows and columns from one patch to the next.
        #[serde(default)]
        stride: Pair,
        /// How colour is treated.
        #[serde(default)]
        channels: ChannelSpec,
        /// Whether row and column of the top-left corner are appended to each patch.
        #[serde(default, alias = "located")]
        location_aware: bool,
        /// Sets of maps, of which all products are taken; see [`compose_sets`].
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        orbit: Vec<MapSet>,
        /// Look at local contrast instead of pixels.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        contrast: Option<Contrast>,
        /// What is done to every patch by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transform: Option<PatchTransform>,
    },
}

/// Rows and columns: `3` for both, or `[3, 5]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a whole number or [rows, columns]")]
pub enum Pair {
    /// The same number twice.
    Both(usize),
    /// Rows, columns.
    Each([usize; 2]),
}

impl Default for Pair {
    fn default() -> Self {
        Pair::Both(1)
    }
}

impl From<Pair> for (usize, usize) {
    fn from(pair: Pair) -> Self {
        match pair {
            Pair::Both(n) => (n, n),
            Pair::Each([rows, cols]) => (rows, cols),
        }
    }
}

/// How patches treat colour: a name, or the number of the only channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", expecting = "expected \"pooled\", \"all\", \"each\" or a channel number")]
pub enum ChannelSpec {
    /// Patches of all channels in one set, see [`Channels::Pooled`].
    #[default]
    Pooled,
    /// Patches through all channels, see [`Channels::All`].
    All,
    /// One set of views per channel: the multi-channel model.
    Each,
    /// One channel.
    #[serde(untagged)]
    Only(usize),
}

impl ChannelSpec {
    fn channels(self, shape: ImageShape) -> Vec<Channels> {
        match self {
            ChannelSpec::Pooled => vec![Channels::Pooled],
            ChannelSpec::All => vec![Channels::All],
            ChannelSpec::Each => (0..shape.channels()).map(Channels::Only).collect(),
            ChannelSpec::Only(c) => vec![Channels::Only(c)],
        }
    }
}

impl ViewSpec {
    /// The views of images of this shape: one set, or one per channel for [`ChannelSpec::Each`].
    pub fn build(&self, shape: ImageShape) -> Result<Vec<Arc<dyn Views>>, GeometryError> {
        self.build_with(shape, &mut |_| Err(GeometryError::WhiteningWithoutImages))
    }

    /// The same, with whitening from `fit` for views that want it.
    pub fn build_with(
        &self,
        shape: ImageShape,
        fit: &mut dyn FnMut(&Transformed) -> Result<Whitening, GeometryError>,
    ) -> Result<Vec<Arc<dyn Views>>, GeometryError> {
        match self {
            ViewSpec::Image { orbit, contrast } => {
                Ok(vec![with_contrast(*contrast, with_orbit(orbit, Windows::image(shape))?)?])
            }
            ViewSpec::Pixels {} => Ok(vec![Arc::new(Windows::pixels(shape))]),
            ViewSpec::Patches { patch, stride, channels, location_aware, orbit, contrast, transform } => {
                let mut set = |channels| {
                    let windows = Windows::new(shape, (*patch).into(), (*stride).into(), channels)?;
                    let windows = if *location_aware { windows.location_aware() } else { windows };
                    let views = with_contrast(*contrast, with_orbit(orbit, windows)?)?;
                    with_transform(*transform, views, fit)
                };
                channels.channels(shape).into_iter().map(&mut set).collect()
            }
        }
    }
}

/// An orbit, or the windows themselves when the identity is all there is.
fn with_orbit(sets: &[MapSet], windows: Windows) -> Result<Arc<dyn Views>, GeometryError> {
    if sets.is_empty() {
        return Ok(Arc::new(windows));
    }
    let orbit = Orbit::new(compose_sets(sets, windows.image_shape())?, windows)?;
    Ok(match orbit.windows() {
        Some(plain) => Arc::new(plain.clone()),
        None => Arc::new(orbit),
    })
}

/// The views of the image's contrast if that is asked for.
fn with_contrast(contrast: Option<Contrast>, views: Arc<dyn Views>) -> Result<Arc<dyn Views>, GeometryError> {
    match contrast {
        Some(contrast) => Ok(Arc::new(Contrasted::new(views, contrast)?)),
        None => Ok(views),
    }
}

/// The views with their patches transformed if that is asked for.
fn with_transform(
    transform: Option<PatchTransform>,
    views: Arc<dyn Views>,
    fit: &mut dyn FnMut(&Transformed) -> Result<Whitening, GeometryError>,
) -> Result<Arc<dyn Views>, GeometryError> {
    let Some(transform) = transform else { return Ok(views) };
    let views = Transformed::new(views, transform)?;
    if !views.wants_whitening() {
        return Ok(Arc::new(views));
    }
    let whitening = fit(&views)?;
    Ok(Arc::new(views.whitened(whitening)?))
}

#[cfg(test)]
mod tests {
    use super::super::check_views;
    use super::*;

    fn parse(text: &str) -> ViewSpec {
        toml::from_str(text).unwrap()
    }

    fn colour() -> ImageShape {
        ImageShape::new(6, 6, 3).unwrap()
    }

    fn sizes(spec: &ViewSpec) -> Vec<(usize, usize)> {
        let views = spec.build(colour()).unwrap();
        for v in &views {
            check_views(v.as_ref(), 7).unwrap();
        }
        views.iter().map(|v| (v.count(), v.len())).collect()
    }

    #[test]
    fn specs_become_views() {
        let patches = |rest: &str| sizes(&parse(&format!("type = 'patches'\npatch = [3, 2]\n{rest}")));
        assert_eq!(sizes(&parse("type = 'image'")), [(1, 108)]);
        assert_eq!(sizes(&parse("type = 'pixels'")), [(108, 1)]);
        assert_eq!(patches(""), [(60, 6)]);
        assert_eq!(patches("channels = 'all'\nlocation_aware = true"), [(20, 20)]);
        assert_eq!(patches("located = true"), patches("location_aware = true"), "the former name");
        assert_eq!(patches("channels = 'each'"), [(20, 6); 3]);
        assert_eq!(patches("channels = 2\nstride = 2"), [(6, 6)]);
        assert_eq!(patches("channels = 'each'\norbit = ['flip-horizontal']\ncontrast = {}"), [(40, 6); 3]);
        assert_eq!(patches("channels = 'pooled'\nstride = [3, 1]"), [(30, 6)]);
        assert_eq!(
            patches("channels = 'each'\norbit = ['quarter-turns', { shears = [0.2] }]"),
            [(160, 6); 3]
        );
        assert_eq!(sizes(&parse("type = 'patches'\npatch = 6\nchannels = 'all'")), [(1, 108)]);
        let orbit = "[{ shifts = 1 }, { scalings = [0.9] }, 'flip-vertical', 'flip-horizontal']";
        assert_eq!(sizes(&parse(&format!("type = 'image'\norbit = {orbit}"))), [(72, 108)]);
    }

    #[test]
    fn an_orbit_of_the_identity_stays_plain() {
        let spec = parse("type = 'patches'\npatch = 2\norbit = [{ rotations = [0.0] }, { shifts = 0 }]");
        assert!(spec.build(colour()).unwrap()[0].windows().is_some());
        let spec = parse("type = 'image'\norbit = ['square-symmetries']");
        assert!(spec.build(colour()).unwrap()[0].windows().is_none());
    }

    #[test]
    fn specs_survive_a_round_trip() {
        let orbit = vec![MapSet::QuarterTurns, MapSet::Rotations(vec![-10.0, 12.5]), MapSet::Shifts(2)];
        for spec in [
            ViewSpec::Pixels {},
            ViewSpec::Image { orbit: orbit.clone(), contrast: None },
            ViewSpec::Patches {
                patch: Pair::Each([5, 4]),
                stride: Pair::Both(2),
                channels: ChannelSpec::Only(1),
                location_aware: true,
                orbit,
                contrast: Some(Contrast { radius: 1.5, floor: 0.1 }),
                transform: Some(PatchTransform { contrast: None, whiten: Some(0.1), unit: Some(1.0) }),
            },
        ] {
            assert_eq!(parse(&toml::to_string(&spec).unwrap()), spec);
        }
    }

    #[test]
    fn mistakes_in_a_file_are_explained() {
        for (text, words) in [
            (
                "type = 'patch'\npatch = 3",
                "unknown variant `patch`, expected one of `image`, `pixels`, `patches`",
            ),
            ("type = 'image'\nstride = 2", "unknown field `stride`"),
            ("type = 'image'\ncontrast = { size = 2 }", "unknown field `size`, expected `radius` or `floor`"),
            ("type = 'pixels'\norbit = []", "unknown field `orbit`"),
            ("type = 'patches'", "missing field `patch`"),
            ("type = 'patches'\npatch = [3, 3, 3]", "expected a whole number or [rows, columns]"),
            (
                "type = 'patches'\npatch = 3\nchannels = 'red'",
                "expected \"pooled\", \"all\", \"each\" or a channel number",
            ),
            ("type = 'image'\norbit = ['mirror']", "unknown variant `mirror`"),
            ("type = 'image'\norbit = [{ turns = 3 }]", "unknown variant `turns`"),
        ] {
            let err = toml::from_str::<ViewSpec>(text).unwrap_err().to_string();
            assert!(err.contains(words), "{text}\ngave: {err}");
        }
    }

    #[test]
    fn geometry_is_checked_when_built() {
        let err = parse("type = 'patches'\npatch = 7").build(colour()).unwrap_err();
        assert!(matches!(err, GeometryError::PatchTooLarge { .. }));
        let err = parse("type = 'patches'\npatch = 2\nchannels = 5").build(colour()).unwrap_err();
        assert!(matches!(err, GeometryError::ChannelOutOfRange { channel: 5, channels: 3 }));
        let oblong = ImageShape::new(6, 7, 1).unwrap();
        let err = parse("type = 'image'\norbit = ['quarter-turns']").build(oblong).unwrap_err();
        assert!(matches!(err, GeometryError::NotSquare { .. }));
    }
}
