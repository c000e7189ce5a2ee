//! How a step grows with batch, inducing inputs, views and latents, on one and two threads.

use super::child::{Job, Mode};
use super::configs::Sizes;
use super::images::Kind;
use super::plot::{Panel, Series, svg};
use super::report::{Cell, Report};
use anyhow::{Context, Result};
use std::path::Path;

/// What grows: name, values, and the sizes they stand for. Everything else stays at M1.
type Axis = (&'static str, &'static [usize], fn(usize) -> Sizes);

const AXES: [Axis; 4] = [
    ("B", &[25, 50, 100, 200, 400], |b| Sizes { batch: Some(b), ..Sizes::default() }),
    ("M", &[100, 250, 500, 750, 1000, 1500], |m| Sizes { inducing: Some(m), ..Sizes::default() }),
    // The side of the image; what is shown is the number of 5x5 patches.
    ("P", &[12, 16, 20, 28, 40], |side| Sizes { side: Some(side), ..Sizes::default() }),
    ("L", &[2, 5, 10, 20], |l| Sizes { classes: Some(l), ..Sizes::default() }),
];

/// Measures and plots.
pub fn run(report: Report, quick: bool, steps: usize, plot: &Path) -> Result<()> {
    let note = "M1 on images of random bytes (28x28, 5x5 patches, M 750, B 200, L 10), one size changed at a time; \
                natural steps for q, Adam for the rest. Every line is a process of its own. P is changed through the \
                size of the images.";
    let mut table = report.table("growth", note);
    let mut panels = Vec::new();
    for (axis, sizes, with) in AXES {
        let sizes = if quick { &sizes[..2] } else { sizes };
        let mut series =
            [1usize, 2].map(|threads| Series { name: threads_name(threads), points: Vec::new() });
        for &size in sizes {
            let mut medians = [0.0; 2];
            for (i, threads) in [1usize, 2].into_iter().enumerate() {
                let outcome = job(with(size), threads, steps).spawn()?;
                let times = outcome.times();
                medians[i] = times.median();
                let shown = if axis == "P" { outcome.views.0 } else { size };
                series[i].points.push((shown as f64, times.median()));
                let gain = if threads > 1 { Cell::Number(medians[0] / medians[1]) } else { Cell::Empty };
                table.add(&vec![
                    ("axis", axis.into()),
                    ("value", shown.into()),
                    ("threads", threads.into()),
                    ("median_s", times.median().into()),
                    ("min_s", times.min().into()),
                    ("max_s", times.max().into()),
                    ("n", times.0.len().into()),
                    ("gain_from_second_thread", gain),
                    ("peak_MB", Cell::maybe(outcome.peak)),
                    ("other_cpu_percent", Cell::maybe(outcome.others)),
                ]);
            }
        }
        panels.push(Panel { title: format!("seconds per step against {axis}"), series: series.into() });
    }
    if let Some(folder) = plot.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    std::fs::write(plot, svg(&panels)).with_context(|| format!("{} cannot be written", plot.display()))?;
    report.note(&format!("Plot: {}", plot.display()));
    Ok(())
}

fn threads_name(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

fn job(sizes: Sizes, threads: usize, steps: usize) -> Job {
    Job {
        config: "M1".into(),
        mode: Mode::Natural,
        images: Kind::Random,
        data: None,
        threads,
        steps,
        sizes,
        predict: 0,
    }
}
