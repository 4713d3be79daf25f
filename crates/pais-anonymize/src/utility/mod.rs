//! The utility of a released table, and the re-identification risk that remains in it.
//!
//! Each measure is defined in `docs/methods.md`.

mod metrics;
mod ncp;
mod queries;
mod report;
mod risk;
mod sets;

pub use metrics::{GroupMetrics, SizeBucket};
pub use queries::QueryError;
pub use report::{Report, Utility};
pub use risk::Risk;

pub(crate) use ncp::ColumnNcp;
pub(crate) use queries::{QueryDimension, QuerySensitive, QueryTable};
pub(crate) use report::{Measures, ncp_by_column, report, report_with_sets};
pub(crate) use sets::RawSets;
