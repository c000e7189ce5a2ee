//! The contract of [`Views`], as a test that any implementation can run.

use super::Views;
use crate::rng::Rng;

/// Relative error allowed to sums of products in double precision.
const TOLERANCE: f64 = 1e-12;
/// The same to a difference of views that are not linear.
const DIFFERENCE_TOLERANCE: f64 = 1e-8;

/// Checks that `views` keeps its promises, on random images from `seed`; the message says which one it breaks.
///
/// Sizes agree with what is written; writing is linear in the image unless said otherwise, coordinates being constant; the
/// pullback is the transpose of its derivative and adds; [`Views::layout`] and [`Views::windows`] describe the same views. A panic inside `views` passes
/// through.
pub fn check_views(views: &dyn Views, seed: u64) -> Result<(), String> {
    check_sizes(views)?;
    let mut rng = Rng::new(seed);
    let mut random = |n: usize| -> Vec<f64> { (0..n).map(|_| rng.normal()).collect() };
    let (d, n) = (views.image_shape().len(), views.count() * views.len());
    let constants = written(views, &vec![0.0; d])?;
    check_constants(views, &constants)?;
    for _ in 0..3 {
        let (x, y) = (random(d), random(d));
        check_coordinates(views, &constants, &x)?;
        if views.is_linear() {
            check_linear(views, &x, &y)?;
        }
        check_pullback(views, &x, &random(n), &y)?;
        check_windows(views, &x)?;
    }
    Ok(())
}

fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message()) }
}

fn check_sizes(views: &dyn Views) -> Result<(), String> {
    let (count, len, coordinates) = (views.count(), views.len(), views.coordinates());
    ensure(count > 0, || "count() is 0; there must be at least one view".into())?;
    ensure(len > coordinates, || {
        format!("len() is {len} with {coordinates} coordinates; a view needs at least one pixel")
    })?;
    let layout = views.layout();
    ensure(layout.count() == count, || {
        format!("layout() places {} views, count() is {count}", layout.count())
    })?;
    ensure(layout.view.len() == len - coordinates, || {
        format!("layout() has views of {} numbers, there are {}", layout.view.len(), len - coordinates)
    })
}

/// The views of an image, making sure that every number is written and that old contents of the buffer do not matter.
fn written(views: &dyn Views, image: &[f64]) -> Result<Vec<f64>, String> {
    let len = views.len();
    let mut out = vec![f64::NAN; views.count() * len];
    views.write(image, &mut out);
    if let Some(i) = out.iter().position(|value| value.is_nan()) {
        return Err(format!("write() leaves element {} of view {} unwritten", i % len, i / len));
    }
    let mut again = vec![1.0; out.len()];
    views.write(image, &mut again);
    ensure(out == again, || "write() depends on what was in the buffer before".into())?;
    Ok(out)
}

/// The views of a blank image are zero but for the coordinates; whitened patches may have any value there.
fn check_constants(views: &dyn Views, constants: &[f64]) -> Result<(), String> {
    let mut arrays = Vec::new();
    views.constants("", 0, &mut arrays);
    if !arrays.is_empty() {
        return Ok(());
    }
    let len = views.len();
    let pixels = len - views.coordinates();
    let stray = constants.iter().enumerate().find(|&(i, &value)| i % len < pixels && value != 0.0);
    match stray {
        Some((i, value)) => {
            Err(format!("element {} of view {} is {value} for a blank image, not 0", i % len, i / len))
        }
        None => Ok(()),
    }
}

/// Coordinates do not depend on the image.
fn check_coordinates(views: &dyn Views, constants: &[f64], x: &[f64]) -> Result<(), String> {
    let len = views.len();
    let pixels = len - views.coordinates();
    let of_x = written(views, x)?;
    match (0..of_x.len()).find(|&i| i % len >= pixels && of_x[i] != constants[i]) {
        Some(i) => Err(format!("coordinate {} of view {} changes with the image", i % len - pixels, i / len)),
        None => Ok(()),
    }
}

fn check_linear(views: &dyn Views, x: &[f64], y: &[f64]) -> Result<(), String> {
    let (a, b) = (0.7, -1.3);
    let mixed: Vec<f64> = x.iter().zip(y).map(|(x, y)| a * x + b * y).collect();
    let (of_x, of_y, of_mixed) = (written(views, x)?, written(views, y)?, written(views, &mixed)?);
    let len = views.len();
    for i in (0..of_x.len()).filter(|i| i % len < len - views.coordinates()) {
        let expected = a * of_x[i] + b * of_y[i];
        let scale = 1.0 + (a * of_x[i]).abs() + (b * of_y[i]).abs();
        ensure((of_mixed[i] - expected).abs() <= TOLERANCE * scale, || {
            format!("element {} of view {} is not linear in the image", i % len, i / len)
        })?;
    }
    Ok(())
}

