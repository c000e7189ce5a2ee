//! Sets of image maps by name, and their products.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Affine, GeometryError, ImageMap};
use crate::data::ImageShape;

/// A set of transformations, always with the identity first. In TOML a name or a table of one entry:
/// `"flip-horizontal"`, `{ rotations = [-10.0, 10.0] }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MapSet {
    /// Left-right mirror image.
    FlipHorizontal,
    /// Top-bottom mirror image.
    FlipVertical,
    /// Counter-clockwise turns by 90, 180 and 270 degrees; square images only.
    QuarterTurns,
    /// The quarter turns, both flips, transpose and antitranspose; square images only.
    SquareSymmetries,
    /// All moves by up to that many pixels in both directions, zeros moving in.
    Shifts(usize),
    /// Counter-clockwise turns in degrees about the centre, bilinear, zeros outside.
    Rotations(Vec<f64>),
    /// Slants to the right by that many pixels per row, see [`Affine::shear`].
    Shears(Vec<f64>),
    /// Enlargements about the centre, each factor positive.
    Scalings(Vec<f64>),
}

impl MapSet {
    /// The transformations, the identity first; entries that repeat it are left in.
    pub fn affines(&self, shape: ImageShape) -> Result<Vec<Affine>, GeometryError> {
        let others = match self {
            MapSet::FlipHorizontal => vec![Affine::flip_horizontal()],
            MapSet::FlipVertical => vec![Affine::flip_vertical()],
            MapSet::QuarterTurns => quarter_turns("quarter-turns", shape)?,
            MapSet::SquareSymmetries => {
                let mut all = quarter_turns("square-symmetries", shape)?;
                all.extend([Affine::flip_horizontal(), Affine::flip_vertical()]);
                all.extend([Affine::transpose(), Affine::antitranspose()]);
                all
            }
            MapSet::Shifts(reach) => shifts(*reach, shape)?,
            MapSet::Rotations(degrees) => finite("rotations", degrees)?.map(Affine::rotation).collect(),
            MapSet::Shears(slopes) => finite("shears", slopes)?.map(Affine::shear).collect(),
            MapSet::Scalings(factors) => {
                let factors = finite("scalings", factors)?;
                factors.map(scaling).collect::<Result<_, _>>()?
            }
        };
        Ok(std::iter::once(Affine::identity()).chain(others).collect())
    }
}

/// All products of one element of each set, first set applied first and varying fastest. Maps that do the same to
/// images of this shape are kept once, at their first place; no sets at all give the identity.
pub fn compose_sets(sets: &[MapSet], shape: ImageShape) -> Result<Vec<ImageMap>, GeometryError> {
    let mut products = vec![Affine::identity()];
    for set in sets {
        let set = set.affines(shape)?;
        products = set.iter().flat_map(|next| products.iter().map(move |first| first.then(next))).collect();
    }
    let mut maps: Vec<ImageMap> = Vec::with_capacity(products.len());
    for map in products.iter().map(|affine| ImageMap::from_affine(shape, affine)) {
        if !maps.iter().any(|known| known.same(&map)) {
            maps.push(map);
        }
    }
    Ok(maps)
}

fn quarter_turns(set: &'static str, shape: ImageShape) -> Result<Vec<Affine>, GeometryError> {
    if shape.height() != shape.width() {
        return Err(GeometryError::NotSquare { set, shape });
    }
    Ok([90.0, 180.0, 270.0].map(Affine::rotation).into())
}

fn shifts(reach: usize, shape: ImageShape) -> Result<Vec<Affine>, GeometryError> {
    if reach >= shape.height().min(shape.width()) {
        return Err(GeometryError::ShiftTooLarge { shift: reach, shape });
    }
    let reach = reach as isize;
    Ok((-reach..=reach)
        .flat_map(|down| (-reach..=reach).map(move |right| Affine::translation(down, right)))
        .collect())
}

fn scaling(factor: f64) -> Result<Affine, GeometryError> {
    if factor <= 0.0 {
        return Err(GeometryError::BadScaling { value: factor });
    }
    Ok(Affine::scaling(factor))
}

