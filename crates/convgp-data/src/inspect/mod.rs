//! Looking at data before using them.

mod sheet;
mod summary;

pub use sheet::contact_sheet;
pub use summary::{SplitSummary, Summary, summary};
