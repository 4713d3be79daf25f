//! The bounds of a job's privacy model on the rows at hand, and errors that say what would meet
//! them.

use pais_core::definition::SuppressionFor;
use pais_core::definition::json::escape;
use pais_core::model::{Lkc, MissingSensitive};
use pais_core::table::{EncodedTable, NULL_CODE};

use super::requirement::{Requirement, SensitiveBound, ValueSource};
use super::topmost::ExceedingValue;
use crate::error::RunError;
use crate::methods::bounded_values::{ExceedingShare, bounded_values};

/// The requirement of a model on a table.
pub(super) fn resolve<'a>(model: &Lkc, table: &'a EncodedTable) -> Requirement<'a> {
    let mut sources = Vec::new();
    let mut sensitive = Vec::new();
    for (column, values) in bounded_values(model, table) {
        let mut number = |place: Option<usize>| {
            sources.push(ValueSource {
                column: column.name.clone(),
                place,
            });
            sources.len() as u32 - 1
        };
        let numbers = values.iter();
        let numbers = numbers.map(|value| value.map_or(NULL_CODE, |value| number(value.place)));
        let numbers = numbers.collect();
        let excludes_missing = model.missing_sensitive == MissingSensitive::Excluded
            && column.codes.contains(&NULL_CODE);
        sensitive.push(SensitiveBound {
            codes: &column.codes,
            numbers,
            missing: excludes_missing.then(|| number(None)),
        });
    }
    let all = table.quasi_identifiers.len();
    let l = model.l.map_or(all, |l| all.min(l.get() as usize)).max(1);
    let mut requirement = Requirement::new(l, model.k, model.c, sensitive);
    requirement.sources = sources;
    requirement.with_subjects(table.subjects.as_deref())
}

/// The error of a value that is more frequent among all `rows` than *C*, with what would meet it.
pub(super) fn more_frequent_than_c(
    requirement: &Requirement<'_>,
    exceeding: ExceedingValue,
    rows: u64,
    suppression_for: SuppressionFor,
) -> RunError {
    let ExceedingValue { value, holding, of } = exceeding;
    let ValueSource { column, place } = &requirement.sources[value];
    let pointer = match place {
        Some(place) => format!("/privacy/sensitive_values/{}/{place}", escape(column)),
        None => "/privacy".to_owned(),
    };
    let remedies = match suppression_for {
        SuppressionFor::Size => {
            ", or allow to suppress rows with the value by `\"suppression_for\": \
             \"size_and_confidence\"` and a `suppression_limit`"
        }
        SuppressionFor::SizeAndConfidence => ", or raise `suppression_limit`",
    };
    let share = ExceedingShare {
        column,
        holding,
        of,
        rows,
    };
    share.error(pointer, remedies)
}
