//! The sensitive values that *C* of LKC-privacy bounds.

use std::borrow::Cow;
use std::collections::HashMap;

use pais_core::definition::json::escape;
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

/// How much greater than the share in the whole table a bound should be: groups cannot all have that share.
pub(crate) const ROOM: f64 = 1.2;

/// A bounded value that is more frequent in the whole table than *C*.
pub(super) struct ExceedingShare {
    /// Its column.
    pub(super) column: Box<str>,
    /// Pointer to it in the job.
    pub(super) pointer: String,
    /// Whether the job lists it, or bounds all values.
    pub(super) is_listed: bool,
    /// Rows that have it.
    pub(super) holding: u64,
    /// Rows that its share is measured on.
    pub(super) of: u64,
}

impl ExceedingShare {
    /// Of a value, with its place in the job where it is listed.
    pub(super) fn new(column: &str, place: Option<usize>, holding: u64, of: u64) -> Self {
        let pointer = place.map_or_else(
            || "/privacy".to_owned(),
            |place| format!("/privacy/sensitive_values/{}/{place}", escape(column)),
        );
        Self {
            column: column.into(),
            pointer,
            is_listed: place.is_some(),
            holding,
            of,
        }
    }

    fn share(&self) -> f64 {
        self.holding as f64 / self.of as f64
    }

    /// Whether every row that has a value has it.
    fn is_whole(&self) -> bool {
        self.holding == self.of
    }

    /// `bound` is the greatest share of all values that exceed *C*.
    fn fault(&self, detail: String, bound: f64, remedies: &str) -> Fault {
        let fix = if self.is_whole() {
            "every row that has a value has it, so no bound below 1 and no suppression can hide it: give the column the role \
             `insensitive`, or do not list the value"
                .to_owned()
        } else {
            let least = least(bound);
            // Leaves groups room to differ; in hundredths.
            let (roomy, room) = match (bound * ROOM * 100.0).ceil() / 100.0 {
                roomy if roomy < 1.0 => (roomy, "leaves room for detail"),
                _ => (1.0, "bounds nothing"),
            };
            format!(
                "set the greatest confidence to at least {least}, with which quasi-identifiers stay at or near \
                 their topmost values, or to {roomy}, which {room}{remedies}"
            )
        };
        Fault::at(self.pointer.clone(), detail).fix(fix)
    }
}

/// The smallest bound that a share meets, rounded up to ten-thousandths, so that the bound holds. The tolerance is for
/// the rounding of floating point, which puts products such as 0.34 · 10,000 above the whole number.
fn least(share: f64) -> f64 {
    (share * 10_000.0 - 1e-7).ceil() / 10_000.0
}

/// Maximum number of columns that a message names, in addition to the first.
const MOST_NAMED: usize = 20;

/// Checks that a table of `rows` rows has no value that is more frequent than *C*. `found` has the most
/// frequent such value of each column, beginning with the column to be named first; `remedies` are alternatives
/// to a greater bound.
///
/// # Errors
/// That no generalization makes the table meet *C*, with a fault for each column.
pub(super) fn check_shares(
    found: &[ExceedingShare],
    rows: u64,
    remedies: &str,
) -> Result<(), RunError> {
    let Some((first, others)) = found.split_first() else {
        return Ok(());
    };
    let with_value = if first.of < rows {
        " that have a value in it"
    } else {
        ""
    };
    let greatest = found.iter().map(ExceedingShare::share).fold(0.0, f64::max);
    let partial = found.iter().filter(|it| !it.is_whole());
    let bound = partial.map(ExceedingShare::share).fold(0.0, f64::max);
    let mut detail = format!(
        "a sensitive value of `{}` is in {:.2} % of the rows of the whole table{with_value}, \
         more than the greatest confidence allows, so no generalization can meet it",
        first.column,
        first.share() * 100.0,
    );
    if !others.is_empty() {
        let named = others.iter().take(MOST_NAMED);
        let named = named.map(|it| format!("`{}` ({:.2} %)", it.column, it.share() * 100.0));
        let named: Vec<String> = named.collect();
        detail += &format!("; the same holds for {}", named.join(", "));
        if others.len() > MOST_NAMED {
            detail += &format!(" and {} more columns", others.len() - MOST_NAMED);
        }
    }
    let other_values = if found.iter().all(|it| it.is_listed) {
        "take the value out of `sensitive_values`"
    } else {
        "list only the values to be bounded in `sensitive_values`"
    };
    // A bound of 1 is none.
    let greater = if greatest < 1.0 {
        format!("set the bound to at least {}, or ", least(greatest))
    } else {
        String::new()
    };
    detail += &format!("; {greater}{other_values}");
    let of_others = others.iter().map(|it| {
        let detail = format!(
            "a sensitive value of `{}` is in {:.2} % of the rows, more than the greatest confidence \
             allows",
            it.column,
            it.share() * 100.0
        );
        it.fault(detail, bound, remedies)
    });
    let of_first = first.fault(detail.clone(), bound, remedies);
    Err(RunError::NotAnonymizable {
        faults: std::iter::once(of_first).chain(of_others).collect(),
        detail,
    })
}

/// The value with the greatest share of each column among some exceeding values, in descending order. The
/// values of a column are consecutive.
pub(super) fn greatest_of_columns(
    values: impl Iterator<Item = ExceedingShare>,
) -> Vec<ExceedingShare> {
    let mut greatest: Vec<ExceedingShare> = Vec::new();
    for value in values {
        match greatest.last_mut() {
            Some(last) if last.column == value.column => {
                if value.share() > last.share() {
                    *last = value;
                }
            }
            _ => greatest.push(value),
        }
    }
    greatest.sort_by(|one, other| other.share().total_cmp(&one.share()));
    greatest
}

#[cfg(test)]
mod tests {
    use pais_core::model::Confidence;

    use super::{ExceedingShare, check_shares};

    /// 34 of 100 are 0.34, which is no binary number.
    #[test]
    fn the_bound_that_a_message_gives_is_the_share_where_that_has_few_decimals() {
        for percent in 1..100 {
            let bound = percent as f64 / 100.0;
            assert_eq!(super::least(percent as f64 / 100.0), bound);
            assert_eq!(super::least(2.0 * percent as f64 / 200.0), bound);
        }
        assert_eq!(super::least(1.0 / 3.0), 0.3334);
        assert_eq!(super::least(340_001.0 / 1_000_000.0), 0.3401);
    }

    /// No decimal is a third, so a bound of many decimals refuses it, and the message has one that permits it.
    #[test]
    fn the_bound_that_a_message_gives_permits_the_share() {
        let exceeds = |bound: f64| Confidence::new(bound).unwrap().is_exceeded_by(3, 9);
        assert!(exceeds(0.333_333_333_333_333_3) && !exceeds(0.3334));
        let share = ExceedingShare::new("ill", None, 3, 9);
        let error = check_shares(&[share], 9, "").unwrap_err().to_string();
        assert!(error.contains("at least 0.3334,"), "{error}");
    }
}