/// `<J y, views_bar> = <y, J^T views_bar>` with `J` the derivative at `x`, by a difference, which is exact where views are
/// linear; and the pullback adds to what is there.
fn check_pullback(views: &dyn Views, x: &[f64], views_bar: &[f64], y: &[f64]) -> Result<(), String> {
    let mut image_bar = vec![0.0; x.len()];
    views.pullback(x, views_bar, &mut image_bar);
    let mut added = y.to_vec();
    views.pullback(x, views_bar, &mut added);
    for i in 0..x.len() {
        let (expected, scale) = (y[i] + image_bar[i], 1.0 + y[i].abs() + image_bar[i].abs());
        ensure((added[i] - expected).abs() <= TOLERANCE * scale, || {
            format!("pullback() does not add to what is already there, at pixel value {i}")
        })?;
    }
    let (step, tolerance) = if views.is_linear() { (1.0, TOLERANCE) } else { (1e-5, DIFFERENCE_TOLERANCE) };
    let moved = |step: f64| -> Result<Vec<f64>, String> {
        written(views, &x.iter().zip(y).map(|(x, y)| x + step * y).collect::<Vec<_>>())
    };
    let (up, down) = (moved(step)?, moved(-step)?);
    let slope: Vec<f64> = up.iter().zip(&down).map(|(up, down)| (up - down) / (2.0 * step)).collect();
    let (forward, forward_scale) = dot(&slope, views_bar);
    let (back, back_scale) = dot(y, &image_bar);
    ensure((forward - back).abs() <= tolerance * (1.0 + forward_scale.max(back_scale)), || {
        format!("pullback() is not the transpose of write(): products are {forward} and {back}")
    })
}

/// The inner product and the sum of its terms' sizes.
fn dot(a: &[f64], b: &[f64]) -> (f64, f64) {
    a.iter().zip(b).fold((0.0, 0.0), |(sum, size), (a, b)| (sum + a * b, size + (a * b).abs()))
}

fn check_windows(views: &dyn Views, x: &[f64]) -> Result<(), String> {
    let Some(windows) = views.windows() else { return Ok(()) };
    let sizes = |v: &dyn Views| (v.image_shape(), v.count(), v.len(), v.coordinates());
    ensure(sizes(windows) == sizes(views), || "windows() has other sizes than the views".into())?;
    let out = written(views, x)?;
    for (p, view) in out.chunks_exact(views.len()).enumerate() {
        let (row, col) = windows.corner(p);
        let pixels = windows.offsets().iter().map(|offset| x[windows.bases()[p] + offset]);
        let corner = [row as f64, col as f64].into_iter().take(windows.coordinates());
        ensure(pixels.chain(corner).eq(view.iter().copied()), || {
            format!("windows() describes view {p} differently from write()")
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Channels, Layout, ViewsSize, Windows};
    use super::*;
    use crate::data::ImageShape;

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Flaw {
        None,
        Unwritten,
        Accumulates,
        Offset,
        Quadratic,
        MovingCoordinate,
        Overwrites,
        WrongTranspose,
        WrongLayout,
        WrongWindows,
    }

    /// Located windows with a flaw.
    #[derive(Debug)]
    struct Flawed {
        good: Windows,
        claimed: Windows,
        flaw: Flaw,
    }

    impl Flawed {
        fn new(flaw: Flaw) -> Self {
            let shape = ImageShape::new(3, 4, 2).unwrap();
            let windows =
                |c| Windows::new(shape, (2, 2), (1, 1), Channels::Only(c)).unwrap().location_aware();
            Self { good: windows(0), claimed: windows((flaw == Flaw::WrongWindows).into()), flaw }
        }
    }

    impl Views for Flawed {
        fn size(&self) -> ViewsSize {
            ViewsSize { coordinates: 2, ..self.good.size() }
        }
        fn write(&self, image: &[f64], out: &mut [f64]) {
            let before = out[7];
            self.good.write(image, out);
            match self.flaw {
                Flaw::Unwritten => out[7] = before,
                Flaw::Accumulates if !before.is_nan() => out[7] += before,
                Flaw::Offset => out[7] += 0.5,
                Flaw::Quadratic => out[7] += image[0] * image[0],
                Flaw::MovingCoordinate => out[5] += image[0],
                _ => {}
            }
        }
        fn pullback(&self, image: &[f64], views_bar: &[f64], image_bar: &mut [f64]) {
            if self.flaw == Flaw::Overwrites {
                image_bar.fill(0.0);
            }
            self.good.pullback(image, views_bar, image_bar);
            if self.flaw == Flaw::WrongTranspose {
                image_bar[3] += 1e-6 * views_bar[0];
            }
        }
        fn layout(&self) -> Layout {
            let layout = self.good.layout();
            if self.flaw == Flaw::WrongLayout { Layout { rows: 1, ..layout } } else { layout }
        }
        fn windows(&self) -> Option<&Windows> {
            Some(&self.claimed)
        }
    }

    #[test]
    fn every_flaw_is_found_and_named() {
        check_views(&Flawed::new(Flaw::None), 5).unwrap();
        for (flaw, words) in [
            (Flaw::Unwritten, "leaves element 1 of view 1 unwritten"),
            (Flaw::Accumulates, "what was in the buffer"),
            (Flaw::Offset, "element 1 of view 1 is 0.5 for a blank image"),
            (Flaw::Quadratic, "element 1 of view 1 is not linear"),
            (Flaw::MovingCoordinate, "coordinate 1 of view 0 changes"),
            (Flaw::Overwrites, "does not add"),
            (Flaw::WrongTranspose, "not the transpose"),
            (Flaw::WrongLayout, "layout() places 3 views, count() is 6"),
            (Flaw::WrongWindows, "describes view 0 differently"),
        ] {
            let message = check_views(&Flawed::new(flaw), 5).unwrap_err();
            assert!(message.contains(words), "{flaw:?}: {message}");
        }
    }
}
