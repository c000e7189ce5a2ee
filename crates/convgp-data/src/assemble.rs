//! From what a reader delivers to a data set: labels become classes, then size, colour, subset and limit are applied.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use convgp::data::{Dataset, Images, Targets};

use crate::error::{Error, Place, Result};
use crate::loaded::{Labels, Loaded, Raw, RawSplit, Split};
use crate::options::{Colour, OpenOptions, TargetKind};
use crate::subset::{class_indices, limit_balanced, subset_classes};
use crate::transform;

/// More whole numbers than this, few of them twice, are no classes.
const MANY_CLASSES: usize = 100;

/// Builds the data set.
pub(crate) fn assemble(path: &Path, mut raw: Raw, options: &OpenOptions) -> Result<Loaded> {
    raw.splits.sort_by_key(|s| s.kind);
    if options.colour != Colour::Rgb
        && transform::drop_idle_channels(&mut raw.splits)
        && !raw.splits.is_empty()
    {
        raw.notes.push("images are grey stored as RGB: one channel was kept".into());
    }
    let mut names = settle_labels(&mut raw, options)?;
    if !names.is_empty() {
        let new = options.known_classes.iter().filter(|n| !names.contains(n)).cloned().collect::<Vec<_>>();
        names.extend(new);
        if let [only] = names.as_slice() {
            return Err(Error::OneClass { path: path.display().to_string(), class: only.clone() });
        }
    }
    let mut splits = Vec::new();
    for split in raw.splits {
        let split = transform::apply(split, options)?;
        let (kind, data) = (split.kind, dataset(path, split, &names)?);
        splits.push(Split { kind, data: reduce(data, options)? });
    }
    let Some(first) = splits.first() else {
        let what = "a split that was asked for".into();
        let hint = "Ask for another split, or for all";
        return Err(Error::Missing { path: path.display().to_string(), what, hint });
    };
    let expected = first.data.images().shape();
    let class_names = first.data.class_names().to_vec();
    for split in &splits {
        let found = split.data.images().shape();
        if found != expected {
            return Err(Error::MixedShapes { file: format!("{} split", split.kind), found, expected });
        }
    }
    Ok(Loaded {
        splits,
        class_names,
        skipped: raw.skipped,
        provenance: raw.provenance,
        format: raw.format,
        notes: raw.notes,
    })
}

fn reduce(data: Dataset, options: &OpenOptions) -> Result<Dataset> {
    let data = match options.classes.is_empty() {
        true => data,
        false => subset_classes(&data, &class_indices(&data, &options.classes)?)?,
    };
    match options.limit {
        Some(limit) => limit_balanced(&data, limit, options.seed),
        None => Ok(data),
    }
}

fn dataset(root: &Path, split: RawSplit, names: &[String]) -> Result<Dataset> {
    let file = split.file;
    let images = Images::new(split.shape, split.pixels).map_err(Error::data(&file))?;
    let below = |file: &PathBuf| relative(root, file);
    let image_names = split.names.map(|files| files.iter().map(below).collect());
    let targets = match split.labels {
        Labels::Real(values) => Targets::real(values),
        // Checked by `settle_labels` to be in 0..names.len().
        Labels::Index(labels) => {
            Targets::classes(labels.into_iter().map(|l| l as u32).collect(), names.len())
        }
        Labels::Text(_) => unreachable!("settle_labels leaves no text"),
        Labels::Absent(_) => {
            let hint = "Name data with labels; images alone are for predict";
            return Err(Error::Missing { path: file, what: "the labels".into(), hint });
        }
    }
    .map_err(Error::data(&file))?;
    let data = Dataset::new(images, targets).map_err(Error::data(&file))?;
    let data = data.with_class_names(names.to_vec()).map_err(Error::data(&file))?;
    match image_names {
        Some(image_names) => data.with_image_names(image_names).map_err(Error::data(&file)),
        None => Ok(data),
    }
}

/// The name of a file as seen from what was opened.
pub(crate) fn relative(root: &Path, file: &Path) -> String {
    let below = file.strip_prefix(root).ok().filter(|below| !below.as_os_str().is_empty());
    below.unwrap_or(file).display().to_string()
}

/// Turns labels of all splits into class numbers or real numbers; returns the class names.
fn settle_labels(raw: &mut Raw, options: &OpenOptions) -> Result<Vec<String>> {
    let numeric = raw.splits.iter().all(|s| all_numbers(&s.labels));
    if numeric {
        raw.splits.iter_mut().for_each(|s| parse_numbers(&mut s.labels));
    } else {
        name_classes(raw, options)?;
    }
    let whole = raw.splits.iter().all(|s| all_whole(&s.labels));
    if options.targets == TargetKind::Real || (!whole && options.targets == TargetKind::Auto) {
        if options.targets == TargetKind::Auto {
            raw.notes.push("labels are not whole numbers: read as targets of a regression".into());
        }
        raw.splits.iter_mut().for_each(|s| to_real(&mut s.labels));
        return Ok(Vec::new());
    }
    if let Some(error) = raw.splits.iter().find_map(fractional) {
        return Err(error);
    }
    raw.splits.iter_mut().for_each(|s| to_index(&mut s.labels));
    check_classes(raw, options)
}

