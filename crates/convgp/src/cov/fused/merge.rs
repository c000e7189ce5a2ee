//! Views of one image with identical ones merged, adding their weights. Exact, for Kuf, kff and every derivative.

use crate::views::Views;

/// Which views of an image are represented by which row.
#[derive(Debug, Default, Clone)]
pub struct Merged {
    /// Per row, the view that stands for it.
    pub representatives: Vec<u32>,
    /// Per view, its row.
    pub row_of: Vec<u32>,
}

impl Merged {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.representatives.len()
    }

    /// Every view its own row.
    fn separate(&mut self, count: usize) {
        self.representatives.clear();
        self.representatives.extend(0..count as u32);
        self.row_of.clone_from(&self.representatives);
    }

    /// Adds up a quantity per view into rows.
    pub fn sum_into_rows(&self, per_view: &[f64], per_row: &mut Vec<f64>) {
        per_row.clear();
        per_row.resize(self.rows(), 0.0);
        for (&row, value) in self.row_of.iter().zip(per_view) {
            per_row[row as usize] += value;
        }
    }
}

/// Buffers for cutting out and merging views.
#[derive(Debug, Default)]
pub struct Cutter {
    /// All views of the image, `P x E`.
    views: Vec<f64>,
    table: Vec<u32>,
    hashes: Vec<u64>,
}

impl Cutter {
    /// Cuts out all views of an image.
    pub fn cut(&mut self, views: &dyn Views, image: &[f64]) {
        self.views.resize(views.count() * views.len(), 0.0);
        views.write(image, &mut self.views);
    }

    /// View `p` of those cut out last.
    pub fn view(&self, p: usize, len: usize) -> &[f64] {
        &self.views[p * len..(p + 1) * len]
    }

    /// Finds equal views, comparing the first `compare` of `len` numbers; rows are in order of first appearance.
    pub fn merge(&mut self, len: usize, compare: usize, merge: bool, out: &mut Merged) {
        let count = self.views.len() / len;
        if !merge || count == 1 {
            return out.separate(count);
        }
        self.hash(len, compare);
        let mask = (2 * count).next_power_of_two() - 1;
        self.table.clear();
        self.table.resize(mask + 1, u32::MAX);
        out.representatives.clear();
        out.row_of.clear();
        for p in 0..count {
            let row = self.find(p, len, compare, mask, &out.representatives);
            if row as usize == out.representatives.len() {
                out.representatives.push(p as u32);
            }
            out.row_of.push(row);
        }
    }

    /// Multiply-add hashes of the bit patterns; `-0.0` and `0.0` differ, which only misses a merge.
    fn hash(&mut self, len: usize, compare: usize) {
        self.hashes.clear();
        self.hashes.extend(self.views.chunks_exact(len).map(|view| {
            let mut h = 0u64;
            let mut k = 0x9e37_79b9_7f4a_7c15_u64;
            for x in &view[..compare] {
                h = h.wrapping_add((x.to_bits() >> 13).wrapping_mul(k));
                k = k.wrapping_add(0x3c6e_f372_fe94_f82a);
            }
            h ^ (h >> 29)
        }));
    }

    /// The row holding a view equal to view `p`, or the next free row.
    fn find(&mut self, p: usize, len: usize, compare: usize, mask: usize, representatives: &[u32]) -> u32 {
        let mut slot = (self.hashes[p] >> 7) as usize & mask;
        loop {
            let row = self.table[slot];
            if row == u32::MAX {
                self.table[slot] = representatives.len() as u32;
                return representatives.len() as u32;
            }
            let other = representatives[row as usize] as usize;
            if self.hashes[other] == self.hashes[p]
                && self.view(other, len)[..compare] == self.view(p, len)[..compare]
            {
                return row;
            }
            slot = (slot + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::ImageShape;
    use crate::views::Windows;

    #[test]
    fn equal_views_share_a_row_and_others_do_not() {
        let shape = ImageShape::new(9, 8, 1).unwrap();
        let views = Windows::new(shape, (3, 2), (1, 1), crate::views::Channels::Pooled).unwrap();
        let image: Vec<f64> = (0..72).map(|i| if i % 9 == 0 { f64::from(i % 4) } else { 0.0 }).collect();
        let (mut cutter, mut merged) = (Cutter::default(), Merged::default());
        cutter.cut(&views, &image);
        let e = views.len();
        cutter.merge(e, e, true, &mut merged);
        assert!(merged.rows() < views.count());
        for p in 0..views.count() {
            for q in 0..views.count() {
                let same = cutter.view(p, e) == cutter.view(q, e);
                assert_eq!(merged.row_of[p] == merged.row_of[q], same, "views {p} and {q}");
            }
            let rep = merged.representatives[merged.row_of[p] as usize] as usize;
            assert_eq!(cutter.view(rep, e), cutter.view(p, e));
        }
        cutter.merge(e, e, false, &mut merged);
        assert_eq!(merged.rows(), views.count());
    }
}
