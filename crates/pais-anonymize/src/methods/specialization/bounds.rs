//! The bounds of a job's privacy model on the rows at hand, and errors that say what would meet
//! them.

use std::collections::HashMap;

use pais_core::definition::json::escape;
use pais_core::model::Lkc;
use pais_core::rejection::Fault;
use pais_core::table::{EncodedTable, NULL_CODE};

use super::error::SpecializationError;
use super::requirement::{Requirement, SensitiveBound};
use crate::error::RunError;

/// Where a sensitive value comes from: its column, and its place in the job where it is listed.
pub(super) struct SensitiveName {
    column: Box<str>,
    place: Option<usize>,
}

/// The requirement, with the source of each sensitive value by its number.
pub(super) fn resolve<'a>(
    model: &Lkc,
    table: &'a EncodedTable,
) -> (Requirement<'a>, Vec<SensitiveName>) {
    let Lkc {
        l,
        k,
        c,
        sensitive_values,
        ..
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
        let numbers = column
            .values
            .iter()
            .map(|value| number(value).unwrap_or(NULL_CODE))
            .collect();
        sensitive.push(SensitiveBound {
            codes: &column.codes,
            numbers,
        });
    }
    let requirement = Requirement {
        l: l.map_or(all, |l| all.min(l.get() as usize)).max(1),
        k: *k,
        c: *c,
        sensitive,
        sensitive_values: names.len(),
    };
    (requirement, names)
}

/// The error of a failed search: the condition that cannot be met, and what would meet it.
pub(super) fn run_error(error: &SpecializationError, names: &[SensitiveName]) -> RunError {
    match error {
        SpecializationError::Cancelled => RunError::Cancelled,
        SpecializationError::FewerRowsThanK { rows, .. } => {
            RunError::fewer_rows_than_k(*rows, &error.to_string())
        }
        SpecializationError::MoreFrequentThanC {
            value,
            holding,
            rows,
        } => {
            let SensitiveName { column, place } = &names[*value];
            let share = *holding as f64 / *rows as f64;
            // Rounded up, so that the bound named is one that holds.
            let least = (share * 10_000.0).ceil() / 10_000.0;
            let detail = format!(
                "a sensitive value of `{column}` is in {:.2} % of the rows of the whole table, more than \
                 the greatest confidence allows, so no generalization can meet it; set the bound \
                 to at least {least}, or take the value out of `sensitive_values`",
                share * 100.0
            );
            let pointer = match place {
                Some(place) => format!("/privacy/sensitive_values/{}/{place}", escape(column)),
                None => "/privacy".to_owned(),
            };
            let fault = Fault::at(pointer, detail.clone())
                .fix(format!("set the greatest confidence to at least {least}"));
            RunError::NotAnonymizable {
                detail,
                fault: Box::new(fault),
            }
        }
    }
}
