//! `likelihood` and `Y` as a [`Likelihood`] and [`Targets`].

use crate::GoldenError;
use crate::error::At;
use crate::node::Node;
use convgp::data::Targets;
use convgp::likelihood::{
    Binary, Expectations, Gaussian, Integrand, Likelihood, Logit, Marginals, POINTS, Predictive, Probit,
    RobustMax, Softmax, VarianceDerivative,
};

/// The likelihood of a file with this many latents, and its targets.
pub fn read_likelihood(
    root: &Node,
    latents: usize,
    images: usize,
) -> Result<(Box<dyn Likelihood>, Targets), GoldenError> {
    let (node, y) = (root.get("likelihood")?, root.get("Y")?);
    let kind = node.get("type")?;
    let likelihood: Box<dyn Likelihood> = match kind.text()? {
        "gaussian" => Box::new(Gaussian::new(node.get("variance")?.number()?).at(node.path())?),
        "bernoulli_probit" => {
            let jitter = node.find("link_jitter").map_or(Ok(0.0), |j| j.number())?;
            Box::new(Probit::new(jitter).at(node.path())?)
        }
        "bernoulli_logit" => Box::new(Binary(Logit)),
        "robustmax" => {
            let (epsilon, squash) = (node.get("epsilon")?.number()?, node.get("squash")?.number()?);
            let robust = RobustMax::new(latents, epsilon).and_then(|r| r.with_squash(squash));
            Box::new(robust.at(node.path())?)
        }
        "softmax" => Box::new(GivenDraws::read(&node, latents, images)?),
        other => return Err(kind.refuse(format!("is `{other}`, which the schema does not have"))),
    };
    if likelihood.latents() != latents {
        let problem = format!("has {latents} latents; this likelihood has {}", likelihood.latents());
        return Err(GoldenError::field("q_mu", problem));
    }
    if let Some(points) = root.find("gauss_hermite_points")
        && !matches!(kind.text()?, "gaussian" | "softmax")
        && points.whole()? != POINTS
    {
        return Err(points.refuse(format!("is {}; the library's rule has {POINTS}", points.whole()?)));
    }
    let targets = if kind.text()? == "gaussian" {
        Targets::real(y.array(&[images])?)
    } else {
        let labels = y.list_of(images)?.iter().map(Node::whole).collect::<Result<Vec<_>, _>>()?;
        let clip = |l: usize| u32::try_from(l).unwrap_or(u32::MAX);
        Targets::classes(labels.into_iter().map(clip).collect(), latents.max(2))
    };
    Ok((likelihood, targets.at("Y")?))
}

/// Softmax at the file's own draws.
#[derive(Debug)]
struct GivenDraws {
    softmax: Softmax,
    /// `S x B x K`.
    eps: Vec<f64>,
}

impl GivenDraws {
    fn read(node: &Node, classes: usize, images: usize) -> Result<Self, GoldenError> {
        let eps = node.get("mc_eps")?;
        let samples = eps.list()?.len();
        if samples == 0 {
            return Err(eps.refuse("is empty; at least one draw is needed"));
        }
        let softmax = Softmax::new(classes).at(node.path())?.with_derivative(VarianceDerivative::Pathwise);
        Ok(Self { softmax, eps: eps.array(&[samples, images, classes])? })
    }
}

impl Likelihood for GivenDraws {
    fn name(&self) -> &'static str {
        self.softmax.name()
    }
    fn latents(&self) -> usize {
        self.softmax.latents()
    }
    fn classes(&self) -> Option<usize> {
        self.softmax.classes()
    }
    fn expect(&self, of: &Integrand, out: &mut Expectations) {
        self.softmax.expect_with(&self.eps, of, out);
    }
    fn predict(&self, _theta: &[f64], q: &Marginals) -> Predictive {
        self.softmax.predict_with(&self.eps, q)
    }
    fn log_predictive(&self, theta: &[f64], q: &Marginals, targets: &Targets) -> Vec<f64> {
        let (Predictive::Classes { probabilities, classes }, Targets::Classes { labels, .. }) =
            (self.predict(theta, q), targets)
        else {
            unreachable!("softmax predicts classes and check_targets admits only labels")
        };
        labels.iter().zip(probabilities.chunks_exact(classes)).map(|(y, p)| p[*y as usize].ln()).collect()
    }
}
