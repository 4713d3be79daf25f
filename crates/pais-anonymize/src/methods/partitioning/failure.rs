//! What to say when a table has no groups that meet the model.

use std::borrow::Cow;

use crate::problem::{Code, Problem};
use pais_core::rejection::Fault;

use super::frequency::Remedy;
use super::partition::PartitionError;

/// The problem of a failed run: the condition that cannot be met, and what would meet it.
pub fn problem(error: &PartitionError) -> Problem {
    let (pointer, fix): (Cow<str>, String) = match error {
        PartitionError::Cancelled => return Problem::new(Code::Cancelled, "the job was cancelled"),
        PartitionError::FewerRowsThanK { rows, .. } => (
            "/privacy/k".into(),
            format!("lower `k` to at most {rows}, or send more rows"),
        ),
        PartitionError::LessDiverse { greatest: 0, .. } => (
            "/privacy/l".into(),
            "each row lacks a sensitive value, and a missing one protects nobody: give a column \
             with many missing cells a `column_limits` of 0, or another role"
                .to_owned(),
        ),
        PartitionError::LessDiverse {
            greatest,
            exact: true,
            ..
        } => (
            "/privacy/l".into(),
            format!(
                "lower `l` to at most {greatest}: so many values delete all rows, and a subset of \
                 rows needs no more; or set `column_limits` below the number of values of the \
                 columns that have few"
            ),
        ),
        PartitionError::LessDiverse { greatest, .. } => (
            "/privacy/l".into(),
            format!(
                "lower `l` to at most {greatest}, the greatest that could be shown to hold, or set \
                 `column_limits` below the number of values of the columns that have few"
            ),
        ),
        PartitionError::Uneven(Remedy { parameter, fix }) => {
            (format!("/privacy/{parameter}").into(), fix.clone())
        }
    };
    let fault = Fault::at(pointer, error.to_string()).fix(fix.clone());
    Problem::with(
        Code::NotAnonymizable,
        format!("{error}; {fix}"),
        vec![fault],
    )
}
