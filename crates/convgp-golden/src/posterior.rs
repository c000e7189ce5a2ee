//! `q` of the file (dense matrices) in the packed triangles of the parameter vector, and back.

use crate::GoldenError;
use crate::node::Node;
use convgp::params::{packed_column, packed_len};
use convgp::variational::Variational;

/// Writes `q_mu` and `q_sqrt` of `node` into `values`.
pub fn write_q(node: &Node, q: &Variational, values: &mut [f64]) -> Result<(), GoldenError> {
    let (latents, total) = (q.latents(), q.total());
    let mean = node.get("q_mu")?.array(&[latents, total])?;
    q.mean_slot().of_mut(values).copy_from_slice(&mean);
    let factors = node.get("q_sqrt")?;
    let dense = factors.array(&[latents, total, total])?;
    let mut rest = dense.clone();
    for group in q.groups() {
        let (start, order) = (group.rows.start, group.order());
        let packed = group.slot.of_mut(values);
        for (l, triangle) in packed.chunks_exact_mut(packed_len(order)).enumerate() {
            for j in 0..order {
                for i in j..order {
                    let place = (l * total + start + i) * total + start + j;
                    triangle[packed_column(order, j) + i - j] = dense[place];
                    rest[place] = 0.0;
                    if i == j && dense[place] <= 0.0 {
                        let problem =
                            format!("[{l}] has {} on its diagonal; it must be positive", dense[place]);
                        return Err(factors.refuse(problem));
                    }
                }
            }
        }
    }
    match rest.iter().position(|&x| x != 0.0) {
        None => Ok(()),
        Some(p) => {
            let (l, i, j) = (p / total / total, p / total % total, p % total);
            Err(factors.refuse(format!("[{l}][{i}][{j}] is not zero, but no parameter stands there")))
        }
    }
}

/// The triangles of `values` (or of a gradient laid out like it) as `L x Mtot x Mtot` numbers, zero elsewhere.
pub fn dense_factors(q: &Variational, values: &[f64]) -> Vec<f64> {
    let total = q.total();
    let mut dense = vec![0.0; q.latents() * total * total];
    for group in q.groups() {
        let (start, order) = (group.rows.start, group.order());
        for l in 0..q.latents() {
            let triangle = group.triangle(values, l);
            for j in 0..order {
                for i in j..order {
                    dense[(l * total + start + i) * total + start + j] =
                        triangle[packed_column(order, j) + i - j];
                }
            }
        }
    }
    dense
}
