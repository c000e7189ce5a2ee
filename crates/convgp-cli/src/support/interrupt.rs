//! Ctrl-C: the first asks for an orderly end, the second does not ask.

use crate::support::exit::Exit;
use anyhow::{Context, Result};
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Listens from now on, to Ctrl-C and the signals that ask a program to end.
pub fn listen() -> Result<()> {
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::SeqCst) {
            std::process::exit(Exit::Interrupted as i32);
        }
    })
    .context("listening for Ctrl-C")
}

/// Set when an end is asked for.
pub fn flag() -> &'static AtomicBool {
    &ASKED
}
