//! The contract every kernel must keep, as a check that a newcomer's kernel gets for free.

use super::{Kernel, PairBar, Term, parameter_count};
use crate::linalg::{Cholesky, Mat};
use crate::rng::Rng;

/// Checks a kernel on random views of `len` numbers: symmetry, positive semi-definiteness, pullbacks against central
/// differences (relative error at most 1e-7), and agreement of [`Kernel::terms`] with [`Kernel::value`].
///
/// Returns a sentence about the first thing that is wrong.
pub fn check_kernel(kernel: &dyn Kernel, len: usize, seed: u64) -> Result<(), String> {
    kernel.check_len(len).map_err(|e| format!("refuses views of {len} numbers: {e}"))?;
    let mut rng = Rng::new(seed);
    let theta: Vec<f64> = kernel
        .parameters()
        .iter()
        .flat_map(|p| p.values.clone())
        .map(|v| v * (0.7 + 0.6 * rng.uniform()))
        .collect();
    let views: Vec<Vec<f64>> = (0..12).map(|_| (0..len).map(|_| rng.normal()).collect()).collect();
    symmetric_and_positive(kernel, &theta, &views)?;
    for pair in views.chunks_exact(2) {
        derivatives(kernel, &theta, &pair[0], &pair[1])?;
    }
    if let Some(terms) = kernel.terms() {
        terms_agree(kernel, &terms, &theta, &views)?;
    }
    Ok(())
}

fn symmetric_and_positive(kernel: &dyn Kernel, theta: &[f64], views: &[Vec<f64>]) -> Result<(), String> {
    let k = Mat::from_fn(views.len(), views.len(), |i, j| kernel.value(theta, &views[i], &views[j]));
    for i in 0..views.len() {
        for j in 0..i {
            if (k[(i, j)] - k[(j, i)]).abs() > 1e-12 * k[(i, i)].abs() {
                return Err(format!("not symmetric: k(a, b) = {}, k(b, a) = {}", k[(i, j)], k[(j, i)]));
            }
        }
    }
    let mut jittered = k.clone();
    (0..views.len()).for_each(|i| jittered[(i, i)] *= 1.0 + 1e-9);
    Cholesky::new(jittered)
        .map(|_| ())
        .map_err(|e| format!("not positive semi-definite on random views (pivot {})", e.row))
}

fn derivatives(kernel: &dyn Kernel, theta: &[f64], a: &[f64], b: &[f64]) -> Result<(), String> {
    let mut theta_bar = vec![0.0; parameter_count(kernel)];
    let mut b_bar = vec![0.0; b.len()];
    let g = 1.7;
    kernel.pullback(theta, a, b, g, &mut PairBar { theta: &mut theta_bar, b: Some(&mut b_bar) });
    let difference = |x: &[f64], i: usize, f: &dyn Fn(&[f64]) -> f64| {
        let h = 1e-5 * x[i].abs().max(0.1);
        let at = |step: f64| {
            let mut moved = x.to_vec();
            moved[i] += step;
            f(&moved)
        };
        // Fourth order, so that the step can be large enough for rounding not to matter.
        g * (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h)
    };
    let scale = g * kernel.value(theta, a, a).abs();
    let compare = |what: &str, i: usize, found: f64, expected: f64| {
        let error = (found - expected).abs() / expected.abs().max(1e-3 * scale);
        if error > 1e-7 {
            return Err(format!("d{what}[{i}]: pullback gives {found}, differences give {expected}"));
        }
        Ok(())
    };
    for i in 0..theta.len() {
        compare("theta", i, theta_bar[i], difference(theta, i, &|t| kernel.value(t, a, b)))?;
    }
    for i in 0..b.len() {
        compare("view", i, b_bar[i], difference(b, i, &|b| kernel.value(theta, a, b)))?;
    }
    Ok(())
}

