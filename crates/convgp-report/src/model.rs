//! What a trained model looks like from inside, gathered once so that drawing needs no engine.

use crate::report::write_drawings;
use crate::{ReportError, figures};
use convgp::cov::Engine;
use convgp::data::{ImageShape, Images};
use convgp::inspect::{Evidence, Explainer, MOST_VIEWS, Share, prior_maps};
use convgp::rng::Rng;
use convgp::views::Layout;
use std::path::Path;

/// Images behind the component shares.
const SHARE_IMAGES: usize = 200;
/// Draws of the prior that are shown.
pub(crate) const PRIOR_DRAWS: usize = 4;

/// One response of one component: its views, weights and inducing inputs.
#[derive(Debug, Clone)]
pub(crate) struct ResponseView {
    /// Component, and channel where there are several responses.
    pub name: String,
    pub layout: Layout,
    /// Effective weights, when they are learned.
    pub weights: Option<Vec<f64>>,
    /// Inducing inputs without coordinates, one picture each.
    pub inducing: Vec<Vec<f64>>,
    /// Means of the inducing outputs, `M x L` row-major.
    pub means: Vec<f64>,
    /// Draws of the response map from the prior; none when the map would be a single number or too large.
    pub prior: Vec<Vec<f64>>,
}

/// Evidence for one image.
#[derive(Debug, Clone)]
pub(crate) struct EvidenceView {
    /// Which image.
    pub number: usize,
    pub image: Vec<f64>,
    pub evidence: Evidence,
}

/// A model at one set of parameters, ready to be drawn.
#[derive(Debug, Clone)]
pub struct ModelView {
    pub(crate) shape: ImageShape,
    pub(crate) latent_names: Vec<String>,
    pub(crate) responses: Vec<ResponseView>,
    pub(crate) shares: Vec<Share>,
    /// The image the prior maps are of.
    pub(crate) sample: Vec<f64>,
    pub(crate) evidence: Vec<EvidenceView>,
}

impl ModelView {
    /// Looks into a model. Shares are taken over the first 200 of `images`; the prior is shown on the first; evidence is
    /// given for those with the numbers `explained`.
    pub fn new<E: Engine>(
        explainer: &Explainer<'_, '_, E>,
        class_names: &[String],
        images: &Images,
        explained: &[usize],
        rng: &mut Rng,
    ) -> Result<Self, ReportError> {
        let shown: Vec<usize> = (0..images.count().min(SHARE_IMAGES)).collect();
        let few = images.select(&shown).map_err(convgp::Error::from)?;
        let mut view = Self::without_images(explainer, class_names)?;
        view.draw_priors(explainer, &few, rng)?;
        let evidence = explained
            .iter()
            .map(|&n| {
                Ok(EvidenceView {
                    number: n,
                    image: image(images, n),
                    evidence: explainer.evidence(images, n)?,
                })
            })
            .collect::<Result<_, ReportError>>()?;
        Ok(Self { shares: explainer.shares(&few)?, sample: image(&few, 0), evidence, ..view })
    }

    /// What can be seen of a model without any image: inducing inputs and weights.
    pub fn without_images<E: Engine>(
        explainer: &Explainer<'_, '_, E>,
        class_names: &[String],
    ) -> Result<Self, ReportError> {
        let (model, values) = (explainer.model(), explainer.values());
        let means = explainer.inducing_means()?;
        let mut responses = Vec::new();
        for component in model.components() {
            for (r, response) in component.responses().iter().enumerate() {
                let layout = response.views().layout();
                let pixels = layout.view.len();
                responses.push(ResponseView {
                    name: response_name(component.name(), r, component.responses().len()),
                    weights: response.weights_slot().map(|_| response.weights(values)),
                    inducing: (0..component.inducing())
                        .filter(|_| !response.views().is_staged())
                        .map(|m| component.z(values, m)[..pixels].to_vec())
                        .collect(),
                    means: means[responses.len()].clone(),
                    layout,
                    prior: Vec::new(),
                });
            }
        }
        Ok(Self {
            shape: model.spec().image,
            latent_names: latent_names(explainer.latents(), class_names),
            responses,
            shares: Vec::new(),
            sample: Vec::new(),
            evidence: Vec::new(),
        })
    }

    /// Draws the response maps of the first image from the prior.
    fn draw_priors<E: Engine>(
        &mut self,
        explainer: &Explainer<'_, '_, E>,
        images: &Images,
        rng: &mut Rng,
    ) -> Result<(), ReportError> {
        let (model, values) = (explainer.model(), explainer.values());
        let components = model.components().iter().enumerate();
        let which =
            components.flat_map(|(c, component)| (0..component.responses().len()).map(move |r| (c, r)));
        for (view, which) in self.responses.iter_mut().zip(which) {
            if 1 < view.layout.count() && view.layout.count() <= MOST_VIEWS {
                view.prior = prior_maps(model, values, which, images, PRIOR_DRAWS, rng)?;
            }
        }
        Ok(())
    }

    /// What every latent is called: a class, where every class has its latent.
    pub fn latent_names(&self) -> &[String] {
        &self.latent_names
    }

    /// Writes the evidence maps of all latents of all explained images, three to a figure, with the inducing inputs that
    /// carried them: `evidence-0.svg`, `evidence-0.png` and so on, the largest latent means first.
    pub fn write_evidence(&self, dir: &Path) -> Result<(), ReportError> {
        write_drawings(dir, &figures::draw_all_latents(self)?)
    }
}

/// `conv`, or `conv, channel 2` for one of several responses.
pub(crate) fn response_name(component: &str, response: usize, of: usize) -> String {
    if of > 1 { format!("{component}, channel {response}") } else { component.into() }
}

/// Classes, where every class has its latent; for two classes with one latent, which class it speaks for.
fn latent_names(latents: usize, class_names: &[String]) -> Vec<String> {
    match class_names {
        [_, second] if latents == 1 => vec![format!("for {second}")],
        names if names.len() == latents => names.to_vec(),
        _ => (0..latents).map(|l| format!("latent {l}")).collect(),
    }
}

/// Image `n` as numbers.
pub(crate) fn image(images: &Images, n: usize) -> Vec<f64> {
    let mut out = vec![0.0; images.shape().len()];
    images.write_image(n, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latents_are_named_after_what_they_speak_for() {
        let names = |n: usize| (0..n).map(|i| format!("c{i}")).collect::<Vec<_>>();
        assert_eq!(latent_names(1, &names(2)), ["for c1"]);
        assert_eq!(latent_names(3, &names(3)), ["c0", "c1", "c2"]);
        assert_eq!(latent_names(1, &[]), ["latent 0"]);
        assert_eq!(
            (response_name("conv", 0, 1), response_name("conv", 2, 3)),
            ("conv".into(), "conv, channel 2".into())
        );
    }
}
