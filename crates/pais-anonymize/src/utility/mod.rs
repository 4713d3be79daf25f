//! The utility of a released table, and the re-identification risk that remains in it.
//!
//! Each measure is defined in `docs/methods/report.md`. All but those of [`for_recipient`]'s fields are
//! computed from the release and from declared domains alone.

mod adversary_risk;
mod classification;
mod classification_features;
mod classification_rows;
mod classification_run;
mod distortion;
mod holder_only;
mod label_cover;
mod metrics;
mod ncp;
mod prefix_bitmaps;
mod queries;
mod query_answers;
mod query_blocks;
mod query_labels;
mod query_table;
mod report;
mod risk;
mod sets;
mod value_ranks;

#[cfg(test)]
mod classification_tests;
#[cfg(test)]
mod disclosure_tests;
#[cfg(test)]
mod distortion_tests;
#[cfg(test)]
mod query_tests;

pub use adversary_risk::LengthRisk;
pub use classification::ClassificationError;
pub use distortion::{ColumnDistribution, LabelShare};
pub use holder_only::for_recipient;
pub use metrics::{GroupMetrics, SizeBucket};
pub use queries::QueryError;
pub use report::{Report, Utility};
pub use risk::{Risk, ShareAbove};

pub(crate) use adversary_risk::add_adversaries;
pub(crate) use classification_rows::classification_bytes;
pub(crate) use classification_run::classification_error;
pub(crate) use distortion::add_distortion;
pub(crate) use query_labels::{add_query_error, sensitive_of_rows};
pub(crate) use query_table::{QueryDimension, QueryTable};
pub(crate) use report::{anatomized_report, group_figures, report};
pub(crate) use sets::{RawSets, item_loss};
pub(crate) use value_ranks::ValueRanks;
