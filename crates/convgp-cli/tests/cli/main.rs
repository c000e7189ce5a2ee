//! The program as its users meet it: every test runs the real binary in a folder of its own.

mod common;
mod formats;
mod interrupt;
mod memory;
mod new_user;
mod options;
mod outputs;
mod resume;
