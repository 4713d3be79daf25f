//! The utility of a released table, and the re-identification risk that remains in it.
//!
//! Each measure is defined in `docs/methods/report.md`. All but those of [`for_recipient`]'s fields are
//! computed from the release and from declared domains alone.

mod adversary_risk;
mod attribute_risk;
mod distorted_column;
mod distortion;
mod distributions;
mod group_metrics;
mod holder_only;
mod item_counts;
mod label_cover;
mod ncp;
mod node_ncp;
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
mod distortion_tests;
#[cfg(test)]
mod query_tests;

pub use attribute_risk::AttributeRisk;
pub use distributions::{ColumnDistribution, LabelShare, distribution_bytes};
pub use group_metrics::{GroupMetrics, SizeBucket};
pub use holder_only::{for_package, for_recipient};
pub use item_counts::ItemCounts;
pub use node_ncp::node_ncp;
pub use queries::QueryError;
pub use report::{Report, TableFigures, Utility, group_figures};
pub use risk::{LengthRisk, Risk, ShareAbove};
pub use sets::item_loss;
pub use value_ranks::ValueRanks;

pub(crate) use adversary_risk::{add_adversaries, add_unchanged};
pub(crate) use attribute_risk::attribute_risk;
pub(crate) use distortion::measured_distortion;
pub(crate) use holder_only::rounded;
pub(crate) use item_counts::{item_counts, item_query_error};
pub(crate) use query_labels::query_error;
pub(crate) use sets::item_losses;
