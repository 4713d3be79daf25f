//! The verifier: the gate that every release passes.
//!
//! It reads nothing but the finished table and what was asked for. It shares no code with the
//! anonymizers, so that an error of theirs cannot hide here, and it decides Definition 3.1 of
//! the KDD'09 paper exactly, by enumeration.

mod assignment;
mod classes;
mod counter;
mod cut;
mod itemsets;
mod lkc;
mod matching;
mod profiles;
mod requirement;
mod search;
mod sets;
mod truth;
mod verification;

#[cfg(test)]
mod tests;

pub use assignment::{Assignment, assign};
pub use classes::group_sizes;
pub use cut::{CutError, check_single_cut};
pub use itemsets::verify_km_unless;
pub use lkc::{verify_lkc, verify_lkc_unless};
pub use requirement::{LkcRequirement, SensitiveRequirement, SensitiveSet};
pub use sets::OriginalSet;
pub use truth::{Original, OriginalQuasiIdentifier, TruthError, check_truthful};
pub use verification::{
    ColumnValue, VIOLATION_CAP, Verification, VerifyError, WORST_GROUPS, WorstGroup,
};
