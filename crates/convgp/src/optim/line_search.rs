//! A line search for the strong Wolfe conditions (Nocedal & Wright, algorithms 3.5 and 3.6).

use crate::Result;

/// Sufficient decrease, and the fraction of the initial slope that must be gone.
const DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
/// Trials before the best point so far is taken.
const TRIALS: usize = 40;
/// Differences of the value below this fraction of it are rounding.
const ROUNDING: f64 = 1e-14;

/// The function along the line at one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Point {
    pub t: f64,
    pub value: f64,
    pub slope: f64,
}

/// A search from `t = 0`, where the slope is negative. `eval(t)` gives value and slope; an infinite value means that the
/// function is not defined there. Returns the accepted point, which is the one evaluated last, or `None` when no trial
/// improved on the start.
pub(super) fn strong_wolfe(
    eval: impl FnMut(f64) -> Result<(f64, f64)>,
    start: Point,
    first: f64,
) -> Result<Option<Point>> {
    Search { eval, start, trials: 0 }.run(first)
}

struct Search<F> {
    eval: F,
    start: Point,
    trials: usize,
}

impl<F: FnMut(f64) -> Result<(f64, f64)>> Search<F> {
    fn run(&mut self, first: f64) -> Result<Option<Point>> {
        let (mut before, mut t) = (self.start, first);
        while self.trials < TRIALS {
            let p = self.at(t)?;
            if !self.decreases(p) || (p.value >= before.value && before.t > 0.0) {
                return self.zoom(before, p);
            }
            if self.is_flat(p) {
                return Ok(Some(p));
            }
            if p.slope >= 0.0 {
                return self.zoom(p, before);
            }
            (before, t) = (p, 2.0 * t);
        }
        self.settle(before)
    }

    /// Shrinks a bracket whose end `low` is the better one and slopes towards `high`.
    fn zoom(&mut self, mut low: Point, mut high: Point) -> Result<Option<Point>> {
        while self.trials < TRIALS && (high.t - low.t).abs() > f64::EPSILON * low.t.abs() {
            let p = self.at(inside(low, high))?;
            if !self.decreases(p) || p.value > low.value {
                high = p;
                continue;
            }
            if self.is_flat(p) {
                return Ok(Some(p));
            }
            if p.slope * (high.t - low.t) >= 0.0 {
                high = low;
            }
            low = p;
        }
        self.settle(low)
    }

    /// The best point found, if it is better than the start; evaluated again so that it is the last one.
    fn settle(&mut self, best: Point) -> Result<Option<Point>> {
        if best.t > 0.0 && best.value < self.start.value { self.at(best.t).map(Some) } else { Ok(None) }
    }

    fn at(&mut self, t: f64) -> Result<Point> {
        self.trials += 1;
        let (value, slope) = (self.eval)(t)?;
        let defined = value.is_finite() && slope.is_finite();
        Ok(Point { t, value: if defined { value } else { f64::INFINITY }, slope })
    }

    /// Sufficient decrease; where values differ by rounding only, the slope has to tell (Hager & Zhang, 2005).
    fn decreases(&self, p: Point) -> bool {
        let Point { value, slope, .. } = self.start;
        let rounding = ROUNDING * value.abs();
        p.value <= value + DECREASE * p.t * slope
            || ((p.value - value).abs() <= rounding && p.slope <= (2.0 * DECREASE - 1.0) * slope)
    }

    fn is_flat(&self, p: Point) -> bool {
        p.slope.abs() <= -CURVATURE * self.start.slope
    }
}

/// Minimum of the cubic through both ends, kept a tenth of the bracket away from them; the middle where that fails.
fn inside(a: Point, b: Point) -> f64 {
    let (middle, width) = (0.5 * (a.t + b.t), b.t - a.t);
    if !b.value.is_finite() {
        return middle;
    }
    let d1 = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.t - b.t);
    let d2 = (d1 * d1 - a.slope * b.slope).sqrt().copysign(width);
    let t = b.t - width * (b.slope + d2 - d1) / (b.slope - a.slope + 2.0 * d2);
    let (near, far) = (a.t + 0.1 * width, b.t - 0.1 * width);
    if t.is_finite() { t.clamp(near.min(far), near.max(far)) } else { middle }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(f: impl Fn(f64) -> (f64, f64), first: f64) -> Point {
        let (value, slope) = f(0.0);
        strong_wolfe(|t| Ok(f(t)), Point { t: 0.0, value, slope }, first).unwrap().unwrap()
    }

    #[test]
    fn both_conditions_hold_from_any_first_step() {
        // Moré & Thuente's first function with a steeper start, and a quartic.
        let rational = |t: f64| (-t / (t * t + 2.0), (t * t - 2.0) / ((t * t + 2.0) * (t * t + 2.0)));
        let quartic = |t: f64| ((t - 3.0f64).powi(4) + t, 4.0 * (t - 3.0f64).powi(3) + 1.0);
        for first in [1e-3, 0.1, 1.0, 10.0, 1e3] {
            for f in [&rational as &dyn Fn(f64) -> (f64, f64), &quartic] {
                let (p, (f0, s0)) = (search(f, first), f(0.0));
                assert!(
                    p.value <= f0 + DECREASE * p.t * s0 && p.slope.abs() <= CURVATURE * s0.abs(),
                    "{p:?}"
                );
            }
        }
    }

    #[test]
    fn undefined_places_are_backed_away_from() {
        let f = |t: f64| if t < 0.4 { (-t, -1.0 + 4.0 * t * t) } else { (f64::NAN, f64::NAN) };
        let p = search(f, 1.0);
        assert!(p.t > 0.0 && p.t < 0.4);
    }

    #[test]
    fn a_hopeless_direction_is_admitted() {
        let found = strong_wolfe(|t| Ok((t, 1.0)), Point { t: 0.0, value: 0.0, slope: -1.0 }, 1.0).unwrap();
        assert_eq!(found, None, "the slope lied");
    }
}
