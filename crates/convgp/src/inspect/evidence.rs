//! The evidence for one image, taken apart.

use crate::data::ImageShape;
use crate::views::Layout;

/// What one response of one component contributes to the latent means of one image.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Name of the component.
    pub component: String,
    /// Index of the response within it: the channel, for multi-channel components.
    pub response: usize,
    /// Where the views lie.
    pub layout: Layout,
    /// `w_p E[g_l(x[p])]`, `P x L` row-major.
    pub mean: Vec<f64>,
    /// Posterior standard deviation of `w_p g_l(x[p])`, `P x L`. Views share one `g`, so these do not add up.
    pub sd: Vec<f64>,
    /// The same evidence by inducing input: `kuf[m] alpha_l[m]`, `M x L` row-major; sums to what `mean` sums to.
    pub inducing: Vec<f64>,
    pub(super) latents: usize,
}

impl Part {
    /// Sum over views for latent `l`.
    pub fn total(&self, l: usize) -> f64 {
        self.mean.iter().skip(l).step_by(self.latents).sum()
    }

    /// The `count` inducing inputs with the largest contribution to latent `l` in either direction, with it.
    pub fn carriers(&self, l: usize, count: usize) -> Vec<(usize, f64)> {
        let mut all: Vec<_> =
            self.inducing.iter().skip(l).step_by(self.latents).copied().enumerate().collect();
        all.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        all.truncate(count);
        all
    }

    /// The contributions of one plane of views to latent `l` painted on the image, `height x width` row-major: every view
    /// spreads its number evenly over its pixels, so that the picture sums to the plane's total. Planes of an orbit lie on
    /// the transformed image.
    pub fn paint(&self, plane: usize, l: usize, shape: ImageShape) -> Vec<f64> {
        let (view, per_plane) = (self.layout.view, self.layout.rows * self.layout.cols);
        let mut out = vec![0.0; shape.height() * shape.width()];
        for p in plane * per_plane..(plane + 1) * per_plane {
            let (_, top, left) = self.layout.place(p);
            let each = self.mean[p * self.latents + l] / (view.height() * view.width()) as f64;
            for row in top..top + view.height() {
                let start = row * shape.width() + left;
                out[start..start + view.width()].iter_mut().for_each(|pixel| *pixel += each);
            }
        }
        out
    }
}

/// The latent means of one image as sums over views.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// One part per component and response, in the model's order.
    pub parts: Vec<Part>,
    pub(super) latents: usize,
}

impl Evidence {
    /// Number of latents `L`.
    pub fn latents(&self) -> usize {
        self.latents
    }
    /// What the parts sum to: the latent means.
    pub fn latent_means(&self) -> Vec<f64> {
        (0..self.latents).map(|l| self.parts.iter().map(|part| part.total(l)).sum()).collect()
    }
}
