//! Counts, shapes, classes and ranges in a few lines.

use std::fmt;

use convgp::data::{Dataset, PixelView, Targets};
use serde::Serialize;

use crate::loaded::{FileHash, Format, Loaded, Skipped, SplitKind};

/// What one split holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SplitSummary {
    /// Which split.
    pub kind: SplitKind,
    /// Number of images.
    pub images: usize,
    /// Images per class; empty for regression.
    pub class_counts: Vec<usize>,
    /// Smallest and largest pixel, as stored.
    pub pixel_range: (f64, f64),
    /// Mean and standard deviation of all pixels.
    pub pixel_moments: (f64, f64),
    /// Smallest and largest target, for regression.
    pub target_range: Option<(f64, f64)>,
}

/// What a data set holds. `Display` writes it for people.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// The format that was read.
    pub format: Format,
    /// Rows, columns and channels of every image.
    pub shape: (usize, usize, usize),
    /// How pixels are stored: `u8`, `u16`, `f32` or `f64`.
    pub storage: &'static str,
    /// Class names; empty for regression.
    pub class_names: Vec<String>,
    /// The splits.
    pub splits: Vec<SplitSummary>,
    /// Files passed over.
    pub skipped: Vec<Skipped>,
    /// Files used.
    pub provenance: Vec<FileHash>,
    /// Choices made on the way.
    pub notes: Vec<String>,
}

/// Sums up a data set; reads every pixel once.
pub fn summary(loaded: &Loaded) -> Summary {
    let first = loaded.splits.first().map(|s| s.data.images());
    let shape = first.map_or((0, 0, 0), |i| (i.shape().height(), i.shape().width(), i.shape().channels()));
    let storage = first.map_or("", |i| match i.pixels().view() {
        PixelView::U8(_) => "u8",
        PixelView::U16(_) => "u16",
        PixelView::F32(_) => "f32",
        PixelView::F64(_) => "f64",
    });
    Summary {
        format: loaded.format,
        shape,
        storage,
        class_names: loaded.class_names.clone(),
        splits: loaded.splits.iter().map(|s| summarise(s.kind, &s.data)).collect(),
        skipped: loaded.skipped.clone(),
        provenance: loaded.provenance.clone(),
        notes: loaded.notes.clone(),
    }
}

fn summarise(kind: SplitKind, data: &Dataset) -> SplitSummary {
    let mut pixels = Range::default();
    let stored = data.images().pixels().view();
    (0..stored.len()).for_each(|i| pixels.add(stored.get(i)));
    let (mut class_counts, mut target_range) = (Vec::new(), None);
    match data.targets() {
        Targets::Classes { labels, classes } => {
            class_counts = vec![0; *classes];
            labels.iter().for_each(|&l| class_counts[l as usize] += 1);
        }
        Targets::Real(values) => {
            let mut range = Range::default();
            values.iter().for_each(|&v| range.add(v));
            target_range = Some((range.low, range.high));
        }
    }
    let (pixel_range, pixel_moments) = ((pixels.low, pixels.high), pixels.moments());
    SplitSummary { kind, images: data.len(), class_counts, pixel_range, pixel_moments, target_range }
}

/// Running extremes and moments.
struct Range {
    low: f64,
    high: f64,
    count: f64,
    sum: f64,
    squares: f64,
}

impl Default for Range {
    fn default() -> Self {
        Self { low: f64::INFINITY, high: f64::NEG_INFINITY, count: 0.0, sum: 0.0, squares: 0.0 }
    }
}

impl Range {
    fn add(&mut self, x: f64) {
        self.low = self.low.min(x);
        self.high = self.high.max(x);
        self.count += 1.0;
        self.sum += x;
        self.squares += x * x;
    }

    fn moments(&self) -> (f64, f64) {
        let mean = self.sum / self.count;
        (mean, (self.squares / self.count - mean * mean).max(0.0).sqrt())
    }
}

/// Lines of a list that are shown before "and n more".
const SHOWN: usize = 20;

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (h, w, c) = self.shape;
        let colour = match c {
            1 => "grey".to_owned(),
            3 => "RGB".to_owned(),
            n => format!("{n} channels"),
        };
        writeln!(f, "{}: {h}x{w} {colour}, {} pixels", self.format, self.storage)?;
        for s in &self.splits {
            let ((low, high), (mean, std)) = (s.pixel_range, s.pixel_moments);
            write!(f, "  {:<10} {:>7} images, pixels {low} to {high}, ", s.kind, s.images)?;
            write!(f, "mean {mean:.4}, standard deviation {std:.4}")?;
            match s.target_range {
                Some((low, high)) => writeln!(f, ", targets {low} to {high}")?,
                None => writeln!(f)?,
            }
        }
        self.write_classes(f)?;
        self.notes.iter().try_for_each(|note| writeln!(f, "  note: {note}"))?;
        for skipped in self.skipped.iter().take(SHOWN) {
            writeln!(f, "  skipped {}: {}", skipped.path, skipped.reason)?;
        }
        if self.skipped.len() > SHOWN {
            writeln!(f, "  skipped {} more", self.skipped.len() - SHOWN)?;
        }
        Ok(())
    }
}

impl Summary {
    /// A table of images per class and split.
    fn write_classes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.class_names.is_empty() {
            return Ok(());
        }
        let shown = self.class_names.iter().take(SHOWN);
        let width = shown.clone().map(|n| n.chars().count()).max().unwrap_or(0).max(5);
        write!(f, "  {:<width$}", "class")?;
        self.splits.iter().try_for_each(|s| write!(f, "  {:>10}", s.kind))?;
        writeln!(f)?;
        for (class, name) in shown.enumerate() {
            write!(f, "  {name:<width$}")?;
            self.splits.iter().try_for_each(|s| write!(f, "  {:>10}", s.class_counts[class]))?;
            writeln!(f)?;
        }
        if self.class_names.len() > SHOWN {
            writeln!(f, "  and {} more classes", self.class_names.len() - SHOWN)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_counts_classes_and_ranges() {
        let sum = summary(&crate::registry::generated_rectangles(100, 50, 0));
        assert_eq!(sum.splits[0].class_counts.iter().sum::<usize>(), 100);
        let text = sum.to_string();
        for part in
            ["28x28 grey, u8", "train", "100 images", "pixels 0 to 255", "wide", "tall", "note: made by"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
