//! LKC-privacy of a table whose labels may overlap, as local recoding makes it: decided by groups.
//!
//! A qid of raw values matches a record if each of its values is covered by the record's label. So
//! it matches all records of a group of equal labels or none, whatever its length: what it matches
//! is a union of groups. If each group has at least *K* records, so has a union of one or more of
//! them. If no bounded value exceeds *C* in any group, it does not in a union: its share there is
//! the mean of its shares in the groups, weighted by their records with a value. The persons of a
//! union are no fewer than those of each group.

use pais_core::cancellation::Cancellation;
use pais_core::model::Lkc;

use super::counted_table::CountedTable;
use super::facts::verify_lkc_model;
use super::verification::{Verification, VerifyError};

/// Decides the LKC model of a job, for any *L*, over the groups of records that agree on all
/// `quasi_identifiers`. `sensitive` are all declared sensitive columns.
///
/// In the result a qid is the labels of a group, so `smallest_group` is at most, and
/// `greatest_confidence` at least, what an adversary with raw values finds. A table that does not
/// hold here may still meet the model for an *L* below the number of quasi-identifiers: see
/// [`crate::verify_overlapping_lkc`].
///
/// # Errors
/// As [`verify_lkc_model`].
pub fn verify_local_lkc<'t>(
    table: impl Into<CountedTable<'t>>,
    quasi_identifiers: &[Box<str>],
    sensitive: &[Box<str>],
    model: &Lkc,
    cancellation: &Cancellation,
) -> Result<Verification, VerifyError> {
    let known_in_full = Lkc {
        l: None,
        ..model.clone()
    };
    verify_lkc_model(
        table,
        quasi_identifiers,
        sensitive,
        &known_in_full,
        cancellation,
    )
}
