//! The program as its users meet it: every test runs the real binary in a folder of its own.

mod calibrate;
mod common;
mod eval;
mod explain;
mod formats;
mod interrupt;
mod memory;
mod new_user;
mod options;
mod outputs;
mod report;
mod reproduce;
mod resume;
