//! Progress on standard error: a bar on a terminal, lines for what matters everywhere.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::time::Duration;

/// Steps, a message, speed and time left. The bar is drawn on terminals only.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    quiet: bool,
}

impl Progress {
    /// For so many steps; `quiet` shows nothing at all.
    pub fn new(steps: u64, quiet: bool) -> Self {
        let template = "{bar:24} {pos}/{len} steps  {msg}  {per_sec}  {elapsed} elapsed, {eta} left";
        let style = ProgressStyle::with_template(template).expect("the template is well formed");
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(steps) };
        let bar = bar.with_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, quiet }
    }

    /// Where the run is.
    pub fn show(&self, step: u64, total: u64, message: String) {
        self.bar.set_length(total);
        self.bar.set_position(step);
        self.bar.set_message(message);
    }

    /// Where a resumed run starts, so that its speed is that of the steps to come.
    pub fn start_at(&self, step: u64) {
        self.bar.set_position(step);
        self.bar.reset_eta();
    }

    /// A line that stays.
    pub fn note(&self, line: &str) {
        if !self.quiet {
            // Whoever closed standard error does not want to hear of it.
            self.bar.suspend(|| _ = writeln!(std::io::stderr(), "{line}"));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
