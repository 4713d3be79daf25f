//! The verifier. Every release must pass it before it is published.
//!
//! It reads only the finished table and the requirement. It shares with the search only the declarations and
//! how values and labels are read (`pais-core`), so that a bug of the search is not repeated here. It decides Definition 3.1 of the
//! KDD'09 paper exactly, by enumeration, and checks group models one group at a time.

#![forbid(unsafe_code)]

mod adversaries;
mod anatomy;
mod anatomy_assignment;
mod assignment;
mod bitmap_search;
mod bitmaps;
mod bits;
mod classes;
mod combinations;
mod composition;
mod counter;
mod cover;
mod cut;
mod distinct_release;
mod distinct_rows;
mod equivalence_classes;
mod facts;
mod fit_index;
mod group_visitor;
mod lists;
mod lkc;
mod matched_columns;
mod matching;
mod minimum_cover;
mod model_columns;
mod models;
mod original;
mod overlap;
mod partition;
mod person_search;
mod persons;
mod profiles;
mod qid_search;
mod release;
mod requirement;
mod row_sum;
mod sensitive;
mod sets;
mod source_rows;
mod subject_groups;
mod truthfulness;
mod unfolding;
mod verification;
mod violations;

#[cfg(test)]
mod tests;

pub use adversaries::{
    AdversaryFigures, AdversaryLengths, LengthFigures, QidConfidences, QidSizes, SIZE_BUCKETS,
    adversary_bytes, measure_adversaries, size_bucket, sizes_of_bucket,
};
pub use anatomy::{AnatomyError, RawSensitive, check_counts, group_ids, join_sensitive};
pub use classes::Classes;
pub use composition::{
    ComposedRelease, Composition, MOST_RELEASES, RawRows, Recoded, combination_bytes, compose,
};
pub use cover::outermost_interval;
pub use cut::{CutError, check_single_cut};
pub use distinct_release::DistinctRelease;
pub use equivalence_classes::EquivalenceClasses;
pub use model_columns::ModelColumns;
pub use models::{PrivacyFinding, by_groups, verify_model};
pub use original::{Original, OriginalColumn, OriginalQuasiIdentifier};
pub use partition::{FailingGroup, GroupVerification};
pub use persons::CountedTable;
pub use release::{
    FoundRecoding, FoundSubjects, RawComparison, RawFinding, RawTexts, ReleaseError, ReleaseTables,
    ReleaseVerification, StreamedVerification, Undecided, UndecidedReason, verify_release,
};
pub use requirement::{LkcRequirement, SensitiveRequirement, SensitiveSet};
pub use sets::OriginalSet;
pub use source_rows::NOWHERE;
pub use subject_groups::{SubjectGroups, group_sizes, subject_groups};
pub use truthfulness::{TruthError, check_truthful};
pub use verification::{ColumnValue, Verification, VerifyError, WorstGroup};
