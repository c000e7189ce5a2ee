//! Results beside the published ones.

use crate::catalog::{Published, all};
use crate::record::{Outcome, Record};
use crate::{Experiment, Recipe, Result};
use convgp::preset::write_out_defaults;
use convgp::train::ExperimentSpec;
use std::io::{self, Write};

const COLUMNS: [&str; 9] =
    ["experiment", "recipe", "seeds", "time", "images", "error", "NLPP", "published error", "published NLPP"];
/// Marks results of settings that are no longer the committed ones.
const OTHER_SETTINGS: &str = "*";

/// A row, cell by cell.
pub type Row = [String; COLUMNS.len()];

/// Every experiment by every recipe it has, run or not. Figures on held-out training images are left out.
pub fn of_all(records: &[Record]) -> Vec<Row> {
    let mut rows = Vec::new();
    for experiment in all() {
        for recipe in experiment.recipes() {
            let is_of =
                |r: &&Record| r.experiment == experiment.name && r.recipe == recipe && !r.is_validation();
            let runs: Vec<&Record> = records.iter().filter(is_of).collect();
            rows.extend(of_runs(&experiment, recipe, &runs));
        }
    }
    rows
}

/// The rows of one run.
pub fn of_run(record: &Record) -> Result<Vec<Row>> {
    Ok(of_runs(&Experiment::find(&record.experiment)?, record.recipe, &[record]))
}

/// One row for each set of images the runs were judged on.
fn of_runs(experiment: &Experiment, recipe: Recipe, runs: &[&Record]) -> Vec<Row> {
    let [published_error, published_nlpp] = published(experiment);
    let [name, recipe_text] = [experiment.name, recipe.name()].map(String::from);
    let Some(first) = runs.first() else {
        let mut row = Row::default();
        [row[0], row[1], row[3]] = [name, recipe_text, "not run".into()];
        [row[7], row[8]] = [published_error, published_nlpp];
        return vec![row];
    };
    let differs = |r: &&Record| !has_committed_settings(&r.spec, experiment, recipe);
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
            seconds_text(seconds),
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
fn has_committed_settings(spec: &ExperimentSpec, experiment: &Experiment, recipe: Recipe) -> bool {
    let (Ok(settings), Ok(mut committed)) = (experiment.settings(recipe), experiment.spec(recipe)) else {
        return false;
    };
    write_out_defaults(&mut committed);
    committed.train.seed = spec.train.seed;
    if settings.time().is_some() {
        committed.train.steps = spec.train.steps;
    }
    committed == *spec
}

/// Seconds, for people.
pub fn seconds_text(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.1} s"),
        s if s < 6000.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
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

/// Published error and NLPP of the experiment, or else of the one it is a variant of.
fn published(experiment: &Experiment) -> [String; 2] {
    let other = experiment.compare.as_ref().and_then(|name| Experiment::find(name).ok());
    let of_other = other.as_ref().and_then(|o| Some((o.published.as_ref()?, Some(o.name))));
    let Some((Published { error, nlpp, elsewhere, of }, variant)) =
        experiment.published.as_ref().map(|p| (p, None)).or(of_other)
    else {
        return Default::default();
    };
    let notes: Vec<&str> =
        elsewhere.then_some("elsewhere").into_iter().chain(of.as_deref()).chain(variant).collect();
    let note = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
    [format!("{error}{note}"), nlpp.clone()]
}

/// Writes rows under their headings, aligned or as Markdown.
pub fn write(out: &mut dyn Write, rows: &[Row], markdown: bool) -> io::Result<()> {
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
    fn committed_records_have_the_settings_of_their_experiments() {
        let rows = of_all(&crate::committed());
        let other: Vec<&String> =
            rows.iter().map(|r| &r[0]).filter(|n| n.ends_with(OTHER_SETTINGS)).collect();
        assert!(other.is_empty(), "{other:?}");
        let variant = rows.iter().find(|r| r[0] == "cifar-contrast-multichannel").unwrap();
        assert_eq!(variant[7], "35.4 % (cifar-multichannel)");
    }

    #[test]
    fn what_was_not_run_is_said() {
        let rows = of_all(&[]);
        assert!(rows.iter().all(|row| row[3] == "not run"));
        let mut text = Vec::new();
        write(&mut text, &rows, true).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("| mnist-weighted | paper |  | not run |  |  |  | 1.22 % | 0.048 |"), "{text}");
    }
}
