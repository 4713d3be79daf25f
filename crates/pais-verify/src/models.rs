//! Decides the privacy model of a job on a finished table.

use pais_core::cancellation::Cancellation;
use pais_core::model::{Lkc, PrivacyModel};
use pais_core::table::Form;
use serde::Serialize;

use super::LkcRequirement;
use super::classes::Classes;
use super::facts::{verify_facts, verify_km};
use super::lkc::{LkcColumns, verify_with_classes};
use super::partition::{GroupVerification, verify_groups};
use super::persons::CountedTable;
use super::verification::{Verification, VerifyError};

/// Whether a release meets a model, with the figures.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum PrivacyFinding {
    /// Of LKC-privacy, its special cases, or k^m-anonymity.
    Subsets(Verification),
    /// Of a model of groups.
    Groups(GroupVerification),
}

impl PrivacyFinding {
    /// Whether the release meets the model.
    pub fn holds(&self) -> bool {
        match self {
            Self::Subsets(found) => found.holds,
            Self::Groups(found) => found.holds,
        }
    }

    /// Rows of the release.
    pub fn rows(&self) -> u64 {
        match self {
            Self::Subsets(found) => found.rows,
            Self::Groups(found) => found.rows,
        }
    }

    /// Rows of the smallest group that an adversary of the model can know; 0 for an empty table.
    pub fn smallest_group(&self) -> u64 {
        match self {
            Self::Subsets(found) => found.smallest_group,
            Self::Groups(found) => found.smallest_group,
        }
    }

    /// Greatest confidence in a sensitive value.
    pub fn greatest_confidence(&self) -> f64 {
        match self {
            Self::Subsets(found) => found.greatest_confidence,
            Self::Groups(found) => found.greatest_confidence,
        }
    }
}

/// Decides a model over `quasi_identifiers`; `sensitive` are all declared sensitive columns. Also returns the
/// classes of equal quasi-identifiers, if it was decided on them. If labels overlap, as those of groups do,
/// fewer known values match several groups.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed, if there is too much to
/// enumerate, and when stopped.
pub fn verify_model(
    table: CountedTable,
    quasi_identifiers: &[Box<str>],
    sensitive: &[Box<str>],
    model: &PrivacyModel,
    labels_overlap: bool,
    cancellation: &Cancellation,
) -> Result<(PrivacyFinding, Option<Classes<'static>>), VerifyError> {
    let names = quasi_identifiers;
    Ok(match model {
        PrivacyModel::Lkc(model) => {
            let (found, classes) = if labels_overlap {
                let found = verify_local_lkc(table, names, sensitive, model, cancellation)?;
                (found, None)
            } else {
                verify_lkc_classes(table, names, sensitive, model, cancellation)?
            };
            (PrivacyFinding::Subsets(found), classes)
        }
        PrivacyModel::KmAnonymity(model) => {
            let found = verify_km(table, names, sensitive, *model, cancellation)?;
            (PrivacyFinding::Subsets(found), None)
        }
        PrivacyModel::Groups(model) => {
            let found = verify_groups(table, names, sensitive, model, cancellation)?;
            (PrivacyFinding::Groups(found), None)
        }
    })
}

/// Decides the LKC model of a job over `quasi_identifiers`. Where the model has an *L* and a column
/// is released as a set, *L* bounds the number of facts: values of columns that are not set-valued,
/// and single items of sets. Elsewhere a value is known as a whole, as by [`crate::verify_lkc`].
///
/// In the result `subsets` is then the number of combinations of facts that were enumerated, and
/// `violations` how many of them violate the model.
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed, if there are too many
/// combinations to enumerate, and when stopped.
pub fn verify_lkc_model<'t>(
    table: impl Into<CountedTable<'t>>,
    quasi_identifiers: &[Box<str>],
    sensitive: &[Box<str>],
    model: &Lkc,
    cancellation: &Cancellation,
) -> Result<Verification, VerifyError> {
    let (found, _) = verify_lkc_classes(table, quasi_identifiers, sensitive, model, cancellation)?;
    Ok(found)
}

/// As [`verify_lkc_model`], with the classes of equal quasi-identifiers, where they were decided on.
///
/// # Errors
/// As [`verify_lkc_model`].
pub fn verify_lkc_classes<'t>(
    table: impl Into<CountedTable<'t>>,
    quasi_identifiers: &[Box<str>],
    sensitive: &[Box<str>],
    model: &Lkc,
    cancellation: &Cancellation,
) -> Result<(Verification, Option<Classes<'static>>), VerifyError> {
    let counted = table.into();
    let requirement = LkcRequirement::from_model(model, quasi_identifiers.len(), sensitive);
    let mut columns = quasi_identifiers
        .iter()
        .filter_map(|name| counted.table.column(name));
    let has_sets = columns.any(|column| matches!(column.form, Form::Set { .. }));
    let names = quasi_identifiers;
    match model.l.filter(|_| has_sets) {
        Some(l) => {
            let l = l.get();
            let found = verify_facts(counted, names, sensitive, requirement, l, cancellation)?;
            Ok((found, None))
        }
        None => {
            let columns = LkcColumns {
                quasi_identifiers,
                sensitive,
            };
            let (found, classes) =
                verify_with_classes(counted, None, columns, &requirement, cancellation)?;
            Ok((found, Some(classes)))
        }
    }
}

/// Decides the LKC model of a job, for any *L*, over the groups of records that agree on all
/// `quasi_identifiers`, as for a table whose labels may overlap. `sensitive` are all declared
/// sensitive columns.
///
/// A qid of raw values matches a record if each of its values is covered by the record's label. So
/// it matches all records of a group of equal labels or none, whatever its length: what it matches
/// is a union of groups. If each group has at least *K* records, a union of one or more of them has as
/// well. If no bounded value exceeds *C* in any group, none exceeds it in a union: its share there is
/// the mean of its shares in the groups, weighted by their records with a value. The persons of a
/// union are no fewer than those of each group.
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
    let model = known_in_full(model);
    verify_lkc_model(table, quasi_identifiers, sensitive, &model, cancellation)
}

/// The model for an adversary who knows all quasi-identifiers.
pub(super) fn known_in_full(model: &Lkc) -> Lkc {
    Lkc {
        l: None,
        ..model.clone()
    }
}
