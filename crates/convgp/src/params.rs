//! Parameters: one flat vector of numbers, described by typed, named slots.
//!
//! The vector holds *constrained* values, the ones a person reads (a lengthscale of 2.0 is stored as 2.0). Optimisers
//! move in an unconstrained space; the change of variables and its chain rule live here and nowhere else.

use serde::{Deserialize, Serialize};
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// How a slot's numbers are constrained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transform {
    /// Any real number.
    Real,
    /// Positive, `value = softplus(free)`.
    Positive,
    /// Positive, `value = exp(free)`: moves by factors, whatever its size.
    Scale,
    /// Between 0 and 1, `value = sigmoid(free)`.
    Unit,
    /// Packed lower triangles of this order, column by column from the diagonal down; diagonals are positive.
    Lower {
        /// Rows of each triangle.
        order: usize,
    },
}

/// Numbers a part of the model asks for, with their names and initial values.
#[derive(Debug, Clone, PartialEq)]
pub struct ParamInit {
    /// Name within its owner, for example `lengthscale`.
    pub name: String,
    /// Constraint.
    pub transform: Transform,
    /// Initial (constrained) values.
    pub values: Vec<f64>,
    /// Whether optimisers may move it.
    pub trainable: bool,
}

impl ParamInit {
    /// One trainable positive number.
    pub fn positive(name: impl Into<String>, value: f64) -> Self {
        Self { name: name.into(), transform: Transform::Positive, values: vec![value], trainable: true }
    }
    /// Several trainable numbers under one constraint.
    pub fn array(name: impl Into<String>, transform: Transform, values: Vec<f64>) -> Self {
        Self { name: name.into(), transform, values, trainable: true }
    }
    /// The same, held fixed.
    pub fn frozen(mut self) -> Self {
        self.trainable = false;
        self
    }
}

/// What is wrong with a parameter.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum ParamError {
    #[error("parameter `{name}` is {value}; it must be {must}")]
    Invalid { name: String, value: f64, must: &'static str },
    #[error("two parameters are named `{name}`")]
    Duplicate { name: String },
    #[error("there is no parameter `{name}`; there are {}", known.join(", "))]
    Unknown { name: String, known: Vec<String> },
    #[error("parameter `{name}` has {expected} values, {found} given")]
    Length { name: String, expected: usize, found: usize },
}

/// A place in the flat vector. Made by [`Layout::add`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    start: usize,
    len: usize,
}

impl Slot {
    pub(crate) fn empty_at(start: usize) -> Self {
        Self { start, len: 0 }
    }
    pub(crate) fn with_len(self, len: usize) -> Self {
        Self { len, ..self }
    }
    /// Indices in the flat vector.
    pub fn range(self) -> Range<usize> {
        self.start..self.start + self.len
    }
    /// How many numbers.
    pub fn len(self) -> usize {
        self.len
    }
    /// Whether it holds no number.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
    /// This slot's numbers.
    pub fn of(self, values: &[f64]) -> &[f64] {
        &values[self.range()]
    }
    /// This slot's numbers, to be changed.
    pub fn of_mut(self, values: &mut [f64]) -> &mut [f64] {
        &mut values[self.range()]
    }
}

/// One named entry of the layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Full name, for example `conv.kernel.lengthscale`.
    pub name: String,
    /// Where it lives.
    pub slot: Slot,
    /// Its constraint.
    pub transform: Transform,
    /// Whether optimisers may move it.
    pub trainable: bool,
}

