//! Wall-clock seconds of repeated runs, and what else the machine did meanwhile.

use std::collections::BTreeMap;
use std::time::Instant;

/// Seconds of the same thing done several times.
#[derive(Debug, Clone, Default)]
pub struct Times(pub Vec<f64>);

impl Times {
    /// The middle one.
    pub fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        match sorted.len() {
            0 => f64::NAN,
            n if n % 2 == 1 => sorted[n / 2],
            n => 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]),
        }
    }
    /// The fastest one.
    pub fn min(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }
    /// The slowest one.
    pub fn max(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
    /// Round by round, `self + factor * other`: to take out a part that was timed by itself.
    pub fn plus(&self, factor: f64, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a + factor * b).collect())
    }
}

/// Several series timed in turn, so that what disturbs the machine hits all of them alike.
#[derive(Debug, Default)]
pub struct Watch(BTreeMap<&'static str, Times>);

impl Watch {
    /// Times one run.
    pub fn time<R>(&mut self, name: &'static str, run: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = run();
        let seconds = start.elapsed().as_secs_f64();
        self.0.entry(name).or_default().0.push(seconds);
        result
    }
    /// The runs of that name; empty when there were none.
    pub fn times(&self, name: &str) -> Times {
        self.0.get(name).cloned().unwrap_or_default()
    }
    /// Forgets everything: after a warm-up round.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// Fastest seconds per call among batches of calls of a millisecond or two, short enough that some of them are not
/// interrupted even on a busy machine.
pub fn fastest(seconds: f64, mut run: impl FnMut()) -> f64 {
    run();
    let start = Instant::now();
    run();
    let once = start.elapsed().as_secs_f64().max(1e-9);
    let calls = (1.5e-3 / once).clamp(1.0, 1e6) as usize;
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    for batch in 0.. {
        if batch >= 5 && begin.elapsed().as_secs_f64() > seconds {
            break;
        }
        let start = Instant::now();
        (0..calls).for_each(|_| run());
        best = best.min(start.elapsed().as_secs_f64() / calls as f64);
    }
    best
}

/// Share of the machine's processors that other processes used since it was made (Linux only).
#[derive(Debug)]
pub struct Others {
    start: Instant,
    busy: f64,
    own: f64,
}

impl Others {
    /// Starts watching.
    pub fn watch() -> Self {
        let (busy, own) = busy_and_own();
        Self { start: Instant::now(), busy, own }
    }
    /// Per cent of all processors.
    pub fn percent(&self) -> Option<f64> {
        let (busy, own) = busy_and_own();
        let others = ((busy - self.busy) - (own - self.own)).max(0.0);
        let cores = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        let percent = 100.0 * others / (self.start.elapsed().as_secs_f64() * cores);
        busy.is_finite().then(|| (10.0 * percent).round() / 10.0)
    }
}

/// Processor seconds of everybody and of this process, by the kernel's counters (hundredths of a second).
fn busy_and_own() -> (f64, f64) {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let numbers = |text: &str| text.split_whitespace().filter_map(|w| w.parse().ok()).collect::<Vec<f64>>();
    let all = numbers(read("/proc/stat").lines().next().unwrap_or_default());
    // The program's name may hold blanks; what follows its closing bracket does not.
    let stat = read("/proc/self/stat");
    let own = numbers(stat.rsplit(')').next().unwrap_or_default());
    if all.len() < 8 || own.len() < 12 {
        return (f64::NAN, f64::NAN);
    }
    let busy: f64 = all[..8].iter().sum::<f64>() - all[3] - all[4];
    (busy / 100.0, (own[10] + own[11]) / 100.0)
}

/// A line of `/proc/self/status` in megabytes (millions of bytes), such as `VmHWM`, the peak resident memory.
pub fn memory(field: &str) -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with(field))?;
    let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_differences() {
        let (a, b) = (Times(vec![3.0, 1.0, 2.0]), Times(vec![1.0, 0.5, 0.5]));
        assert_eq!((a.median(), a.min(), a.max()), (2.0, 1.0, 3.0));
        assert_eq!(a.plus(-2.0, &b).0, [1.0, 0.0, 1.0]);
        assert_eq!(Times(vec![4.0, 1.0]).median(), 2.5);
    }
}
