//! What the columns of a table without a header are, from what they hold.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::formats::numbers::is_image_size;
use crate::formats::table::TakeRow;
use crate::formats::table_rows::{is_header, parse};
use crate::options::{OpenOptions, TargetKind};

/// Where the label is, and the number of the row if it has a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Columns {
    /// None where the images have no labels.
    pub label: Option<usize>,
    pub index: Option<usize>,
}

/// Different values of a column that are told apart; a column of more is none of labels.
const MANY: usize = 1000;
/// Rows whose middle columns are looked at.
const LOOKED_AT: usize = 50;

/// A look at the first, the second and the last column of a whole table.
#[derive(Debug, Default)]
pub(crate) struct Look {
    width: usize,
    rows: usize,
    named: bool,
    first: Column,
    second: Column,
    last: Column,
    fractions: bool,
}

/// What a column holds.
#[derive(Debug, Default)]
struct Column {
    words: bool,
    fractions: bool,
    /// Every value is one more than the one before.
    breaks: bool,
    before: Option<f32>,
    counts: BTreeMap<i64, usize>,
}

impl Column {
    fn take(&mut self, field: &[u8]) {
        let Some(value) = parse(field) else {
            self.words = true;
            return;
        };
        self.breaks |= self.before.is_some_and(|before| value != before + 1.0);
        self.before = Some(value);
        self.fractions |= value.fract() != 0.0;
        if self.counts.len() <= MANY {
            *self.counts.entry(value as i64).or_default() += 1;
        }
    }

    /// Whether these may be the labels of classes.
    fn is_labels(&self, rows: usize) -> bool {
        let different = self.counts.len();
        self.words
            || (!self.fractions
                && (2..=MANY).contains(&different)
                && (different <= 20 || 2 * different <= rows))
    }

    /// Whether all values are classes that are known beforehand.
    fn is_known(&self, options: &OpenOptions) -> bool {
        let known = |value: &i64| options.known_classes.contains(&value.to_string());
        !self.words && !self.fractions && self.counts.keys().all(known)
    }

    fn is_constant(&self) -> bool {
        !self.words && !self.fractions && self.counts.len() == 1
    }

    /// How evenly the values are spread, from 0 to 1.
    fn evenness(&self, rows: usize) -> f64 {
        let part = |&count: &usize| count as f64 / rows as f64;
        let entropy: f64 = self.counts.values().map(|c| -part(c) * part(c).ln()).sum();
        entropy / (self.counts.len().max(2) as f64).ln()
    }
}

impl TakeRow for Look {
    fn take<'f>(&mut self, _: u64, fields: impl Iterator<Item = &'f [u8]> + Clone) -> Result<()> {
        if fields.clone().all(<[u8]>::is_empty) {
            return Ok(());
        }
        if self.rows == 0 && self.width == 0 {
            let all: Vec<&[u8]> = fields.clone().collect();
            (self.width, self.named) = (all.len(), is_header(&all));
            if self.named {
                return Ok(());
            }
        }
        let last = self.width.saturating_sub(1);
        for (i, field) in fields.enumerate() {
            match i {
                0 => self.first.take(field),
                _ if i == last => self.last.take(field),
                1 => self.second.take(field),
                _ if self.rows >= LOOKED_AT => {}
                _ => self.fractions |= parse(field).is_some_and(|x| x.fract() != 0.0),
            }
        }
        self.rows += 1;
        Ok(())
    }

    fn has_seen_enough(&self) -> bool {
        self.named
    }
}

impl Look {
    /// The columns and the reason in words; none if there is a header, or nothing to choose from.
    pub(crate) fn decide(&self, options: &OpenOptions) -> Option<(Columns, String)> {
        let Self { width, rows, first, second, last, .. } = self;
        if self.named || *width < 3 {
            return None;
        }
        if is_unlabelled(*width, options) {
            return Some((
                Columns { label: None, index: None },
                "no header and no label: all columns are pixels".into(),
            ));
        }
        let counts_rows = *rows > 2 && !first.breaks && !first.words && !first.fractions;
        let numbered = counts_rows && is_image_size(width - 2, options) && !is_image_size(width - 1, options);
        let (index, front, at) = if numbered { (Some(0), second, 1) } else { (None, first, 0) };
        let known = (front.is_known(options), last.is_known(options));
        let chosen = match known {
            (true, false) | (false, true) => (known.0, "its values are known classes".into()),
            _ => choose(front, last, *rows, self.fractions, options.targets),
        };
        let (label, why) = match chosen {
            (true, why) => (at, why),
            (false, why) => (width - 1, why),
        };
        let place = if label == width - 1 { "last" } else { ["first", "second"][at] };
        let note = format!("no header; the label is the {place} column: {why}");
        let note = if numbered {
            format!("{note}; the first column numbers the rows and was left out")
        } else {
            note
        };
        Some((Columns { label: Some(label), index }, note))
    }
}

/// Whether all of so many columns are pixels, for images that need no labels.
pub(crate) fn is_unlabelled(columns: usize, options: &OpenOptions) -> bool {
    let is_image = |pixels: usize| match options.pixels() {
        Some(wanted) => pixels == wanted,
        None => is_image_size(pixels, options),
    };
    options.unlabelled && options.label_column.is_none() && is_image(columns) && !is_image(columns - 1)
}

/// Whether the column in front is the label rather than the last, and why.
fn choose(
    front: &Column,
    last: &Column,
    rows: usize,
    fractions: bool,
    targets: TargetKind,
) -> (bool, String) {
    if last.is_constant() && !front.is_constant() {
        return (true, "the last column holds one value only".into());
    }
    if front.is_constant() || targets == TargetKind::Real {
        return (false, "as usual".into());
    }
    if front.words != last.words {
        return (front.words, "it holds words".into());
    }
    if !fractions && front.fractions != last.fractions {
        return (front.fractions, "it alone holds fractions".into());
    }
    match (front.is_labels(rows), last.is_labels(rows)) {
        (true, false) => {
            return (true, format!("it holds {} whole numbers, the last column more", front.counts.len()));
        }
        (false, _) => return (false, "as usual".into()),
        (true, true) => {}
    }
    let (a, b) = (front.counts.len(), last.counts.len());
    if a != b {
        let (few, many) = (a.min(b), a.max(b));
        return (a < b, format!("it holds {few} whole numbers, the column at the other end {many}"));
    }
    match front.evenness(rows) > last.evenness(rows) + 0.1 {
        true => (true, "its values are more evenly spread than those of the last".into()),
        false => (false, "as usual".into()),
    }
}
