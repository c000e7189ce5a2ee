//! `kind: labels`: regression on labels, leave-one-out and predictions.

use crate::GoldenError;
use crate::closed_form::{Covariances, Setup, compare_images, compare_whitening, read_images, total_kff};
use crate::compare::{Found, by_rows};
use crate::error::At;
use crate::node::Node;
use crate::report::{Precision, Report};
use convgp::closed_form::{Features, LeaveOneOut, Options, Precision as Products};
use convgp::cov::{Cov, Engine};
use convgp::data::{Dataset, Images, Targets};
use convgp::likelihood::{LikelihoodSpec, Predictive};
use convgp::linalg::{Accumulate, Cholesky, Mat, gemm, norm_squared, solve_lower};
use convgp::model::{PosteriorSpec, Predictor};
use convgp::params::Params;
use convgp::variational::Structure;

type Result<T> = std::result::Result<T, GoldenError>;

/// Compares every array of the file, solved in inducing outputs and solved in images.
pub fn check<E: Engine>(root: &Node, engine: &E, precision: Precision) -> Result<Report> {
    let (images, mut found) = (root.get("X")?.list()?.len(), Found::default());
    compare(root, engine, Some(images), &mut found)?;
    let (setup, ours) = compare(root, engine, None, &mut found)?;
    Ok(setup.report(&ours, precision, found))
}

fn compare<E: Engine>(
    root: &Node,
    engine: &E,
    rank: Option<usize>,
    found: &mut Found,
) -> Result<(Setup, Covariances<E>)> {
    let (outputs, classes) = (root.get("outputs")?, root.get("classes")?.whole()?);
    let posterior = PosteriorSpec { structure: Structure::Shared, whiten: true, rank };
    let setup = Setup::read(root, LikelihoodSpec::Labels { classes }, posterior)?;
    let ours = setup.covariances(engine, &setup.images)?;
    compare_whitening(root, &setup.images, found)?;
    setup.compare(&outputs, &ours, found)?;
    let (data, labels) = read_data(root, "Y", setup.images.clone(), classes)?;
    let (factor, d) = normalised(&setup, &ours.chol, ours.cov.clone());
    found.compare("factor", &outputs.get("factor")?, &[labels.len()], &factor)?;
    found.compare("d", &outputs.get("d")?, &[labels.len()], &d)?;
    let temperatures = root.get("temperature_grid")?.numbers()?;
    let mut case = Case { setup: &setup, engine, data, labels, classes, d, temperatures, a: Mat::default() };
    case.a = case.statistics(&outputs, found)?;
    let solved = case.solve(root.get("lambda")?.number()?)?;
    case.left_out(&outputs, &solved, found)?;
    let images = read_images(root, "X_test", setup.images.shape())?;
    let (test, _) = read_data(root, "Y_test", images, classes)?;
    case.predictions(&outputs.get("test")?, &test, &solved, found)?;
    case.every_lambda(root, found)?;
    Ok((setup, ours))
}

fn read_data(root: &Node, field: &str, images: Images, classes: usize) -> Result<(Dataset, Vec<usize>)> {
    let labels = root.get(field)?.list_of(images.count())?;
    let labels = labels.iter().map(Node::whole).collect::<Result<Vec<_>>>()?;
    let small = labels.iter().map(|&l| u32::try_from(l).unwrap_or(u32::MAX)).collect();
    let data = Targets::classes(small, classes).and_then(|targets| Dataset::new(images, targets));
    Ok((data.at(field)?, labels))
}

/// What images are divided by, and `d` of the normalised ones.
fn normalised(setup: &Setup, chol: &Mat, mut cov: Cov) -> (Vec<f64>, Vec<f64>) {
    let factor = setup.component().image_norm().apply(chol, &mut cov);
    let mut d = total_kff(&cov);
    for mut a in cov.kuf {
        solve_lower(chol.view(), a.view_mut());
        d.iter_mut().enumerate().for_each(|(n, d)| *d -= norm_squared(a.col(n)));
    }
    (factor, d)
}

struct Case<'a, E: Engine> {
    setup: &'a Setup,
    engine: &'a E,
    data: Dataset,
    labels: Vec<usize>,
    classes: usize,
    d: Vec<f64>,
    temperatures: Vec<f64>,
    /// Features of the images, `D x N`.
    a: Mat,
}

/// The library's solution at one noise, and what follows for images left out.
struct Solved {
    values: Params,
    summary: LeaveOneOut,
    fit: Vec<f64>,
    h: Vec<f64>,
    /// `[image][class]`.
    mean: Vec<f64>,
    /// Mean negative log probability for each temperature of the file.
    nlpp: Vec<f64>,
    temperature: usize,
}

