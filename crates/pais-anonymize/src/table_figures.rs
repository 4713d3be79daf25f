//! The figures of a table that a search found, before it is released.

use crate::step::StepItem;

/// What a table that a search found is worth, and how small its groups are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableFigures {
    /// Specializations performed; `None` for a method without steps.
    pub steps: Option<u32>,
    /// Equivalence classes.
    pub groups: u64,
    /// Records of the smallest group that an adversary of the model can know, or persons where the
    /// dataset has a subject column.
    pub smallest_group: u64,
    /// Discernibility ratio, from 0 to 1.
    pub dr: f64,
    /// Mean NCP, from 0 to 1.
    pub ncp: f64,
    /// Rows suppressed.
    pub suppressed_rows: u64,
}

impl From<&StepItem> for TableFigures {
    fn from(last: &StepItem) -> Self {
        Self {
            steps: Some(last.step),
            groups: last.groups,
            smallest_group: last.smallest_group,
            dr: last.dr,
            ncp: last.ncp,
            suppressed_rows: last.suppressed_rows,
        }
    }
}