impl Entry {
    /// Whether its name is `name` or begins with `name.`.
    pub fn is_within(&self, name: &str) -> bool {
        self.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// Names, places and constraints of all parameters of a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Layout {
    entries: Vec<Entry>,
    len: usize,
}

impl Layout {
    /// Appends an entry under `owner.name` and its initial values to `values`.
    pub fn add(&mut self, values: &mut Vec<f64>, owner: &str, init: ParamInit) -> Result<Slot, ParamError> {
        let name = if owner.is_empty() { init.name } else { format!("{owner}.{}", init.name) };
        if self.entries.iter().any(|e| e.name == name) {
            return Err(ParamError::Duplicate { name });
        }
        init.transform.check(&name, &init.values)?;
        let slot = Slot { start: self.len, len: init.values.len() };
        self.len += slot.len;
        values.extend_from_slice(&init.values);
        self.entries.push(Entry { name, slot, transform: init.transform, trainable: init.trainable });
        Ok(slot)
    }

    /// All entries, in the order of the vector.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
    /// Length of the flat vector.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry of this name.
    pub fn entry(&self, name: &str) -> Result<&Entry, ParamError> {
        self.entries.iter().find(|e| e.name == name).ok_or_else(|| ParamError::Unknown {
            name: name.into(),
            known: self.entries.iter().map(|e| e.name.clone()).collect(),
        })
    }

    /// Freezes or frees every entry whose name is `name` or begins with `name.`.
    pub fn set_trainable(&mut self, name: &str, trainable: bool) -> Result<(), ParamError> {
        let mut found = false;
        for e in &mut self.entries {
            if e.is_within(name) {
                e.trainable = trainable;
                found = true;
            }
        }
        if found { Ok(()) } else { self.entry(name).map(|_| ()) }
    }

    /// Changes constraint and trainability of the entry called `name`, if there is one.
    pub(crate) fn set_form(&mut self, name: &str, transform: Transform, trainable: bool) {
        if let Some(e) = self.entries.iter_mut().find(|e| e.name == name) {
            (e.transform, e.trainable) = (transform, trainable);
        }
    }

    /// Replaces an entry's values after checking them.
    pub fn set(&self, values: &mut [f64], name: &str, new: &[f64]) -> Result<(), ParamError> {
        let e = self.entry(name)?;
        if new.len() != e.slot.len() {
            return Err(ParamError::Length { name: name.into(), expected: e.slot.len(), found: new.len() });
        }
        e.transform.check(name, new)?;
        e.slot.of_mut(values).copy_from_slice(new);
        Ok(())
    }
}

/// What the stored numbers of the posterior `q` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Means `m` and lower factors `R` of the covariances: for gradient steps.
    #[default]
    Covariance,
    /// `theta = S^{-1} m` and the lower triangles of the precisions `S^{-1}`: for natural-gradient steps.
    Natural,
}

/// Parameters of a model as a value: the numbers, their names and constraints, which of them training may move, and the
/// form of `q`. Reads and writes as the flat vector it holds.
///
/// ```
/// use convgp::{Model, ModelSpec, rng::Rng};
///
/// let spec = ModelSpec::from_toml(r#"
///     image = { height = 4, width = 4 }
///     likelihood = { type = "probit" }
///     [[components]]
///     name = "conv"
///     views = { type = "patches", patch = 3 }
///     kernel = { type = "rbf" }
///     inducing = { count = 2, init = "uniform" }
/// "#)?;
/// let (_, mut params) = Model::new(&spec, None, &mut Rng::new(0))?;
/// params.set("conv.kernel.variance", &[2.0])?;
/// params.set_trainable("conv.kernel", false)?;
/// assert_eq!(params.get("conv.kernel.variance")?, [2.0]);
/// assert!(!params.layout().entry("conv.kernel.lengthscale")?.trainable);
/// # Ok::<(), convgp::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// The model's own until something is frozen or `q` rewritten.
    layout: Arc<Layout>,
    values: Vec<f64>,
    form: Form,
}

