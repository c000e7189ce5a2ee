//! Model files: one self-contained safetensors file, readable without executing anything.
//!
//! Metadata has a single key, `convgp`, whose value is JSON: format version, spec, class names, preparation of the images,
//! frozen parameters, the inverse temperature if it is not 1, and when to answer at all if that was set. Every parameter is a tensor of doubles under its own name; `q` is always stored as means and
//! covariance factors. A [`Checkpoint`] is what a run needs to go on.

mod checkpoint;
mod statistics;
mod tensors;

pub use checkpoint::Checkpoint;

use crate::data::ImageShape;
use crate::fitted::{AnswerRule, FittedModel};
use crate::likelihood::Temperature;
use crate::model::{Model, ModelSpec};
use crate::params::{Entry, Form, Params};
use crate::prepare::Preparation;
use crate::views::Constant;
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tensors::{Numbers, Tensor};

/// Newest version of the format; older ones are read. Files at temperature 1 are of version 1.
pub const FORMAT_VERSION: u32 = 2;
/// The metadata key.
const KEY: &str = "convgp";

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum FileError {
    #[error("{}: {source}", path.display())]
    Access { path: PathBuf, source: std::io::Error },
    #[error("{}: cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("{}: not a readable model or checkpoint: {what}", path.display())]
    Format { path: PathBuf, what: String },
    #[error("{}: format version {found}; this program reads up to {FORMAT_VERSION}", path.display())]
    Version { path: PathBuf, found: u32 },
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
    #[serde(default, skip_serializing_if = "Temperature::is_one")]
    inverse_temperature: Temperature,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer_rule: Option<AnswerRule>,
}

impl FittedModel {
    /// Writes a model file. Whoever reads the path meanwhile, or after a crash, finds the old file or the new one, whole.
    pub fn save(&self, path: &Path) -> Result<()> {
        self.write_with(|header, tensors| tensors::write(path, KEY, header, tensors))
    }

