//! Checks of single columns: of sets that are made of several columns of a file, of the subject, of rounded
//! ends; and warnings about a definition before any row is read.

use std::collections::HashSet;

use super::Schema;
use crate::definition::{ColumnDefinition, ColumnKind, ColumnRole};
use crate::rejection::Fault;
use crate::taxonomy::Multiples;
use crate::warning::{Warning, WarningCode, by_code};

/// Maximum number of bytes of the name of a column.
pub const MOST_NAME_BYTES: usize = 1_024;

/// What is wrong with a name of a column.
pub(super) const NO_NAME: &str =
    "a column's name must have 1 to 1,024 bytes, no NUL, and no byte order mark at its start";

/// Whether a text cannot be the name of a column. A byte order mark before the first name of a file is not part
/// of it.
pub(super) fn is_no_name(name: &str) -> bool {
    let is_long = name.len() > MOST_NAME_BYTES;
    name.is_empty() || is_long || name.contains('\0') || name.starts_with('\u{feff}')
}

/// The columns of a file that a set is made of.
pub(super) fn set_columns(column: &ColumnDefinition) -> Vec<Box<str>> {
    let names = column.from.iter().flatten();
    names.map(|name| name.as_str().into()).collect()
}

/// What is wrong with the columns that sets are made of.
pub(super) fn set_faults(columns: &[ColumnDefinition]) -> Vec<Fault> {
    let declared: HashSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let mut used = HashSet::new();
    let mut faults = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        let Some(from) = &column.from else { continue };
        let at = format!("/columns/{index}/from");
        if column.kind != ColumnKind::Set {
            let detail = "only a set is made of several columns";
            faults.push(Fault::at(&at, detail).fix("add \"kind\": \"set\", or leave `from` out"));
        }
        if from.is_empty() {
            let detail = "a set is made of at least one column";
            faults.push(Fault::at(&at, detail).fix("name the columns, or leave `from` out"));
        }
        for (number, name) in from.iter().enumerate() {
            let detail = if is_no_name(name) {
                NO_NAME
            } else if declared.contains(name.as_str()) {
                "this column is declared too; a file has it once"
            } else if !used.insert(name.as_str()) {
                "a set is already made of this column"
            } else {
                continue;
            };
            faults.push(Fault::at(format!("{at}/{number}"), detail));
        }
    }
    faults
}

/// What is wrong with the declarations of subject columns.
pub(super) fn subject_faults(columns: &[ColumnDefinition]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let is_subject = |column: &ColumnDefinition| column.role == ColumnRole::Subject;
    let subjects = columns.iter().filter(|column| is_subject(column)).count();
    if subjects > 1 {
        faults.push(
            Fault::at(
                "/columns",
                format!("{subjects} columns have the role subject; at most one can"),
            )
            .fix("give the others the role identifier"),
        );
    }
    for (index, column) in columns.iter().enumerate().filter(|(_, it)| is_subject(it)) {
        if column.kind != ColumnKind::Categorical {
            let pointer = format!("/columns/{index}/kind");
            let detail = "subjects are compared as text, so the kind must be categorical";
            faults.push(Fault::at(pointer, detail).fix("leave `kind` out"));
        }
        let given = [
            ("taxonomy", column.taxonomy.is_some()),
            ("domain", column.domain.is_some()),
            ("order", column.order.is_some()),
        ];
        for (field, _) in given.into_iter().filter(|(_, given)| *given) {
            let pointer = format!("/columns/{index}/{field}");
            let detail = "a subject is not generalized, so this field has no effect";
            faults.push(Fault::at(pointer, detail).fix("leave it out"));
        }
    }
    faults
}

impl Schema {
    /// The position, among the stored columns, of the subject column.
    pub fn subject(&self) -> Option<usize> {
        self.stored_with(ColumnRole::Subject).first().copied()
    }
}

/// The multiples at which intervals of the column end; `None` if none are declared.
///
/// # Errors
/// Why the column cannot be rounded, and what to do.
pub(super) fn rounding(
    column: &ColumnDefinition,
) -> Result<Option<Multiples>, (&'static str, &'static str)> {
    let Some(round) = column.round else {
        return Ok(None);
    };
    if column.kind.is_of_dates() {
        return Err((
            "only numbers are rounded",
            "leave `round` out; periods of dates are made by \"taxonomy\": {\"generate\": \
             \"calendar\"}",
        ));
    }
    if column.kind != ColumnKind::Numeric {
        return Err((
            "only the numbers of a numeric column are rounded",
            "leave `round` out, or declare \"kind\": \"numeric\"",
        ));
    }
    if column.taxonomy.is_some() {
        return Err((
            "the column's taxonomy defines what its numbers become",
            "leave `round` or `taxonomy` out",
        ));
    }
    Multiples::of(round).map(Some).ok_or((
        "`round` must be a number above 0 and at most 1e300",
        "give the distance of two ends, such as 5",
    ))
}

impl Schema {
    /// The warnings about the declared columns: quasi-identifiers of numbers and dates whose outermost interval
    /// in a release is their exact range. Pointers are into the dataset's definition.
    pub fn warnings(&self) -> Vec<Warning> {
        let columns = self.columns.iter().enumerate();
        let exact = columns.filter(|(_, column)| {
            column.role == ColumnRole::QuasiIdentifier
                && column.has_grown_intervals()
                && !column.awaits_made_tree()
                && column.domain.is_none()
                && !column.round_range
                && column.round.is_none()
        });
        let warnings = exact.map(|(index, column)| {
            let detail = format!(
                "the outermost interval of `{}` in a release has its exact smallest and \
                     greatest {} as ends; declare {}",
                column.name,
                if column.kind.is_of_dates() {
                    "date"
                } else {
                    "number"
                },
                if column.kind.is_of_dates() {
                    "a `domain`, or set `round_range` to true"
                } else {
                    "a `domain` or `round`, or set `round_range` to true"
                }
            );
            let pointer = format!("/columns/{index}/domain");
            Warning::at(WarningCode::ExactRange, pointer, detail).of_columns([column.name()])
        });
        by_code(warnings)
    }
}
