//! The utility of a released table, and the re-identification risk that remains in it.
//!
//! Each measure is defined in `docs/methods.md`.

pub mod metrics;
pub mod ncp;
pub mod queries;
mod report;
pub mod risk;
mod sets;

pub use metrics::{GroupMetrics, SizeBucket};
pub use ncp::ColumnNcp;
pub use queries::{QueryDimension, QueryError, QuerySensitive, QueryTable};
pub use report::{Measures, Report, Utility, ncp_by_column, report, report_with_sets};
pub use risk::Risk;
pub use sets::RawSets;