fn terms_agree(kernel: &dyn Kernel, terms: &[Term], theta: &[f64], views: &[Vec<f64>]) -> Result<(), String> {
    for pair in views.windows(2) {
        let product = |t: &Term| t.leaves.iter().map(|l| l.value(theta, &pair[0], &pair[1])).product::<f64>();
        let (from_terms, value) =
            (terms.iter().map(product).sum::<f64>(), kernel.value(theta, &pair[0], &pair[1]));
        if (from_terms - value).abs() > 1e-12 * value.abs().max(1e-12) {
            return Err(format!("terms() give {from_terms}, value() gives {value}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;
    use std::sync::Arc;

    #[test]
    fn every_kernel_keeps_the_contract() {
        for family in Family::ALL {
            let (name, radial) = (family.name(), family.radial());
            let plain = Stationary::new(radial, Dims::all(5), 1.3, 1.7);
            check_kernel(&plain, 5, 1).unwrap_or_else(|e| panic!("{name}: {e}"));
            let strided = Stationary::new(radial, Dims { start: 1, len: 3, step: 2 }, 1.3, 1.7);
            check_kernel(&strided, 6, 2).unwrap_or_else(|e| panic!("{name}, strided: {e}"));
            let ard = plain.clone().with_lengthscales(vec![0.8, 1.9, 2.5, 1.1, 1.4]).unwrap();
            check_kernel(&ard, 5, 3).unwrap_or_else(|e| panic!("{name}, ard: {e}"));
            let additive = Additive::new(radial, Dims::all(4), 0.6, 1.2);
            check_kernel(&additive, 4, 4).unwrap_or_else(|e| panic!("{name}, additive: {e}"));
            let parts = || -> Vec<Arc<dyn Kernel>> {
                vec![
                    Arc::new(Stationary::new(radial, Dims { start: 0, len: 4, step: 1 }, 1.3, 1.7)),
                    Arc::new(
                        Stationary::new(radial, Dims { start: 4, len: 2, step: 1 }, 1.0, 2.9)
                            .without_variance(),
                    ),
                    Arc::new(additive.clone()),
                ]
            };
            let sum = Sum::new(parts()).unwrap();
            check_kernel(&sum, 6, 5).unwrap_or_else(|e| panic!("{name}, sum: {e}"));
            let product = Product::new(vec![Arc::new(sum), parts().remove(1)]).unwrap();
            check_kernel(&product, 6, 6).unwrap_or_else(|e| panic!("{name}, product of a sum: {e}"));
        }
    }

    /// A function of two views whose pullback does nothing.
    #[derive(Debug)]
    struct Wrong(fn(&[f64], &[f64]) -> f64);
    impl Kernel for Wrong {
        fn parameters(&self) -> Vec<crate::params::ParamInit> {
            vec![crate::params::ParamInit::positive("variance", 1.0)]
        }
        fn check_len(&self, _: usize) -> Result<(), KernelError> {
            Ok(())
        }
        fn value(&self, theta: &[f64], a: &[f64], b: &[f64]) -> f64 {
            theta[0] * self.0(a, b)
        }
        fn pullback(&self, _: &[f64], _: &[f64], _: &[f64], _: f64, _: &mut PairBar) {}
    }

    #[test]
    fn each_fault_is_named() {
        let rbf = |a: &[f64], b: &[f64]| (-0.5 * (a[0] - b[0]).powi(2)).exp();
        for (kernel, message) in [
            (Wrong(rbf), "dtheta[0]: pullback gives 0, differences give "),
            (Wrong(|a, b| (a[0] - b[0]).exp()), "not symmetric: k(a, b) = "),
            (Wrong(|a, b| a[0] * b[0] - 9.0), "not positive semi-definite on random views (pivot 0)"),
        ] {
            let err = check_kernel(&kernel, 2, 1).unwrap_err();
            assert!(err.starts_with(message), "{err}, not {message}");
        }
    }
}
