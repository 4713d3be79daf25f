//! Decides the privacy model of a job on a finished table.

use pais_core::cancellation::Cancellation;
use pais_core::model::{Confidence, Lkc, MissingSensitive, PrivacyModel};
use pais_core::table::Form;
use serde::Serialize;

use super::LkcRequirement;
use super::classes::Classes;
use super::facts::{verify_facts, verify_km};
use super::lkc::verify_lkc;
use super::model_columns::ModelColumns;
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

/// Decides a model. Also returns the classes of equal quasi-identifiers, if it was decided on them.
///
/// If an LKC model has an *L* and a column is released as a set, *L* bounds the number of facts: values of columns that
/// are not set-valued, and single items of sets. Elsewhere a value is known as a whole.
/// `subsets` is then the number of combinations of facts that were enumerated, and `violations` how many of them violate
/// the model.
///
/// For labels that may overlap, the model has to be that of [`by_groups`].
///
/// # Errors
/// [`VerifyError`] for a table that lacks a column or is malformed, if there is too much to
/// enumerate, and when stopped.
pub fn verify_model(
    table: CountedTable,
    columns: ModelColumns,
    model: &PrivacyModel,
    cancellation: &Cancellation,
) -> Result<(PrivacyFinding, Option<Classes<'static>>), VerifyError> {
    Ok(match model {
        PrivacyModel::Lkc(model) => {
            let (found, classes) = verify_subsets(table, columns, model, cancellation)?;
            (PrivacyFinding::Subsets(found), classes)
        }
        PrivacyModel::KmAnonymity(model) => {
            let found = verify_km(table, columns, *model, cancellation)?;
            (PrivacyFinding::Subsets(found), None)
        }
        PrivacyModel::Groups(model) => {
            let found = verify_groups(table, columns, model, cancellation)?;
            (PrivacyFinding::Groups(found), None)
        }
    })
}

fn verify_subsets(
    table: CountedTable,
    columns: ModelColumns,
    model: &Lkc,
    cancellation: &Cancellation,
) -> Result<(Verification, Option<Classes<'static>>), VerifyError> {
    let names = columns.quasi_identifiers;
    let requirement = LkcRequirement::from_model(model, names.len(), columns.sensitive);
    let mut known = names.iter().filter_map(|name| table.table.column(name));
    let has_sets = known.any(|column| matches!(column.form, Form::Set { .. }));
    if let Some(l) = model.l.filter(|_| has_sets) {
        let found = verify_facts(table, columns, requirement, l.get(), cancellation)?;
        return Ok((found, None));
    }
    let (found, classes) = verify_lkc(table, None, columns, &requirement, cancellation)?;
    Ok((found, Some(classes)))
}

/// The model as a condition on every group of equal labels, for an adversary who knows all quasi-identifiers. A table
/// whose labels may overlap meets an LKC model, for any *L*, if it meets this one.
///
/// A qid of raw values matches a record if each of its values is covered by the record's label. So
/// it matches all records of a group of equal labels or none, whatever its length: what it matches
/// is a union of groups. If each group has at least *K* records, a union of one or more of them has as
/// well. If no bounded value exceeds *C* in any group, none exceeds it in a union: its share there is
/// the mean of its shares in the groups, weighted by their records with a value. The persons of a
/// union are no fewer than those of each group.
///
/// A qid of a finding is then the labels of a group, so `smallest_group` is at most, and
/// `greatest_confidence` at least, what an adversary with raw values finds. A table that does not meet
/// this model may still meet the given one, for an *L* below the number of quasi-identifiers.
pub fn by_groups(model: &PrivacyModel) -> PrivacyModel {
    match model {
        PrivacyModel::Lkc(model) => PrivacyModel::Lkc(Lkc {
            l: None,
            ..model.clone()
        }),
        PrivacyModel::KmAnonymity(model) => PrivacyModel::Lkc(Lkc {
            l: None,
            k: model.k,
            c: Confidence::UNBOUNDED,
            sensitive_values: None,
            missing_sensitive: MissingSensitive::default(),
        }),
        PrivacyModel::Groups(model) => PrivacyModel::Groups(model.clone()),
    }
}
