//! Test results: predictions, labels and the images they are about.

use crate::ReportError;
use convgp::data::Images;
use convgp::metrics::Classified;

/// Checked class predictions for a set of images.
#[derive(Debug, Clone)]
pub struct Evaluation {
    probabilities: Vec<f64>,
    labels: Vec<u32>,
    class_names: Vec<String>,
    images: Images,
}

impl Evaluation {
    /// `probabilities` is `N x K` row-major; there is one label and one image for every row, and a name for every class.
    pub fn new(
        probabilities: Vec<f64>,
        labels: Vec<u32>,
        class_names: Vec<String>,
        images: Images,
    ) -> Result<Self, ReportError> {
        Classified::new(&probabilities, &labels, class_names.len())?;
        if images.count() != labels.len() {
            return Err(ReportError::ImageCount { images: images.count(), found: labels.len() });
        }
        Ok(Self { probabilities, labels, class_names, images })
    }

    /// The predictions beside the labels.
    pub fn classified(&self) -> Classified<'_> {
        Classified::new(&self.probabilities, &self.labels, self.class_names.len())
            .expect("was checked when the evaluation was made")
    }
    /// One name per class.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }
    /// The images.
    pub fn images(&self) -> &Images {
        &self.images
    }
    /// Name of the label of image `n`.
    pub(crate) fn label_name(&self, n: usize) -> &str {
        &self.class_names[self.labels[n] as usize]
    }
}
