//! Evaluating a fixture's model and comparing everything with the file.

use crate::GoldenError;
use crate::compare::{Found, by_rows, condition, sum};
use crate::error::At;
use crate::fixture::{Fixture, Source};
use crate::kernel::is_scalar;
use crate::node::Node;
use crate::posterior::dense_factors;
use crate::report::{Precision, Report};
use convgp::cov::Engine;
use convgp::data::Batch;
use convgp::likelihood::Predictive;
use convgp::linalg::Mat;
use convgp::model::{Bound, Jitter, Predictor, Workspace};
use convgp::params::{Form, Params};

type Result<T> = std::result::Result<T, GoldenError>;

/// Element `i` of the list `field` of `parent`.
fn element<'n, 'a>(list: &'n [Node<'a>], i: usize, parent: &Node, field: &str) -> Result<&'n Node<'a>> {
    list.get(i).ok_or_else(|| GoldenError::Missing { field: format!("{}.{field}[{i}]", parent.path()) })
}

impl Fixture {
    /// Evaluates the model with `engine` and compares every array of the file.
    pub fn check<E: Engine>(mut self, root: &Node, engine: &E, precision: Precision) -> Result<Report> {
        let batch = self.data.batch(&(0..self.data.len()).collect::<Vec<_>>());
        let mut ws = Workspace::default();
        let bound = self.evaluate(engine, &self.values, &batch, &mut ws)?;
        let mut found = Found::default();
        self.covariances(&root.get("outputs")?, &ws, &mut found)?;
        self.bound(&root.get("outputs")?, &bound, &ws, &mut found)?;
        self.model_gradients(&root.get("grads")?, &ws.grad, &mut found)?;
        self.other_gradients(&root.get("grads")?, &ws.grad, &mut found)?;
        self.predictions(&root.get("outputs")?, engine, &mut found)?;
        let condition = self.condition(root)?;
        if let Some(step) = root.find("natural_gradient_step") {
            self.natural_step(&step, engine, &batch, &mut found)?;
        }
        Ok(Report { quantities: found.0, condition, tolerance: precision.tolerance(condition) })
    }

    fn evaluate<E: Engine>(
        &self,
        engine: &E,
        params: &Params,
        batch: &Batch,
        ws: &mut Workspace<E>,
    ) -> Result<Bound> {
        self.model.elbo_and_grad(engine, params, batch.of(self.num_data), ws).at("outputs.elbo")
    }

    fn covariances<E: Engine>(&self, outputs: &Node, ws: &Workspace<E>, found: &mut Found) -> Result<()> {
        let images = self.data.len();
        let kuu = outputs.get("Kuu")?.list_of(self.places.len())?;
        let kuf = outputs.get("Kuf")?.list_of(self.places.len())?;
        for (i, &(c, r)) in self.places.iter().enumerate() {
            let m = self.model.components()[c].inducing();
            found.compare("Kuu", &kuu[i], &[m, m], &by_rows(&ws.kuu()[c]))?;
            found.compare("Kuf", &kuf[i], &[m, images], &by_rows(&ws.cov()[c].kuf[r]))?;
        }
        let responses = || ws.cov().iter().flat_map(|c| &c.kff);
        let kff: Vec<f64> = (0..images).map(|n| responses().map(|k| k[n]).sum()).collect();
        found.compare("kff", &outputs.get("kff")?, &[images], &kff)
    }

    fn bound<E: Engine>(
        &self,
        outputs: &Node,
        bound: &Bound,
        ws: &Workspace<E>,
        found: &mut Found,
    ) -> Result<()> {
        let (q, e) = (ws.marginals(), ws.expectations());
        let per_latent = [self.data.len(), self.model.variational().latents()];
        found.compare("f_mean", &outputs.get("f_mean")?, &per_latent, &q.mean)?;
        found.compare("f_var", &outputs.get("f_var")?, &per_latent, &q.var)?;
        found.compare("var_exp", &outputs.get("var_exp")?, &per_latent[..1], &e.value)?;
        found.compare("KL", &outputs.get("KL")?, &[], &[bound.kl])?;
        found.compare("elbo", &outputs.get("elbo")?, &[], &[bound.elbo])?;
        found.compare("dexp_dmean", &outputs.get("dexp_dmean")?, &per_latent, &e.mean_bar)?;
        found.compare("dexp_dvar", &outputs.get("dexp_dvar")?, &per_latent, &e.var_bar)
    }

    /// Gradients of kernels and inducing inputs, summed over the components that share them.
    fn model_gradients(&self, grads: &Node, grad: &[f64], found: &mut Found) -> Result<()> {
        let (kernels, inducing) = (grads.get("kernels")?.list()?, grads.get("inducing")?.list()?);
        for (c, source) in self.sources.iter().enumerate() {
            let first = |same: &dyn Fn(&Source) -> bool| !self.sources[..c].iter().any(same);
            if first(&|s| s.kernel == source.kernel) {
                let shares: Vec<usize> = self.users(|s| s.kernel == source.kernel);
                let node = element(&kernels, source.kernel, grads, "kernels")?;
                self.kernel_gradient(node, source, &shares, grad, found)?;
            }
            if first(&|s| s.inducing == source.inducing) {
                let shares: Vec<usize> = self.users(|s| s.inducing == source.inducing);
                let component = &self.model.components()[c];
                let shape = [component.inducing(), component.view_len()];
                let slot = |&c: &usize| self.model.components()[c].z_slot().of(grad);
                let ours = sum(shares.iter().map(slot));
                found.compare(
                    "grad Z",
                    element(&inducing, source.inducing, grads, "inducing")?,
                    &shape,
                    &ours,
                )?;
            }
        }
        Ok(())
    }

