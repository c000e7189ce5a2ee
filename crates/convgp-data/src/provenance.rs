//! Hashes of what was read, so that a run can say which data it saw.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::loaded::FileHash;
use crate::source::name_of;

/// Size and SHA-256 of a file.
pub fn hash_file(path: &Path) -> Result<FileHash> {
    let mut file = File::open(path).map_err(|e| Error::io(path, "open", e))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => {
                hasher.update(&buffer[..n]);
                bytes += n as u64;
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io(path, "read", e)),
        }
    }
    Ok(FileHash { name: name_of(path), bytes, sha256: hex(&hasher.finalize()) })
}

/// Hashes of several files, in the order given.
pub fn hash_files<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<FileHash>> {
    paths.iter().map(|p| hash_file(p.as_ref())).collect()
}

/// One entry for many files: the SHA-256 of the lines `hash  path` as `sha256sum` prints them, paths relative to
/// `root` with forward slashes, in the order given.
pub fn hash_folder(name: String, root: &Path, paths: &[PathBuf]) -> Result<FileHash> {
    use rayon::prelude::*;
    let hashes: Vec<FileHash> = paths.par_iter().map(|p| hash_file(p)).collect::<Result<_>>()?;
    let mut hasher = Sha256::new();
    for (path, hash) in paths.iter().zip(&hashes) {
        let relative = path.strip_prefix(root).unwrap_or(path);
        let parts: Vec<_> = relative.components().map(|c| c.as_os_str().to_string_lossy()).collect();
        hasher.update(format!("{}  {}\n", hash.sha256, parts.join("/")));
    }
    Ok(FileHash { name, bytes: hashes.iter().map(|h| h.bytes).sum(), sha256: hex(&hasher.finalize()) })
}

/// SHA-256 of bytes in memory.
pub fn hash_bytes(name: &str, bytes: &[u8]) -> FileHash {
    FileHash { name: name.into(), bytes: bytes.len() as u64, sha256: hex(&Sha256::digest(bytes)) }
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_sha256sum() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.txt");
        std::fs::write(&path, b"abc").unwrap();
        let hash = hash_file(&path).unwrap();
        assert_eq!(hash.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!((hash.bytes, hash.name.as_str()), (3, "a.txt"));
        let line = b"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a.txt\n";
        let folder = hash_folder("all".into(), dir.path(), &[path]).unwrap();
        assert_eq!(folder.sha256, hash_bytes("x", line).sha256);
    }
}