impl Params {
    /// Numbers in covariance form.
    pub fn new(layout: Arc<Layout>, values: Vec<f64>) -> Self {
        Self { layout, values, form: Form::Covariance }
    }
    /// Names and constraints, and which may move.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
    /// What the numbers of `q` are.
    pub fn form(&self) -> Form {
        self.form
    }
    /// Numbers by name.
    pub fn get(&self, name: &str) -> Result<&[f64], ParamError> {
        Ok(self.layout.entry(name)?.slot.of(&self.values))
    }
    /// Replaces numbers by name after checking them.
    pub fn set(&mut self, name: &str, numbers: &[f64]) -> Result<(), ParamError> {
        self.layout.set(&mut self.values, name, numbers)
    }
    /// Freezes or frees every parameter whose name is `name` or begins with `name.`.
    pub fn set_trainable(&mut self, name: &str, trainable: bool) -> Result<(), ParamError> {
        Arc::make_mut(&mut self.layout).set_trainable(name, trainable)
    }
    /// Says that the numbers of `q` are in another form now; `adapt` changes the layout accordingly.
    pub(crate) fn assume_form(&mut self, form: Form, adapt: impl FnOnce(&mut Layout)) {
        if form != self.form {
            adapt(Arc::make_mut(&mut self.layout));
            self.form = form;
        }
    }
}

impl Deref for Params {
    type Target = [f64];
    fn deref(&self) -> &[f64] {
        &self.values
    }
}

impl DerefMut for Params {
    fn deref_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }
}

impl Transform {
    /// Whether constrained and free values differ at position `i` of a slot.
    fn curve_at(self, i: usize) -> Option<Curve> {
        match self {
            Transform::Real => None,
            Transform::Positive => Some(Curve::Softplus),
            Transform::Scale => Some(Curve::Exp),
            Transform::Unit => Some(Curve::Sigmoid),
            Transform::Lower { order } => is_packed_diagonal(order, i).then_some(Curve::Softplus),
        }
    }

    fn check(self, name: &str, values: &[f64]) -> Result<(), ParamError> {
        for (i, &value) in values.iter().enumerate() {
            let (ok, must) = match self.curve_at(i) {
                None => (value.is_finite(), "finite"),
                Some(Curve::Softplus | Curve::Exp) => {
                    (value.is_finite() && value > 0.0, "positive and finite")
                }
                Some(Curve::Sigmoid) => (value > 0.0 && value < 1.0, "between 0 and 1"),
            };
            if !ok {
                return Err(ParamError::Invalid { name: name.into(), value, must });
            }
        }
        Ok(())
    }

    /// Calls `f` for the maximal runs of equal treatment in positions `offset..offset + len` of a slot; ranges are
    /// relative to `offset`. A packed triangle is walked column by column, so nothing is tested per element.
    fn for_runs(self, offset: usize, len: usize, mut f: impl FnMut(Option<Curve>, Range<usize>)) {
        let Transform::Lower { order } = self else {
            return f(self.curve_at(0), 0..len);
        };
        let (mut i, mut done) = (offset % packed_len(order), 0);
        let mut j = packed_column_at(order, i);
        while done < len {
            if packed_column(order, j) == i {
                f(Some(Curve::Softplus), done..done + 1);
                (i, done) = (i + 1, done + 1);
            }
            let below = (packed_column(order, j + 1) - i).min(len - done);
            f(None, done..done + below);
            (i, done, j) = (i + below, done + below, j + 1);
            if j == order {
                (i, j) = (0, 0);
            }
        }
    }

    /// Moves constrained `values` by `delta` in free space: `value <- T(T^{-1}(value) + delta)`.
    pub fn shift(self, values: &mut [f64], delta: &[f64]) {
        self.shift_part(0, values, delta);
    }

    /// [`Transform::shift`] for a part of a slot that begins at its position `offset`.
    pub fn shift_part(self, offset: usize, values: &mut [f64], delta: &[f64]) {
        self.for_runs(offset, values.len(), |curve, run| {
            let pairs = values[run.clone()].iter_mut().zip(&delta[run]);
            match curve {
                None => pairs.for_each(|(v, d)| *v += d),
                Some(c) => pairs.for_each(|(v, d)| *v = c.forward(c.inverse(*v) + d)),
            }
        });
    }

