//! What every command may need: exit codes, progress, tables, reading of images.

pub mod duration;
pub mod exit;
pub mod images;
pub mod inputs;
pub mod interrupt;
pub mod metrics_table;
pub mod models;
pub mod progress;
pub mod table;
