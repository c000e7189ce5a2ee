//! Model files: one self-contained safetensors file, readable without executing anything.
//!
//! Metadata has a single key, `convgp`, whose value is JSON: format version, spec, class names, preparation of the images,
//! frozen parameters, and when to answer at all if that was set. Every parameter is a tensor of doubles under its own name; `q` is always stored as means and
//! covariance factors. A [`Checkpoint`] is what a run needs to go on.

mod answer;
mod checkpoint;
mod tensors;

pub use answer::AnswerRule;
pub use checkpoint::Checkpoint;

use crate::data::ImageShape;
use crate::model::{Model, ModelSpec};
use crate::params::Entry;
use crate::prepare::Preparation;
use crate::variational::Form;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tensors::{Numbers, Tensor};

/// Version of the format written; older ones are read.
pub const FORMAT_VERSION: u32 = 1;
/// The metadata key.
const KEY: &str = "convgp";

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum FileError {
    #[error("{}: {source}", path.display())]
    Access { path: PathBuf, source: std::io::Error },
    #[error("{}: not a readable model or checkpoint: {what}", path.display())]
    Format { path: PathBuf, what: String },
    #[error("{}: format version {found}; this program reads up to {FORMAT_VERSION}", path.display())]
    Version { path: PathBuf, found: u32 },
}

/// A model with its numbers, the names of its classes and what its images went through.
#[derive(Debug)]
pub struct SavedModel {
    /// Structure.
    pub model: Model,
    /// Parameters, `q` in covariance form.
    pub values: Vec<f64>,
    /// One name per class; empty for regression.
    pub class_names: Vec<String>,
    /// What has to be done to images before it sees them.
    pub preparation: Preparation,
    /// When it answers; always, if there is none.
    pub answer_rule: Option<AnswerRule>,
}

impl SavedModel {
    /// Writes everything to a model file, as [`save_model`] does.
    pub fn save(&self, path: &Path) -> Result<()> {
        let Self { model, values, class_names, preparation, answer_rule } = self;
        write_model(path, model, values, class_names, *preparation, *answer_rule)
    }

    /// The bytes of that file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let Self { model, values, class_names, preparation, answer_rule } = self;
        with_contents(model, values, class_names, *preparation, *answer_rule, |header, tensors| {
            tensors::to_bytes(KEY, header, tensors)
        })
    }

    /// Reads them back.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        read_model(&tensors::File::of_bytes(bytes))
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    format_version: u32,
    image: ImageShape,
    spec: ModelSpec,
    class_names: Vec<String>,
    #[serde(default)]
    preparation: Preparation,
    frozen: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer_rule: Option<AnswerRule>,
}

/// Writes a model file for images that were bytes of the model's size. Whoever reads the path meanwhile, or after a
/// crash, finds the old file or the new one, whole.
pub fn save_model(path: &Path, model: &Model, values: &[f64], class_names: &[String]) -> Result<()> {
    save_prepared_model(path, model, values, class_names, Preparation::default())
}

/// [`save_model`] for images that were prepared in another way.
pub fn save_prepared_model(
    path: &Path,
    model: &Model,
    values: &[f64],
    class_names: &[String],
    preparation: Preparation,
) -> Result<()> {
    write_model(path, model, values, class_names, preparation, None)
}

fn write_model(
    path: &Path,
    model: &Model,
    values: &[f64],
    class_names: &[String],
    preparation: Preparation,
    answer_rule: Option<AnswerRule>,
) -> Result<()> {
    with_contents(model, values, class_names, preparation, answer_rule, |header, tensors| {
        tensors::write(path, KEY, header, tensors)
    })
}