    /// Chain rule: turns derivatives in constrained values into derivatives in free ones.
    pub fn pull_to_free(self, values: &[f64], grad: &mut [f64]) {
        self.pull_part_to_free(0, values, grad);
    }

    /// [`Transform::pull_to_free`] for a part of a slot that begins at its position `offset`.
    pub fn pull_part_to_free(self, offset: usize, values: &[f64], grad: &mut [f64]) {
        self.for_runs(offset, values.len(), |curve, run| {
            if let Some(c) = curve {
                let pairs = values[run.clone()].iter().zip(&mut grad[run]);
                pairs.for_each(|(v, g)| *g *= c.slope_at_value(*v));
            }
        });
    }

    /// Free coordinates of constrained values.
    pub fn to_free(self, values: &[f64]) -> Vec<f64> {
        values.iter().enumerate().map(|(i, &v)| self.curve_at(i).map_or(v, |c| c.inverse(v))).collect()
    }

    /// Constrained values of free coordinates.
    pub fn from_free(self, free: &[f64]) -> Vec<f64> {
        free.iter().enumerate().map(|(i, &f)| self.curve_at(i).map_or(f, |c| c.forward(f))).collect()
    }
}

#[derive(Clone, Copy)]
enum Curve {
    Softplus,
    Exp,
    Sigmoid,
}

impl Curve {
    fn forward(self, free: f64) -> f64 {
        match self {
            // log(1 + e^x) without overflow; never exactly zero, so that logarithms of it stay finite.
            Curve::Softplus => (free.max(0.0) + libm::log1p(libm::exp(-free.abs()))).max(f64::MIN_POSITIVE),
            Curve::Exp => libm::exp(free).max(f64::MIN_POSITIVE),
            Curve::Sigmoid => 1.0 / (1.0 + libm::exp(-free)),
        }
    }
    fn inverse(self, value: f64) -> f64 {
        match self {
            Curve::Softplus => value + libm::log(-libm::expm1(-value)),
            Curve::Exp => libm::log(value),
            Curve::Sigmoid => libm::log(value) - libm::log1p(-value),
        }
    }
    /// dvalue/dfree, expressed in the value: `1 - e^{-v}` for softplus, `v` for exp, `v (1 - v)` for the sigmoid.
    fn slope_at_value(self, value: f64) -> f64 {
        match self {
            Curve::Softplus => -libm::expm1(-value),
            Curve::Exp => value,
            Curve::Sigmoid => value * (1.0 - value),
        }
    }
}

/// Numbers in a packed lower triangle of this order.
pub fn packed_len(order: usize) -> usize {
    order * (order + 1) / 2
}

/// Start of column `j` in a packed lower triangle; the column holds rows `j..order`.
pub fn packed_column(order: usize, j: usize) -> usize {
    j * order - j * j.saturating_sub(1) / 2
}

/// Column of position `i` of a packed lower triangle.
fn packed_column_at(order: usize, i: usize) -> usize {
    // Column j starts at about j * order - j^2 / 2: solve for j, then correct by at most one.
    let n = order as f64 + 0.5;
    let mut j = (n - (n * n - 2.0 * i as f64).max(0.0).sqrt()) as usize;
    while packed_column(order, j + 1) <= i {
        j += 1;
    }
    while packed_column(order, j) > i {
        j -= 1;
    }
    j
}

