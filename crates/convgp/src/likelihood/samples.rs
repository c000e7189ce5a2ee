//! Softmax at the samples of one image: probabilities, their averages and the derivatives of those.

use super::batch::exp_in_place;
use super::power::power_mean;
use super::rows::Row;
use super::softmax::VarianceDerivative;
use super::special::log_sum_exp;

/// Below this variance the pathwise derivative is a difference of equal numbers; the curvature is its limit.
const PATHWISE_FLOOR: f64 = 1e-12;

/// One image's samples, `S x K` row-major, and one number per sample.
#[derive(Default)]
pub(super) struct Scratch {
    /// Standard normal draws, set by the caller.
    pub draws: Vec<f64>,
    /// Probabilities, once [`Scratch::evaluate`] has run.
    p: Vec<f64>,
    /// `log Σ_k exp f_k`, likewise.
    log_total: Vec<f64>,
    sd: Vec<f64>,
    /// `log p_y` of every sample, and how much it counts: 1 in the mean.
    logs: Vec<f64>,
    weights: Vec<f64>,
    /// Sums over samples, per latent.
    sums: Vec<f64>,
}

impl Scratch {
    /// With its draws already in place.
    pub fn with_draws(draws: Vec<f64>) -> Self {
        Self { draws, ..Self::default() }
    }

    /// `p_sk = exp(f_sk) / Σ_j exp(f_sj)`, `f_s = mean + sd eps_s`.
    pub fn evaluate(&mut self, (mean, var): (&[f64], &[f64])) {
        let k = mean.len();
        self.sd.clear();
        self.sd.extend(var.iter().map(|v| v.sqrt()));
        self.p.resize(self.draws.len(), 0.0);
        self.log_total.clear();
        for (f, eps) in self.p.chunks_exact_mut(k).zip(self.draws.chunks_exact(k)) {
            (0..k).for_each(|i| f[i] = mean[i] + self.sd[i] * eps[i]);
            let top = f.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
            f.iter_mut().for_each(|v| *v -= top);
            self.log_total.push(top);
        }
        exp_in_place(&mut self.p);
        for (e, log_total) in self.p.chunks_exact_mut(k).zip(&mut self.log_total) {
            let total: f64 = e.iter().sum();
            let scale = 1.0 / total;
            e.iter_mut().for_each(|v| *v *= scale);
            *log_total += libm::log(total);
        }
    }

    /// `log p_sy = f_sy - log Σ_k exp f_sk`, sample by sample; keeps its digits when `p_sy` underflows.
    fn log_p(&self, mean: &[f64], y: usize) -> impl Iterator<Item = f64> + Clone {
        let f = self.draws.chunks_exact(mean.len()).map(move |eps| mean[y] + self.sd[y] * eps[y]);
        f.zip(&self.log_total).map(|(f, log_total)| f - log_total)
    }

    /// The power mean of `p_y` in logarithms and its derivatives, written over `row`.
    pub fn expectation(
        &mut self,
        alpha: f64,
        (mean, var): (&[f64], &[f64]),
        y: usize,
        derivative: VarianceDerivative,
        row: Row,
    ) {
        let (k, samples) = (mean.len(), self.log_total.len() as f64);
        let mut logs = std::mem::take(&mut self.logs);
        logs.clear();
        logs.extend(self.log_p(mean, y));
        self.weights.clear();
        self.weights.resize(logs.len(), 1.0);
        *row.value = power_mean(alpha, &logs, &mut self.weights, samples);
        self.logs = logs;
        // Weighted sums of p, p (1 - p), p eps, and eps_y: enough for both derivatives.
        let Self { sums, p, draws, sd, weights, .. } = self;
        sums.clear();
        sums.resize(3 * k, 0.0);
        let (sum_p, rest) = sums.split_at_mut(k);
        let (curvature, sum_p_eps) = rest.split_at_mut(k);
        let mut eps_y = 0.0;
        for ((p, eps), w) in p.chunks_exact(k).zip(draws.chunks_exact(k)).zip(weights.iter()) {
            for i in 0..k {
                let wp = w * p[i];
                sum_p[i] += wp;
                curvature[i] -= wp * (1.0 - p[i]);
                sum_p_eps[i] += wp * eps[i];
            }
            eps_y += w * eps[y];
        }
        for i in 0..k {
            let (hit, hit_eps) = if i == y { (1.0, eps_y) } else { (0.0, 0.0) };
            row.mean_bar[i] = hit - sum_p[i] / samples;
            let by_path = derivative == VarianceDerivative::Pathwise && var[i] > PATHWISE_FLOOR;
            // The sum of (hit - p)^2 in terms of the others.
            let squares = (1.0 - 2.0 * hit) * sum_p[i] + hit * samples + curvature[i];
            let bent = curvature[i] + alpha * squares;
            let sum = if by_path { (hit_eps - sum_p_eps[i]) / sd[i] } else { bent };
            row.var_bar[i] = 0.5 * sum / samples;
        }
    }

    /// The mean of `p`, written over `row`.
    pub fn mean_probabilities(&self, row: &mut [f64]) {
        let samples = self.log_total.len() as f64;
        row.fill(0.0);
        for p in self.p.chunks_exact(row.len()) {
            row.iter_mut().zip(p).for_each(|(r, p)| *r += p);
        }
        row.iter_mut().for_each(|r| *r /= samples);
    }

    /// The logarithm of the mean of `p_y`.
    pub fn log_mean_probability(&self, (mean, _): (&[f64], &[f64]), y: usize) -> f64 {
        log_sum_exp(self.log_p(mean, y)) - libm::log(self.log_total.len() as f64)
    }
}
