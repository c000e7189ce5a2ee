//! `cargo xtask check` and `cargo xtask test`: what CI runs, cheapest first.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// Format, lints, documentation.
pub fn check() -> Result<()> {
    cargo(&["fmt", "--all", "--check"], &[])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"], &[])?;
    cargo(&["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "--deny warnings")])
}

/// The checks, then every test of the workspace, doc-tests included, then reports in a browser.
pub fn test() -> Result<()> {
    check()?;
    cargo(&["test", "--workspace"], &[])?;
    crate::browser::test()
}

/// Runs cargo in the workspace, showing its output; fails if it does.
#[allow(clippy::print_stderr)] // says what runs, as make does
pub fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let line = format!("cargo {}", arguments.join(" "));
    eprintln!("$ {line}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")?;
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(program)
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root)
        .status()
        .with_context(|| format!("`{line}` could not be started"))?;
    ensure!(status.success(), "`{line}` failed");
    Ok(())
}
