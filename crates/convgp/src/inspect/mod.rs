//! Looking into a trained model.
//!
//! The latent mean is exactly `sum_p w_p E[g(x[p])]`, so every view of an image has its share of every answer, and so has
//! every inducing input. [`Explainer`] gives both as numbers that sum to the latent mean; [`Explainer::shares`] does
//! the same for components over a data set; [`prior_maps`] shows what the prior expects before any label was seen;
//! [`uncertainty`] scores images by how little the model knows about them.

mod describe;
mod evidence;
mod explain;
mod prior;
mod scores;
mod shares;

pub use describe::describe;
pub use evidence::{Evidence, Part};
pub use explain::Explainer;
pub use prior::{MOST_VIEWS, prior_maps};
pub use scores::{Uncertainty, uncertainty};
pub use shares::Share;

/// Why something cannot be shown.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum InspectError {
    #[error("the model predicts real numbers; this score is about classes")]
    NotClasses,
    #[error("there is no component {component} with response {response}; see `Model::components`")]
    NoResponse { component: usize, response: usize },
    #[error(
        "component `{component}` has {views} views of an image; prior draws factorise a matrix of that order and are limited to {MOST_VIEWS}. Use a larger stride or a smaller orbit"
    )]
    TooManyViews { component: String, views: usize },
}
