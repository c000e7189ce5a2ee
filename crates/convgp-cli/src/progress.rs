//! A progress bar on standard error.

use convgp::train::{Moment, Observer, Trigger};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Weight of the newest minibatch in the displayed training error.
const NEWEST: f64 = 0.05;

/// Steps, bound, training error, speed and time left. Nothing is drawn where standard error is not a terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// For a run of this many steps.
    pub fn new(steps: u64) -> Self {
        let template = "{bar:24} {pos}/{len} steps  {msg}  {per_sec}  {elapsed} elapsed, {eta} left";
        let style = ProgressStyle::with_template(template).expect("the template is well formed");
        let bar = ProgressBar::new(steps).with_style(style);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }

    /// What keeps the bar up to date.
    pub fn observer(&self) -> Observer<'_> {
        let (mut bound, mut error) = (f64::NAN, f64::NAN);
        Observer::new(Trigger::Steps(1), move |m: &Moment<'_>| {
            if m.report.bound.elbo.is_finite() {
                bound = m.report.bound.elbo;
            }
            if let Some(e) = m.batch_error() {
                error = if error.is_nan() { e } else { error + NEWEST * (e - error) };
            }
            self.bar.set_position(m.report.step);
            self.bar.set_message(format!("bound {bound:.2}, training error {:.2} %", 100.0 * error));
            Ok(())
        })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
