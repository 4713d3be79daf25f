//! The domain types: ids, schemas, privacy models, job states and problems.
//!
//! This module does no input or output. Requests and files are parsed into these types once, and
//! later code relies on the checks made there.

pub mod fraction;
pub mod group_model;
pub mod ids;
pub mod job;
pub mod json;
pub mod privacy;
pub mod problem;
pub mod roles;
pub mod schema;
pub mod sweep;

pub use fraction::Fraction;
pub use group_model::{Diversity, Factor, GroupModel};
pub use ids::{
    DatasetId, EventId, GrantId, JobId, OrganizationId, ReleaseId, SubmissionId, TaxonomyId,
    TokenId,
};
pub use job::{JobDefinition, JobStatus, Objective, Output, Recoding, SplitRule};
pub use privacy::{
    Confidence, KmAnonymity, Lkc, MinimumAnonymity, ModelWord, PriorKnowledge, PrivacyDefinition,
    PrivacyModel,
};
pub use problem::{Code, Fault, Problem};
pub use roles::{Caller, Role};
pub use schema::{ColumnDefinition, ColumnKind, ColumnRole, DatasetDefinition, TaxonomyReference};
