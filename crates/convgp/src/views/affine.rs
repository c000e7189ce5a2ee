//! Affine transformations of the image plane, the recipe from which pixel maps are made.
//!
//! They are composed as 2 x 2 matrices, before any pixel is touched: a rotation followed by a scaling interpolates
//! once, not twice.

/// Where each pixel of the transformed image comes from: with `(row, col)` measured from the image centre,
/// `source = matrix * target + shift`.
#[derive(Debug, Clone, PartialEq)]
pub struct Affine {
    name: String,
    matrix: [[f64; 2]; 2],
    shift: [f64; 2],
}

impl Affine {
    fn linear(name: impl Into<String>, matrix: [[f64; 2]; 2]) -> Self {
        Self { name: name.into(), matrix, shift: [0.0; 2] }
    }

    /// Leaves the image as it is.
    pub fn identity() -> Self {
        Self::linear("identity", [[1.0, 0.0], [0.0, 1.0]])
    }
    /// Mirrors left and right.
    pub fn flip_horizontal() -> Self {
        Self::linear("flip-horizontal", [[1.0, 0.0], [0.0, -1.0]])
    }
    /// Mirrors top and bottom.
    pub fn flip_vertical() -> Self {
        Self::linear("flip-vertical", [[-1.0, 0.0], [0.0, 1.0]])
    }
    /// Swaps rows and columns: mirrors at the diagonal from the top left.
    pub fn transpose() -> Self {
        Self::linear("transpose", [[0.0, 1.0], [1.0, 0.0]])
    }
    /// Mirrors at the diagonal from the top right.
    pub fn antitranspose() -> Self {
        Self::linear("antitranspose", [[0.0, -1.0], [-1.0, 0.0]])
    }
    /// Turns the picture counter-clockwise by an angle in degrees, exactly so for quarter turns.
    pub fn rotation(degrees: f64) -> Self {
        let (sin, cos) = sin_cos(degrees);
        Self::linear(format!("rotation {degrees}"), [[cos, sin], [-sin, cos]])
    }
    /// Slants the picture: what lies `y` pixels above the centre moves `slope * y` to the right.
    pub fn shear(slope: f64) -> Self {
        Self::linear(format!("shear {slope}"), [[1.0, 0.0], [slope, 1.0]])
    }
    /// Enlarges the picture by a positive factor about its centre.
    pub fn scaling(factor: f64) -> Self {
        Self::linear(format!("scaling {factor}"), [[1.0 / factor, 0.0], [0.0, 1.0 / factor]])
    }
    /// Moves the picture down and to the right by whole pixels.
    pub fn translation(down: isize, right: isize) -> Self {
        Self::moved(down as f64, right as f64)
    }
    /// Moves the picture down and to the right.
    pub fn moved(down: f64, right: f64) -> Self {
        let shift = [-down, -right];
        Self { shift, ..Self::linear(format!("shift {down} {right}"), [[1.0, 0.0], [0.0, 1.0]]) }
    }

    /// `self` first, `next` on its result.
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        let (a, b) = (&self.matrix, &next.matrix);
        let entry = |i: usize, j: usize| a[i][0] * b[0][j] + a[i][1] * b[1][j];
        let name = match (self.is_identity(), next.is_identity()) {
            (true, _) => next.name.clone(),
            (_, true) => self.name.clone(),
            _ => format!("{}, {}", self.name, next.name),
        };
        let moved = self.apply(next.shift);
        Self { name, matrix: [[entry(0, 0), entry(0, 1)], [entry(1, 0), entry(1, 1)]], shift: moved }
    }

    /// Source of a target point, both relative to the centre.
    pub fn apply(&self, [row, col]: [f64; 2]) -> [f64; 2] {
        let [r, c] = self.matrix;
        [r[0] * row + r[1] * col + self.shift[0], c[0] * row + c[1] * col + self.shift[1]]
    }

    /// What it does, in words.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn is_identity(&self) -> bool {
        self.matrix == [[1.0, 0.0], [0.0, 1.0]] && self.shift == [0.0, 0.0]
    }
}

/// Sine and cosine of an angle in degrees, without rounding at multiples of 90.
fn sin_cos(degrees: f64) -> (f64, f64) {
    match degrees.rem_euclid(360.0) {
        0.0 => (0.0, 1.0),
        90.0 => (1.0, 0.0),
        180.0 => (0.0, -1.0),
        270.0 => (-1.0, 0.0),
        reduced => (libm::sin(reduced.to_radians()), libm::cos(reduced.to_radians())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn composition_applies_the_first_map_first() {
        // Shift right by 2, then mirror: the picture ends up 2 to the left of its mirror image.
        let both = Affine::translation(0, 2).then(&Affine::flip_horizontal());
        assert_eq!(both.apply([1.0, -3.0]), [1.0, 1.0]);
        let other = Affine::flip_horizontal().then(&Affine::translation(0, 2));
        assert_eq!(other.apply([1.0, -3.0]), [1.0, 5.0]);
        assert_eq!(both.name(), "shift 0 2, flip-horizontal");
        assert_eq!(Affine::identity().then(&Affine::shear(0.5)).name(), "shear 0.5");
    }

    #[test]
    fn quarter_turns_are_products_of_mirrors() {
        let mirrors = Affine::transpose().then(&Affine::flip_vertical());
        let turned = Affine::rotation(90.0);
        assert_eq!(mirrors.apply([1.0, 2.5]), turned.apply([1.0, 2.5]));
        assert_eq!(Affine::rotation(-270.0).apply([1.0, 2.5]), turned.apply([1.0, 2.5]));
    }
}
