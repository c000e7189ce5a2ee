//! Parts of a data set: splits, classes, a limited number of images. All of them are functions of a seed.

use convgp::data::{Dataset, Targets};
use convgp::rng::Rng;

use crate::error::{Error, Result};

/// Streams of the generator, so that one choice never shifts another.
const SPLIT_STREAM: u64 = 0x5b117;
const LIMIT_STREAM: u64 = 0x11417;

/// Cuts a data set at random into parts of the given fractions, each with the same mix of classes.
///
/// A part has its fraction of every class to within one image, in the order of the original. Fractions that sum to less
/// than 1 leave images out.
///
/// ```
/// let data = convgp_data::generate::rectangles(1000, 0);
/// let parts = convgp_data::split(&data, &[0.8, 0.2], 0).unwrap();
/// assert_eq!((parts[0].len(), parts[1].len()), (800, 200));
/// ```
pub fn split(data: &Dataset, fractions: &[f64], seed: u64) -> Result<Vec<Dataset>> {
    let bad = || Error::Fractions { fractions: fractions.to_vec() };
    let sum: f64 = fractions.iter().sum();
    if fractions.is_empty() || fractions.iter().any(|&f| f.is_nan() || f <= 0.0) || sum > 1.0 + 1e-9 {
        return Err(bad());
    }
    let mut rng = Rng::stream(seed, SPLIT_STREAM);
    let mut parts = vec![Vec::new(); fractions.len()];
    let mut before = 0;
    for mut group in groups(data) {
        rng.shuffle(&mut group);
        let after = before + group.len();
        // Rounding the running total keeps each class and the whole within one image of their fraction.
        let (mut from, mut total) = (0, 0.0);
        for (part, fraction) in parts.iter_mut().zip(fractions) {
            total += fraction;
            let share = |n: usize| (total * n as f64 + 1e-9).round() as usize;
            let to = (share(after) - share(before)).clamp(from, group.len());
            part.extend_from_slice(&group[from..to]);
            from = to;
        }
        before = after;
    }
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts.iter().map(|part| data.select(part).map_err(|_| bad())).collect()
}

/// Indices of the images of each class; one group of all for real targets.
fn groups(data: &Dataset) -> Vec<Vec<usize>> {
    match data.targets() {
        Targets::Real(values) => vec![(0..values.len()).collect()],
        Targets::Classes { labels, classes } => {
            let mut groups = vec![Vec::new(); *classes];
            labels.iter().enumerate().for_each(|(i, &l)| groups[l as usize].push(i));
            groups
        }
    }
}

/// Keeps at most `limit` images, chosen at random, with classes as equal as they allow. The order is kept.
pub fn limit_balanced(data: &Dataset, limit: usize, seed: u64) -> Result<Dataset> {
    if limit >= data.len() {
        return Ok(data.clone());
    }
    let mut rng = Rng::stream(seed, LIMIT_STREAM);
    let mut groups = groups(data);
    groups.iter_mut().for_each(|g| rng.shuffle(g));
    // One of each class in turn, until enough; small classes run dry and others make up for them.
    let rounds = groups.iter().map(Vec::len).max().unwrap_or(0);
    let in_turn = (0..rounds).flat_map(|r| groups.iter().filter_map(move |g| g.get(r).copied()));
    let mut chosen: Vec<usize> = in_turn.take(limit).collect();
    chosen.sort_unstable();
    data.select(&chosen).map_err(Error::data("limited data"))
}

/// Keeps the classes given, which become 0, 1, ... in that order; names travel along.
pub fn subset_classes(data: &Dataset, classes: &[usize]) -> Result<Dataset> {
    let Targets::Classes { labels, .. } = data.targets() else { return Err(Error::NoClasses) };
    let names = data.class_names();
    if let Some(asked) = classes.iter().find(|&&c| c >= names.len()) {
        return Err(Error::UnknownClass { asked: asked.to_string(), available: names.to_vec() });
    }
    let new_label = |l: &u32| classes.iter().position(|&c| c == *l as usize);
    let keep: Vec<usize> = (0..labels.len()).filter(|&i| new_label(&labels[i]).is_some()).collect();
    let wrap = || Error::data("chosen classes");
    let kept = data.select(&keep).map_err(wrap())?;
    let labels = keep.iter().filter_map(|&i| new_label(&labels[i])).map(|l| l as u32).collect();
    let targets = Targets::classes(labels, classes.len()).map_err(wrap())?;
    let kept_names = classes.iter().map(|&c| names[c].clone()).collect();
    let chosen = Dataset::new(kept.images().clone(), targets).and_then(|d| d.with_class_names(kept_names));
    match kept.image_names() {
        Some(names) => chosen.and_then(|d| d.with_image_names(names.to_vec())),
        None => chosen,
    }
    .map_err(wrap())
}

