//! A few hundred real images, built into the library, so that examples and tests need no files.

use convgp::data::{Dataset, ImageShape, Images, Pixels, Targets};

use crate::formats::idx;
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

fn read(images: &[u8], labels: &[u8]) -> Dataset {
    let built_in = "the files built in are whole";
    let array = |bytes| {
        let mut input = Input::from_reader("built-in sample".into(), bytes).expect(built_in);
        idx::array(&mut input, &Budget::new(1 << 20)).expect(built_in)
    };
    let (dims, pixels) = array(images);
    let shape = ImageShape::new(dims[1], dims[2], 1).expect(built_in);
    let labels = array(labels).1.into_iter().map(u32::from).collect();
    let images = Images::new(shape, Pixels::U8(pixels)).expect(built_in);
    Dataset::new(images, Targets::classes(labels, 10).expect(built_in)).expect(built_in)
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
