//! Whole training steps and prediction, every configuration in a process of its own.

use super::child::{Job, Mode};
use super::configs::{Config, Sizes};
use super::images::{Kind, folder};
use super::report::{Cell, Report};
use anyhow::Result;
use std::path::Path;

/// What to measure.
#[derive(Debug)]
pub struct Choice<'a> {
    /// Configurations.
    pub configs: Vec<&'static Config>,
    /// Optimisers.
    pub modes: Vec<Mode>,
    /// Images.
    pub images: Vec<Kind>,
    /// Folder of the real ones.
    pub data: Option<&'a Path>,
    /// Threads.
    pub threads: usize,
    /// Timed steps.
    pub steps: usize,
    /// Show every step's seconds (in JSON), for whoever puts several runs together.
    pub each: bool,
}

impl Choice<'_> {
    fn job(&self, config: &Config, mode: Mode, images: Kind) -> Job {
        Job {
            config: config.name.into(),
            mode,
            images,
            data: self.data.map(Path::to_path_buf),
            threads: self.threads,
            steps: self.steps,
            sizes: Sizes::default(),
            predict: 0,
        }
    }

    /// The chosen images of a configuration that are there.
    fn images(&self, config: &Config) -> Vec<Kind> {
        let there = |k: &Kind| *k == Kind::Random || folder(config, self.data).is_some();
        self.images.iter().copied().filter(there).collect()
    }

    /// Says after a table what is not in it.
    fn say_missing(&self, configs: &[&Config], report: Report) {
        for config in configs.iter().filter(|c| self.images(c).len() < self.images.len()) {
            report.note(&missing(config));
        }
    }

    /// Steps of all chosen configurations.
    pub fn run(&self, report: Report) -> Result<()> {
        let note = "Seconds per training step: minibatch, covariances, bound, all gradients, update of every \
                    parameter. `adam`: Adam for everything; `natural`: natural steps for q, Adam for the rest. \
                    `real` images are the named data set, `random` ones are random bytes without a repeated patch. \
                    Two steps of warm-up. Peak memory is that of the whole process, `loaded` what it held once the \
                    images were read. `trouble` counts steps with raised jitter or a roll-back.";
        let mut table = report.table("steps", note);
        for config in &self.configs {
            for kind in self.images(config) {
                for &mode in &self.modes {
                    let outcome = self.job(config, mode, kind).spawn()?;
                    let times = outcome.times();
                    let mut row = vec![
                        ("config", config.name.into()),
                        ("model", config.about.into()),
                        ("M", config.inducing.into()),
                        ("B", config.batch.into()),
                        ("images", kind.name().into()),
                        ("optimiser", mode.name().into()),
                        ("threads", self.threads.into()),
                        ("median_s", times.median().into()),
                        ("min_s", times.min().into()),
                        ("max_s", times.max().into()),
                        ("n", times.0.len().into()),
                        ("first_s", outcome.first.into()),
                        ("peak_MB", Cell::maybe(outcome.peak)),
                        ("loaded_MB", Cell::maybe(outcome.loaded)),
                        ("trouble", outcome.trouble.into()),
                        ("other_cpu_percent", Cell::maybe(outcome.others)),
                    ];
                    if self.each {
                        let all: Vec<String> = outcome.seconds.iter().map(|s| format!("{s:.6}")).collect();
                        row.push(("seconds", all.join(" ").into()));
                    }
                    table.add(&row);
                }
            }
        }
        self.say_missing(&self.configs, report);
        Ok(())
    }

    /// Class probabilities of the M1 model.
    pub fn predict(&self, report: Report, count: usize) -> Result<()> {
        let note = "Class probabilities of the M1 model (weighted conv 5x5, M 750, 10 classes) after a few steps of \
                    training: images per second, the predictor made beforehand.";
        let mut table = report.table("prediction", note);
        let config = Config::find("M1")?;
        for kind in self.images(config) {
            for threads in [1, 2] {
                let job = Job { threads, steps: 1, predict: count, ..self.job(config, Mode::Natural, kind) };
                let outcome = job.spawn()?;
                let rate = |s: f64| count as f64 / s;
                let times = super::clock::Times(outcome.predictions.clone());
                table.add(&vec![
                    ("images", kind.name().into()),
                    ("threads", threads.into()),
                    ("count", count.into()),
                    ("images_per_s", rate(times.median()).into()),
                    ("slowest", rate(times.max()).into()),
                    ("fastest", rate(times.min()).into()),
                    ("predictor_ms", Cell::maybe(outcome.predictor.map(|s| 1e3 * s))),
                    ("other_cpu_percent", Cell::maybe(outcome.others)),
                ]);
            }
        }
        self.say_missing(&[config], report);
        Ok(())
    }
}

/// A line about real images that are not there.
pub fn missing(config: &Config) -> String {
    let (name, folder) = (config.name, config.source.name());
    format!("{name}: real images left out, no folder `{folder}` below --data or CONVGP_DATA")
}
