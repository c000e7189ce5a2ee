//! Downloads against a small HTTP server on this machine.
#![cfg(feature = "download")]

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;

use convgp_data::Error;
use convgp_data::download::{GetOptions, get, get_file};
use convgp_data::provenance::hash_bytes;
use convgp_data::registry::RemoteFile;

/// What the server does with a request.
#[derive(Clone, Copy)]
enum Answer {
    /// Everything asked for; ranges are honoured.
    Serve,
    /// All headers, but the connection closes after this many bytes of the body.
    Cut(usize),
    /// The whole file although a range was asked for.
    IgnoreRange,
    /// Not found.
    Missing,
    /// Other bytes of the same length.
    Wrong,
}

/// Serves one file, one answer per request, on a thread that ends with the answers. Returns its address.
fn server(body: Vec<u8>, answers: Vec<Answer>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((stream, _)) = listener.accept() else { return };
            let mut lines = BufReader::new(&stream).lines();
            let mut from = None;
            while let Some(Ok(line)) = lines.next().filter(|l| l.as_ref().is_ok_and(|l| !l.is_empty())) {
                if let Some(range) = line.to_lowercase().strip_prefix("range: bytes=") {
                    from = range.trim_end_matches('-').parse::<usize>().ok();
                }
            }
            respond(&stream, &body, answer, from);
        }
    });
    address
}

fn respond(mut stream: &std::net::TcpStream, body: &[u8], answer: Answer, from: Option<usize>) {
    let head = |status: &str, length: usize, extra: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{extra}\r\n")
            .into_bytes()
    };
    let whole = head("200 OK", body.len(), "");
    let out = match (answer, from) {
        (Answer::Missing, _) => head("404 Not Found", 0, ""),
        (Answer::Wrong, _) => [whole, vec![b'x'; body.len()]].concat(),
        (Answer::Cut(n), None) => [&whole, &body[..n]].concat(),
        (Answer::Serve, Some(from)) => {
            let range = format!("Content-Range: bytes {from}-{}/{}\r\n", body.len() - 1, body.len());
            [&head("206 Partial Content", body.len() - from, &range), &body[from..]].concat()
        }
        (Answer::Serve | Answer::IgnoreRange | Answer::Cut(_), _) => [&whole, body].concat(),
    };
    let _ = stream.write_all(&out);
}

const NAME: &str = "file.bin";

fn body() -> Vec<u8> {
    (0..200_000u32).map(|i| (i / 7 * 31 % 251) as u8).collect()
}

/// The checksum leaks so that it can be part of a `&'static` registry entry.
fn remote(sha256: Option<&'static str>) -> RemoteFile {
    RemoteFile { name: NAME, bytes: 200_000, sha256 }
}

fn checksum() -> Option<&'static str> {
    Some(Box::leak(hash_bytes("", &body()).sha256.into_boxed_str()))
}

fn try_get(dir: &Path, mirrors: &[String]) -> Result<(), Error> {
    get_file(dir, &remote(checksum()), mirrors, &GetOptions::default())
}

fn saved(dir: &Path) -> Vec<u8> {
    assert!(!dir.join("file.bin.part").exists());
    std::fs::read(dir.join(NAME)).unwrap()
}

#[test]
fn a_whole_file_with_progress() {
    let dir = tempfile::tempdir().unwrap();
    let seen = RefCell::new(Vec::new());
    let progress = |p: convgp_data::download::Progress| seen.borrow_mut().push((p.done, p.total));
    let options = GetOptions { progress: Some(&progress), ..Default::default() };
    let mirror = server(body(), vec![Answer::Serve]);
    get_file(dir.path(), &remote(checksum()), &[mirror], &options).unwrap();
    assert_eq!(saved(dir.path()), body());
    assert!(seen.borrow().is_sorted() && seen.borrow().last() == Some(&(200_000, 200_000)));
    // A second time nothing is asked: this mirror does not exist.
    try_get(dir.path(), &["http://127.0.0.1:9".into()]).unwrap();
}

#[test]
fn cut_short_then_resumed() {
    let dir = tempfile::tempdir().unwrap();
    let mirror = server(body(), vec![Answer::Cut(70_000), Answer::Serve]);
    let error = try_get(dir.path(), std::slice::from_ref(&mirror)).unwrap_err().to_string();
    assert!(error.contains("stopped after 70000") && error.contains(NAME), "{error}");
    assert_eq!(std::fs::metadata(dir.path().join("file.bin.part")).unwrap().len(), 70_000);
    try_get(dir.path(), &[mirror]).unwrap();
    assert_eq!(saved(dir.path()), body());
}

#[test]
fn another_mirror_goes_on_where_the_first_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let mirrors = [server(body(), vec![Answer::Cut(1000)]), server(body(), vec![Answer::Serve])];
    try_get(dir.path(), &mirrors).unwrap();
    assert_eq!(saved(dir.path()), body());
}

#[test]
fn servers_without_ranges_start_over() {
    let dir = tempfile::tempdir().unwrap();
    let mirrors = [server(body(), vec![Answer::Cut(5000)]), server(body(), vec![Answer::IgnoreRange])];
    try_get(dir.path(), &mirrors).unwrap();
    assert_eq!(saved(dir.path()), body());
}

#[test]
fn a_wrong_checksum_is_thrown_away() {
    let dir = tempfile::tempdir().unwrap();
    let bad = server(body(), vec![Answer::Wrong]);
    let error = try_get(dir.path(), &[bad]).unwrap_err().to_string();
    assert!(error.contains("sha256 is") && error.contains("instead of"), "{error}");
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "nothing may stay");
    let mirrors = [server(body(), vec![Answer::Wrong]), server(body(), vec![Answer::Serve])];
    try_get(dir.path(), &mirrors).unwrap();
    assert_eq!(saved(dir.path()), body());
}

#[test]
fn all_mirrors_fail() {
    let dir = tempfile::tempdir().unwrap();
    let mirrors = [server(body(), vec![Answer::Missing]), "http://127.0.0.1:9".into()];
    let error = try_get(dir.path(), &mirrors).unwrap_err().to_string();
    for part in ["file.bin could not be fetched", "404", "127.0.0.1:9/file.bin", "CONVGP_MIRROR"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn a_longer_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let longer = [body(), vec![0; 5000]].concat();
    let error = try_get(dir.path(), &[server(longer, vec![Answer::Serve])]).unwrap_err().to_string();
    assert!(error.contains("200001 bytes instead of 200000"), "{error}");
}

#[test]
fn names_are_looked_up() {
    assert!(matches!(get("nothing", &GetOptions::default()), Err(Error::UnknownDataset { .. })));
    let dir = tempfile::tempdir().unwrap();
    let mirrors = vec![server(Vec::new(), vec![Answer::Missing])];
    let options = GetOptions { dir: Some(dir.path().into()), mirrors, progress: None };
    let error = get("mnist", &options).unwrap_err().to_string();
    assert!(error.contains("train-images-idx3-ubyte.gz") && error.contains("404"), "{error}");
}
