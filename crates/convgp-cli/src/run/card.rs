//! The model card: what a stranger needs to know about a model file.

use crate::run::folder::RunFolder;
use crate::run::record::Record;
use crate::support::duration;
use anyhow::Result;
use convgp::Model;
use convgp::inspect::describe;
use convgp::io::write_atomically;
use convgp::metrics::Metrics;
use std::fmt::Write;

/// Writes `MODEL_CARD.md` beside the model.
pub fn write(
    run: &RunFolder,
    record: &Record,
    model: &Model,
    metrics: &[(String, Metrics)],
    (steps, seconds): (u64, f64),
) -> Result<()> {
    let text = render(record, model, metrics, (steps, seconds))?;
    Ok(write_atomically(&run.card(), text.as_bytes())?)
}

fn render(
    record: &Record,
    model: &Model,
    metrics: &[(String, Metrics)],
    (steps, seconds): (u64, f64),
) -> Result<String, std::fmt::Error> {
    let mut card = String::new();
    let [train, validation, test] = record.images;
    writeln!(card, "# Model card: {}\n", record.model)?;
    writeln!(card, "A convolutional Gaussian process made by convgp {}.\n", record.version)?;
    writeln!(card, "- **Model:** {}", describe(model))?;
    writeln!(card, "- **Input:** images of {}", model.spec().image)?;
    writeln!(
        card,
        "- **Training:** {steps} steps in {}, seed and all settings in `spec.toml`",
        duration::text(seconds)
    )?;
    writeln!(card, "- **Images:** {train} for training, {validation} for validation, {test} for testing")?;
    for reason in &record.reasons {
        writeln!(card, "- **ResolvedConfig:** {reason}")?;
    }
    writeln!(card, "\n## Results\n")?;
    if metrics.is_empty() {
        writeln!(card, "Training has not finished; there are no final figures.")?;
    } else {
        writeln!(card, "| images | count | error | NLPP |\n|---|---|---|---|")?;
        for (name, f) in metrics {
            writeln!(card, "| {name} | {} | {} | {:.4} |", f.images, f.error_text(), f.nlpp)?;
        }
    }
    writeln!(card, "\n## Data\n\n| file | bytes | SHA-256 |\n|---|---|---|")?;
    for file in &record.provenance {
        writeln!(card, "| {} | {} | `{}` |", file.name, file.bytes, file.sha256)?;
    }
    writeln!(
        card,
        "\nTraining images and targets, whatever files they came from: `{}`.",
        record.fingerprint
    )?;
    writeln!(
        card,
        "\n## Use\n\n`convgp predict model.safetensors photo.png` reads an image as the training images were read, and \
         writes class probabilities with the latent means and variances behind them. Probabilities hold for images like \
         those above; on others look at the latent variances, which return to the prior's far from the training data."
    )?;
    Ok(card)
}
