//! `kind: power_expectation`: likelihoods alone.

use crate::GoldenError;
use crate::compare::Found;
use crate::error::At;
use crate::likelihood::read_likelihood;
use crate::node::Node;
use crate::report::{Precision, Report};
use convgp::data::Targets;
use convgp::likelihood::{
    Expectations, Integrand, Likelihood, Logit, Marginals, Probit, Softmax, VarianceDerivative, expect_scalar,
};

type Result<T> = std::result::Result<T, GoldenError>;

/// Compares every array of the file. No engine takes part.
pub fn check(root: &Node, precision: Precision) -> Result<Report> {
    let mut found = Found::default();
    for case in root.get("cases")?.list()? {
        Case::read(&case)?.compare(&case.get("outputs")?, &mut found)?;
    }
    Ok(Report { quantities: found.0, condition: 1.0, tolerance: precision.tolerance(1.0) })
}

struct Case<'a> {
    node: Node<'a>,
    likelihood: Box<dyn Likelihood>,
    theta: Vec<f64>,
    targets: Targets,
    q: Marginals,
    latents: usize,
}

impl<'a> Case<'a> {
    fn read(case: &Node<'a>) -> Result<Self> {
        let rows = case.get("f_mean")?.list()?;
        let images = rows.len();
        let latents = rows.first().map_or(Ok(1), |r| r.list().map(|r| r.len()))?;
        let marginals = |field: &str| case.get(field)?.array(&[images, latents]);
        let q = Marginals { mean: marginals("f_mean")?, var: marginals("f_var")? };
        let (likelihood, targets) = read_likelihood(case, latents, images)?;
        let theta = likelihood.parameters().iter().flat_map(|p| p.values.clone()).collect();
        Ok(Self { node: case.clone(), likelihood, theta, targets, q, latents })
    }

    fn images(&self) -> usize {
        self.targets.len()
    }

    fn room(&self) -> Expectations {
        let mut out = Expectations::default();
        out.reset(self.images(), self.latents, self.theta.len());
        out
    }

    fn expect(&self, alpha: f64) -> Expectations {
        let mut out = self.room();
        self.likelihood.expect(&self.integrand(alpha), &mut out);
        out
    }

    fn integrand(&self, alpha: f64) -> Integrand<'_> {
        Integrand { alpha, ..Integrand::new(&self.theta, &self.q, &self.targets) }
    }

    fn compare(&self, outputs: &Node, found: &mut Found) -> Result<()> {
        let shape = [self.images(), self.latents];
        let expected = outputs.get("expected_log_density")?;
        found.compare("expectation", &expected, &shape[..1], &self.expect(0.0).value)?;
        for power in outputs.get("powers")?.list()? {
            let alpha = power.get("alpha")?.number()?;
            let ours = self.expect(alpha);
            found.compare("value", &power.get("value")?, &shape[..1], &ours.value)?;
            found.compare("d_mean", &power.get("d_mean")?, &shape, &ours.mean_bar)?;
            found.compare("d_var", &power.get("d_var")?, &shape, &ours.var_bar)?;
            if let Some(node) = power.find("d_variance") {
                found.compare("d_variance", &node, &[], &ours.theta_bar)?;
            }
            if let Some(node) = power.find("d_var_weighted") {
                found.compare("d_var_weighted", &node, &shape, &self.weighted(alpha)?)?;
            }
        }
        Ok(())
    }

    /// Derivatives in the variances as natural steps may take them.
    fn weighted(&self, alpha: f64) -> Result<Vec<f64>> {
        let (node, mut out) = (self.node.get("likelihood")?, self.room());
        let (curvature, of) = (VarianceDerivative::Curvature, &self.integrand(alpha));
        let is_one = |targets: &Targets, n: usize| matches!(targets, Targets::Classes { labels, .. } if labels[n] == 1);
        match node.get("type")?.text()? {
            "bernoulli_probit" => {
                let jitter = node.find("link_jitter").map_or(Ok(0.0), |j| j.number())?;
                let probit = Probit::new(jitter).at(node.path())?;
                expect_scalar(&probit, curvature, of, is_one, &mut out);
            }
            "bernoulli_logit" => expect_scalar(&Logit, curvature, of, is_one, &mut out),
            "softmax" => {
                let draws = node.get("mc_eps")?;
                let eps = draws.array(&[draws.list()?.len(), self.images(), self.latents])?;
                let softmax = Softmax::new(self.latents).at(node.path())?.with_derivative(curvature);
                softmax.expect_with(&eps, of, &mut out);
            }
            other => return Err(node.refuse(format!("is `{other}`, which has no `d_var_weighted`"))),
        }
        Ok(out.var_bar)
    }
}