/// Class numbers for names; a number that is no name counts from 0.
pub fn class_indices(data: &Dataset, asked: &[String]) -> Result<Vec<usize>> {
    let names = data.class_names();
    if names.is_empty() {
        return Err(Error::NoClasses);
    }
    let find = |word: &String| {
        let by_name = names.iter().position(|n| n == word);
        let by_number = || word.parse().ok().filter(|&i: &usize| i < names.len());
        let unknown = || Error::UnknownClass { asked: word.clone(), available: names.to_vec() };
        by_name.or_else(by_number).ok_or_else(unknown)
    };
    asked.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use convgp::data::{ImageShape, Images, Pixels};

    /// One-pixel images whose pixel is their index.
    fn data(labels: &[u32], classes: usize) -> Dataset {
        let pixels = Pixels::F32((0..labels.len()).map(|i| i as f32).collect());
        let images = Images::new(ImageShape::new(1, 1, 1).unwrap(), pixels).unwrap();
        Dataset::new(images, Targets::classes(labels.to_vec(), classes).unwrap()).unwrap()
    }

    fn ids(data: &Dataset) -> Vec<f32> {
        match data.images().pixels() {
            Pixels::F32(v) => v.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn counts(data: &Dataset) -> Vec<usize> {
        groups(data).iter().map(Vec::len).collect()
    }

    #[test]
    fn splits_are_disjoint_stratified_and_repeatable() {
        let labels: Vec<u32> = (0..103).map(|i| if i % 10 == 0 { 1 } else { (i % 3 / 2) * 2 }).collect();
        let all = data(&labels, 3);
        let parts = split(&all, &[0.7, 0.2, 0.1], 5).unwrap();
        let mut seen: Vec<f32> = parts.iter().flat_map(ids).collect();
        seen.sort_by(f32::total_cmp);
        assert_eq!(seen, ids(&all));
        for (part, fraction) in parts.iter().zip([0.7, 0.2, 0.1]) {
            assert!(ids(part).is_sorted());
            for (have, of) in counts(part).iter().zip(counts(&all)) {
                assert!((*have as f64 - fraction * of as f64).abs() <= 1.5, "{have} of {of}");
            }
        }
        assert_eq!(parts, split(&all, &[0.7, 0.2, 0.1], 5).unwrap());
        assert_ne!(parts, split(&all, &[0.7, 0.2, 0.1], 6).unwrap());
    }

    #[test]
    fn bad_fractions_are_refused() {
        let all = data(&[0, 1, 0, 1], 2);
        for bad in [&[][..], &[0.0, 1.0], &[0.7, 0.7], &[-0.5, 1.0], &[f64::NAN], &[0.999, 0.001]] {
            assert!(matches!(split(&all, bad, 0), Err(Error::Fractions { .. })), "{bad:?}");
        }
    }

    #[test]
    fn a_limit_balances_and_small_classes_are_made_up_for() {
        let labels: Vec<u32> = (0..100).map(|i| if i < 3 { 0 } else { 1 + i % 2 }).collect();
        let limited = limit_balanced(&data(&labels, 3), 21, 0).unwrap();
        assert_eq!(counts(&limited), [3, 9, 9]);
        assert!(ids(&limited).is_sorted());
        assert_eq!(limit_balanced(&data(&labels, 3), 1000, 0).unwrap().len(), 100);
        assert!(limit_balanced(&data(&labels, 3), 0, 0).is_err());
    }

    #[test]
    fn classes_are_renumbered_in_the_order_asked() {
        let all = data(&[0, 1, 2, 2, 0], 3);
        let all = all.with_class_names(vec!["a".into(), "b".into(), "c".into()]).unwrap();
        let asked = class_indices(&all, &["c".into(), "0".into()]).unwrap();
        assert_eq!(asked, [2, 0]);
        let some = subset_classes(&all, &asked).unwrap();
        assert_eq!(some.class_names(), ["c", "a"]);
        assert_eq!(some.targets(), &Targets::classes(vec![1, 0, 0, 1], 2).unwrap());
        assert_eq!(ids(&some), [0.0, 2.0, 3.0, 4.0]);
        assert!(matches!(class_indices(&all, &["d".into()]), Err(Error::UnknownClass { .. })));
        assert!(matches!(subset_classes(&all, &[7, 0]), Err(Error::UnknownClass { .. })));
    }
}
