//! The rounding of a column's interval ends.

use crate::definition::{ColumnDefinition, ColumnKind};
use crate::taxonomy::Multiples;

/// The numbers that ends of the column's intervals are; `None` where none are declared.
///
/// # Errors
/// Why the column cannot be rounded, and what to do.
pub(super) fn resolve(
    column: &ColumnDefinition,
) -> Result<Option<Multiples>, (&'static str, &'static str)> {
    let Some(round) = column.round else {
        return Ok(None);
    };
    if column.kind.is_of_dates() {
        return Err((
            "only intervals of numbers are rounded",
            "leave `round` out; periods of dates are made by \"taxonomy\": {\"generate\": \
             \"calendar\"}",
        ));
    }
    if column.kind != ColumnKind::Numeric {
        return Err((
            "only a numeric column has intervals that are rounded",
            "leave `round` out, or declare \"kind\": \"numeric\"",
        ));
    }
    if column.taxonomy.is_some() {
        return Err((
            "the column's taxonomy defines the ends of its intervals",
            "leave `round` or `taxonomy` out",
        ));
    }
    Multiples::of(round).map(Some).ok_or((
        "`round` must be a number above 0 and at most 1e300",
        "give the distance of two ends, such as 5",
    ))
}
