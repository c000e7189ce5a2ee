//! The part of `cargo xtask test` that opens reports in a real browser.

use crate::checks::cargo;
use anyhow::Result;
use std::process::{Command, Stdio};

/// Names Chromium goes by.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Runs the browser tests with the Chromium that is there or can be installed; without one there is a note and no failure.
#[allow(clippy::print_stderr)] // says what is left out
pub fn test() -> Result<()> {
    let Some(browser) = find().or_else(|| install().then(find).flatten()) else {
        eprintln!(
            "note: reports were not opened in a browser: no Chromium here, and none could be installed. Install it, or name \
             one with CONVGP_CHROMIUM"
        );
        return Ok(());
    };
    // With all members, so that nothing is built again with fewer features.
    let arguments = ["test", "--workspace", "--test", "browser", "--", "--ignored"];
    cargo(&arguments, &[("CONVGP_CHROMIUM", &browser)])
}

/// The named browser, or the first on the path.
fn find() -> Option<String> {
    let named = std::env::var("CONVGP_CHROMIUM").ok();
    let mut candidates = named.into_iter().chain(NAMES.map(String::from));
    candidates.find(|program| succeeds(program, &["--version"]))
}

/// On Debian, as root, without asking.
fn install() -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout.trim_ascii() == b"0");
    root && succeeds("apt-get", &["update"])
        && succeeds("apt-get", &["install", "-y", "--no-install-recommends", "chromium"])
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
