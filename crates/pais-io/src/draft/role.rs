//! What a column is for an adversary.
//!
//! Where nothing is known of a column, the role is the one that protects more: text with repeated
//! values is a quasi-identifier, text without is dropped. No column is proposed as the class, which
//! nothing in a file shows.

use pais_core::definition::{ColumnKind, ColumnRole};

use super::names::NameMeaning;
use super::observed::{MOST_KEPT, Observed};

/// The share of distinct values from which on a column nearly identifies its rows.
const NEARLY_UNIQUE: f64 = 0.9;

/// Fewest rows of which the share of distinct values says something.
const LEAST_ROWS: u64 = 10;

/// Most distinct values of a column whose values other people can know, or that are labels.
const FEW_VALUES: u64 = 12;

/// Length in characters from which on a text is written freely.
const FREE_TEXT: usize = 100;

/// Proposes the role of a column, and adds reasons. `has_subject` says whether an earlier column
/// is the subject.
pub(super) fn propose(
    column: &Observed,
    name: NameMeaning,
    kind: ColumnKind,
    has_subject: bool,
    reasons: &mut Vec<String>,
) -> ColumnRole {
    if column.rows == 0 {
        reasons.push("nothing is known of it: declare its role yourself".to_owned());
        return ColumnRole::Insensitive;
    }
    let (role, reason) = identifying(column, name, kind, has_subject)
        .or_else(|| sensitive(column, name, kind))
        .unwrap_or_else(|| known(column, name, kind));
    reasons.push(reason.to_owned());
    role
}

type Proposal = (ColumnRole, &'static str);

const fn identifier(reason: &'static str) -> Option<Proposal> {
    Some((ColumnRole::Identifier, reason))
}

/// Whether a column names a person or a record.
fn identifying(
    column: &Observed,
    name: NameMeaning,
    kind: ColumnKind,
    has_subject: bool,
) -> Option<Proposal> {
    let is_all_distinct = column.distinct == column.rows;
    let share = column.distinct as f64 / column.rows as f64;
    let is_text = kind == ColumnKind::Categorical;
    if column.is_most(column.codes.email) {
        return identifier("its values are addresses of electronic mail");
    }
    if name.is_direct && column.distinct > 2 {
        return identifier("by its name it names or reaches a person");
    }
    let is_one_value = matches!(kind, ColumnKind::Categorical | ColumnKind::Numeric);
    let names_persons = name.is_person_alone && column.distinct > FEW_VALUES;
    let is_key = name.is_key || names_persons || column.is_most(column.codes.uuid);
    if is_key
        && is_one_value
        && !name.is_diagnosis
        && let Some(role) = key(column, name, is_all_distinct, has_subject)
    {
        return Some(role);
    }
    if name.is_number && is_one_value && column.rows >= LEAST_ROWS && share >= NEARLY_UNIQUE {
        return identifier("it is a number of something, and nearly every value is distinct");
    }
    if is_text && !name.is_known && !name.is_postal && column.rows >= LEAST_ROWS {
        if is_all_distinct {
            return identifier("all values are distinct texts: each one names its row");
        }
        if share >= NEARLY_UNIQUE {
            return identifier("nearly every value is a distinct text");
        }
    }
    if is_text && column.longest >= FREE_TEXT && column.distinct > MOST_KEPT as u64 {
        return identifier("long texts, which can name persons");
    }
    if kind == ColumnKind::Numeric
        && is_all_distinct
        && column.rows >= 2 * LEAST_ROWS
        && let Some(range) = column.numbers.range(0)
        && range.is_whole
        && range.hi - range.lo + 1.0 == column.distinct as f64
    {
        return identifier("whole numbers without a gap, each of them once: they number the rows");
    }
    None
}

/// The role of a key; `None` for a key of few values, which is a label.
fn key(
    column: &Observed,
    name: NameMeaning,
    is_all_distinct: bool,
    has_subject: bool,
) -> Option<Proposal> {
    if is_all_distinct {
        return identifier("it is a key by its name or its values, and all values are distinct");
    }
    let is_few = column.kept.is_some() && column.distinct * 10 <= column.rows;
    if !name.is_person {
        if is_few {
            return None;
        }
        return identifier("it is a key by its name or its values, and has many");
    }
    if has_subject {
        return identifier("it is a key of persons, and an earlier column is the subject already");
    }
    if column.missing_rows() > 0 {
        return identifier(
            "it is a key of persons that is missing in some rows, so it cannot be the \
                      subject",
        );
    }
    let reason = "it is a key of persons, and values repeat: several rows are about one person";
    Some((ColumnRole::Subject, reason))
}

/// Whether nobody should learn a column's values.
fn sensitive(column: &Observed, name: NameMeaning, kind: ColumnKind) -> Option<Proposal> {
    let is_single = matches!(kind, ColumnKind::Categorical | ColumnKind::Numeric);
    if !is_single || (name.is_known && !name.is_sensitive) {
        return None;
    }
    let is_text = kind == ColumnKind::Categorical;
    if is_text && is_icd(column, name) {
        return Some((ColumnRole::Sensitive, "its values are codes of ICD"));
    }
    if !name.is_sensitive {
        return None;
    }
    if kind == ColumnKind::Numeric && column.kept.is_none() {
        let reason = "by its name it is about health, and it has many numbers, as a measurement \
                      does: declare it sensitive where a number alone tells something";
        return Some((ColumnRole::Insensitive, reason));
    }
    let reason = "by its name nobody should learn it about a person";
    Some((ColumnRole::Sensitive, reason))
}

/// Whether a column has codes of ICD.
pub(super) fn is_icd(column: &Observed, name: NameMeaning) -> bool {
    let codes = &column.codes;
    let is_of_persons = name.is_person && !name.is_diagnosis;
    if column.distinct < 3 || name.is_postal || is_of_persons {
        return false;
    }
    let is_icd10 = column.is_most(codes.icd10);
    let is_icd9 = column.is_most(codes.icd9.max(codes.icd10));
    is_icd10 || (is_icd9 && (name.is_diagnosis || codes.icd9_letters > 0))
}

/// Whether a column has postal codes.
pub(super) fn is_postal(column: &Observed, name: NameMeaning) -> bool {
    name.is_postal || (column.codes.leading_zeros > 0 && column.is_most(column.codes.zip))
}

/// What people know of each other, and the rest.
fn known(column: &Observed, name: NameMeaning, kind: ColumnKind) -> Proposal {
    let role = ColumnRole::QuasiIdentifier;
    if name.is_sensitive && kind == ColumnKind::Set {
        let reason = "by its name nobody should learn it, but a set cannot be sensitive; several \
                      items together single out a person";
        return (role, reason);
    }
    match kind {
        ColumnKind::Date | ColumnKind::Datetime => {
            return (role, "people know dates of each other");
        }
        ColumnKind::Set => return (role, "several items together single out a person"),
        ColumnKind::Categorical | ColumnKind::Numeric => {}
    }
    if is_postal(column, name) {
        return (role, "its values are postal codes");
    }
    if name.is_known {
        return (role, "by its name people know it of each other");
    }
    if kind == ColumnKind::Numeric {
        if column.distinct <= FEW_VALUES {
            return (
                role,
                "it has few values, which people can know of each other",
            );
        }
        let reason = "it has many numbers, as a measurement does; it is released as it is: declare \
                      it a quasi-identifier where people know it of each other";
        return (ColumnRole::Insensitive, reason);
    }
    if column.kept.is_some() {
        (
            role,
            "it has few values, which people can know of each other",
        )
    } else {
        (
            role,
            "it has many texts that repeat, and rare ones single out a person",
        )
    }
}
