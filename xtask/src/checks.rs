//! `cargo xtask check` and `cargo xtask test`: what CI runs, cheapest first.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// Documents, format, lints, documentation of the code.
pub fn check() -> Result<()> {
    crate::book::check()?;
    crate::readme::check()?;
    crate::python_spec::check()?;
    cargo(&["fmt", "--all", "--check"], &[])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"], &[])?;
    cargo(
        &["doc", "--workspace", "--no-deps", "--features", "convgp/testing"],
        &[("RUSTDOCFLAGS", "--deny warnings")],
    )
}

/// The checks, then every test of the workspace, doc-tests included, then the book, reports in a browser and the Python package.
pub fn test() -> Result<()> {
    check()?;
    cargo(&["test", "--workspace"], &[])?;
    crate::book::build()?;
    crate::browser::test()?;
    crate::python::test()
}

/// The folder of the workspace.
pub fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the workspace")
}

/// Runs cargo in the workspace, showing its output; fails if it does.
pub fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    run(Command::new(program).args(arguments).envs(environment.iter().copied()))
}

/// Runs a command in the workspace, showing its output; fails if it does.
#[allow(clippy::print_stderr)] // says what runs, as make does
pub fn run(command: &mut Command) -> Result<()> {
    let name = Path::new(command.get_program()).file_stem().unwrap_or_default();
    let words = std::iter::once(name).chain(command.get_args()).map(|word| word.to_string_lossy());
    let line = words.collect::<Vec<_>>().join(" ");
    eprintln!("$ {line}");
    let status = command.current_dir(root()?).status();
    let status = status.with_context(|| format!("`{line}` could not be started"))?;
    ensure!(status.success(), "`{line}` failed");
    Ok(())
}
