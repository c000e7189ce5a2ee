//! The program as its users meet it: every test runs the real binary in a folder of its own.

mod calibrate;
mod common;
mod docs;
mod eval;
mod explain;
mod formats;
mod interrupt;
mod memory;
mod new_user;
mod options;
mod outputs;
mod regression;
mod report;
mod reproduce;
mod resume;
mod units;
mod update;
