//! Checkpoints: everything a run needs to go on to the same bits.

use super::tensors::{File, Tensor, write};
use super::{FORMAT_VERSION, check_version, format_error};
use crate::Result;
use crate::train::{ExperimentSpec, TrainerState};
use serde::{Deserialize, Serialize};
use std::path::Path;

const KEY: &str = "convgp-checkpoint";

/// A run at a standstill. With the data it was trained on it continues to the same bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Model and training settings.
    pub experiment: ExperimentSpec,
    /// What identifies the training data; compared before going on.
    pub data: String,
    /// Time spent in training so far, in seconds.
    pub seconds: f64,
    /// Best held-out negative log predictive probability so far.
    pub best_nlpp: Option<f64>,
    /// Parameters; `q` in the form its steps need.
    #[serde(skip)]
    pub values: Vec<f64>,
    /// Optimiser, generator and position in the data.
    pub state: TrainerState,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format_version: u32,
    checkpoint: Checkpoint,
}

impl Checkpoint {
    /// Writes it: long arrays as tensors, the rest as JSON in the metadata. The file is replaced as a whole.
    pub fn save(mut self, path: &Path) -> Result<()> {
        let values = std::mem::take(&mut self.values);
        let snapshot = std::mem::take(&mut self.state.snapshot.values);
        let first = std::mem::take(&mut self.state.adam.first);
        let second = std::mem::take(&mut self.state.adam.second);
        let header = Header { format_version: FORMAT_VERSION, checkpoint: self };
        let header = serde_json::to_string(&header).map_err(|e| format_error(path, e))?;
        let tensors = vec![
            ("values".to_string(), Tensor::doubles(&values)),
            ("snapshot.values".to_string(), Tensor::doubles(&snapshot)),
            ("adam.first".to_string(), Tensor::singles(&first)),
            ("adam.second".to_string(), Tensor::singles(&second)),
        ];
        write(path, KEY, header, tensors)
    }

    /// Reads it back.
    pub fn load(path: &Path) -> Result<Self> {
        let file = File::read(path)?;
        let (text, arrays) = file.parse(KEY)?;
        check_version(path, &text)?;
        let Header { checkpoint: mut saved, .. } =
            serde_json::from_str(&text).map_err(|e| format_error(path, e))?;
        // Version 0.1 kept a temperature here, which training never looked at.
        saved.experiment.model.likelihood.take_temperature()?;
        saved.values = arrays.doubles("values")?;
        saved.state.snapshot.values =
            arrays.doubles("snapshot.values").or_else(|_| arrays.doubles("good.values"))?;
        saved.state.adam.first = arrays.singles("adam.first")?;
        saved.state.adam.second = arrays.singles("adam.second")?;
        Ok(saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;
    use crate::cov::Reference;
    use crate::rng::Rng;
    use crate::train::testing::{regression, small_spec};
    use crate::train::{QStep, TrainSpec, Trainer};

    #[test]
    fn a_checkpoint_comes_back_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("checkpoint");
        for q in [QStep::Natural, QStep::Adam] {
            let data = regression(9, 1);
            let (model, params) = Model::new(&small_spec(), Some(data.images()), &mut Rng::new(9)).unwrap();
            let train = TrainSpec { q, batch_size: 4, steps: 5, ..TrainSpec::default() };
            let mut trainer = Trainer::new(&model, &Reference, &data, &train, params).unwrap();
            trainer.step().unwrap();
            trainer.step().unwrap();
            let saved = Checkpoint {
                experiment: ExperimentSpec { model: small_spec(), train },
                data: "abc".into(),
                seconds: 1.5,
                best_nlpp: Some(0.1 + 0.2),
                values: trainer.params().to_vec(),
                state: trainer.state().clone(),
            };
            saved.clone().save(&path).unwrap();
            assert_eq!(Checkpoint::load(&path).unwrap(), saved);
        }
        let bytes = std::fs::read(&path).unwrap();
        for cut in [0, 9, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            assert!(Checkpoint::load(&path).is_err(), "cut at {cut}");
        }
    }
}
