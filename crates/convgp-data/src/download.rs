//! Fetching registered data sets: mirrors in turn, resuming, checksums, and a rename only when all is well.

use std::fs::{self, File, OpenOptions as FileOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ureq::Agent;
use ureq::http::StatusCode;
use ureq::http::header::{CONTENT_RANGE, RANGE};

use crate::error::{Error, Result};
use crate::provenance::hash_file;
use crate::registry::{self, RemoteFile};

/// How far a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress<'a> {
    /// File name.
    pub file: &'a str,
    /// Bytes on disk.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Options of [`get`].
#[derive(Default)]
pub struct GetOptions<'a> {
    /// Folder that gets a folder of the data set's name. Default: `CONVGP_DATA`, else the user's cache.
    pub dir: Option<PathBuf>,
    /// Addresses to use instead of the registered ones. Default: `CONVGP_MIRROR` (several separated by blanks), if set.
    pub mirrors: Vec<String>,
    /// Called as bytes arrive.
    pub progress: Option<&'a dyn Fn(Progress)>,
}

/// Fetches a registered data set; files that are there and right are left alone. Returns its folder.
///
/// A transfer that stops leaves a `.part` file that the next call goes on with.
///
/// ```no_run
/// let dir = convgp_data::download::get("mnist", &Default::default())?;
/// # Ok::<(), convgp_data::Error>(())
/// ```
pub fn get(name: &str, options: &GetOptions) -> Result<PathBuf> {
    let info = registry::require(name)?;
    let root = options.dir.clone().or_else(|| registry::search_path(None).into_iter().next());
    let root = root.ok_or_else(|| Error::Missing {
        path: name.into(),
        what: "a folder to put it".into(),
        hint: "Name one, or set CONVGP_DATA",
    })?;
    let dir = root.join(name);
    fs::create_dir_all(&dir).map_err(|e| Error::io(&dir, "create", e))?;
    let mirrors = mirrors(options, info.mirrors);
    info.files.iter().try_for_each(|file| get_file(&dir, file, &mirrors, options))?;
    Ok(dir)
}

fn mirrors(options: &GetOptions, registered: &[&str]) -> Vec<String> {
    let from_env = || std::env::var("CONVGP_MIRROR").unwrap_or_default();
    let chosen: Vec<String> = match options.mirrors.is_empty() {
        false => options.mirrors.clone(),
        true => from_env().split_whitespace().map(str::to_owned).collect(),
    };
    if chosen.is_empty() { registered.iter().map(|m| m.to_string()).collect() } else { chosen }
}

/// Fetches one file into `dir`, trying the mirrors in turn.
pub fn get_file(dir: &Path, file: &RemoteFile, mirrors: &[String], options: &GetOptions) -> Result<()> {
    let target = dir.join(file.name);
    if target.is_file() && problem(&target, file)?.is_none() {
        return Ok(());
    }
    let part = dir.join(format!("{}.part", file.name));
    let mut tried = Vec::new();
    for mirror in mirrors {
        let url = format!("{}/{}", mirror.trim_end_matches('/'), file.name);
        match fetch(&url, &part, file, options)? {
            Ok(()) => match problem(&part, file)? {
                None => return fs::rename(&part, &target).map_err(|e| Error::io(&target, "write", e)),
                Some(problem) => {
                    // What is there is wrong: going on with it would never end well.
                    fs::remove_file(&part).map_err(|e| Error::io(&part, "remove", e))?;
                    tried.push(format!("{url}: {problem}"));
                }
            },
            Err(reason) => tried.push(format!("{url}: {reason}")),
        }
    }
    Err(Error::Download { file: file.name.into(), tried })
}

/// What is wrong with a file, if anything.
fn problem(path: &Path, file: &RemoteFile) -> Result<Option<String>> {
    let found = hash_file(path)?;
    if found.bytes != file.bytes {
        return Ok(Some(format!("{} bytes instead of {}", found.bytes, file.bytes)));
    }
    match file.sha256 {
        Some(expected) if expected != found.sha256 => {
            Ok(Some(format!("sha256 is {} instead of {expected}", found.sha256)))
        }
        _ => Ok(None),
    }
}

/// Why a mirror did not deliver; the next one may.
type Attempt = std::result::Result<(), String>;

/// Transfers from one address, going on where the part file ends. Errors of the local disk end everything.
fn fetch(url: &str, part: &Path, file: &RemoteFile, options: &GetOptions) -> Result<Attempt> {
    let mut have = fs::metadata(part).map_or(0, |m| m.len());
    if have == file.bytes {
        return Ok(Ok(()));
    }
    if have > file.bytes {
        have = 0;
    }
    let mut request = agent().get(url);
    if have > 0 {
        request = request.header(RANGE, format!("bytes={have}-"));
    }
    let response = match request.call() {
        Ok(response) => response,
        Err(e) => return Ok(Err(e.to_string())),
    };
    let resumed = response.status() == StatusCode::PARTIAL_CONTENT;
    if !resumed && response.status() != StatusCode::OK {
        return Ok(Err(format!("status {}", response.status())));
    }
    let starts_here = |range: &str| {
        range.trim_start().strip_prefix("bytes ").is_some_and(|r| r.starts_with(&format!("{have}-")))
    };
    let range = response.headers().get(CONTENT_RANGE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    if resumed && !starts_here(range) {
        return Ok(Err(format!("asked for bytes from {have}, got {range:?}")));
    }
    let start = if resumed { have } else { 0 };
    let out = FileOptions::new().create(true).write(true).append(resumed).truncate(!resumed).open(part);
    let out = out.map_err(|e| Error::io(part, "write", e))?;
    copy(response.into_body().into_reader(), out, start, part, file, options)
}

/// Nothing hangs for ever: connecting and each read have a limit, the whole transfer has none.
fn agent() -> Agent {
    Agent::config_builder()
        .timeout_connect(Some(Duration::from_secs(20)))
        .timeout_recv_response(Some(Duration::from_secs(30)))
        .http_status_as_error(false)
        .build()
        .into()
}

/// Appends the body to the part file; one byte more than announced is enough to stop.
fn copy(
    body: impl Read,
    mut out: File,
    start: u64,
    part: &Path,
    file: &RemoteFile,
    options: &GetOptions,
) -> Result<Attempt> {
    let mut body = body.take(file.bytes - start + 1);
    let mut buffer = vec![0; 64 << 10];
    let mut done = start;
    let tell = |done| {
        if let Some(progress) = options.progress {
            progress(Progress { file: file.name, done, total: file.bytes });
        }
    };
    tell(done);
    loop {
        let n = match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) => return Ok(Err(format!("stopped after {done} bytes: {e}"))),
        };
        out.write_all(&buffer[..n]).map_err(|e| Error::io(part, "write", e))?;
        done += n as u64;
        tell(done);
    }
    out.sync_all().map_err(|e| Error::io(part, "write", e))?;
    // Cut short: keep the part for the next mirror. Too long is found by the check that follows.
    Ok(if done < file.bytes { Err(format!("stopped after {done} of {} bytes", file.bytes)) } else { Ok(()) })
}
