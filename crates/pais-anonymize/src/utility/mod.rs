//! The utility of a released table, and the re-identification risk that remains in it.
//!
//! Each measure is defined in `docs/methods.md`. All but those of [`for_recipient`]'s fields are
//! computed from the release and from declared domains alone.

mod holder_only;
mod metrics;
mod ncp;
mod queries;
mod report;
mod risk;
mod sets;

#[cfg(test)]
mod disclosure_tests;

pub use holder_only::for_recipient;
pub use metrics::{GroupMetrics, SizeBucket};
pub use queries::QueryError;
pub use report::{Report, Utility};
pub use risk::Risk;

pub(crate) use queries::{QueryDimension, QuerySensitive, QueryTable};
pub(crate) use report::{anatomized_report, report};
pub(crate) use sets::{RawSets, item_loss};