    /// The bytes of that file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.write_with(|header, tensors| tensors::to_bytes(KEY, header, tensors))
    }

    /// Reads a model file.
    pub fn load(path: &Path) -> Result<Self> {
        read_model(&tensors::File::read(path)?)
    }

    /// Reads the bytes of a model file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        read_model(&tensors::File::of_bytes(bytes))
    }

    fn write_with<T>(&self, write: impl FnOnce(String, Vec<(String, Tensor<'_>)>) -> Result<T>) -> Result<T> {
        let mut params = Cow::Borrowed(&self.params);
        if params.form() == Form::Natural {
            self.model.set_form(Form::Covariance, params.to_mut())?;
        }
        write_model(self, &params, write)
    }
}

/// Hands header and arrays of a model file to `write`; `params` are the model's in covariance form.
fn write_model<T>(
    fitted: &FittedModel,
    params: &Params,
    write: impl FnOnce(String, Vec<(String, Tensor<'_>)>) -> Result<T>,
) -> Result<T> {
    let (model, entries) = (&fitted.model, params.layout().entries());
    let header = Header {
        format_version: if fitted.temperature.is_one() { 1 } else { FORMAT_VERSION },
        image: model.spec().image,
        spec: model.whole_spec()?.clone(),
        class_names: fitted.class_names.clone(),
        preparation: fitted.preparation,
        frozen: entries.iter().filter(|e| !e.trainable).map(|e| e.name.clone()).collect(),
        inverse_temperature: fitted.temperature,
        answer_rule: fitted.answer_rule,
    };
    let header = serde_json::to_string(&header).expect("a header has nothing JSON cannot hold");
    let tensor = |e: &Entry| {
        let numbers = Numbers::Double(e.slot.of(params));
        (e.name.clone(), Tensor { shape: parameter_shape(model, e), numbers })
    };
    let mut tensors: Vec<_> = entries.iter().map(tensor).collect();
    for Constant { name, shape, values } in model.constants() {
        tensors.push((name, Tensor { shape, numbers: Numbers::Double(values) }));
    }
    write(header, tensors)
}

/// Shape of a parameter as an array: inducing inputs are `M x E`, means `L x Mtot`, factors `L x packed`; everything else is flat.
pub fn parameter_shape(model: &Model, entry: &Entry) -> Vec<usize> {
    let (len, v) = (entry.slot.len(), model.variational());
    let rows = if let Some(c) = model.components().iter().find(|c| c.z_slot() == entry.slot) {
        c.inducing()
    } else if v.slot().range().contains(&entry.slot.range().start)
        && (v.shared().is_none() || entry.slot == v.mean_slot())
    {
        v.latents()
    } else {
        return vec![len];
    };
    vec![rows, len / rows]
}

fn read_model(file: &tensors::File<'_>) -> Result<FittedModel> {
    let (path, (text, arrays)) = (file.path(), file.parse(KEY)?);
    let mut header = read_header(path, &text)?;
    // Where version 0.1 kept it.
    let temperature = header.spec.likelihood.take_temperature()?.unwrap_or(header.inverse_temperature);
    let (model, mut params) = Model::restore(&header.spec, &|name| arrays.doubles(name).ok())?;
    for entry in model.layout().entries() {
        params.set(&entry.name, &arrays.doubles(&entry.name)?)?;
    }
    for name in &header.frozen {
        params.set_trainable(name, false)?;
    }
    let Header { class_names, preparation, answer_rule, .. } = header;
    if let Some(rule) = &answer_rule {
        rule.check().map_err(|what| format_error(path, what))?;
    }
    Ok(FittedModel { model: model.into(), params, class_names, preparation, temperature, answer_rule })
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
    let name = path.file_name().ok_or_else(|| unwritten(path, std::io::ErrorKind::InvalidFilename.into()))?;
    let directory = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = directory.join(format!(".{}.{}.tmp", name.to_string_lossy(), std::process::id()));
    let flush = || File::options().write(true).open(&temporary)?.sync_all();
    let written = fill(&temporary).and_then(|()| flush()).and_then(|()| fs::rename(&temporary, path));
    if let Err(e) = written {
        // Best effort: the error that matters is the first one.
        let _ = fs::remove_file(&temporary);
        return Err(unwritten(path, e));
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

fn unwritten(path: &Path, source: std::io::Error) -> Error {
    FileError::Write { path: path.into(), source }.into()
}

fn format_error(path: &Path, what: impl ToString) -> Error {
    FileError::Format { path: path.into(), what: what.to_string() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cov::Reference;
    use crate::likelihood::{LikelihoodSpec, Predictive};
    use crate::metrics::Threshold;
    use crate::rng::Rng;
    use crate::train::testing::{regression, small_spec};

    fn fitted(form: Form) -> FittedModel {
        let data = regression(6, 1);
        let (model, mut params) = Model::new(&small_spec(), Some(data.images()), &mut Rng::new(9)).unwrap();
        let q = model.variational().mean_slot();
        q.of_mut(&mut params).iter_mut().enumerate().for_each(|(i, m)| *m = 0.1 * i as f64);
        model.set_form(form, &mut params).unwrap();
        params.set_trainable("conv.kernel.lengthscale", false).unwrap();
        let (temperature, answer_rule) = (Temperature::ONE, None);
        let (class_names, preparation) = (Vec::new(), Preparation::default());
        FittedModel { model: model.into(), params, class_names, preparation, temperature, answer_rule }
    }

    #[test]
    fn a_saved_model_predicts_the_same_bits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.safetensors");
        let preparation = Preparation { fit: crate::prepare::Fit::Stretch, ..Preparation::default() };
        let before = FittedModel { class_names: vec!["a".into()], preparation, ..fitted(Form::Covariance) };
        before.save(&path).unwrap();
        let saved = FittedModel::load(&path).unwrap();
        assert_eq!((saved.preparation, &saved.class_names), (preparation, &before.class_names));
        assert_eq!((&saved.params, saved.model.spec()), (&before.params, before.model.spec()));
        let images = regression(5, 77);
        let f = |m: &FittedModel| m.predictor(&Reference).unwrap().latents(images.images()).unwrap();
        assert_eq!(f(&before), f(&saved));
        let again = dir.path().join("again.safetensors");
        saved.save(&again).unwrap();
        assert_eq!(fs::read(path).unwrap(), fs::read(again).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "no temporary file is left");
        let plain = dir.path().join("plain");
        fs::write(&plain, b"x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions();
        assert_eq!(mode(&dir.path().join("m.safetensors")), mode(&plain));
    }

    #[test]
    fn a_temperature_is_remembered_to_the_bit_and_read_from_where_it_was() {
        let data = regression(6, 1);
        let spec = ModelSpec { likelihood: LikelihoodSpec::softmax(3), ..small_spec() };
        let (model, params) = Model::new(&spec, Some(data.images()), &mut Rng::new(9)).unwrap();
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let mut fitted = FittedModel::new(model, params, names, Preparation::default()).unwrap();
        let probabilities = |m: &FittedModel| match m.predict(data.images()).unwrap() {
            Predictive::Classes { probabilities, .. } => probabilities,
            other => panic!("{other:?}"),
        };
        let plain = (probabilities(&fitted), fitted.to_bytes().unwrap());
        fitted.temperature = Temperature::from_inverse(1.7).unwrap();
        let (tempered, bytes) = (probabilities(&fitted), fitted.to_bytes().unwrap());
        assert_ne!(plain.0, tempered);
        let saved = FittedModel::from_bytes(&bytes).unwrap();
        assert_eq!((saved.temperature, probabilities(&saved)), (fitted.temperature, tempered.clone()));
        // Version 0.1 wrote a power into the spec: the same file, but for its length.
        let plain = plain.1;
        let size = u64::from_le_bytes(plain[..8].try_into().unwrap()) as usize;
        let text = std::str::from_utf8(&plain[8..8 + size]).unwrap().trim_end();
        let old = text.replace(r#"\"type\":\"softmax\""#, r#"\"type\":\"softmax\",\"sharpness\":1.7"#);
        assert_ne!(old, text);
        let mut file = (old.len() as u64).to_le_bytes().to_vec();
        file.extend(old.as_bytes());
        file.extend(&plain[8 + size..]);
        let saved = FittedModel::from_bytes(&file).unwrap();
        assert_eq!((saved.model.spec(), probabilities(&saved)), (&spec, tempered));
    }

    #[test]
    fn a_model_that_no_spec_describes_is_not_saved() {
        let (spec, rng) = (small_spec(), &mut Rng::new(9));
        let likelihood = LikelihoodSpec::probit().build().unwrap();
        let images = regression(6, 1);
        let (model, params) = Model::with_likelihood(&spec, likelihood, Some(images.images()), rng).unwrap();
        let fitted = FittedModel::new(model, params, Vec::new(), Preparation::default()).unwrap();
        let message = fitted.to_bytes().unwrap_err().to_string();
        assert!(message.contains("likelihood was made in code"), "{message}");
    }

    #[test]
    fn an_answer_rule_is_remembered_and_files_without_one_load() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.safetensors");
        let mut saved = fitted(Form::Covariance);
        saved.save(&path).unwrap();
        let plain = fs::read(&path).unwrap();
        assert!(!String::from_utf8_lossy(&plain).contains("answer_rule"), "files of old look the same");
        assert_eq!(FittedModel::load(&path).unwrap().answer_rule, None);
        let threshold = Threshold { threshold: 0.1 + 0.2, coverage: 0.75, error: 0.01, upper_error: 0.02 };
        saved.answer_rule = Some(AnswerRule { risk: 0.01, images: 200, threshold });
        saved.save(&path).unwrap();
        assert_eq!(FittedModel::load(&path).unwrap().answer_rule, saved.answer_rule);
        saved.answer_rule = Some(AnswerRule {
            threshold: Threshold { threshold: 7.0, ..threshold },
            risk: 0.01,
            images: 200,
        });
        saved.save(&path).unwrap();
        let message = FittedModel::load(&path).unwrap_err().to_string();
        assert!(message.contains("m.safetensors") && message.contains("threshold 7"), "{message}");
        saved.answer_rule = None;
        saved.save(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), plain);
        assert_eq!(saved.to_bytes().unwrap(), plain, "in memory as in a file");
        assert_eq!(FittedModel::from_bytes(&plain).unwrap().params, saved.params);
        let message = FittedModel::from_bytes(&plain[..100]).unwrap_err().to_string();
        assert!(message.starts_with("model in memory: not a readable"), "{message}");
    }

    #[test]
    fn natural_form_is_stored_as_covariance() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.safetensors");
        fitted(Form::Natural).save(&path).unwrap();
        let (saved, expected) = (FittedModel::load(&path).unwrap(), fitted(Form::Covariance).params);
        assert!(saved.params.iter().zip(&*expected).all(|(a, b)| (a - b).abs() < 1e-12));
        assert!(saved.params.layout().entry("q.mean").unwrap().trainable);
        assert!(!saved.params.layout().entry("conv.kernel.lengthscale").unwrap().trainable);
    }

    #[test]
    fn broken_files_are_explained() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.safetensors");
        let model = fitted(Form::Covariance);
        model.save(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        for cut in [0, 4, 8, 100, bytes.len() - 1] {
            fs::write(&path, &bytes[..cut]).unwrap();
            let err = FittedModel::load(&path).unwrap_err();
            assert!(matches!(err, Error::File(FileError::Format { .. })), "cut at {cut}: {err}");
        }
        let at = bytes.windows(18).position(|w| w == b"format_version\\\":1").unwrap() + 17;
        let mut later = bytes.clone();
        later[at] = b'9';
        fs::write(&path, later).unwrap();
        let message = FittedModel::load(&path).unwrap_err().to_string();
        assert!(message.ends_with("format version 9; this program reads up to 2"), "{message}");
        assert!(matches!(
            FittedModel::load(&dir.path().join("none")),
            Err(Error::File(FileError::Access { .. }))
        ));
        let nowhere = dir.path().join("no/such/place");
        assert!(matches!(model.save(&nowhere), Err(Error::File(FileError::Write { .. }))));
    }
}
