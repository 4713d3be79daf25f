//! The persons of released rows, which a release does not name: those of the raw rows that the
//! released rows come from.

use std::fmt;

use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::{ReleasedTable, Subjects};

use crate::{CountedTable, PrivacyFinding};

/// A condition that could not be decided, because the raw table was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// Whether each group has rows of at least K persons. Each has at least K rows.
    SizeInSubjects {
        /// *K*.
        k: u64,
    },
}

impl Undecided {
    /// What remains undecided about a release of a dataset with a subject column whose rows were counted.
    pub(super) fn without_raw(
        schema: &Schema,
        model: &PrivacyModel,
        found: &PrivacyFinding,
    ) -> Option<Self> {
        schema.subject()?;
        let k = model.k().get();
        // A group of fewer rows has fewer persons too, and an empty table has no group. One row
        // is of one person.
        let is_open = k > 1 && found.smallest_group() >= k;
        is_open.then_some(Self::SizeInSubjects { k })
    }
}

impl fmt::Display for Undecided {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Self::SizeInSubjects { k } = self;
        write!(
            formatter,
            "K = {k} over subjects was not decided: each group has at least {k} rows, but a \
             release does not say which rows are of one person; that takes the raw table"
        )
    }
}

/// The persons of released rows.
pub(super) struct ReleasedSubjects {
    /// The person of each row; `None` if no person has several raw rows.
    of_row: Option<Vec<u32>>,
    rows: usize,
}

impl ReleasedSubjects {
    /// The persons of the raw rows of released ones. Released rows without a raw row have no known
    /// person; they count as one more person together.
    pub(super) fn new(subjects: Option<&Subjects>, source_rows: &[u32]) -> Self {
        let of_row = subjects.map(|subjects| {
            let unknown = subjects.codes() as u32;
            let person = |&row: &u32| subjects.of_row().get(row as usize).copied();
            let rows = source_rows.iter();
            rows.map(|row| person(row).unwrap_or(unknown)).collect()
        });
        Self {
            of_row,
            rows: source_rows.len(),
        }
    }

    /// The released table with its persons.
    pub(super) fn counted<'a>(&'a self, table: &'a ReleasedTable) -> CountedTable<'a> {
        CountedTable {
            table,
            subjects: self.of_row.as_deref(),
        }
    }

    /// Number of distinct persons.
    pub(super) fn len(&self) -> u64 {
        let Some(of_row) = &self.of_row else {
            return self.rows as u64;
        };
        let mut persons = of_row.clone();
        persons.sort_unstable();
        persons.dedup();
        persons.len() as u64
    }
}
