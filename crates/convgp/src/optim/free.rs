//! All trainable numbers as one unconstrained vector.

use crate::params::Layout;

/// The trainable part of a parameter vector in free coordinates, for optimisers that see one plain vector.
#[derive(Debug, Clone, Copy)]
pub struct FreeSpace<'a> {
    layout: &'a Layout,
}

impl<'a> FreeSpace<'a> {
    /// Of this layout.
    pub fn new(layout: &'a Layout) -> Self {
        Self { layout }
    }

    /// Number of trainable numbers.
    pub fn len(&self) -> usize {
        self.layout.entries().iter().filter(|e| e.trainable).map(|e| e.slot.len()).sum()
    }
    /// Whether nothing is trainable.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Free coordinates of `values`.
    pub fn gather(&self, values: &[f64]) -> Vec<f64> {
        let trainable = self.layout.entries().iter().filter(|e| e.trainable);
        trainable.flat_map(|e| e.transform.to_free(e.slot.of(values))).collect()
    }

    /// Writes the constrained values of `free` into `values`; frozen ones are left alone.
    pub fn scatter(&self, free: &[f64], values: &mut [f64]) {
        let mut start = 0;
        for e in self.layout.entries().iter().filter(|e| e.trainable) {
            let part = &free[start..start + e.slot.len()];
            e.slot.of_mut(values).copy_from_slice(&e.transform.from_free(part));
            start += part.len();
        }
    }

    /// Derivatives in free coordinates from derivatives in `values`.
    pub fn pull(&self, values: &[f64], grad: &[f64]) -> Vec<f64> {
        let mut out = Vec::with_capacity(self.len());
        for e in self.layout.entries().iter().filter(|e| e.trainable) {
            let start = out.len();
            out.extend_from_slice(e.slot.of(grad));
            e.transform.pull_to_free(e.slot.of(values), &mut out[start..]);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{ParamInit, Transform};

    #[test]
    fn frozen_numbers_stay_and_free_ones_round_trip() {
        let (mut layout, mut values) = (Layout::default(), Vec::new());
        layout.add(&mut values, "", ParamInit::positive("a", 0.7)).unwrap();
        layout.add(&mut values, "", ParamInit::positive("b", 2.0).frozen()).unwrap();
        layout.add(&mut values, "", ParamInit::array("c", Transform::Real, vec![-1.0, 3.0])).unwrap();
        let space = FreeSpace::new(&layout);
        let free = space.gather(&values);
        assert_eq!((free.len(), space.len()), (3, 3));
        let mut moved = vec![9.0, 2.0, 9.0, 9.0];
        space.scatter(&free, &mut moved);
        assert!(moved.iter().zip(&values).all(|(a, b)| (a - b).abs() < 1e-14));
        let pulled = space.pull(&values, &[1.0, 5.0, 2.0, 3.0]);
        assert!((pulled[0] - (1.0 - f64::exp(-0.7))).abs() < 1e-15 && pulled[1..] == [2.0, 3.0]);
    }
}
