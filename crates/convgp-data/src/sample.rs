//! A few hundred real images, built into the library, so that examples and tests need no files.

use convgp::data::{Dataset, ImageShape, Images, Pixels, Targets};

use crate::formats::idx;
use crate::loaded::{Format, Labels, Raw, RawSplit, SplitKind};
use crate::options::OpenOptions;
use crate::provenance::hash_bytes;
use crate::source::{Budget, Input};

const TRAIN_IMAGES: &[u8] = include_bytes!("../sample/mnist-sample/train-images-idx3-ubyte.gz");
const TRAIN_LABELS: &[u8] = include_bytes!("../sample/mnist-sample/train-labels-idx1-ubyte.gz");
const TEST_IMAGES: &[u8] = include_bytes!("../sample/mnist-sample/t10k-images-idx3-ubyte.gz");
const TEST_LABELS: &[u8] = include_bytes!("../sample/mnist-sample/t10k-labels-idx1-ubyte.gz");

/// 300 training and 100 test digits of MNIST: the first 30 and 10 of each class, in their original order.
///
/// ```
/// let (train, test) = convgp_data::sample::mnist();
/// assert_eq!((train.len(), test.len()), (300, 100));
/// ```
pub fn mnist() -> (Dataset, Dataset) {
    (read(TRAIN_IMAGES, TRAIN_LABELS), read(TEST_IMAGES, TEST_LABELS))
}

/// The name under which [`open`](crate::open()) gives them.
pub const NAME: &str = "sample";

/// The same as a reader would deliver them.
pub(crate) fn raw(options: &OpenOptions) -> Raw {
    let split = |kind, images, labels| {
        let (shape, pixels, labels) = arrays(images, labels);
        let labels = Labels::Index(labels.into_iter().map(i64::from).collect());
        RawSplit { kind, shape, pixels: Pixels::U8(pixels), labels, names: None, file: NAME.into() }
    };
    let mut splits = vec![
        split(SplitKind::Train, TRAIN_IMAGES, TRAIN_LABELS),
        split(SplitKind::Test, TEST_IMAGES, TEST_LABELS),
    ];
    splits.retain(|s| options.wants(s.kind));
    let mut raw = Raw::new(Format::Idx, splits, vec![hash_bytes("built-in digits", TRAIN_IMAGES)]);
    raw.notes.push("300 + 100 digits of MNIST, built into the program".into());
    raw
}

fn read(images: &[u8], labels: &[u8]) -> Dataset {
    let built_in = "the files built in are whole";
    let (shape, pixels, labels) = arrays(images, labels);
    let labels = labels.into_iter().map(u32::from).collect();
    let images = Images::new(shape, Pixels::U8(pixels)).expect(built_in);
    Dataset::new(images, Targets::classes(labels, 10).expect(built_in)).expect(built_in)
}

/// Shape, pixels and labels.
fn arrays(images: &[u8], labels: &[u8]) -> (ImageShape, Vec<u8>, Vec<u8>) {
    let built_in = "the files built in are whole";
    let array = |bytes| {
        let mut input = Input::from_reader("built-in sample".into(), bytes).expect(built_in);
        idx::array(&mut input, &Budget::new(1 << 20)).expect(built_in)
    };
    let (dims, pixels) = array(images);
    (ImageShape::new(dims[1], dims[2], 1).expect(built_in), pixels, array(labels).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_balanced() {
        let (train, test) = mnist();
        for (data, each) in [(train, 30), (test, 10)] {
            let Targets::Classes { labels, classes: 10 } = data.targets() else { panic!() };
            assert!((0..10).all(|c| labels.iter().filter(|&&l| l == c).count() == each));
            assert_eq!(data.images().shape(), ImageShape::new(28, 28, 1).unwrap());
        }
    }
}
