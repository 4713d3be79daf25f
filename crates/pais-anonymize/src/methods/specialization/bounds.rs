//! The bounds of a job's privacy model on the rows at hand, and errors that say what would meet
//! them.

use std::collections::HashMap;

use pais_core::definition::SuppressionFor;
use pais_core::definition::json::escape;
use pais_core::model::{Lkc, MissingSensitive};
use pais_core::rejection::Fault;
use pais_core::table::{EncodedTable, NULL_CODE};

use super::requirement::{Requirement, SensitiveBound};
use super::topmost::SpecializationError;
use crate::error::RunError;

/// Where a counted value comes from: its column, and its place in the job where it is listed.
pub(super) struct SensitiveName {
    column: Box<str>,
    place: Option<usize>,
}

/// The requirement, with the source of each counted value by its number.
pub(super) fn resolve<'a>(
    model: &Lkc,
    table: &'a EncodedTable,
) -> (Requirement<'a>, Vec<SensitiveName>) {
    let Lkc {
        l,
        k,
        c,
        sensitive_values,
        missing_sensitive,
    } = model;
    let all = table.quasi_identifiers.len();
    let mut names = Vec::new();
    let mut sensitive = Vec::new();
    // Nothing exceeds a confidence of 1, so nothing need be counted for it.
    let columns = if c.is_unbounded() {
        &[]
    } else {
        table.sensitive.as_slice()
    };
    for column in columns {
        let listed = match sensitive_values {
            None => None,
            Some(values) => match values.get(&*column.name) {
                None => continue,
                Some(listed) => Some(listed),
            },
        };
        let places: Option<HashMap<&str, usize>> = listed.map(|listed| {
            listed
                .iter()
                .enumerate()
                .map(|(place, value)| (value.as_str(), place))
                .collect()
        });
        let number = |value: &str| {
            let place = match &places {
                None => None,
                Some(places) => Some(*places.get(value)?),
            };
            names.push(SensitiveName {
                column: column.name.clone(),
                place,
            });
            Some(names.len() as u32 - 1)
        };
        let mut number = number;
        let numbers: Vec<u32> = column
            .values
            .iter()
            .map(|value| number(value).unwrap_or(NULL_CODE))
            .collect();
        if numbers.iter().all(|&number| number == NULL_CODE) {
            continue;
        }
        let excludes_missing = match missing_sensitive {
            MissingSensitive::Excluded => column.codes.contains(&NULL_CODE),
            MissingSensitive::Counted => false,
        };
        let missing = excludes_missing.then(|| {
            names.push(SensitiveName {
                column: column.name.clone(),
                place: None,
            });
            names.len() as u32 - 1
        });
        sensitive.push(SensitiveBound {
            codes: &column.codes,
            numbers,
            missing,
        });
    }
    let l = l.map_or(all, |l| all.min(l.get() as usize)).max(1);
    let requirement = Requirement::new(l, *k, *c, sensitive);
    (requirement.with_subjects(table.subjects.as_deref()), names)
}

/// The error of a failed search: the condition that cannot be met, and what would meet it.
pub(super) fn run_error(
    error: &SpecializationError,
    names: &[SensitiveName],
    suppression_for: SuppressionFor,
) -> RunError {
    match error {
        SpecializationError::Cancelled => RunError::Cancelled,
        SpecializationError::FewerRowsThanK { rows, .. } => {
            RunError::fewer_rows_than_k(*rows, &error.to_string())
        }
        SpecializationError::FewerSubjectsThanK { subjects, .. } => {
            RunError::fewer_subjects_than_k(*subjects, &error.to_string())
        }
        SpecializationError::MoreFrequentThanC {
            value,
            holding,
            of,
            rows,
        } => {
            let SensitiveName { column, place } = &names[*value];
            let share = *holding as f64 / *of as f64;
            let with_value = if of < rows {
                " that have a value in it"
            } else {
                ""
            };
            // Rounded up, so that the bound named is one that holds.
            let least = (share * 10_000.0).ceil() / 10_000.0;
            let detail = format!(
                "a sensitive value of `{column}` is in {:.2} % of the rows of the whole \
                 table{with_value}, more than the greatest confidence allows, so no generalization can meet it; set the bound \
                 to at least {least}, or take the value out of `sensitive_values`",
                share * 100.0
            );
            let pointer = match place {
                Some(place) => format!("/privacy/sensitive_values/{}/{place}", escape(column)),
                None => "/privacy".to_owned(),
            };
            let suppression = match suppression_for {
                SuppressionFor::Size => {
                    ", or allow to suppress rows with the value by `\"suppression_for\": \
                     \"size_and_confidence\"` and a `suppression_limit`"
                }
                SuppressionFor::SizeAndConfidence => ", or raise `suppression_limit`",
            };
            let fix = format!("set the greatest confidence to at least {least}{suppression}");
            let fault = Fault::at(pointer, detail.clone()).fix(fix);
            RunError::NotAnonymizable {
                detail,
                fault: Box::new(fault),
            }
        }
    }
}
