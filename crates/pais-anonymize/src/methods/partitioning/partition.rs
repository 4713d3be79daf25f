//! Partitions a table into groups.

use std::borrow::Cow;

use thiserror::Error;

use crate::error::RunError;
use crate::observer::Observer;
use pais_core::definition::ColumnKind;
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::{EncodedTable, QuasiIdentifier, Subjects};

use super::condition::{Condition, DiversityCheck, GroupChecker};
use super::confidence::ExceedingValue;
use super::frequency::Remedy;
use super::loss::Loss;
use super::minimum_cover::GreatestL;
use super::split::{GroupPartition, KdSplit, SplitDimension, SplitProgress, SplitStopped};
use super::valid_cuts::SplitGuide;

/// Why a table has no groups that meet the model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum PartitionError {
    /// The whole table is smaller than *K*.
    #[error("the table has {rows} rows, fewer than the {k} that `k` asks for")]
    FewerRowsThanK {
        /// Rows of the table.
        rows: u64,
        /// *K*.
        k: u64,
    },
    /// The whole table has fewer persons than *K*.
    #[error("the table has rows of {subjects} persons, fewer than the {k} that `k` asks for")]
    FewerSubjectsThanK {
        /// Persons of the table.
        subjects: u64,
        /// *K*.
        k: u64,
    },
    /// All rows together are not diverse enough, so no group of them is.
    #[error("the sensitive values of the whole table are less diverse than `l` asks for")]
    LessDiverse {
        /// The greatest *L* that the whole table is known to meet.
        greatest: u32,
        /// Whether every greater *L* is known not to be met.
        exact: bool,
        /// *L*.
        l: u32,
    },
    /// The value frequencies of the one sensitive column, over all rows, do not meet the model.
    #[error("the sensitive values of the whole table are not as diverse as the model asks for")]
    Uneven(Remedy),
    /// A value is in more of all rows than *C* allows.
    #[error(
        "a sensitive value of `{}` is in {:.2} % of the rows of the whole table that count for it, \
         more than the greatest confidence allows, so no group of all of them can meet it",
        .0.column, .0.share() * 100.0
    )]
    MoreFrequentThanC(ExceedingValue),
    /// The observer requested a stop.
    #[error("the run was cancelled")]
    Cancelled,
}

/// Splits a table into groups that meet a model.
///
/// # Errors
/// When the whole table as one group does not meet it, or on cancellation.
pub(super) fn partition(
    schema: &Schema,
    table: &EncodedTable,
    model: &PrivacyModel,
    guide: SplitGuide,
    observer: &dyn Observer,
) -> Result<GroupPartition, PartitionError> {
    let condition = Condition::of_table(model, table);
    let (rows, k) = (table.rows as u64, condition.k as u64);
    if rows < k {
        return Err(PartitionError::FewerRowsThanK { rows, k });
    }
    let persons = table.subjects.as_deref().map_or(rows, Subjects::len);
    if persons < k {
        return Err(PartitionError::FewerSubjectsThanK {
            subjects: persons,
            k,
        });
    }
    let order: Vec<u32> = (0..table.rows as u32).collect();
    check_whole(&condition, &order)?;
    let dimensions = table
        .quasi_identifiers
        .iter()
        .map(SplitDimension::new)
        .collect();
    // A split under C finds its cuts by the counts of each code, whatever guides it.
    let losses = match (guide, condition.confidence()) {
        (SplitGuide::Median, None) => Vec::new(),
        (SplitGuide::Median | SplitGuide::Ncp | SplitGuide::Class, _) => table
            .quasi_identifiers
            .iter()
            .map(|column| Loss::new(column, kind(schema, column)))
            .collect(),
    };
    let progress = SplitProgress::new(observer, table.rows);
    let class = match guide {
        SplitGuide::Class => table.class.as_ref().map(|(_, codes)| codes.as_slice()),
        SplitGuide::Median | SplitGuide::Ncp => None,
    };
    let split = KdSplit {
        dimensions,
        losses,
        condition: &condition,
        guide,
        class,
        progress,
    };
    split
        .run(order)
        .map_err(|SplitStopped| PartitionError::Cancelled)
}

/// The declared kind of a column.
fn kind(schema: &Schema, column: &QuasiIdentifier) -> ColumnKind {
    let mut stored = schema.stored();
    stored
        .nth(column.position)
        .map_or_else(ColumnKind::default, |spec| spec.kind())
}

/// Checks the whole table as one group: no group is more diverse than all rows together.
fn check_whole(condition: &Condition, rows: &[u32]) -> Result<(), PartitionError> {
    let mut checker = GroupChecker::new(condition);
    match &condition.diversity {
        DiversityCheck::MinimumCover(sensitive) if !rows.is_empty() && !checker.accepts(rows) => {
            let GreatestL { l: greatest, exact } = checker.greatest_l(sensitive, rows);
            if greatest >= sensitive.l {
                return Ok(());
            }
            Err(PartitionError::LessDiverse {
                greatest,
                exact,
                l: sensitive.l,
            })
        }
        DiversityCheck::Frequency(check) if !rows.is_empty() && !checker.accepts(rows) => {
            Err(PartitionError::Uneven(check.remedy()))
        }
        DiversityCheck::Confidence(check) => match check.exceeding(rows) {
            Some(value) => Err(PartitionError::MoreFrequentThanC(value)),
            None => Ok(()),
        },
        DiversityCheck::None | DiversityCheck::MinimumCover(_) | DiversityCheck::Frequency(_) => {
            Ok(())
        }
    }
}

/// The error of a failed run: the condition that cannot be met, and what would meet it.
pub(super) fn run_error(error: &PartitionError) -> RunError {
    let (pointer, fix): (Cow<str>, String) = match error {
        PartitionError::Cancelled => return RunError::Cancelled,
        PartitionError::FewerSubjectsThanK { subjects, .. } => {
            return RunError::fewer_subjects_than_k(*subjects, &error.to_string());
        }
        PartitionError::FewerRowsThanK { rows, .. } => (
            "/privacy/k".into(),
            format!("lower `k` to at most {rows}, or send more rows"),
        ),
        PartitionError::LessDiverse { greatest: 0, .. } => (
            "/privacy/l".into(),
            "each row lacks a sensitive value, and a missing one adds no diversity: give a column \
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
                "lower `l` to at most {greatest}: that many values delete all rows, and a subset of \
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
        PartitionError::MoreFrequentThanC(value) => {
            // Rounded up, so that the bound named is one that holds.
            let least = (value.share() * 10_000.0).ceil() / 10_000.0;
            (
                value.pointer.as_str().into(),
                format!(
                    "set the greatest confidence to at least {least}, or take the value out of \
                     `sensitive_values`"
                ),
            )
        }
        PartitionError::Uneven(Remedy { parameter, fix }) => {
            (format!("/privacy/{parameter}").into(), fix.clone())
        }
    };
    RunError::unmet(pointer, &error.to_string(), fix)
}
