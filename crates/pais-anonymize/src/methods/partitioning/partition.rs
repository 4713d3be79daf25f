//! From a table to its groups.

use thiserror::Error;

use crate::observer::Observer;
use pais_core::table::EncodedTable;

use super::condition::{Asked, Condition, Judge};
use super::dimension::Dimension;
use super::frequency::Remedy;
use super::loss::Loss;
use super::plan::{GroupPlan, Guide};
use super::split::{Partition, Split, Stopped, Watch};

/// Why a table has no groups that meet the model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PartitionError {
    /// The whole table is smaller than *K*.
    #[error("the table has {rows} rows, fewer than the {k} that `k` asks for")]
    FewerRowsThanK {
        /// Rows of the table.
        rows: u64,
        /// *K*.
        k: u64,
    },
    /// All rows together are not diverse enough, so that no group of them is.
    #[error("the sensitive values of the whole table are less diverse than `l` asks for")]
    LessDiverse {
        /// The greatest *L* that the whole table is known to meet.
        greatest: u32,
        /// Whether a greater one is known not to be met.
        exact: bool,
        /// *L*.
        l: u32,
    },
    /// The values of the one sensitive column are not as frequent as asked, in all rows
    /// together.
    #[error("the sensitive values of the whole table are not as diverse as the model asks for")]
    Uneven(Remedy),
    /// The observer said stop.
    #[error("the run was cancelled")]
    Cancelled,
}

/// Splits a table into groups that meet the plan's model.
///
/// # Errors
/// When not even the whole table meets it, or on cancellation.
pub fn partition(
    table: &EncodedTable,
    plan: &GroupPlan,
    observer: &dyn Observer,
) -> Result<Partition, PartitionError> {
    let (rows, k) = (table.rows as u64, plan.model.k.get());
    if rows < k {
        return Err(PartitionError::FewerRowsThanK { rows, k });
    }
    let condition = Condition::of(&plan.model, &table.sensitive, table.rows);
    let order: Vec<u32> = (0..table.rows as u32).collect();
    check_whole(&condition, &order)?;
    let dimensions = table.quasi_identifiers.iter().map(Dimension::of).collect();
    let losses = match plan.guide {
        Guide::Median => Vec::new(),
        Guide::Ncp => table.quasi_identifiers.iter().map(Loss::of).collect(),
    };
    let watch = Watch::new(observer, table.rows);
    let split = Split::new(dimensions, losses, &condition, watch);
    split
        .run(order)
        .map_err(|Stopped| PartitionError::Cancelled)
}

/// Each group's diversity is at most that of all rows together, so that these must have it.
fn check_whole(condition: &Condition, rows: &[u32]) -> Result<(), PartitionError> {
    let mut judge = Judge::of(condition);
    match &condition.asked {
        Asked::Strikes(cells) if !rows.is_empty() && !judge.accepts(rows) => {
            let (greatest, exact) = judge.greatest(cells, rows);
            if greatest >= cells.l {
                return Ok(());
            }
            Err(PartitionError::LessDiverse {
                greatest,
                exact,
                l: cells.l,
            })
        }
        Asked::Frequency(single) if !rows.is_empty() && !judge.accepts(rows) => {
            Err(PartitionError::Uneven(single.remedy()))
        }
        Asked::Nothing | Asked::Strikes(_) | Asked::Frequency(_) => Ok(()),
    }
}