fn finite<'a>(set: &'static str, values: &'a [f64]) -> Result<impl Iterator<Item = f64> + 'a, GeometryError> {
    match values.iter().find(|value| !value.is_finite()) {
        Some(&value) => Err(GeometryError::NotFinite { set, value }),
        None => Ok(values.iter().copied()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sets: &[MapSet], shape: ImageShape) -> Vec<String> {
        compose_sets(sets, shape).unwrap().iter().map(|map| map.name().to_owned()).collect()
    }

    fn square() -> ImageShape {
        ImageShape::new(5, 5, 2).unwrap()
    }

    fn oblong() -> ImageShape {
        ImageShape::new(4, 6, 1).unwrap()
    }

    #[test]
    fn products_run_through_the_first_set_fastest() {
        let both = names(&[MapSet::FlipHorizontal, MapSet::FlipVertical], oblong());
        assert_eq!(both, ["identity", "flip-horizontal", "flip-vertical", "flip-horizontal, flip-vertical"]);
        assert_eq!(names(&[], oblong()), ["identity"]);
    }

    #[test]
    fn maps_that_do_the_same_are_kept_once() {
        let eight = compose_sets(&[MapSet::SquareSymmetries], square()).unwrap();
        assert_eq!(eight.len(), 8);
        // A quarter turn and one mirror generate the whole group; so does the group times itself.
        for sets in [
            vec![MapSet::QuarterTurns, MapSet::FlipVertical],
            vec![MapSet::SquareSymmetries, MapSet::SquareSymmetries],
        ] {
            let maps = compose_sets(&sets, square()).unwrap();
            assert_eq!(maps.len(), 8);
            assert!(maps.iter().all(|map| eight.iter().any(|known| known.same(map))));
        }
        let turned = [MapSet::Rotations(vec![-90.0, 0.0, 10.0, 20.0]), MapSet::Rotations(vec![10.0])];
        assert_eq!(names(&turned, square()).len(), 6); // -90, -80, 0, 10, 20, 30
        let flat = ImageShape::new(1, 4, 1).unwrap();
        assert_eq!(names(&[MapSet::FlipVertical], flat), ["identity"]);
    }

    #[test]
    fn shifts_reach_all_around() {
        let maps = names(&[MapSet::Shifts(1)], oblong());
        assert_eq!((maps.len(), maps[0].as_str(), maps[1].as_str()), (9, "identity", "shift -1 -1"));
        assert_eq!(names(&[MapSet::Shifts(3)], oblong()).len(), 49);
        assert_eq!(names(&[MapSet::Shifts(0)], oblong()), ["identity"]);
    }

    #[test]
    fn impossible_sets_are_named() {
        let fail = |set: MapSet| compose_sets(&[set], oblong()).unwrap_err();
        let shape = oblong();
        assert_eq!(fail(MapSet::QuarterTurns), GeometryError::NotSquare { set: "quarter-turns", shape });
        assert_eq!(
            fail(MapSet::SquareSymmetries),
            GeometryError::NotSquare { set: "square-symmetries", shape }
        );
        assert_eq!(fail(MapSet::Shifts(4)), GeometryError::ShiftTooLarge { shift: 4, shape });
        assert_eq!(fail(MapSet::Scalings(vec![1.1, -2.0])), GeometryError::BadScaling { value: -2.0 });
        assert_eq!(fail(MapSet::Scalings(vec![0.0])), GeometryError::BadScaling { value: 0.0 });
        let infinite = f64::INFINITY;
        let not_finite = |set| GeometryError::NotFinite { set, value: infinite };
        assert_eq!(fail(MapSet::Rotations(vec![infinite])), not_finite("rotations"));
        assert_eq!(fail(MapSet::Shears(vec![0.1, infinite])), not_finite("shears"));
        assert_eq!(fail(MapSet::Scalings(vec![infinite])), not_finite("scalings"));
    }
}
