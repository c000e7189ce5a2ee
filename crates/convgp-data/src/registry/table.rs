//! The table of registered data sets.

use super::{Info, RemoteFile};
use crate::formats::cifar::CIFAR10_CLASSES;

const fn file(name: &'static str, bytes: u64, sha256: &'static str) -> RemoteFile {
    RemoteFile { name, bytes, sha256: Some(sha256) }
}

/// All registered data sets.
///
/// Checksums: MNIST and rectangles were computed on copies whose published md5 (MNIST) or contents (rectangles) were
/// verified; the others are those that TensorFlow Datasets publishes for the same addresses.
pub const REGISTRY: [Info; 5] = [
    Info {
        name: "mnist",
        about: "handwritten digits, 60,000 + 10,000, 28x28 grey",
        class_names: &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
        files: &[
            file(
                "train-images-idx3-ubyte.gz",
                9_912_422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            file(
                "train-labels-idx1-ubyte.gz",
                28_881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            file(
                "t10k-images-idx3-ubyte.gz",
                1_648_877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            file(
                "t10k-labels-idx1-ubyte.gz",
                4_542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ],
        mirrors: &[
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "https://storage.googleapis.com/cvdf-datasets/mnist",
        ],
    },
    Info {
        name: "fashion-mnist",
        about: "pieces of clothing, 60,000 + 10,000, 28x28 grey",
        class_names: &[
            "t-shirt",
            "trouser",
            "pullover",
            "dress",
            "coat",
            "sandal",
            "shirt",
            "sneaker",
            "bag",
            "ankle boot",
        ],
        files: &[
            file(
                "train-images-idx3-ubyte.gz",
                26_421_880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            ),
            file(
                "train-labels-idx1-ubyte.gz",
                29_515,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            ),
            file(
                "t10k-images-idx3-ubyte.gz",
                4_422_102,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            ),
            file(
                "t10k-labels-idx1-ubyte.gz",
                5_148,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
        ],
        mirrors: &[
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        ],
    },
    Info {
        name: "kmnist",
        about: "handwritten Japanese characters, 60,000 + 10,000, 28x28 grey",
        class_names: &["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"],
        files: &[
            file(
                "train-images-idx3-ubyte.gz",
                18_165_135,
                "51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4",
            ),
            file(
                "train-labels-idx1-ubyte.gz",
                29_497,
                "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17",
            ),
            file(
                "t10k-images-idx3-ubyte.gz",
                3_041_136,
                "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
            ),
            file(
                "t10k-labels-idx1-ubyte.gz",
                5_120,
                "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
            ),
        ],
        mirrors: &["http://codh.rois.ac.jp/kmnist/dataset/kmnist"],
    },
    Info {
        name: "cifar10",
        about: "tiny colour photographs, 50,000 + 10,000, 32x32 RGB",
        class_names: &CIFAR10_CLASSES,
        files: &[file(
            "cifar-10-binary.tar.gz",
            170_052_171,
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        )],
        mirrors: &["https://www.cs.toronto.edu/~kriz"],
    },
    Info {
        name: "rectangles",
        about: "outlines of rectangles, wide or tall, 1,200 + 50,000, 28x28 black and white",
        class_names: &["wide", "tall"],
        files: &[file(
            "rectangles.zip",
            2_740_555,
            "72952122784584f7a1aab68f74d8a06047a972596575a3a5a68cf32cc39daf8d",
        )],
        mirrors: &[
            "http://www.iro.umontreal.ca/~lisa/icml2007data",
            "https://raw.githubusercontent.com/markvdw/convgp/master/datasets",
        ],
    },
];
