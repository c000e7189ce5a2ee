//! `kind: energy`: collapsed bounds and energies. The files have several outputs; everything adds up over them.

use crate::GoldenError;
use crate::closed_form::{Setup, compare_gradients, compare_whitening};
use crate::compare::{Found, by_rows, sum};
use crate::error::At;
use crate::node::Node;
use crate::report::{Precision, Report};
use convgp::collapsed::Collapsed;
use convgp::cov::{Engine, exact_covariance};
use convgp::data::{Dataset, Targets};
use convgp::exact::ExactGp;
use convgp::likelihood::LikelihoodSpec;
use convgp::model::PosteriorSpec;
use convgp::objective::Objective;
use convgp::variational::Structure;

type Result<T> = std::result::Result<T, GoldenError>;

/// Compares every array of the file.
pub fn check<E: Engine>(root: &Node, engine: &E, precision: Precision) -> Result<Report> {
    let posterior = PosteriorSpec { structure: Structure::Full, whiten: true, rank: None };
    let noise = LikelihoodSpec::Gaussian { variance: root.get("s2")?.number()?, units: Default::default() };
    let setup = Setup::read(root, noise, posterior)?;
    let (outputs, mut found) = (root.get("outputs")?, Found::default());
    compare_whitening(root, &setup.images, &mut found)?;
    let ours = setup.covariances(engine, &setup.images)?;
    setup.compare(&outputs, &ours, &mut found)?;
    let n = ours.batch.len();
    let kff = exact_covariance(setup.component(), &setup.values, &ours.batch);
    found.compare("Kff", &outputs.get("Kff")?, &[n, n], &by_rows(&kff))?;
    let case = Case { setup: &setup, engine, data: columns(root, &setup)? };
    case.projection(&outputs, &mut found)?;
    for energy in outputs.get("energies")?.list()? {
        let objective = Objective::PowerEp { alpha: energy.get("alpha")?.number()? };
        case.objective(&energy, "log_Z", objective, &mut found)?;
    }
    let bounds = outputs.get("bounds")?;
    case.objective(&bounds.get("titsias")?, "value", Objective::Bound {}, &mut found)?;
    case.objective(&bounds.get("tightened")?, "value", Objective::TightenedBound {}, &mut found)?;
    Ok(setup.report(&ours, precision, found))
}

/// One data set for each output.
fn columns(root: &Node, setup: &Setup) -> Result<Vec<Dataset>> {
    let rows = root.get("Y")?.list_of(setup.images.count())?;
    let rows = rows.iter().map(Node::numbers).collect::<Result<Vec<_>>>()?;
    let outputs = rows.first().map_or(0, Vec::len);
    if outputs == 0 || rows.iter().any(|r| r.len() != outputs) {
        return Err(GoldenError::field("Y", "must have one row per image, all of one length"));
    }
    let column = |l: usize| {
        let targets = Targets::real(rows.iter().map(|r| r[l]).collect())?;
        Dataset::new(setup.images.clone(), targets)
    };
    (0..outputs).map(|l| column(l).at("Y")).collect()
}

struct Case<'a, E: Engine> {
    setup: &'a Setup,
    engine: &'a E,
    data: Vec<Dataset>,
}

impl<E: Engine> Case<'_, E> {
    fn collapsed(&self, objective: Objective) -> Result<Vec<Collapsed<'_, E>>> {
        let Setup { model, values, .. } = self.setup;
        let one = |data: &Dataset| {
            let bound = Collapsed::new(model, self.engine, values, data);
            bound.and_then(|c| c.with_objective(objective)).at("outputs.energies")
        };
        self.data.iter().map(one).collect()
    }

    fn projection(&self, outputs: &Node, found: &mut Found) -> Result<()> {
        let Setup { model, values, .. } = self.setup;
        let (a, d) = self.collapsed(Objective::default())?[0].projection(values).at("outputs.A")?;
        found.compare("A", &outputs.get("A")?, &[a.rows(), a.cols()], &by_rows(&a))?;
        if let Some(node) = outputs.find("d") {
            found.compare("d", &node, &[d.len()], &d)?;
        }
        let mut evidence = 0.0;
        for data in &self.data {
            evidence += ExactGp::new(model, values, data).at("outputs.exact_evidence")?.log_evidence();
        }
        found.compare("evidence", &outputs.get("exact_evidence")?, &[], &[evidence])
    }

    /// Value, adjoints where the file has them, and gradients.
    fn objective(&self, node: &Node, value: &str, objective: Objective, found: &mut Found) -> Result<()> {
        let (values, path) = (&self.setup.values, node.path());
        let all = self.collapsed(objective)?;
        let evaluate = |c: &Collapsed<'_, E>| c.value_and_grad(values).at(path);
        let (ours, grads): (Vec<f64>, Vec<Vec<f64>>) =
            all.iter().map(evaluate).collect::<Result<Vec<_>>>()?.into_iter().unzip();
        found.compare("value", &node.get(value)?, &[], &[ours.iter().sum()])?;
        let grad = sum(grads.iter().map(Vec::as_slice));
        let file = node.get("grads")?;
        compare_gradients(&file, self.setup, &grad, found)?;
        let noise = self.setup.model.layout().entry("likelihood.variance").at(path)?.slot;
        found.compare("grad s2", &file.get("s2")?, &[], noise.of(&grad))?;
        let Some(file) = node.find("adjoints") else { return Ok(()) };
        let bars = all.iter().map(|c| c.adjoints(values).at(path)).collect::<Result<Vec<_>>>()?;
        let a: Vec<Vec<f64>> = bars.iter().map(|b| by_rows(&b.a)).collect();
        let shape = [bars[0].a.rows(), bars[0].a.cols()];
        found.compare("bar A", &file.get("A")?, &shape, &sum(a.iter().map(Vec::as_slice)))?;
        let kff = sum(bars.iter().map(|b| b.kff.as_slice()));
        found.compare("bar kff", &file.get("kff")?, &shape[1..], &kff)?;
        found.compare("bar s2", &file.get("s2")?, &[], &[bars.iter().map(|b| b.noise).sum()])
    }
}
