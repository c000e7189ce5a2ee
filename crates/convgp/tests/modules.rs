//! The module table of `lib.rs` is in dependency order: a module uses only those above it.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules in the order of the table.
fn order(lib: &str) -> Vec<String> {
    let rows = lib.lines().filter(|line| line.starts_with("//! | [`"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let names =
        cells.flat_map(|cell| cell.split('`').skip(1).step_by(2).map(String::from).collect::<Vec<_>>());
    names.collect()
}

fn rust_files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
}

/// The module that something at the root of the crate comes from.
fn module(name: &str) -> &str {
    match name {
        "Error" | "Result" => "error",
        "Model" | "ModelSpec" => "model",
        "FittedModel" => "fitted",
        other => other,
    }
}

/// Names right after `crate::`, in code that is not a test.
fn used(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let joined = lines.collect::<Vec<_>>().join("\n");
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = Vec::new();
    for rest in joined.split("crate::").skip(1) {
        match rest.strip_prefix('{').and_then(|list| list.split('}').next()) {
            Some(list) => found.extend(list.split(',').map(|item| word(item.trim()))),
            None => found.push(word(rest)),
        }
    }
    found
}

#[test]
fn a_module_uses_only_those_above_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(src.join("lib.rs")).unwrap();
    let order = order(&lib);
    let declared: Vec<&str> =
        lib.lines().filter_map(|l| l.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    let missing: Vec<_> = declared.iter().filter(|m| !order.iter().any(|o| o == *m)).collect();
    assert!(order.len() == declared.len() && missing.is_empty(), "not in the table: {missing:?}");
    let place = |name: &str| order.iter().position(|o| o == name);
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let mut wrong = Vec::new();
    for path in files {
        let inner = path.strip_prefix(&src).unwrap();
        let top = inner.iter().next().unwrap().to_string_lossy().trim_end_matches(".rs").to_string();
        let name = inner.to_string_lossy();
        // `error` gathers the errors of all modules; test code and the contract suites may use everything.
        let free = top == "lib" || top == "error" || name.contains("contract") || name.contains("test");
        let Some(own) = place(&top).filter(|_| !free) else { continue };
        for used in used(&fs::read_to_string(&path).unwrap()) {
            if place(module(&used)).is_some_and(|other| other > own) {
                wrong.push(format!("{name} uses {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
