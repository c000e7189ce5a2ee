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
    image_names: Option<Vec<String>>,
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
        Ok(Self { probabilities, labels, class_names, images, image_names: None })
    }

    /// Names of the images, such as their files; without names they are numbered.
    pub fn with_image_names(mut self, names: Option<Vec<String>>) -> Result<Self, ReportError> {
        if let Some(found) = names.as_ref().map(Vec::len).filter(|&found| found != self.images.count()) {
            return Err(ReportError::ImageCount { images: self.images.count(), found });
        }
        self.image_names = names;
        Ok(self)
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
    /// Name of image `n`: its file, else its number.
    pub(crate) fn image_name(&self, n: usize) -> String {
        self.image_names.as_ref().map_or_else(|| n.to_string(), |names| names[n].clone())
    }
    /// Name of the label of image `n`.
    pub(crate) fn label_name(&self, n: usize) -> &str {
        &self.class_names[self.labels[n] as usize]
    }
}
