//! Class probabilities beside the labels.

use super::{MetricsError, most_probable};

/// How far a row of probabilities may sum from one: likelihoods integrate numerically.
const SUM_TOLERANCE: f64 = 1e-3;

/// Checked class probabilities, `N x K` row-major, with one label per image.
#[derive(Debug, Clone, Copy)]
pub struct Classified<'a> {
    probabilities: &'a [f64],
    labels: &'a [u32],
    classes: usize,
}

impl<'a> Classified<'a> {
    /// Checks counts, labels, and that every row is a distribution.
    pub fn new(probabilities: &'a [f64], labels: &'a [u32], classes: usize) -> Result<Self, MetricsError> {
        if classes == 0 || !probabilities.len().is_multiple_of(classes) {
            return Err(MetricsError::Rows { found: probabilities.len(), classes });
        }
        let images = probabilities.len() / classes;
        if images == 0 {
            return Err(MetricsError::Empty { what: "images" });
        }
        if labels.len() != images {
            return Err(MetricsError::Count { what: "labels", found: labels.len(), expected: images });
        }
        for (image, row) in probabilities.chunks_exact(classes).enumerate() {
            if let Some(&value) = row.iter().find(|p| !(-SUM_TOLERANCE..=1.0 + SUM_TOLERANCE).contains(*p)) {
                return Err(MetricsError::NotAProbability { what: "probability", image, value });
            }
            let sum: f64 = row.iter().sum();
            if (sum - 1.0).abs() > SUM_TOLERANCE {
                return Err(MetricsError::Sum { image, sum });
            }
        }
        if let Some(image) = labels.iter().position(|&l| l as usize >= classes) {
            return Err(MetricsError::Label { image, label: labels[image], classes });
        }
        Ok(Self { probabilities, labels, classes })
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.labels.len()
    }
    /// Never true: there is at least one image.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }
    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }
    /// The labels.
    pub fn labels(&self) -> &'a [u32] {
        self.labels
    }
    /// Probabilities of image `n`.
    pub fn row(&self, n: usize) -> &'a [f64] {
        &self.probabilities[n * self.classes..(n + 1) * self.classes]
    }
    fn rows(&self) -> impl Iterator<Item = (&'a [f64], usize)> + '_ {
        self.probabilities.chunks_exact(self.classes).zip(self.labels).map(|(row, &l)| (row, l as usize))
    }

    /// The most probable class of every image; ties go to the lower class.
    pub fn predicted(&self) -> Vec<usize> {
        self.rows().map(|(row, _)| most_probable(row)).collect()
    }
    /// Whether the most probable class is the label.
    pub fn correct(&self) -> Vec<bool> {
        self.rows().map(|(row, label)| most_probable(row) == label).collect()
    }
    /// The largest probability of every image, within `[0, 1]`.
    pub fn confidences(&self) -> Vec<f64> {
        self.rows().map(|(row, _)| row[most_probable(row)].clamp(0.0, 1.0)).collect()
    }
    /// Entropy of every image's probabilities in nats.
    pub fn entropies(&self) -> Vec<f64> {
        self.rows().map(|(row, _)| entropy(row)).collect()
    }

    /// Fraction of wrong answers.
    pub fn error(&self) -> f64 {
        self.correct().iter().filter(|c| !**c).count() as f64 / self.len() as f64
    }
    /// Mean of `-log p(label)`; infinite when a label was held to be impossible.
    pub fn nlpp(&self) -> f64 {
        self.rows().map(|(row, label)| -libm::log(row[label].max(0.0))).sum::<f64>() / self.len() as f64
    }
    /// Brier score of all classes, the mean of `sum_k (p_k - [k = label])^2`: between 0 and 2.
    pub fn brier(&self) -> f64 {
        let of_row = |(row, label): (&[f64], usize)| -> f64 {
            row.iter().enumerate().map(|(k, p)| (p - f64::from(k == label)).powi(2)).sum()
        };
        self.rows().map(of_row).sum::<f64>() / self.len() as f64
    }
    /// Counts of images by label (row) and answer (column), `K x K` row-major.
    pub fn confusion(&self) -> Vec<usize> {
        let mut counts = vec![0; self.classes * self.classes];
        for (row, label) in self.rows() {
            counts[label * self.classes + most_probable(row)] += 1;
        }
        counts
    }
}

/// `-sum_k p_k log p_k` in nats; impossible classes contribute nothing.
pub fn entropy(row: &[f64]) -> f64 {
    row.iter().filter(|p| **p > 0.0).map(|p| -p * libm::log(*p)).sum::<f64>().max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named() {
        let check = |p: &[f64], l: &[u32]| Classified::new(p, l, 2).unwrap_err();
        assert_eq!(check(&[0.5; 3], &[0]), MetricsError::Rows { found: 3, classes: 2 });
        assert_eq!(check(&[], &[]), MetricsError::Empty { what: "images" });
        assert_eq!(check(&[0.5; 4], &[0]), MetricsError::Count { what: "labels", found: 1, expected: 2 });
        assert_eq!(check(&[0.5, 0.5, 0.5, 0.6], &[0, 0]), MetricsError::Sum { image: 1, sum: 1.1 });
        assert_eq!(check(&[0.5; 4], &[0, 2]), MetricsError::Label { image: 1, label: 2, classes: 2 });
        assert!(matches!(check(&[f64::NAN, 0.5], &[0]), MetricsError::NotAProbability { image: 0, .. }));
        assert!(matches!(Classified::new(&[], &[], 0), Err(MetricsError::Rows { .. })));
    }

    #[test]
    fn certain_answers_have_no_entropy_and_extreme_scores() {
        let (p, labels) = ([1.0, 0.0, 0.0, 1.0], [0, 0]);
        let c = Classified::new(&p, &labels, 2).unwrap();
        assert_eq!(c.entropies(), [0.0, 0.0]);
        assert_eq!((c.error(), c.brier(), c.nlpp()), (0.5, 1.0, f64::INFINITY));
        assert_eq!(c.confusion(), [1, 1, 0, 0]);
    }
}
