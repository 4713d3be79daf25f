//! What a released table is still worth, and what risk remains in it.
//!
//! Every number is defined in `docs/methods.md`.

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
