//! The sensitive values that *C* of LKC-privacy bounds.

use std::borrow::Cow;
use std::collections::HashMap;

use pais_core::look_alike::visible_text;
use pais_core::model::Lkc;
use pais_core::rejection::Fault;
use pais_core::table::{EncodedTable, SensitiveColumn};

use crate::error::RunError;

/// A value that *C* bounds.
#[derive(Clone, Copy)]
pub(super) struct BoundedValue {
    /// Its place in the job where it is listed.
    pub(super) place: Option<usize>,
}

/// The sensitive columns with a bounded value, each with its bounded values by code.
pub(super) fn bounded_values<'a>(
    model: &Lkc,
    table: &'a EncodedTable,
) -> impl Iterator<Item = (&'a SensitiveColumn, Vec<Option<BoundedValue>>)> {
    // Nothing exceeds a confidence of 1.
    let columns = table.sensitive.iter().filter(|_| !model.c.is_unbounded());
    let columns = columns.filter_map(|column| {
        let Some(listed) = &model.sensitive_values else {
            let bounded = Some(BoundedValue { place: None });
            return Some((column, vec![bounded; column.values.len()]));
        };
        let listed = listed.get(&*column.name)?.iter().enumerate();
        let places: HashMap<Cow<'_, str>, usize> = listed
            .map(|(place, it)| (visible_text(it), place))
            .collect();
        let values = column.values.iter().map(|value| {
            let place = places.get(&visible_text(value)).copied();
            place.map(|_| BoundedValue { place })
        });
        Some((column, values.collect()))
    });
    columns.filter(|(_, values): &(_, Vec<_>)| values.iter().any(Option::is_some))
}

/// A bounded value that is more frequent in the whole table than *C*.
pub(super) struct ExceedingShare<'a> {
    /// Its column.
    pub(super) column: &'a str,
    /// Rows that have it.
    pub(super) holding: u64,
    /// Rows that its share is measured on.
    pub(super) of: u64,
    /// Rows of the table.
    pub(super) rows: u64,
}

impl ExceedingShare<'_> {
    /// The error of a table that no generalization makes meet *C*. `remedies` are others than a
    /// greater bound.
    pub(super) fn error(&self, pointer: String, remedies: &str) -> RunError {
        let share = self.holding as f64 / self.of as f64;
        let with_value = if self.of < self.rows {
            " that have a value in it"
        } else {
            ""
        };
        // Rounded up, so that the bound named is one that holds.
        let least = (share * 10_000.0).ceil() / 10_000.0;
        let detail = format!(
            "a sensitive value of `{}` is in {:.2} % of the rows of the whole table{with_value}, \
             more than the greatest confidence allows, so no generalization can meet it; set the \
             bound to at least {least}, or take the value out of `sensitive_values`",
            self.column,
            share * 100.0
        );
        let fix = format!("set the greatest confidence to at least {least}{remedies}");
        RunError::NotAnonymizable {
            fault: Box::new(Fault::at(pointer, detail.clone()).fix(fix)),
            detail,
        }
    }
}
