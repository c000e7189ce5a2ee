//! Seconds of training, across resumed runs and without what is not training.

use std::time::{Duration, Instant};

/// A stopwatch.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// Seconds before the run was resumed.
    before: f64,
    started: Instant,
    /// Time since then that does not count.
    aside: Duration,
}

impl Clock {
    /// Starts after so many seconds of earlier training.
    pub fn start(before: f64) -> Self {
        Self { before, started: Instant::now(), aside: Duration::ZERO }
    }

    /// Seconds of training so far.
    pub fn seconds(&self) -> f64 {
        self.before + self.started.elapsed().saturating_sub(self.aside).as_secs_f64()
    }

    /// Does something that does not count.
    pub fn aside<T>(&mut self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        self.aside += start.elapsed();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_done_aside_does_not_count() {
        let nap = Duration::from_millis(50);
        let mut clock = Clock::start(1.0);
        clock.aside(|| std::thread::sleep(nap));
        let Clock { started, aside, .. } = clock;
        let seconds = clock.seconds();
        assert!(aside >= nap && seconds >= 1.0);
        assert!(seconds <= 1.0 + (started.elapsed() - aside).as_secs_f64());
    }
}
