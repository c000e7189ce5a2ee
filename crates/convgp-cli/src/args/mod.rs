//! Options that several commands share.

pub mod data;
pub mod model;
pub mod run;
pub mod spec;
