//! A component of the model as data: a base kernel, inducing inputs, and one or more responses.
//!
//! `f(x) = sum_p w_p g(x[p])`, `g ~ GP(0, k_g)`, with inducing outputs `u_m = g(z_m)`. A multi-channel component has
//! several responses: they share the kernel and `z`, each has its own function `g` and block of inducing outputs. So has
//! a pooled one, whose responses are the windows of a grid ([`Pooling`]).

mod norm;
mod pooling;

pub use norm::ImageNorm;
pub use pooling::Pooling;

use crate::kernel::{Kernel, parameter_count};
use crate::params::{Layout, ParamError, ParamInit, Slot, Transform};
use crate::views::{Constant, Views};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which weights of views are learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// All ones: the invariant kernel.
    #[default]
    Ones,
    /// One weight per plane of views, shared by its places: per transformation of an orbit, so that the bound chooses
    /// how far it reaches, and per channel.
    PerPlane,
    /// One weight per view, starting at one.
    Learned,
}

impl Weights {
    /// How many are learned for these views.
    pub fn count(self, views: &dyn Views) -> usize {
        match self {
            Weights::Ones => 0,
            Weights::PerPlane => views.layout().planes.len(),
            Weights::Learned => views.count(),
        }
    }
}

/// One response function: which views, and how they are weighted.
#[derive(Debug, Clone)]
pub struct Response {
    views: Arc<dyn Views>,
    /// Learned weights, one per view or one per plane of them; ones when absent.
    weights: Option<Slot>,
    /// Multiplies every weight: 1, or 1 / P for normalised sums.
    scale: f64,
    /// Fixed weights of the views in this window; ones when absent.
    window: Option<Arc<[f64]>>,
}

impl Response {
    /// The views.
    pub fn views(&self) -> &dyn Views {
        self.views.as_ref()
    }
    /// Slot of the learned weights, if any.
    pub fn weights_slot(&self) -> Option<Slot> {
        self.weights
    }
    /// The factor on every weight.
    pub fn scale(&self) -> f64 {
        self.scale
    }
    /// Fixed weights of the views where the response is a window of a pooled component.
    pub fn window(&self) -> Option<&[f64]> {
        self.window.as_deref()
    }
    /// Writes the effective weights `scale * w_p` into `out`.
    pub fn write_weights(&self, values: &[f64], out: &mut Vec<f64>) {
        out.clear();
        match self.weights {
            Some(slot) => {
                let learned = slot.of(values).iter().map(|w| self.scale * w);
                learned.for_each(|w| out.extend(std::iter::repeat_n(w, self.sharing(slot))));
            }
            None => out.resize(self.views.count(), self.scale),
        }
        if let Some(window) = &self.window {
            out.iter_mut().zip(window.iter()).for_each(|(w, phi)| *w *= phi);
        }
    }
    /// The effective weights.
    pub fn weights(&self, values: &[f64]) -> Vec<f64> {
        let mut out = Vec::new();
        self.write_weights(values, &mut out);
        out
    }
    /// Adds the derivative in effective weights to the gradient of the learned ones.
    pub fn add_weights_bar(&self, bar: &[f64], grad: &mut [f64]) {
        if let Some(slot) = self.weights {
            let phi = |p: usize| self.window.as_ref().map_or(1.0, |w| w[p]);
            let bar: Vec<f64> = bar.iter().enumerate().map(|(p, b)| phi(p) * b).collect();
            let bars = bar.chunks_exact(self.sharing(slot)).map(|b| b.iter().sum::<f64>());
            slot.of_mut(grad).iter_mut().zip(bars).for_each(|(g, b)| *g += self.scale * b);
        }
    }
    /// Views that share a learned weight.
    fn sharing(&self, slot: Slot) -> usize {
        self.views.count() / slot.len()
    }
}

/// Kernel, inducing inputs and responses; the numbers live in the parameter vector.
#[derive(Debug, Clone)]
pub struct Component {
    name: String,
    kernel: Arc<dyn Kernel>,
    responses: Vec<Response>,
    /// Responses in a row that are windows over the same views.
    pooled: usize,
    image_norm: ImageNorm,
    inducing: usize,
    theta: Slot,
    z: Slot,
    white: Option<Slot>,
}

/// What a component is made of, before it has a place in the parameter vector.
#[derive(Debug, Clone)]
pub struct ComponentParts {
    /// Prefix of its parameters' names.
    pub name: String,
    /// Base kernel.
    pub kernel: Arc<dyn Kernel>,
    /// One view set per response, all with equally long views.
    pub views: Vec<Arc<dyn Views>>,
    /// Which weights are learned (starting at one).
    pub weights: Weights,
    /// Windows over the places of the views, each with its own response function.
    pub pooling: Option<Pooling>,
    /// What images are divided by.
    pub image_norm: ImageNorm,
    /// Whether weights are divided by the number of views.
    pub normalise: bool,
    /// Initial variance of the white-noise term, if there is one.
    pub white: Option<f64>,
    /// Initial inducing inputs, `M x E` row-major.
    pub z: Vec<f64>,
}