    /// All parameters of one kernel as one array. The derivative in a variance alone can be a difference of equal
    /// numbers (with robust-max the bound does not depend on it but for the jitter) and has no digits of its own.
    fn kernel_gradient(
        &self,
        node: &Node,
        source: &Source,
        shares: &[usize],
        grad: &[f64],
        found: &mut Found,
    ) -> Result<()> {
        let ours = sum(shares.iter().map(|&c| self.model.components()[c].theta_slot().of(grad)));
        let (mut expected, mut picked) = (Vec::new(), Vec::new());
        for (field, places) in &source.fields {
            let shape = [places.len()];
            expected.extend(node.get(field)?.array(if is_scalar(field) { &[] } else { &shape })?);
            picked.extend(places.iter().map(|&p| ours[p]));
        }
        found.push("grad kernel", node.path(), &expected, &picked);
        Ok(())
    }

    /// The model's components that come from such a source.
    fn users(&self, wanted: impl Fn(&Source) -> bool) -> Vec<usize> {
        (0..self.sources.len()).filter(|&c| wanted(&self.sources[c])).collect()
    }

    /// Gradients of weights, posterior and likelihood.
    fn other_gradients(&self, grads: &Node, grad: &[f64], found: &mut Found) -> Result<()> {
        let slots =
            self.places.iter().map(|&(c, r)| self.model.components()[c].responses()[r].weights_slot());
        let slots: Vec<_> = slots.collect();
        let weighted = slots.iter().flatten().count();
        if weighted > 0 {
            let nodes = grads.get("components")?.list()?;
            // Components without weights have no gradient: the list may skip them or hold something empty.
            let skips = nodes.len() == weighted && nodes.iter().all(|n| n.find("weights").is_some());
            let mut next = 0;
            for (i, slot) in slots.iter().enumerate() {
                let Some(slot) = slot else { continue };
                let node = element(&nodes, if skips { next } else { i }, grads, "components")?;
                found.compare("grad weights", &node.get("weights")?, &[slot.len()], slot.of(grad))?;
                next += 1;
            }
        }
        let q = self.model.variational();
        let (latents, total) = (q.latents(), q.total());
        found.compare("grad q_mu", &grads.get("q_mu")?, &[latents, total], q.mean_slot().of(grad))?;
        let factors = dense_factors(q, grad);
        found.compare("grad q_sqrt", &grads.get("q_sqrt")?, &[latents, total, total], &factors)?;
        for parameter in self.model.likelihood().parameters() {
            let entry =
                self.model.layout().entry(&format!("likelihood.{}", parameter.name)).at("likelihood")?;
            let node = grads.get("likelihood")?.get(&parameter.name)?;
            found.compare("grad likelihood", &node, &[], entry.slot.of(grad))?;
        }
        Ok(())
    }

    fn predictions<E: Engine>(&self, outputs: &Node, engine: &E, found: &mut Found) -> Result<()> {
        let (images, node) = (self.data.len(), outputs.get("predictive")?);
        let predictor = Predictor::new(&self.model, engine, &self.values).at(node.path())?;
        match predictor.predict(self.data.images()).at(node.path())? {
            Predictive::Real { mean, var } => {
                found.compare("y_mean", &node.get("y_mean")?, &[images], &mean)?;
                found.compare("y_var", &node.get("y_var")?, &[images], &var)?;
            }
            Predictive::Classes { probabilities, .. } if self.model.variational().latents() == 1 => {
                let one: Vec<f64> = probabilities.chunks_exact(2).map(|p| p[1]).collect();
                found.compare("prob_one", &node.get("prob_one")?, &[images], &one)?;
            }
            Predictive::Classes { probabilities, classes } => {
                found.compare(
                    "class_probs",
                    &node.get("class_probs")?,
                    &[images, classes],
                    &probabilities,
                )?;
            }
        }
        let log_density = predictor.log_density(&self.data).at(node.path())?;
        found.compare("log_density", &node.get("log_density")?, &[images], &log_density)?;
        let nlpp = -log_density.iter().sum::<f64>() / images as f64;
        found.compare("nlpp", &outputs.get("nlpp")?, &[], &[nlpp])
    }

    fn natural_step<E: Engine>(
        &mut self,
        step: &Node,
        engine: &E,
        batch: &Batch,
        found: &mut Found,
    ) -> Result<()> {
        let (mut values, mut ws) = (self.values.clone(), Workspace::default());
        self.model.set_form(Form::Natural, &mut values).at(step.path())?;
        self.evaluate(engine, &values, batch, &mut ws)?;
        self.model.natural_step(step.get("gamma")?.number()?, None, &ws, &mut values);
        self.model.set_form(Form::Covariance, &mut values).at(step.path())?;
        let q = self.model.variational();
        let (latents, total) = (q.latents(), q.total());
        found.compare("step q_mu", &step.get("q_mu")?, &[latents, total], q.mean_slot().of(&values))?;
        let factors = dense_factors(q, &values);
        found.compare("step q_sqrt", &step.get("q_sqrt")?, &[latents, total, total], &factors)
    }

    /// Worst condition number, in the 1-norm, of the file's `Kuu + jitter I`.
    fn condition(&self, root: &Node) -> Result<f64> {
        let (Jitter::Absolute(jitter) | Jitter::Relative(jitter)) = self.model.spec().jitter;
        let mut worst: f64 = 1.0;
        for node in root.get("outputs")?.get("Kuu")?.list()? {
            let m = node.list()?.len();
            let kuu = node.array(&[m, m])?;
            worst = worst.max(condition(Mat::from_fn(m, m, |i, j| {
                kuu[i * m + j] + if i == j { jitter } else { 0.0 }
            })));
        }
        Ok(worst)
    }
}
