//! The searches as they were before [`pais_verify`] had one for all combinations, without bitmaps:
//! one for the groups of profiles, one for those of persons, and one each for facts, sets of items,
//! the qids of adversaries and the columns of overlapping labels.
#![allow(dead_code)]

pub(crate) mod adversaries;
mod classes;
mod counter;
mod extremes;
pub(crate) mod facts;
pub(crate) mod itemsets;
pub(crate) mod lkc;
pub(crate) mod overlap;
mod person_search;
mod persons;
mod profiles;
mod qid_search;
mod sensitive;
mod violations;

use pais_verify::{LkcRequirement, VerifyError};

mod counted_table {
    pub(super) use pais_verify::CountedTable;
}

mod requirement {
    pub(super) use pais_verify::{LkcRequirement, SensitiveRequirement, SensitiveSet};
}

mod verification {
    pub(super) use pais_verify::{
        ColumnValue, VIOLATION_CAP, Verification, VerifyError, WORST_GROUPS, WorstGroup,
    };
}

/// Cells of set-valued columns.
mod sets {
    use std::borrow::Cow;

    use pais_core::table::{Form, ReleasedColumn};

    pub(super) fn items(cell: &str, separator: char) -> impl Iterator<Item = &str> {
        cell.split(separator).filter(move |_| !cell.is_empty())
    }

    /// A key that is equal for equal cells of a column, whatever the order of their items.
    pub(super) fn key<'t>(column: &ReleasedColumn, cell: &'t str) -> Cow<'t, str> {
        let Form::Set { separator } = column.form else {
            return cell.into();
        };
        let mut found: Vec<&str> = items(cell, separator).collect();
        found.sort_unstable();
        found.dedup();
        found.join(separator.encode_utf8(&mut [0; 4])).into()
    }
}
