//! A training run: its request, its execution, and the folder it leaves behind.

pub mod card;
pub mod events;
pub mod execute;
pub mod folder;
pub mod memory;
pub mod record;
pub mod request;
mod set;
pub mod sink;
pub mod spec;
