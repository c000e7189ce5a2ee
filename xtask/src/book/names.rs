//! Names of Rust items quoted in documents.

use anyhow::Result;
use std::path::{Path, PathBuf};

/// Words before the name of an item.
const KEYWORDS: [&str; 9] =
    ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "macro_rules!"];

/// The code of the workspace, by path from the root.
pub struct Sources {
    files: Vec<(PathBuf, String)>,
}

impl Sources {
    /// Reads all crates.
    pub fn read(root: &Path) -> Result<Self> {
        let mut paths = Vec::new();
        for folder in ["crates", "python/src", "xtask"] {
            super::collect(root, Path::new(folder), "rs", &mut paths)?;
        }
        let read = |path: PathBuf| {
            let text = std::fs::read_to_string(root.join(&path))?;
            Ok((path, text))
        };
        Ok(Self { files: paths.into_iter().map(read).collect::<Result<_>>()? })
    }

    /// Quoted names that do not exist: paths of `.rs` files, names quoted right after one, and names with `::`.
    pub fn unknown(&self, paragraphs: &[Vec<String>]) -> Vec<String> {
        let mut unknown = Vec::new();
        for parts in paragraphs {
            let mut file = None;
            for pair in parts.chunks(2).filter(|pair| pair.len() == 2) {
                let (text, code) = (pair[0].trim(), pair[1].as_str());
                let follows = matches!(text, "" | "," | "and" | ", and");
                let known = if code.ends_with(".rs") && !code.contains(['*', ' ']) {
                    file = self
                        .files
                        .iter()
                        .filter(|(path, _)| path.ends_with(code))
                        .max_by_key(|f| f.0.starts_with("crates/convgp/"));
                    file.is_some()
                } else {
                    let segments: Vec<&str> = code.trim_end_matches("()").split("::").collect();
                    let name = segments.iter().all(|s| is_identifier(s));
                    file = file.filter(|_| follows && name);
                    match (segments.as_slice(), file) {
                        (_, _) if !name => true,
                        ([.., name], Some((_, text))) => contains_word(text, name),
                        ([.., owner, name], None) => self.defines(owner, name),
                        _ => true,
                    }
                };
                if !known {
                    unknown.push(code.to_string());
                }
            }
        }
        unknown
    }

    /// Whether a file that is named after the owner, or mentions it, defines the name.
    fn defines(&self, owner: &str, name: &str) -> bool {
        let module = |path: &Path| {
            let crate_name = owner.replace('_', "-");
            path.iter().any(|part| part == owner || part == crate_name.as_str())
                || path.file_stem().is_some_and(|stem| stem == owner)
        };
        self.files
            .iter()
            .any(|(path, text)| (module(path) || contains_word(text, owner)) && defined(text, name))
    }
}

/// Whether an item, a field or a variant has this name.
fn defined(text: &str, name: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let member = line
            .strip_prefix(name)
            .is_some_and(|rest| rest.trim_end().is_empty() || rest.starts_with([',', ':', '(', ' ']));
        member
            || KEYWORDS.iter().any(|keyword| {
                line.match_indices(keyword).any(|(i, _)| {
                    line[i + keyword.len()..]
                        .strip_prefix(' ')
                        .and_then(|rest| rest.strip_prefix(name))
                        .is_some_and(|rest| !rest.starts_with(is_word))
                })
            })
    })
}

fn contains_word(text: &str, word: &str) -> bool {
    text.match_indices(word)
        .any(|(i, _)| !text[..i].ends_with(is_word) && !text[i + word.len()..].starts_with(is_word))
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_word) && !text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up() {
        let code = "pub struct Model { pub layout: Layout }\nimpl Model {\n    pub fn elbo(&self) {}\n}\nenum Kind {\n    Full,\n}\n";
        let sources = Sources { files: vec![("crates/convgp/src/model/bound.rs".into(), code.into())] };
        let unknown = |text: &str| sources.unknown(&[text.split('`').map(String::from).collect()]);
        assert!(
            unknown(
                "see `Model::elbo`, `Kind::Full`, `bound::Model`, `a = b`, `std` and `model/bound.rs` `elbo`."
            )
            .is_empty()
        );
        assert_eq!(
            unknown("`Model::elb` and `model/bounds.rs`, `model/bound.rs` `elb`."),
            ["Model::elb", "model/bounds.rs", "elb"]
        );
        assert_eq!(unknown("`model/bound.rs` has no `elb`, but that is text"), Vec::<String>::new());
    }
}
