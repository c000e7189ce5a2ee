//! `cargo xtask book`: checks links and quoted names of the documents, and builds the book where mdBook is there.

mod markdown;
mod names;

use crate::checks::{root, run};
use anyhow::{Context, Result, ensure};
use markdown::Page;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

/// The version that is installed where none is found.
const MDBOOK: &str = "0.5.4";
/// Documents outside the book.
const OUTSIDE: [&str; 3] = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"];
/// Documents that tell history: names in them need not exist any more.
const HISTORY: [&str; 2] = ["CHANGELOG.md", "docs/results/"];

/// Fails with a list of dead links, missing anchors, pages missing from the table of contents, and names that are not in the code.
pub fn check() -> Result<()> {
    let root = root()?;
    let pages = pages(root)?;
    let mut problems = Vec::new();
    for (path, page) in &pages {
        for link in &page.links {
            if let Some(problem) = dead(root, &pages, path, link) {
                problems.push(format!("{}: {link}: {problem}", path.display()));
            }
        }
    }
    let contents = &pages.get(Path::new("docs/SUMMARY.md")).context("docs/SUMMARY.md is missing")?.links;
    let listed = |path: &Path| contents.iter().any(|link| Path::new("docs").join(link) == path);
    for path in pages.keys().filter(|p| p.starts_with("docs") && !p.ends_with("SUMMARY.md")) {
        if !listed(path) {
            problems.push(format!("{}: not in docs/SUMMARY.md", path.display()));
        }
    }
    let sources = names::Sources::read(root)?;
    for (path, page) in pages.iter().filter(|(path, _)| !HISTORY.iter().any(|h| path.starts_with(h))) {
        let unknown = sources.unknown(&page.paragraphs);
        problems.extend(
            unknown.into_iter().map(|name| format!("{}: `{name}` is not in the code", path.display())),
        );
    }
    ensure!(problems.is_empty(), "documents are wrong:\n{}", problems.join("\n"));
    Ok(())
}

/// Builds the book into `book/` with the mdBook that is there or can be installed; without one there is a note and no failure.
#[allow(clippy::print_stderr)] // says what is left out
pub fn build() -> Result<()> {
    let own = root()?.join("target/mdbook/bin/mdbook");
    let names = [own.clone(), "mdbook".into()];
    let found = names.into_iter().find(|name| succeeds(Command::new(name).arg("--version")));
    let Some(program) = found.or_else(|| install().then_some(own)) else {
        eprintln!("note: the book was not built: no mdbook here, and it could not be installed");
        return Ok(());
    };
    run(Command::new(program).args(["build", "docs"]))
}

/// Into `target/`, without the web server.
fn install() -> bool {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = [
        "install",
        "mdbook",
        "--locked",
        "--no-default-features",
        "--root",
        "target/mdbook",
        "--version",
        MDBOOK,
    ];
    run(Command::new(cargo).args(arguments)).is_ok()
}

fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// All documents by path from the root.
fn pages(root: &Path) -> Result<BTreeMap<PathBuf, Page>> {
    let mut paths: Vec<PathBuf> = OUTSIDE.iter().map(PathBuf::from).collect();
    collect(root, Path::new("docs"), "md", &mut paths)?;
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(root.join(&path)).with_context(|| path.display().to_string())?;
        Ok((path, Page::parse(&text)))
    };
    paths.into_iter().map(read).collect()
}

/// Files with this extension below a folder, as paths from the root.
fn collect(root: &Path, folder: &Path, extension: &str, into: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            collect(root, &path, extension, into)?;
        } else if path.extension().is_some_and(|e| e == extension) {
            into.push(path);
        }
    }
    Ok(())
}

/// What is wrong with a link, if anything.
fn dead(root: &Path, pages: &BTreeMap<PathBuf, Page>, from: &Path, link: &str) -> Option<&'static str> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = if file.is_empty() { from.to_path_buf() } else { normal(&from.parent()?.join(file)) };
    if !root.join(&target).exists() {
        return Some("no such file");
    }
    // mdBook turns every `.md` into `.html`, which only its own pages become.
    if from.starts_with("docs")
        && target.extension().is_some_and(|e| e == "md")
        && !target.starts_with("docs")
    {
        return Some("a page of the book links to a document outside of it");
    }
    let anchors = &pages.get(&target)?.anchors;
    anchor.filter(|anchor| !anchors.iter().any(|a| a == anchor)).map(|_| "no such heading")
}

/// The path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_right() {
        check().unwrap();
    }

    #[test]
    fn dead_links_are_found() {
        let root = root().unwrap();
        let page = |text: &str| Page::parse(text);
        let pages = BTreeMap::from([
            (PathBuf::from("docs/README.md"), page("# A title\n\n## A title\n")),
            (PathBuf::from("README.md"), page("# Other\n")),
        ]);
        let dead = |link| dead(root, &pages, Path::new("docs/README.md"), link);
        assert_eq!(dead("https://example.org/#x"), None);
        assert_eq!(dead("#a-title-1"), None);
        assert_eq!(dead("#a-title-2"), Some("no such heading"));
        assert_eq!(dead("../xtask/src/main.rs"), None);
        assert_eq!(dead("../xtask/src/mine.rs"), Some("no such file"));
        assert!(dead("../README.md").is_some());
    }
}
