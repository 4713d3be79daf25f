//! Measures what a release is still worth and what risk remains in it.
//!
//! - [`measure`]: the report of a verified release, with its raw rows
//! - [`group_figures`], [`node_ncp`], [`ValueRanks`]: measures that searches and methods use too
//!
//! Nothing here decides whether a table may be released.

#![forbid(unsafe_code)]

mod classification;
mod frequencies;
mod guidelines;
mod measure;
mod release;
mod sample;
#[cfg(test)]
mod test_data;
mod utility;

pub use classification::{ClassificationError, classification_bytes};
pub use guidelines::{
    ColumnOutcome, Guidelines, Inference, Linkability, Opinion, RiskAnswer, RiskThreshold,
    SafeHarbor, SafeHarborCategoryFinding, SafeHarborColumn, SafeHarborFinding, SinglingOut,
    SmallCells,
};
pub use measure::measure;
pub use release::{CountedRelease, MeasuredRelease, MethodFacts, MethodGroups, ReleaseRecoding};
pub use sample::sample_bytes;
pub use utility::{
    AttributeRisk, ColumnDistribution, GroupMetrics, ItemCounts, LabelShare, LengthRisk,
    QueryError, Report, Risk, ShareAbove, SizeBucket, TableFigures, Utility, ValueRanks,
    distribution_bytes, for_package, for_recipient, group_figures, item_loss, node_ncp,
};