/// Hands header and arrays of a model file to `put`.
fn with_contents<T>(
    model: &Model,
    values: &[f64],
    class_names: &[String],
    preparation: Preparation,
    answer_rule: Option<AnswerRule>,
    put: impl FnOnce(String, Vec<(String, Tensor<'_>)>) -> Result<T>,
) -> Result<T> {
    let (mut variational, mut layout) = (model.variational().clone(), model.layout().clone());
    let mut values = values.to_vec();
    let natural = variational.form() == Form::Natural;
    variational
        .set_form(Form::Covariance, &mut layout, &mut values)
        .map_err(|_| crate::error::NumericalError::IndefinitePosterior { latent: 0 })?;
    let q = variational.slot().range();
    // Natural form marks q as frozen for its own purposes; that is not the user's wish.
    let moved_by_natural_steps = |e: &Entry| natural && q.contains(&e.slot.range().start);
    let frozen = |e: &&Entry| !(e.trainable || moved_by_natural_steps(e));
    let header = Header {
        format_version: FORMAT_VERSION,
        image: model.spec().image,
        spec: model.spec().clone(),
        class_names: class_names.to_vec(),
        preparation,
        frozen: layout.entries().iter().filter(frozen).map(|e| e.name.clone()).collect(),
        answer_rule,
    };
    let header = serde_json::to_string(&header).expect("a header has nothing JSON cannot hold");
    let tensor = |e: &Entry| {
        let numbers = Numbers::Double(e.slot.of(&values));
        (e.name.clone(), Tensor { shape: parameter_shape(model, e), numbers })
    };
    put(header, layout.entries().iter().map(tensor).collect())
}

/// Shape of a parameter as an array: inducing inputs are `M x E`, means `L x Mtot`, factors `L x packed`; everything else is flat.
pub fn parameter_shape(model: &Model, entry: &Entry) -> Vec<usize> {
    let (len, v) = (entry.slot.len(), model.variational());
    let rows = if let Some(c) = model.components().iter().find(|c| c.z_slot() == entry.slot) {
        c.inducing()
    } else if v.slot().range().contains(&entry.slot.range().start) {
        v.latents()
    } else {
        return vec![len];
    };
    vec![rows, len / rows]
}

/// Reads a model file.
pub fn load_model(path: &Path) -> Result<SavedModel> {
    read_model(&tensors::File::read(path)?)
}

fn read_model(file: &tensors::File<'_>) -> Result<SavedModel> {
    let (path, (text, arrays)) = (file.path(), file.parse(KEY)?);
    let header = read_header(path, &text)?;
    let (mut model, mut values) = Model::restore(&header.spec)?;
    for entry in model.layout().entries() {
        model.layout().set(&mut values, &entry.name, &arrays.doubles(&entry.name)?)?;
    }
    for name in &header.frozen {
        model.layout_mut().set_trainable(name, false)?;
    }
    let Header { class_names, preparation, answer_rule, .. } = header;
    if let Some(rule) = &answer_rule {
        rule.check().map_err(|what| format_error(path, what))?;
    }
    Ok(SavedModel { model, values, class_names, preparation, answer_rule })
}

fn read_header(path: &Path, text: &str) -> Result<Header> {
    check_version(path, text)?;
    serde_json::from_str(text).map_err(|e| format_error(path, e))
}

/// Looked at before anything else: a later format may have fields this one does not know.
fn check_version(path: &Path, text: &str) -> Result<()> {
    #[derive(Deserialize)]
    struct Version {
        format_version: u32,
    }
    let Version { format_version: found } = serde_json::from_str(text).map_err(|e| format_error(path, e))?;
    if found > FORMAT_VERSION { Err(FileError::Version { path: path.into(), found }.into()) } else { Ok(()) }
}

/// Replaces a file: whoever reads it meanwhile, or after a crash, finds the old contents or the new, whole.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    replace_file(path, |temporary| fs::write(temporary, bytes))
}

/// Replaces a file by way of a temporary neighbour: fill, flush to disk, rename, flush the directory.
fn replace_file(path: &Path, fill: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<()> {
    let name = path.file_name().ok_or_else(|| access(path, std::io::ErrorKind::InvalidFilename.into()))?;
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = directory.join(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    let flush = || File::options().write(true).open(&temporary)?.sync_all();
    let written = fill(&temporary).and_then(|()| flush()).and_then(|()| fs::rename(&temporary, path));
    if let Err(e) = written {
        // Best effort: the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
        return Err(access(path, e));
    }
    // Not every system can open a directory; the rename itself has happened.
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
    Ok(())
}

fn access(path: &Path, source: std::io::Error) -> Error {
    FileError::Access { path: path.into(), source }.into()
}

fn format_error(path: &Path, what: impl ToString) -> Error {
    FileError::Format { path: path.into(), what: what.to_string() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cov::Reference;
    use crate::metrics::Threshold;
    use crate::model::Predictor;
    use crate::rng::Rng;
    use crate::train::testing::{regression, small_spec};

    fn model(form: Form) -> (Model, Vec<f64>) {
        let data = regression(6, 1);
        let (mut model, mut values) =
            Model::new(&small_spec(), Some(data.images()), &mut Rng::new(9)).unwrap();
        let q = model.variational().mean_slot();
        q.of_mut(&mut values).iter_mut().enumerate().for_each(|(i, m)| *m = 0.1 * i as f64);
        model.set_form(form, &mut values).unwrap();
        model.layout_mut().set_trainable("conv.kernel.lengthscale", false).unwrap();
        (model, values)
    }

    #[test]
    fn a_saved_model_predicts_the_same_bits() {
        let dir = tempfile::tempdir().unwrap();
        let (model, values) = model(Form::Covariance);
        let path = dir.path().join("m.safetensors");
        let preparation = Preparation { fit: crate::prepare::Fit::Stretch, ..Preparation::default() };
        save_prepared_model(&path, &model, &values, &["a".into()], preparation).unwrap();
        let saved = load_model(&path).unwrap();
        assert_eq!(saved.preparation, preparation);
        assert_eq!((&saved.values, saved.class_names.as_slice()), (&values, ["a".to_string()].as_slice()));
        assert_eq!((saved.model.spec(), saved.model.layout()), (model.spec(), model.layout()));
        let images = regression(5, 77);
        let f = |m: &Model, v: &[f64]| {
            Predictor::new(m, &Reference, v).unwrap().latents(images.images()).unwrap()
        };
        assert_eq!(f(&model, &values), f(&saved.model, &saved.values));
        let again = dir.path().join("again.safetensors");
        save_prepared_model(&again, &saved.model, &saved.values, &saved.class_names, preparation).unwrap();
        assert_eq!(fs::read(path).unwrap(), fs::read(again).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
        let plain = dir.path().join("plain");
        fs::write(&plain, b"x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions();
        assert_eq!(mode(&dir.path().join("m.safetensors")), mode(&plain));
    }

    #[test]
    fn an_answer_rule_is_remembered_and_files_without_one_load() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.safetensors");
        let (model, values) = model(Form::Covariance);
        save_model(&path, &model, &values, &[]).unwrap();
        let plain = fs::read(&path).unwrap();
        assert!(!String::from_utf8_lossy(&plain).contains("answer_rule"), "files of old look the same");
        let mut saved = load_model(&path).unwrap();
        assert_eq!(saved.answer_rule, None);
        let threshold = Threshold { threshold: 0.1 + 0.2, coverage: 0.75, error: 0.01, upper_error: 0.02 };
        saved.answer_rule = Some(AnswerRule { risk: 0.01, images: 200, threshold });
        saved.save(&path).unwrap();
        assert_eq!(load_model(&path).unwrap().answer_rule, saved.answer_rule);
        saved.answer_rule = Some(AnswerRule {
            threshold: Threshold { threshold: 7.0, ..threshold },
            risk: 0.01,
            images: 200,
        });
        saved.save(&path).unwrap();
        let message = load_model(&path).unwrap_err().to_string();
        assert!(message.contains("m.safetensors") && message.contains("threshold 7"), "{message}");
        saved.answer_rule = None;
        saved.save(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), plain);
        assert_eq!(saved.to_bytes().unwrap(), plain, "in memory as in a file");
        assert_eq!(SavedModel::from_bytes(&plain).unwrap().values, saved.values);
        let message = SavedModel::from_bytes(&plain[..100]).unwrap_err().to_string();
        assert!(message.starts_with("model in memory: not a readable"), "{message}");
    }

    #[test]
    fn natural_form_is_stored_as_covariance() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.safetensors");
        let (natural, values) = model(Form::Natural);
        save_model(&path, &natural, &values, &[]).unwrap();
        let (saved, expected) = (load_model(&path).unwrap(), model(Form::Covariance).1);
        assert!(saved.values.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12));
        assert!(saved.model.layout().entry("q.mean").unwrap().trainable);
        assert!(!saved.model.layout().entry("conv.kernel.lengthscale").unwrap().trainable);
    }

    #[test]
    fn broken_files_are_explained() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.safetensors");
        let (model, values) = model(Form::Covariance);
        save_model(&path, &model, &values, &[]).unwrap();
        let bytes = fs::read(&path).unwrap();
        for cut in [0, 4, 8, 100, bytes.len() - 1] {
            fs::write(&path, &bytes[..cut]).unwrap();
            let err = load_model(&path).unwrap_err();
            assert!(matches!(err, Error::File(FileError::Format { .. })), "cut at {cut}: {err}");
        }
        let text = String::from_utf8_lossy(&bytes).replace("format_version\\\":1", "format_version\\\":9");
        assert!(matches!(
            read_header(&path, "{\"format_version\":9}"),
            Err(Error::File(FileError::Version { found: 9, .. }))
        ));
        assert!(text.contains("format_version"));
        assert!(matches!(load_model(&dir.path().join("none")), Err(Error::File(FileError::Access { .. }))));
        let nowhere = dir.path().join("no/such/place");
        assert!(save_model(&nowhere, &model, &values, &[]).is_err());
    }
}
