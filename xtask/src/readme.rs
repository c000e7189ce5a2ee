//! `cargo xtask readme`: the tables of README and docs that come from records, between `<!-- begin: NAME -->` and
//! `<!-- end: NAME -->`.

use crate::checks::root;
use anyhow::{Context, Result, ensure};
use convgp_paper::{Experiment, committed, table};
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;

/// Makes the text of a block.
type Block = fn(&Path) -> Result<String>;

/// Files, names of blocks in them, and what makes their text.
const BLOCKS: [(&str, &str, Block); 5] = [
    ("README.md", "headline", headline),
    ("README.md", "little-data", |root| little_data(root, "mnist", "MNIST digits", false)),
    ("docs/guide/little-data.md", "little-data", |root| little_data(root, "mnist", "MNIST digits", true)),
    ("docs/guide/little-data.md", "little-photographs", |root| {
        little_data(root, "cifar10", "CIFAR-10 photographs", true)
    }),
    ("docs/results/accuracy.md", "records", records),
];

/// Writes all blocks anew.
pub fn write() -> Result<()> {
    each(|path, text, wanted| if text == wanted { Ok(()) } else { Ok(std::fs::write(path, wanted)?) })
}

/// Fails where a block is not what the records say.
pub fn check() -> Result<()> {
    each(|path, text, wanted| {
        let path = path.display();
        ensure!(text == wanted, "{path}: a table is not what the records say; run `cargo xtask readme`");
        Ok(())
    })
}

fn each(act: impl Fn(&Path, &str, &str) -> Result<()>) -> Result<()> {
    let root = root()?;
    for (file, name, block) in BLOCKS {
        let path = root.join(file);
        let text = std::fs::read_to_string(&path).with_context(|| file.to_string())?;
        act(&path, &text, &filled(&text, name, &block(root)?).with_context(|| file.to_string())?)?;
    }
    Ok(())
}

