//! The persons of released rows, which a release does not name: those of the raw rows that the
//! released rows come from.

use std::fmt;

use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::{ReleasedTable, Subjects};

use crate::{CountedTable, PrivacyFinding};

/// A condition that could not be decided: whether each group has rows of at least *K* persons. Each has at
/// least *K* rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undecided {
    /// *K*.
    pub k: u64,
    /// Why.
    pub reason: UndecidedReason,
}

/// Why it is not known which rows of a release are of one person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndecidedReason {
    /// The raw table was not given.
    NoRaw,
    /// Released rows fit raw rows of different persons.
    SeveralPersons,
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
        is_open.then_some(Self {
            k,
            reason: UndecidedReason::NoRaw,
        })
    }
}

impl fmt::Display for Undecided {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Self { k, reason } = self;
        let reason = match reason {
            UndecidedReason::NoRaw => {
                "a release does not say which rows are of one person; that takes the raw table"
            }
            UndecidedReason::SeveralPersons => {
                "released rows fit raw rows of different persons, and only the run that made the \
                 release knows which"
            }
        };
        write!(
            formatter,
            "K = {k} over subjects was not decided: each group has at least {k} rows, but {reason}"
        )
    }
}

/// The persons of released rows.
pub(super) struct ReleasedSubjects {
    rows: usize,
    persons: Persons,
}

enum Persons {
    /// No person has several raw rows.
    OfOneRow,
    /// The person of each row.
    Known(Vec<u32>),
    /// Released rows can be of different persons. Rows of a group that are of at least *K* persons in any case.
    Open { sufficient_rows: u64 },
}

impl ReleasedSubjects {
    /// The persons of the raw rows of released ones. Released rows without a raw row have no known
    /// person; they count as one more person together. The raw rows of each set of `interchangeable` can be in each
    /// other's place.
    pub(super) fn new(
        subjects: Option<&Subjects>,
        source_rows: &[u32],
        interchangeable: &[Vec<u32>],
        k: u64,
    ) -> Self {
        let persons = match subjects {
            None => Persons::OfOneRow,
            Some(subjects) => {
                let person = |&row: &u32| subjects.of_row().get(row as usize).copied();
                let are_of_one = |rows: &Vec<u32>| {
                    rows.windows(2)
                        .all(|pair| person(&pair[0]) == person(&pair[1]))
                };
                // Too few persons are too few in any case.
                if interchangeable.iter().all(are_of_one) || subjects.len() < k {
                    let unknown = subjects.codes() as u32;
                    let rows = source_rows.iter();
                    Persons::Known(rows.map(|row| person(row).unwrap_or(unknown)).collect())
                } else {
                    Persons::Open {
                        sufficient_rows: subjects.sufficient_rows(k),
                    }
                }
            }
        };
        Self {
            rows: source_rows.len(),
            persons,
        }
    }

    /// The released table with its persons, where they are known.
    pub(super) fn counted<'a>(&'a self, table: &'a ReleasedTable) -> CountedTable<'a> {
        CountedTable {
            table,
            subjects: match &self.persons {
                Persons::Known(of_row) => Some(of_row),
                Persons::OfOneRow | Persons::Open { .. } => None,
            },
        }
    }

    /// What remains undecided about what was found in the [`Self::counted`] table.
    pub(super) fn undecided(&self, k: u64, found: &PrivacyFinding) -> Option<Undecided> {
        let Persons::Open { sufficient_rows } = self.persons else {
            return None;
        };
        let is_open = (k..sufficient_rows).contains(&found.smallest_group());
        is_open.then_some(Undecided {
            k,
            reason: UndecidedReason::SeveralPersons,
        })
    }

    /// Number of distinct persons, where they are known.
    pub(super) fn len(&self) -> Option<u64> {
        match &self.persons {
            Persons::OfOneRow => Some(self.rows as u64),
            Persons::Known(of_row) => {
                let mut persons = of_row.clone();
                persons.sort_unstable();
                persons.dedup();
                Some(persons.len() as u64)
            }
            Persons::Open { .. } => None,
        }
    }
}