/// Whether position `i` of a run of packed triangles is on a diagonal.
fn is_packed_diagonal(order: usize, i: usize) -> bool {
    let i = i % packed_len(order);
    packed_column(order, packed_column_at(order, i)) == i
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_coordinates_round_trip() {
        for (t, v) in [
            (Transform::Positive, vec![1e-12, 0.3, 1.0, 40.0, 1e4]),
            (Transform::Scale, vec![1e-12, 0.3, 1.0, 40.0, 1e4]),
            (Transform::Unit, vec![1e-6, 0.5, 0.999]),
            (Transform::Lower { order: 3 }, vec![0.2, -1.0, 2.0, 3.0, -0.5, 1.0]),
        ] {
            for (a, b) in v.iter().zip(t.from_free(&t.to_free(&v))) {
                assert!((a - b).abs() <= 1e-14 * a.abs(), "{t:?}: {a} became {b}");
            }
        }
    }

    #[test]
    fn chain_rule_matches_differences() {
        for (t, v) in [(Transform::Positive, 0.37), (Transform::Scale, 0.37), (Transform::Unit, 0.21)] {
            let free = t.to_free(&[v])[0];
            let h = 1e-6;
            let slope = (t.from_free(&[free + h])[0] - t.from_free(&[free - h])[0]) / (2.0 * h);
            let mut g = [1.0];
            t.pull_to_free(&[v], &mut g);
            assert!((g[0] - slope).abs() < 1e-9);
        }
    }

    #[test]
    fn diagonals_of_packed_triangles_are_found() {
        for order in [1, 2, 3, 7, 64, 750] {
            let mut diagonal = vec![false; packed_len(order)];
            (0..order).for_each(|j| diagonal[packed_column(order, j)] = true);
            for (i, &d) in diagonal.iter().enumerate() {
                assert_eq!(is_packed_diagonal(order, i), d, "order {order}, position {i}");
            }
            assert!(is_packed_diagonal(order, packed_len(order)), "second triangle starts on its diagonal");
        }
    }

    #[test]
    fn parts_of_triangles_are_treated_as_in_the_whole() {
        let (order, count) = (5, 3);
        let t = Transform::Lower { order };
        let len = packed_len(order) * count;
        let values: Vec<f64> = (0..len).map(|i| 0.3 + 0.1 * i as f64).collect();
        let delta: Vec<f64> = (0..len).map(|i| 0.05 * i as f64 - 1.0).collect();
        let slow = |i: usize| {
            t.curve_at(i).map_or(values[i] + delta[i], |c| c.forward(c.inverse(values[i]) + delta[i]))
        };
        for size in [1, 2, 4, 7, 16, len] {
            let (mut moved, mut grad) = (values.clone(), delta.clone());
            for start in (0..len).step_by(size) {
                let part = start..(start + size).min(len);
                t.pull_part_to_free(start, &moved[part.clone()], &mut grad[part.clone()]);
                t.shift_part(start, &mut moved[part.clone()], &delta[part]);
            }
            for i in 0..len {
                assert_eq!(moved[i], slow(i), "parts of {size}, position {i}");
                let slope = t.curve_at(i).map_or(1.0, |c| c.slope_at_value(values[i]));
                assert_eq!(grad[i], delta[i] * slope);
            }
        }
    }

    #[test]
    fn invalid_values_and_names_are_refused() {
        let (mut layout, mut values) = (Layout::default(), Vec::new());
        layout.add(&mut values, "k", ParamInit::positive("ell", 2.0)).unwrap();
        let twice = layout.add(&mut values, "k", ParamInit::positive("ell", 2.0));
        assert!(matches!(twice, Err(ParamError::Duplicate { .. })));
        let zero = layout.add(&mut values, "k", ParamInit::positive("var", 0.0));
        assert_eq!(zero.unwrap_err().to_string(), "parameter `k.var` is 0; it must be positive and finite");
        assert!(matches!(layout.set(&mut values, "k.l", &[1.0]), Err(ParamError::Unknown { .. })));
        assert!(matches!(layout.set(&mut values, "k.ell", &[1.0, 2.0]), Err(ParamError::Length { .. })));
        layout.set(&mut values, "k.ell", &[3.0]).unwrap();
        assert_eq!(values, [3.0]);
    }
}