impl<E: Engine> Case<'_, E> {
    /// What an image's label asks of a class.
    fn target(&self, image: usize, class: usize) -> f64 {
        f64::from(u8::from(self.labels[image] == class)) - 1.0 / self.classes as f64
    }

    /// Features and their sums; returns the features.
    fn statistics(&self, outputs: &Node, found: &mut Found) -> Result<Mat> {
        let Setup { model, values, images, .. } = self.setup;
        let features = Features::new(model, self.engine, values).at("outputs.A")?;
        let mut a = Mat::zeros(features.outputs(), images.count());
        let keep = |indices: &[usize], _: &[u64], part: &Mat| {
            indices.iter().enumerate().for_each(|(i, &n)| a.col_mut(n).copy_from_slice(part.col(i)));
            Ok(true)
        };
        features.for_each(images, 0, keep).at("outputs.A")?;
        let (d, n, c) = (a.rows(), a.cols(), self.classes);
        let times = |y: &Mat| {
            let mut out = Mat::zeros(d, y.rows());
            gemm(out.view_mut(), Accumulate::Set, 1.0, a.view(), y.view().transpose());
            by_rows(&out)
        };
        found.compare("A", &outputs.get("A")?, &[d, n], &by_rows(&a))?;
        found.compare("G", &outputs.get("G")?, &[d, d], &times(&a))?;
        let y = Mat::from_fn(c, n, |class, image| self.target(image, class));
        found.compare("b", &outputs.get("b")?, &[d, c], &times(&y))?;
        Ok(a)
    }

    /// `A_n^T (A A^T + lambda I)^{-1} A_n`. The library's variances hold it beside `d / lambda`, which can be much larger.
    fn leverages(&self, lambda: f64) -> Result<Vec<f64>> {
        let d = self.a.rows();
        let mut factor = Mat::zeros(d, d);
        gemm(factor.view_mut(), Accumulate::Set, 1.0, self.a.view(), self.a.view().transpose());
        (0..d).for_each(|i| factor[(i, i)] += lambda);
        let factor = Cholesky::new(factor)
            .map_err(|_| GoldenError::field("lambda", "leaves `G + lambda I` indefinite"))?;
        let mut solved = self.a.clone();
        factor.whiten(solved.view_mut());
        Ok((0..solved.cols()).map(|n| norm_squared(solved.col(n))).collect())
    }

    fn solve(&self, lambda: f64) -> Result<Solved> {
        let Setup { model, images, .. } = self.setup;
        let mut values = self.setup.values.clone();
        let options = Options { precision: Products::Double, lambda: Some(lambda) };
        let fit = model.fit_closed_form(self.engine, &mut values, &self.data, &options, &mut |_, _| true);
        let Some(summary) = fit.at("lambda")? else {
            return Err(GoldenError::field("lambda", "could not be solved for"));
        };
        let summary = summary.chosen;
        let predictor = Predictor::new(model, self.engine, &values).at("lambda")?;
        let fit = predictor.latents(images).at("outputs.fit")?.mean;
        let h = self.leverages(lambda)?;
        let target = |i: usize| self.target(i / self.classes, i % self.classes);
        let residual = |i: usize| (target(i) - fit[i]) / (1.0 - h[i / self.classes]);
        let mean: Vec<f64> = (0..fit.len()).map(|i| target(i) - residual(i)).collect();
        let at = |t: &f64| {
            let rows = softmax(&mean, self.classes, *t);
            let logs = rows.chunks_exact(self.classes).zip(&self.labels).map(|(p, &y)| p[y].ln());
            -logs.sum::<f64>() / self.labels.len() as f64
        };
        let nlpp: Vec<f64> = self.temperatures.iter().map(at).collect();
        let temperature = smallest(&nlpp);
        Ok(Solved { values, summary, fit, h, mean, nlpp, temperature })
    }

    fn left_out(&self, outputs: &Node, s: &Solved, found: &mut Found) -> Result<()> {
        let (n, c) = (self.labels.len(), self.classes);
        let variational = self.setup.model.variational();
        let w = variational.mean_slot().of(&s.values);
        let d = variational.total();
        let w: Vec<f64> = (0..d * c).map(|i| w[i % c * d + i / c]).collect();
        found.compare("w", &outputs.get("w")?, &[d, c], &w)?;
        found.compare("fit", &outputs.get("fit")?, &[n, c], &s.fit)?;
        found.compare("h", &outputs.get("h")?, &[n], &s.h)?;
        found.compare("loo_mean", &outputs.get("loo_mean")?, &[n, c], &s.mean)?;
        let noise = s.summary.noise;
        found.compare("s2", &outputs.get("s2")?, &[], &[noise])?;
        let variance = |scale: f64| -> Vec<f64> {
            s.h.iter().zip(&self.d).map(|(h, d)| scale * d + noise * h / (1.0 - h)).collect()
        };
        let scaled = variance(noise / s.summary.lambda);
        found.compare("loo_variance", &outputs.get("loo_variance")?, &[n], &variance(1.0))?;
        found.compare("loo_variance", &outputs.get("loo_variance_scaled")?, &[n], &scaled)?;
        let grid = [self.temperatures.len()];
        found.compare("loo_nlpp", &outputs.get("loo_nlpp_grid")?, &grid, &s.nlpp)?;
        let (temperature, nlpp) = (self.temperatures[s.temperature], s.nlpp[s.temperature]);
        found.compare("temperature", &outputs.get("temperature")?, &[], &[temperature])?;
        found.compare("loo_nlpp", &outputs.get("loo_nlpp")?, &[], &[nlpp])?;
        let probabilities = softmax(&s.mean, c, temperature);
        found.compare("loo_prob", &outputs.get("loo_prob")?, &[n, c], &probabilities)
    }

    fn predictions(&self, node: &Node, test: &Dataset, s: &Solved, found: &mut Found) -> Result<()> {
        let Setup { model, .. } = self.setup;
        let (n, c) = (test.len(), self.classes);
        let ours = self.setup.covariances(self.engine, test.images())?;
        compare_images(node, ["Kuf", "kff"], &ours.cov, found)?;
        let (factor, d) = normalised(self.setup, &ours.chol, ours.cov);
        found.compare("factor", &node.get("factor")?, &[n], &factor)?;
        let mut values = s.values.clone();
        let temperature = [self.temperatures[s.temperature]];
        model.layout().set(&mut values, "likelihood.temperature", &temperature).at(node.path())?;
        let predictor = Predictor::new(model, self.engine, &values).at(node.path())?;
        let q = predictor.latents(test.images()).at(node.path())?;
        found.compare("mean", &node.get("mean")?, &[n, c], &q.mean)?;
        let scaled: Vec<f64> = q.var.iter().step_by(c).copied().collect();
        found.compare("variance", &node.get("variance_scaled")?, &[n], &scaled)?;
        let more = s.summary.noise / s.summary.lambda - 1.0;
        let plain: Vec<f64> = scaled.iter().zip(&d).map(|(v, d)| v - more * d).collect();
        found.compare("variance", &node.get("variance")?, &[n], &plain)?;
        if let Predictive::Classes { probabilities, .. } = predictor.predict(test.images()).at(node.path())? {
            found.compare("prob", &node.get("prob")?, &[n, c], &probabilities)?;
        }
        let log_density = predictor.log_density(test).at(node.path())?;
        let nlpp = -log_density.iter().sum::<f64>() / n as f64;
        found.compare("nlpp", &node.get("nlpp")?, &[], &[nlpp])
    }

    fn every_lambda(&self, root: &Node, found: &mut Found) -> Result<()> {
        let outputs = root.get("outputs")?;
        let lambdas = root.get("lambda_grid")?.numbers()?;
        let rows = outputs.get("by_lambda")?.list_of(lambdas.len())?;
        let (mut mse, mut nlpp) = (Vec::new(), Vec::new());
        for (row, &lambda) in rows.iter().zip(&lambdas) {
            let s = self.solve(lambda)?;
            mse.push(s.summary.mse);
            nlpp.push(s.nlpp[s.temperature]);
            let temperature = self.temperatures[s.temperature];
            for (field, ours) in [
                ("lambda", lambda),
                ("loo_mse", s.summary.mse),
                ("s2", s.summary.noise),
                ("temperature", temperature),
                ("loo_nlpp", s.nlpp[s.temperature]),
            ] {
                found.compare("by_lambda", &row.get(field)?, &[], &[ours])?;
            }
        }
        let chosen = outputs.get("chosen")?;
        found.compare("chosen", &chosen.get("by_mse")?, &[], &[lambdas[smallest(&mse)]])?;
        found.compare("chosen", &chosen.get("by_nlpp")?, &[], &[lambdas[smallest(&nlpp)]])
    }
}

/// Place of the smallest element, the first of equals.
fn smallest(values: &[f64]) -> usize {
    (0..values.len()).fold(0, |best, i| if values[i] < values[best] { i } else { best })
}

/// `softmax(mean / temperature)` of every row.
fn softmax(mean: &[f64], classes: usize, temperature: f64) -> Vec<f64> {
    let row = |m: &[f64]| -> Vec<f64> {
        let top = m.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let exp: Vec<f64> = m.iter().map(|m| ((m - top) / temperature).exp()).collect();
        let total: f64 = exp.iter().sum();
        exp.iter().map(|e| e / total).collect()
    };
    mean.chunks_exact(classes).flat_map(row).collect()
}
