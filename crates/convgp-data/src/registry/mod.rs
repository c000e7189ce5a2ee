//! Data sets known by name: what they are, where they lie, how to get them.

mod table;

use std::path::{Path, PathBuf};

pub use table::REGISTRY;

use crate::assemble::assemble;
use crate::error::{Error, Result};
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
    let dir = locate(name, explicit)?;
    let mut raw = open_raw(&dir, options)?;
    raw.class_names = Some(info.class_names.iter().map(|n| n.to_string()).collect());
    assemble(&dir, raw, options)
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