impl Component {
    /// Registers the component's parameters.
    pub fn register(
        parts: ComponentParts,
        layout: &mut Layout,
        values: &mut Vec<f64>,
    ) -> Result<Self, ParamError> {
        let ComponentParts { name, kernel, views, weights, pooling, image_norm, normalise, white, z } = parts;
        let windows = |views: &Arc<dyn Views>| match pooling {
            None => vec![(views.clone(), None)],
            Some(pooling) => {
                let weights = pooling.weights(&views.layout());
                weights.into_iter().map(|w| (views.clone(), Some(Arc::from(w)))).collect()
            }
        };
        let views: Vec<_> = views.iter().flat_map(windows).collect();
        let theta = Slot::empty_at(values.len());
        for init in kernel.parameters() {
            layout.add(values, &format!("{name}.kernel"), init)?;
        }
        let theta = theta.with_len(parameter_count(kernel.as_ref()));
        let white = match white {
            Some(v) => Some(layout.add(values, &name, ParamInit::positive("white", v))?),
            None => None,
        };
        let several = views.len() > 1;
        let mut responses = Vec::with_capacity(views.len());
        for (i, (views, window)) in views.into_iter().enumerate() {
            let label = if several { format!("weights.{i}") } else { "weights".into() };
            let ones = vec![1.0; weights.count(views.as_ref())];
            let weights = match ones.is_empty() {
                true => None,
                false => Some(layout.add(values, &name, ParamInit::array(label, Transform::Real, ones))?),
            };
            let scale = if normalise { 1.0 / views.count() as f64 } else { 1.0 };
            responses.push(Response { views, weights, scale, window });
        }
        let inducing = z.len() / responses[0].views.len();
        let z = layout.add(values, &name, ParamInit::array("z", Transform::Real, z))?;
        let pooled = pooling.map_or(1, Pooling::windows);
        Ok(Self { name, kernel, responses, pooled, image_norm, inducing, theta, z, white })
    }

    /// Its name, the prefix of its parameters.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The base kernel.
    pub fn kernel(&self) -> &dyn Kernel {
        self.kernel.as_ref()
    }
    /// The response functions, at least one.
    pub fn responses(&self) -> &[Response] {
        &self.responses
    }
    /// How many responses in a row are windows over the same views: 1 without pooling.
    pub fn windows(&self) -> usize {
        self.pooled
    }
    /// What images are divided by.
    pub fn image_norm(&self) -> ImageNorm {
        self.image_norm
    }
    /// Number of inducing inputs `M`.
    pub fn inducing(&self) -> usize {
        self.inducing
    }
    /// Numbers in one view, `E`.
    pub fn view_len(&self) -> usize {
        self.responses[0].views.len()
    }
    /// Slot of the kernel's parameters.
    pub fn theta_slot(&self) -> Slot {
        self.theta
    }
    /// Slot of the inducing inputs, `M x E` row-major.
    pub fn z_slot(&self) -> Slot {
        self.z
    }
    /// Slot of the white-noise variance, if there is one.
    pub fn white_slot(&self) -> Option<Slot> {
        self.white
    }
    /// Current kernel parameters.
    pub fn theta<'a>(&self, values: &'a [f64]) -> &'a [f64] {
        self.theta.of(values)
    }
    /// Inducing input `m`.
    pub fn z<'a>(&self, values: &'a [f64], m: usize) -> &'a [f64] {
        let e = self.view_len();
        &self.z.of(values)[m * e..(m + 1) * e]
    }
    /// White-noise variance, zero when there is none.
    pub fn white(&self, values: &[f64]) -> f64 {
        self.white.map_or(0.0, |s| s.of(values)[0])
    }

    /// Adds the arrays that are no parameters, under this prefix.
    pub fn constants<'a>(&'a self, name: &str, out: &mut Vec<Constant<'a>>) {
        let sets = self.responses.iter().step_by(self.pooled).enumerate();
        sets.for_each(|(set, response)| response.views.constants(name, set, out));
    }

    /// The closest pair of inducing inputs and their distance, for error messages; `None` with fewer than two.
    pub fn closest_inducing(&self, values: &[f64]) -> Option<(usize, usize, f64)> {
        let mut best: Option<(usize, usize, f64)> = None;
        for i in 0..self.inducing {
            for j in 0..i {
                let d: f64 =
                    self.z(values, i).iter().zip(self.z(values, j)).map(|(a, b)| (a - b) * (a - b)).sum();
                if best.is_none_or(|(_, _, b)| d < b) {
                    best = Some((j, i, d));
                }
            }
        }
        best.map(|(i, j, d)| (i, j, d.sqrt()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;
    use crate::kernel::{Dims, Rbf, Stationary};
    use crate::views::{Channels, Windows};

    /// Three planes of four places, a weight for each plane.
    #[test]
    fn places_of_a_plane_share_its_weight() {
        let shape = ImageShape::new(3, 3, 3).unwrap();
        let views = Windows::new(shape, (2, 2), (1, 1), Channels::Pooled).unwrap();
        let parts = ComponentParts {
            name: "c".into(),
            kernel: Arc::new(Stationary::new(&Rbf, Dims::all(4), 1.0, 1.0)),
            views: vec![Arc::new(views)],
            weights: Weights::PerPlane,
            pooling: None,
            image_norm: ImageNorm::None,
            normalise: true,
            white: None,
            z: vec![0.0; 4],
        };
        let (mut layout, mut values) = (Layout::default(), Vec::new());
        let component = Component::register(parts, &mut layout, &mut values).unwrap();
        let response = &component.responses()[0];
        let slot = response.weights_slot().unwrap();
        slot.of_mut(&mut values).copy_from_slice(&[12.0, 24.0, -12.0]);
        let expected = [[1.0; 4], [2.0; 4], [-1.0; 4]].concat();
        assert_eq!(response.weights(&values), expected);
        let mut grad = vec![0.0; values.len()];
        let bar: Vec<f64> = (0..12).map(f64::from).collect();
        response.add_weights_bar(&bar, &mut grad);
        assert_eq!(slot.of(&grad), [6.0 / 12.0, 22.0 / 12.0, 38.0 / 12.0]);
    }
}
