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
const BLOCKS: [(&str, &str, Block); 4] = [
    ("README.md", "headline", headline),
    ("README.md", "little-data", |root| little_data(root, false)),
    ("docs/guide/little-data.md", "little-data", |root| little_data(root, true)),
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

/// What docs/results/little-data.jsonl has on MNIST.
fn digits(root: &Path) -> Result<Vec<Trial>> {
    let trials: Vec<Trial> = lines(root, "little-data.jsonl")?;
    Ok(trials.into_iter().filter(|t| t.data_set == "mnist").collect())
}

/// Means over seeds: error in percent, NLPP, ECE.
fn means(trials: &[Trial], size: usize, contestant: &str) -> Result<[f64; 3]> {
    let of: Vec<&Trial> = trials.iter().filter(|t| t.size == size && t.contestant == contestant).collect();
    ensure!(!of.is_empty(), "little-data.jsonl has nothing on {size} images by {contestant}");
    let mean = |get: fn(&Trial) -> f64| of.iter().map(|t| get(t)).sum::<f64>() / of.len() as f64;
    Ok([100.0 * mean(|t| t.error), mean(|t| t.nlpp), mean(|t| t.ece)])
}

/// In bold where it is the best.
fn bold(text: String, value: f64, all: &[f64]) -> String {
    if all.iter().all(|other| value <= *other) { format!("**{text}**") } else { text }
}

fn little_data(root: &Path, with_ece: bool) -> Result<String> {
    let trials = digits(root)?;
    let mut sizes: Vec<usize> = trials.iter().map(|t| t.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let ece = if with_ece { ", ECE" } else { "" };
    let mut out = format!(
        "| MNIST digits | convgp: error, NLPP{ece} | small network | support-vector machine |\n|---|---|---|---|\n"
    );
    for size in sizes {
        let of = |contestant| means(&trials, size, contestant);
        let all = [of("convgp")?, of("network")?, of("svm")?];
        let column = |i: usize| all.map(|figures| figures[i]);
        let cell = |[error, nlpp, ece]: [f64; 3]| {
            let ece = if with_ece { format!(", {ece:.3}") } else { String::new() };
            let error = bold(format!("{error:.1} %"), error, &column(0));
            format!("{error}, {}{ece}", bold(format!("{nlpp:.3}"), nlpp, &column(1)))
        };
        writeln!(out, "| {} | {} |", thousands(size), all.map(cell).join(" | "))?;
    }
    Ok(out)
}

fn thousands(n: usize) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", n / 1000, n % 1000) }
}

fn headline(root: &Path) -> Result<String> {
    let trials = digits(root)?;
    let [ours, network] = [means(&trials, 300, "convgp")?, means(&trials, 300, "network")?];
    let best =
        committed().into_iter().find(|r| r.experiment == "cifar-best").context("record of cifar-best")?;
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
    let two = |i: usize| [ours[i], network[i]];
    let cell = |figures: [f64; 3]| {
        let error = bold(format!("{:.1} %", figures[0]), figures[0], &two(0));
        format!("NLPP {}, error {error}", bold(format!("{:.3}", figures[1]), figures[1], &two(1)))
    };
    writeln!(
        out,
        "| few labels: 300 MNIST digits, a minute of training | {} | small network: {} |",
        cell(ours),
        cell(network)
    )?;
    writeln!(
        out,
        "| CIFAR-10, all 50,000 images | error **{:.1} %** in {:.0} minutes | best of the paper's GPs: {published}. Deep \
         networks are far better |",
        100.0 * best.results[0].error,
        best.seconds / 60.0
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
