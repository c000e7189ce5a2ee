//! The memory plan of a run, and what to say where it does not fit.

use crate::support::exit::memory as refuse;
use crate::support::images::Parts;
use anyhow::Result;
use convgp::Error;
use convgp::data::{Dataset, Images};
use convgp::memory::{self, Estimate, MemoryError, Remedy, peak};
use convgp::train::ExperimentSpec;

/// The plan for training on these images, which this process has just read. Nothing is built for it.
pub fn plan(experiment: &ExperimentSpec, parts: &Parts) -> Result<Estimate> {
    Ok(Estimate::new(experiment, &sets(parts), peak().unwrap_or(0))?)
}

fn sets(parts: &Parts) -> Vec<&Images> {
    let sets = [Some(&parts.train), parts.validation.as_ref(), parts.test.as_ref()];
    sets.into_iter().flatten().map(Dataset::images).collect()
}

/// Refuses what does not fit into `limit`, or into what the machine has left, and says what would.
pub fn check(experiment: &ExperimentSpec, parts: &Parts, limit: Option<u64>) -> Result<()> {
    match memory::check(experiment, &sets(parts), peak().unwrap_or(0), limit) {
        Err(Error::Memory(error)) => Err(refuse(format!("{error}. {}", advice(&error)))),
        other => Ok(other?),
    }
}

/// The remedy in the words of this command line.
fn advice(error: &MemoryError) -> String {
    match error.remedy {
        Remedy::Inducing { fits, now } => {
            format!("-m {fits} would fit (now {now}); a smaller --batch helps where covariances dominate")
        }
        Remedy::SmallerData => {
            "No number of inducing inputs would fit: use --limit, or --size for smaller images".into()
        }
    }
}

/// `512M`, `4G`; a bare number is bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no size such as 512M or 4G");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => 1u64,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    if number > 0.0 { Ok((number * unit as f64) as u64) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        for (text, bytes) in
            [("512M", 512 << 20), ("4G", 4 << 30), ("1.5k", 1536), ("7", 7), ("2GiB", 2 << 30)]
        {
            assert_eq!(parse_size(text).unwrap(), bytes);
        }
        for text in ["", "G", "-1G", "0", "5X"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