/// The text with a block filled in.
fn filled(text: &str, name: &str, block: &str) -> Result<String> {
    let [begin, end] = ["begin", "end"].map(|word| format!("<!-- {word}: {name} -->\n"));
    let (before, rest) = text.split_once(&begin).with_context(|| format!("no line {begin}"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("no line {end}"))?;
    Ok(format!("{before}{begin}{block}{end}{after}"))
}

fn records(_: &Path) -> Result<String> {
    let mut out = Vec::new();
    table::write(&mut out, &table::of_all(&committed()), true)?;
    Ok(String::from_utf8(out)?)
}

/// A line of docs/results/little-data.jsonl.
#[derive(Deserialize)]
struct Trial {
    data_set: String,
    size: usize,
    contestant: String,
    error: f64,
    nlpp: f64,
    ece: f64,
    #[serde(default)]
    cpu_seconds: Option<f64>,
}

/// A line of docs/results/peers.jsonl that is about steps.
#[derive(Deserialize)]
struct Steps {
    config: String,
    contender: String,
    #[serde(default)]
    seconds: Vec<f64>,
    #[serde(default, rename = "peak_MB")]
    peak_mb: f64,
}

/// The lines of a file in docs/results.
fn lines<T: for<'de> Deserialize<'de>>(root: &Path, name: &str) -> Result<Vec<T>> {
    let path = root.join("docs/results").join(name);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    text.lines().map(|line| serde_json::from_str(line).with_context(|| path.display().to_string())).collect()
}

/// Means over seeds of one contestant's trials.
#[derive(Clone, Copy)]
struct Means {
    /// In percent.
    error: f64,
    nlpp: f64,
    ece: f64,
    /// Seconds of the processor.
    seconds: f64,
}

/// What docs/results/little-data.jsonl has on a data set.
fn trials(root: &Path, data_set: &str) -> Result<Vec<Trial>> {
    let trials: Vec<Trial> = lines(root, "little-data.jsonl")?;
    Ok(trials.into_iter().filter(|t| t.data_set == data_set).collect())
}

/// None where a contestant was not run.
fn means(trials: &[Trial], size: usize, contestant: &str) -> Option<Means> {
    let of: Vec<&Trial> = trials.iter().filter(|t| t.size == size && t.contestant == contestant).collect();
    if of.is_empty() {
        return None;
    }
    let mean = |get: fn(&Trial) -> f64| of.iter().map(|t| get(t)).sum::<f64>() / of.len() as f64;
    let (error, nlpp) = (100.0 * mean(|t| t.error), mean(|t| t.nlpp));
    let timed: Vec<f64> = of.iter().filter_map(|t| t.cpu_seconds).collect();
    let seconds = timed.iter().sum::<f64>() / timed.len() as f64;
    Some(Means { error, nlpp, ece: mean(|t| t.ece), seconds })
}

/// In bold where it is the best of several.
fn bold(text: String, value: f64, all: &[f64]) -> String {
    if all.len() > 1 && all.iter().all(|other| value <= *other) { format!("**{text}**") } else { text }
}

/// The contestants of the table, as they are called in records and in the table.
const CONTESTANTS: [(&str, &str); 4] = [
    ("convgp", "convgp"),
    ("network", "small network"),
    ("network-tuned", "tuned network, augmented images"),
    ("svm", "support-vector machine"),
];

fn little_data(root: &Path, data_set: &str, images: &str, with_ece: bool) -> Result<String> {
    let trials = trials(root, data_set)?;
    let mut sizes: Vec<usize> = trials.iter().map(|t| t.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let names = CONTESTANTS.map(|(_, name)| name).join(" | ");
    let ece = if with_ece { ", ECE" } else { "" };
    let mut out = format!("| {images}: error, NLPP{ece} | {names} |\n|---|---|---|---|---|\n");
    for size in sizes {
        let all = CONTESTANTS.map(|(name, _)| means(&trials, size, name));
        let column = |get: fn(&Means) -> f64| all.iter().flatten().map(get).collect::<Vec<_>>();
        let (errors, nlpps) = (column(|m| m.error), column(|m| m.nlpp));
        let cell = |m: &Option<Means>| {
            let Some(m) = m else { return String::new() };
            let ece = if with_ece { format!(", {:.3}", m.ece) } else { String::new() };
            let error = bold(format!("{:.1} %", m.error), m.error, &errors);
            format!("{error}, {}{ece}", bold(format!("{:.3}", m.nlpp), m.nlpp, &nlpps))
        };
        writeln!(out, "| {} | {} |", thousands(size), all.iter().map(cell).collect::<Vec<_>>().join(" | "))?;
    }
    Ok(out)
}

fn thousands(n: usize) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", n / 1000, n % 1000) }
}

fn headline(root: &Path) -> Result<String> {
    let digits = trials(root, "mnist")?;
    let of = |contestant| {
        means(&digits, 300, contestant).with_context(|| format!("nothing on 300 digits by {contestant}"))
    };
    let (ours, network, tuned) = (of("convgp")?, of("network")?, of("network-tuned")?);
    let photographs = means(&trials(root, "cifar10")?, 50_000, "convgp").context("nothing on CIFAR-10")?;
    let published = Experiment::find("cifar-multichannel")?.published.context("published figures")?.error;
    let steps: Vec<Steps> = lines(root, "peers.jsonl")?;
    let mnist = |contender: &str| -> Result<(f64, f64)> {
        let is = |s: &&Steps| s.config == "M1" && s.contender == contender && !s.seconds.is_empty();
        let found = steps.iter().find(is).with_context(|| format!("peers.jsonl: no M1 by {contender}"))?;
        let mut seconds = found.seconds.clone();
        seconds.sort_by(f64::total_cmp);
        Ok((seconds[seconds.len() / 2], found.peak_mb / 1000.0))
    };
    let (us, torch) = (mnist("convgp adam, real")?, mnist("PyTorch by hand, tuned malloc")?);
    let gpflow = mnist("GPflow, best setting (f32, XLA)")?;
    let mut out = String::from("| question | convgp, two cores | best alternative |\n|---|---|---|\n");
    let cell = |m: Means| format!("{:.1} %, NLPP {:.3}, {:.0} s", m.error, m.nlpp, m.seconds);
    writeln!(
        out,
        "| few labels: 300 MNIST digits (error, NLPP, the processor's seconds of training) | {} | small network {}; tuned, with \
         augmented images {} |",
        cell(ours),
        cell(network),
        cell(tuned)
    )?;
    writeln!(
        out,
        "| CIFAR-10, all 50,000 images (the same) | **{}** | best of the paper's GPs: {published}. Deep networks are far better |",
        cell(photographs)
    )?;
    writeln!(
        out,
        "| speed: one training step, MNIST, 750 inducing patches | **{:.2} s** | PyTorch by hand {:.2} s, GPflow {:.1} s |",
        us.0, torch.0, gpflow.0
    )?;
    writeln!(
        out,
        "| memory of the same | **{:.2} GB** | PyTorch by hand {:.1} GB, GPflow {:.1} GB |",
        us.1, torch.1, gpflow.1
    )?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_what_the_records_say() {
        check().unwrap();
    }

    #[test]
    fn a_block_is_replaced_and_nothing_else() {
        let text = "a\n<!-- begin: x -->\nold\n<!-- end: x -->\nb\n";
        assert_eq!(filled(text, "x", "new\n").unwrap(), text.replace("old", "new"));
        assert!(filled(text, "y", "").unwrap_err().to_string().contains("begin: y"));
    }
}
