//! Results beside the published ones.

use super::experiment::{Experiment, Published, Settings, all};
use super::record::{Outcome, Record};
use crate::duration;
use crate::recipe::given;
use anyhow::Result;
use convgp::preset::{Chosen, Recipe};
use convgp::train::ExperimentSpec;
use std::io::Write;

const COLUMNS: [&str; 9] =
    ["experiment", "recipe", "seeds", "time", "images", "error", "NLPP", "published error", "published NLPP"];
/// Marks results of settings that are no longer the committed ones.
const OTHER_SETTINGS: &str = "*";

/// A row, cell by cell.
pub type Row = [String; COLUMNS.len()];

/// Every experiment by every recipe it has, run or not. Figures on held-out training images are left out.
pub fn of_all(records: &[Record]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, experiment) in all() {
        for recipe in [Recipe::Fast, Recipe::Paper] {
            if experiment.settings(recipe).is_none() {
                continue;
            }
            let is_of = |r: &&Record| r.experiment == name && r.recipe == recipe && !r.is_validation();
            let runs: Vec<&Record> = records.iter().filter(is_of).collect();
            rows.extend(of_runs(name, &experiment, recipe, &runs));
        }
    }
    Ok(rows)
}

/// The rows of one run.
pub fn of_run(record: &Record) -> Result<Vec<Row>> {
    let experiment = Experiment::find(&record.experiment)?;
    Ok(of_runs(&record.experiment, &experiment, record.recipe, &[record]))
}

/// One row for each set of images the runs were judged on.
fn of_runs(name: &str, experiment: &Experiment, recipe: Recipe, runs: &[&Record]) -> Vec<Row> {
    let (published_error, published_nlpp) = published(experiment.published.as_ref());
    let recipe_text = recipe.name().to_string();
    let Some(first) = runs.first() else {
        let mut row = Row::default();
        [row[0], row[1], row[3]] = [name.into(), recipe_text, "not run".into()];
        [row[7], row[8]] = [published_error, published_nlpp];
        return vec![row];
    };
    let differs = |r: &&Record| !has_committed_settings(&r.spec, name, experiment.settings(recipe));
    let mark = if runs.iter().any(differs) { OTHER_SETTINGS } else { "" };
    let seconds: f64 = runs.iter().map(|r| r.seconds).sum::<f64>() / runs.len() as f64;
    let row = |(i, set): (usize, &Outcome)| {
        let of_set: Vec<&Outcome> = runs.iter().flat_map(|r| &r.results).filter(|o| o.on == set.on).collect();
        let errors: Vec<f64> = of_set.iter().map(|o| 100.0 * o.error).collect();
        let nlpps: Vec<f64> = of_set.iter().map(|o| o.nlpp).collect();
        let held_out = if first.is_validation() { " validation" } else { "" };
        [
            format!("{name}{mark}"),
            recipe_text.clone(),
            runs.len().to_string(),
            duration::text(seconds),
            format!("{}{held_out}", set.images),
            spread(&errors, 2, " %"),
            spread(&nlpps, 4, ""),
            if i == 0 { published_error.clone() } else { String::new() },
            if i == 0 { published_nlpp.clone() } else { String::new() },
        ]
    };
    first.results.iter().enumerate().map(row).collect()
}

/// Whether a spec is the committed one, but for its seed and, where time decides, its number of steps.
fn has_committed_settings(spec: &ExperimentSpec, name: &str, settings: Option<&Settings>) -> bool {
    let Some(settings) = settings else { return false };
    let Ok(Chosen { experiment: mut committed, .. }) = given(name, &settings.spec(), &[]) else {
        return false;
    };
    committed.train.seed = spec.train.seed;
    if settings.time.is_some() {
        committed.train.steps = spec.train.steps;
    }
    committed == *spec
}

/// The mean, and where there are several the smallest and the largest.
fn spread(values: &[f64], digits: usize, unit: &str) -> String {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match values.len() {
        1 => format!("{mean:.digits$}{unit}"),
        _ => format!("{mean:.digits$}{unit} ({smallest:.digits$} to {largest:.digits$})"),
    }
}

fn published(figures: Option<&Published>) -> (String, String) {
    let Some(p) = figures else { return Default::default() };
    let whose = if p.elsewhere { " (elsewhere)" } else { "" };
    (format!("{}{whose}", p.error), p.nlpp.clone())
}

/// Writes rows under their headings, aligned or as Markdown.
pub fn write(out: &mut dyn Write, rows: &[Row], markdown: bool) -> Result<()> {
    let heading = COLUMNS.map(String::from);
    let all = || std::iter::once(&heading).chain(rows);
    if markdown {
        writeln!(out, "| {} |\n|{}", heading.join(" | "), "---|".repeat(COLUMNS.len()))?;
        rows.iter().try_for_each(|row| writeln!(out, "| {} |", row.join(" | ")))?;
    } else {
        let width = |i: usize| all().map(|row| row[i].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..COLUMNS.len()).map(width).collect();
        for row in all() {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(c, w)| format!("{c:w$}")).collect();
            writeln!(out, "{}", cells.join("  ").trim_end())?;
        }
    }
    if rows.iter().any(|row| row[0].ends_with(OTHER_SETTINGS)) {
        writeln!(out, "\n{OTHER_SETTINGS} with other settings than the experiment has now")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_seeds_give_mean_and_range() {
        assert_eq!(spread(&[1.234], 2, " %"), "1.23 %");
        assert_eq!(spread(&[1.0, 2.0, 1.5], 2, " %"), "1.50 % (1.00 to 2.00)");
    }

    #[test]
    fn what_was_not_run_is_said() {
        let rows = of_all(&[]).unwrap();
        assert!(rows.iter().all(|row| row[3] == "not run"));
        let mut text = Vec::new();
        write(&mut text, &rows, true).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("| mnist-weighted | paper |  | not run |  |  |  | 1.22 % | 0.048 |"), "{text}");
    }
}
