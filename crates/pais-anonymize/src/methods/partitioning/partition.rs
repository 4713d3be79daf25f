//! Partitions a table into groups.

use crate::error::RunError;
use crate::methods::bounded_values::check_shares;
use crate::observer::Observer;
use pais_core::definition::ColumnKind;
use pais_core::definition::json::escape;
use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::{EncodedTable, QuasiIdentifier, Subjects};

use super::condition::{Condition, DiversityCheck, GroupChecker, RangeCheck};
use super::frequency::Remedy;
use super::loss::Loss;
use super::minimum_cover::GreatestL;
use super::split::{GroupPartition, KdSplit, SplitDimension};
use super::split_progress::SplitProgress;
use super::valid_cuts::SplitGuide;

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
) -> Result<GroupPartition, RunError> {
    let condition = Condition::of_table(model, table);
    let subjects = table.subjects.as_deref().map(Subjects::len);
    RunError::check_k(table.rows as u64, subjects, condition.k as u64)?;
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
        SplitGuide::Class => table.class.as_ref().map(|it| &it.codes),
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
    split.run(order)
}

/// The declared kind of a column.
fn kind(schema: &Schema, column: &QuasiIdentifier) -> ColumnKind {
    let spec = schema.stored_at(column.position);
    spec.map_or_else(ColumnKind::default, |spec| spec.kind())
}

/// Checks the whole table as one group: no group is more diverse than all rows together. The error says which
/// requirement the table would meet.
fn check_whole(condition: &Condition, rows: &[u32]) -> Result<(), RunError> {
    if let Some(check) = condition.ranges.iter().find(|check| !check.accepts(rows))
        && !rows.is_empty()
    {
        return Err(narrower(check));
    }
    let mut checker = GroupChecker::new(condition);
    match &condition.diversity {
        DiversityCheck::MinimumCover(sensitive) if !rows.is_empty() && !checker.accepts(rows) => {
            let found = checker.cover.greatest_l(sensitive, rows);
            if found.l >= sensitive.l {
                return Ok(());
            }
            Err(less_diverse(&found))
        }
        DiversityCheck::Frequency(check) if !rows.is_empty() && !checker.accepts(rows) => {
            let Remedy { parameter, fix } = check.remedy();
            let condition =
                "the sensitive values of the whole table are not as diverse as the model asks for";
            Err(RunError::unmet(
                format!("/privacy/{parameter}"),
                condition,
                fix,
            ))
        }
        DiversityCheck::Confidence(check) => {
            check_shares(&check.exceeding(rows), rows.len() as u64, "")
        }
        DiversityCheck::None | DiversityCheck::MinimumCover(_) | DiversityCheck::Frequency(_) => {
            Ok(())
        }
    }
}

/// The error of a table whose numbers span too little; it does not say by how much, because the ends are cells.
fn narrower(RangeCheck { column, least, .. }: &RangeCheck) -> RunError {
    let pointer = format!("/privacy/min_range/{}", escape(column));
    let condition = format!("the numbers of `{column}` in the whole table span less than {least}");
    RunError::unmet(
        pointer,
        &condition,
        "lower the range, or leave it out".to_owned(),
    )
}

fn less_diverse(found: &GreatestL) -> RunError {
    let greatest = found.l;
    let fix = if greatest == 0 {
        "each row lacks a sensitive value, and a missing one adds no diversity: give a column with \
         many missing cells a `column_limits` of 0, or another role"
            .to_owned()
    } else if found.exact {
        format!(
            "lower `l` to at most {greatest}: that many values delete all rows, and a subset of \
             rows needs no more; or set `column_limits` below the number of values of the columns \
             that have few"
        )
    } else {
        format!(
            "lower `l` to at most {greatest}, the greatest that could be shown to hold, or set \
             `column_limits` below the number of values of the columns that have few"
        )
    };
    let condition = "the sensitive values of the whole table are less diverse than `l` asks for";
    RunError::unmet("/privacy/l", condition, fix)
}
