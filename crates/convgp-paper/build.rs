//! Lists the records in `results/`, so that committing one is putting two files there.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("results");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut records = Vec::new();
    for entry in fs::read_dir(&folder)? {
        records.push(entry?.path());
    }
    records.retain(|path| path.extension().is_some_and(|e| e == "json"));
    records.sort();
    let line = |path: &PathBuf| format!("    include_str!({:?}),\n", path.display().to_string());
    let list: String = records.iter().map(line).collect();
    let text = format!("const RECORDS: [&str; {}] = [\n{list}];\n", records.len());
    fs::write(Path::new(&env::var_os("OUT_DIR").expect("set by cargo")).join("records.rs"), text)
}