/// The first label of a split that is no whole number.
fn fractional(split: &RawSplit) -> Option<Error> {
    let Labels::Real(values) = &split.labels else { return None };
    let image = values.iter().position(|x| !is_whole(*x))?;
    let found = format!("label {}", values[image]);
    Some(Error::unexpected(&split.file, Place::Image(image), found, "a whole number, for classes"))
}

fn is_whole(x: f64) -> bool {
    x.fract() == 0.0 && x.abs() < 9e15
}

/// Words to class numbers: by the names that came with the data, else in alphabetical order.
fn name_classes(raw: &mut Raw, options: &OpenOptions) -> Result<()> {
    if options.targets == TargetKind::Real {
        let split =
            raw.splits.iter().find(|s| !all_numbers(&s.labels)).map_or(String::new(), |s| s.file.clone());
        return Err(Error::unexpected(
            &split,
            Place::Header,
            "labels in words",
            "numbers, for real-valued targets",
        ));
    }
    raw.splits.iter_mut().for_each(|s| to_text(&mut s.labels));
    let words = |s: &RawSplit| match &s.labels {
        Labels::Text(words) => words.clone(),
        _ => Vec::new(),
    };
    let found: BTreeSet<String> = raw.splits.iter().flat_map(words).collect();
    let names = raw.class_names.get_or_insert_with(|| found.into_iter().collect());
    for split in &mut raw.splits {
        let Labels::Text(words) = &split.labels else { continue };
        let number = |(i, word): (usize, &String)| match names.iter().position(|n| n == word) {
            Some(class) => Ok(class as i64),
            None => Err(Error::LabelOutOfRange {
                file: split.file.clone(),
                place: Place::Image(i),
                label: format!("{word:?}"),
                classes: names.len(),
            }),
        };
        split.labels = Labels::Index(words.iter().enumerate().map(number).collect::<Result<_>>()?);
    }
    Ok(())
}

/// Class names. Where the data do not say them, classes are the distinct labels of all splits, in numerical order.
fn check_classes(raw: &mut Raw, options: &OpenOptions) -> Result<Vec<String>> {
    let used: BTreeSet<i64> = raw.splits.iter().flat_map(|s| indices(&s.labels)).copied().collect();
    let counted = || options.class_count.map(|count| (0..count).map(|c| c.to_string()).collect());
    let Some(names) = raw.class_names.clone().or_else(counted) else { return number_classes(raw, &used) };
    for split in &raw.splits {
        let outside = |l: &i64| !(0..names.len() as i64).contains(l);
        if let Some(image) = indices(&split.labels).iter().position(outside) {
            return Err(Error::LabelOutOfRange {
                file: split.file.clone(),
                place: Place::Image(image),
                label: indices(&split.labels)[image].to_string(),
                classes: names.len(),
            });
        }
    }
    if used.len() < names.len() {
        raw.notes.push(format!("{} of {} classes have no image", names.len() - used.len(), names.len()));
    }
    Ok(names)
}

/// The distinct labels become 0, 1, ...; their names are the labels.
fn number_classes(raw: &mut Raw, used: &BTreeSet<i64>) -> Result<Vec<String>> {
    let images: usize = raw.splits.iter().map(|s| s.labels.len()).sum();
    if used.len() > MANY_CLASSES && 2 * used.len() > images {
        let file = raw.splits[0].file.clone();
        return Err(Error::TooManyClasses { file, classes: used.len(), images });
    }
    let order: Vec<i64> = used.iter().copied().collect();
    for split in &mut raw.splits {
        if let Labels::Index(labels) = &mut split.labels {
            labels.iter_mut().for_each(|l| *l = order.partition_point(|known| known < l) as i64);
        }
    }
    if order.iter().enumerate().any(|(i, &label)| i as i64 != label) {
        let some: Vec<String> = order.iter().take(4).map(i64::to_string).collect();
        let more = if order.len() > 4 { ", ..." } else { "" };
        raw.notes.push(format!("the {} classes are the labels {}{more}", order.len(), some.join(", ")));
    }
    Ok(order.iter().map(i64::to_string).collect())
}

fn indices(labels: &Labels) -> &[i64] {
    if let Labels::Index(v) = labels { v } else { &[] }
}

fn all_numbers(labels: &Labels) -> bool {
    !matches!(labels, Labels::Text(v) if v.iter().any(|t| t.trim().parse::<f64>().is_err()))
}

fn all_whole(labels: &Labels) -> bool {
    !matches!(labels, Labels::Real(v) if v.iter().any(|x| !is_whole(*x)))
}

fn parse_numbers(labels: &mut Labels) {
    if let Labels::Text(v) = labels {
        *labels = Labels::Real(v.iter().map(|t| t.trim().parse().unwrap_or(f64::NAN)).collect());
    }
}

fn to_real(labels: &mut Labels) {
    if let Labels::Index(v) = labels {
        *labels = Labels::Real(v.iter().map(|&x| x as f64).collect());
    }
}

fn to_index(labels: &mut Labels) {
    if let Labels::Real(v) = labels {
        *labels = Labels::Index(v.iter().map(|&x| x as i64).collect());
    }
}

fn to_text(labels: &mut Labels) {
    match labels {
        Labels::Index(v) => *labels = Labels::Text(v.iter().map(i64::to_string).collect()),
        Labels::Real(v) => *labels = Labels::Text(v.iter().map(f64::to_string).collect()),
        Labels::Text(_) | Labels::Absent(_) => {}
    }
}
