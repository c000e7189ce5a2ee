//! Tar and zip archives as streams. Entries are never written to disk; names that leave their folder are refused.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Component, Path};

use zip::ZipArchive;
use zip::result::ZipError;

use crate::error::{Error, Place, Result};
use crate::source::{Budget, Input, read_failure};

/// Fails for absolute names and names with `..`.
pub(crate) fn check_entry(file: &str, entry: &str) -> Result<()> {
    let inside = |c: Component| matches!(c, Component::Normal(_) | Component::CurDir);
    // Windows separators and drive letters are refused everywhere, so that a file means the same on all systems.
    let drive = entry.as_bytes().get(1) == Some(&b':');
    let plain = !entry.is_empty() && !drive && !entry.contains(['\\', '\0']);
    let safe = plain && Path::new(entry).components().all(inside);
    match safe {
        true => Ok(()),
        false => Err(Error::UnsafeEntry { file: file.into(), entry: entry.into() }),
    }
}

/// Calls `visit` with the name and stream of every file of a tar archive, compressed or not.
pub(crate) fn each_tar_entry(
    path: &Path,
    budget: &Budget,
    mut visit: impl FnMut(&str, &mut dyn Read) -> Result<()>,
) -> Result<()> {
    let input = Input::open(path)?;
    let file = input.file().to_owned();
    // Headers may ask for names of any length: a damaged or hostile archive stops at the cap, not at the end of memory.
    let stream = input.into_reader().take(budget.left().saturating_add(1 << 20));
    let mut archive = tar::Archive::new(stream);
    let mut position = 0;
    for entry in archive.entries().map_err(|e| read_failure(&file, 0, "the archive", e))? {
        let mut entry = entry.map_err(|e| tar_failure(&file, position, e))?;
        position = entry.raw_file_position();
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        check_entry(&file, &name)?;
        if entry.header().entry_type().is_file() {
            visit(&name, &mut entry)?;
        }
    }
    Ok(())
}

/// The `tar` crate reports a cut inside a header as some other error; its text tells.
fn tar_failure(file: &str, at: u64, error: std::io::Error) -> Error {
    match error.to_string().contains("unexpected EOF") {
        true => Error::Truncated { file: file.into(), at, what: "an archive entry".into() },
        false => read_failure(file, at, "an archive entry", error),
    }
}

/// What users call an entry: arrays of an NPZ archive have names without `.npy`.
pub(crate) fn entry_name(entry: &str) -> &str {
    entry.strip_suffix(".npy").unwrap_or(entry)
}

/// A zip archive with checked names.
pub(crate) struct Zip {
    archive: ZipArchive<BufReader<File>>,
    file: String,
    names: Vec<String>,
}

impl Zip {
    /// Reads the directory of the archive.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = path.display().to_string();
        let reader = File::open(path).map_err(|e| Error::io(path, "open", e))?;
        let archive = ZipArchive::new(BufReader::new(reader)).map_err(|e| zip_failure(&file, e))?;
        let mut names = Vec::new();
        for name in archive.file_names() {
            let name = name.map_err(|e| zip_failure(&file, e))?.into_owned();
            check_entry(&file, &name)?;
            names.push(name);
        }
        names.sort();
        Ok(Self { archive, file, names })
    }

    /// Names of all entries, sorted.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Calls `read` with a stream over one entry. The stream fails at its end if the checksum is wrong.
    pub(crate) fn read<T>(&mut self, entry: &str, read: impl FnOnce(Input) -> Result<T>) -> Result<T> {
        let stream = self.archive.by_name(entry).map_err(|e| zip_failure(&self.file, e))?;
        read(Input::from_reader(format!("{}: {}", self.file, entry_name(entry)), stream)?)
    }
}

fn zip_failure(file: &str, error: ZipError) -> Error {
    match error {
        ZipError::Io(e) => read_failure(file, 0, "the zip directory", e),
        ZipError::UnsupportedArchive(what) => Error::Unsupported {
            file: file.into(),
            what: what.to_string(),
            hint: "Pack it again with plain deflate, without a password",
        },
        other => Error::Damaged { file: file.into(), place: Place::Header, reason: other.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_escape_are_refused() {
        for good in ["a.amat", "cifar-10-batches-bin/data_batch_1.bin", "./a/b"] {
            check_entry("x.zip", good).unwrap();
        }
        for bad in ["../a", "/etc/passwd", "a/../../b", "C:\\x", "..\\x", ""] {
            assert!(matches!(check_entry("x.zip", bad), Err(Error::UnsafeEntry { .. })), "{bad}");
        }
    }
}
