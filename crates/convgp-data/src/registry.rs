//! Data sets known by name: what they are, where they lie, how to get them.

use std::path::{Path, PathBuf};

use crate::assemble::assemble;
use crate::error::{Error, Result};
use crate::formats::cifar::CIFAR10_CLASSES;
use crate::generate;
use crate::loaded::{Format, Loaded, Split, SplitKind};
use crate::open::open_raw;
use crate::options::OpenOptions;
use crate::provenance::hash_bytes;

/// A file of a registered data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteFile {
    /// Name, appended to a mirror's address.
    pub name: &'static str,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 in hexadecimal digits; `None` where none is known for certain.
    pub sha256: Option<&'static str>,
}

/// A registered data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// Name.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Class names by label.
    pub class_names: &'static [&'static str],
    /// Its files.
    pub files: &'static [RemoteFile],
    /// Addresses of folders that hold all the files.
    pub mirrors: &'static [&'static str],
}

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

/// The registered data set of a name.
pub fn find(name: &str) -> Option<&'static Info> {
    REGISTRY.iter().find(|info| info.name == name)
}

/// The registered data set of a name, or an error that lists the names.
pub fn require(name: &str) -> Result<&'static Info> {
    let known = || REGISTRY.map(|info| info.name).join(", ");
    find(name).ok_or_else(|| Error::UnknownDataset { name: name.into(), known: known() })
}

/// Folders that may hold data sets, in order: the one given, `CONVGP_DATA`, the user's cache.
pub fn search_path(explicit: Option<&Path>) -> Vec<PathBuf> {
    let from_env = std::env::var_os("CONVGP_DATA").filter(|v| !v.is_empty()).map(PathBuf::from);
    explicit.map(Path::to_path_buf).into_iter().chain(from_env).chain(cache_dir()).collect()
}

/// The user's cache folder for data sets.
pub fn cache_dir() -> Option<PathBuf> {
    let var = |name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = if cfg!(windows) {
        var("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        var("HOME").map(|home| home.join("Library/Caches"))
    } else {
        var("XDG_CACHE_HOME").or_else(|| var("HOME").map(|home| home.join(".cache")))
    };
    base.map(|base| base.join("convgp"))
}

/// The folder of a registered data set, if one of the [`search_path`] has it.
pub fn locate(name: &str, explicit: Option<&Path>) -> Result<PathBuf> {
    let info = require(name)?;
    let looked_in: Vec<PathBuf> = search_path(explicit).into_iter().map(|dir| dir.join(info.name)).collect();
    let found = looked_in.iter().find(|dir| dir.is_dir() && crate::detect::detect(dir).is_ok()).cloned();
    found.ok_or_else(|| Error::NotInstalled { name: name.into(), looked_in })
}

/// Reads a registered data set from where it lies; its classes get their names.
pub fn open_named(name: &str, explicit: Option<&Path>, options: &OpenOptions) -> Result<Loaded> {
    let info = require(name)?;
    let mut raw = open_raw(&locate(name, explicit)?, options)?;
    raw.class_names = Some(info.class_names.iter().map(|n| n.to_string()).collect());
    assemble(raw, options)
}

/// Rectangles made by the generator instead of read; never used unless called. The splits come from different seeds.
pub fn generated_rectangles(train: usize, test: usize, seed: u64) -> Loaded {
    let (even, odd) = (seed.wrapping_mul(2), seed.wrapping_mul(2).wrapping_add(1));
    let split = |kind, count, seed| Split { kind, data: generate::rectangles(count, seed) };
    let splits = vec![split(SplitKind::Train, train, even), split(SplitKind::Test, test, odd)];
    let recipe = format!("rectangles({train}, {even}) + rectangles({test}, {odd})");
    let provenance = vec![hash_bytes(&recipe, recipe.as_bytes())];
    Loaded {
        class_names: splits[0].data.class_names().to_vec(),
        splits,
        skipped: Vec::new(),
        provenance,
        format: Format::Generated,
        notes: vec!["made by the generator, not the original files".into()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_well_formed() {
        for info in REGISTRY {
            assert!(!info.files.is_empty() && !info.mirrors.is_empty() && info.class_names.len() > 1);
            for f in info.files {
                let sum = f.sha256.unwrap();
                assert!(
                    sum.len() == 64 && sum.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
                );
            }
        }
    }

    #[test]
    fn unknown_and_missing_sets_say_what_to_do() {
        let err = locate("mnits", None).unwrap_err().to_string();
        assert!(err.contains("known names: mnist, fashion-mnist"), "{err}");
        let dir = tempfile::tempdir().unwrap();
        let err = locate("kmnist", Some(dir.path())).unwrap_err().to_string();
        assert!(
            err.contains("convgp data get kmnist") && err.contains(&dir.path().display().to_string()),
            "{err}"
        );
    }

    #[test]
    fn generated_splits_differ() {
        let loaded = generated_rectangles(20, 20, 3);
        assert_ne!(loaded.train(), loaded.test());
    }
}
