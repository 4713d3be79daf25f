//! The JSON documents that describe a dataset and a job, as they are written by their authors.
//!
//! Their shape is that of `openapi/openapi.json`. They are parsed into the types of
//! [`crate::schema`] and [`crate::model`] once, and those are trusted from then on.

mod dataset;
mod generated_hierarchy;
mod ids;
mod job;
pub mod json;
mod location;
mod objects;
#[cfg(feature = "openapi")]
mod openapi;
mod parameter;
mod privacy;
mod sweep;
pub mod whole;

pub use dataset::{
    ColumnDefinition, ColumnKind, ColumnRole, DatasetDefinition, DomainBound, TaxonomyNode,
    TaxonomyReference, TextFormatDefinition,
};
pub use generated_hierarchy::{CalendarLevel, GeneratedHierarchy};
pub use ids::{DatasetId, SubmissionId, TaxonomyId};
pub use job::{
    ContinuedCut, Job, JobDefinition, JobError, JobErrorKind, Objective, Output, PreGeneralization,
    Recoding, SearchRule, SplitRule, SuppressionFor, UtilityDefinition,
};
pub use json::{DocumentError, DocumentErrorKind};
pub use location::{DatasetLocation, JobRelease, LocatedRelease, LocationFormat, ReleaseLocation};
pub use parameter::OneOrMany;
pub use privacy::{ModelKind, PrivacyDefinition};
pub use sweep::{Combination, CombinationQuery, MOST_COMBINATIONS, Sweep, first_list};
