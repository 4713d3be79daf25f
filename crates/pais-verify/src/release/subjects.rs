//! The persons of released rows, which a release does not name: those of the raw rows that the
//! released rows come from.

use std::fmt;

use pais_core::model::PrivacyModel;
use pais_core::schema::Schema;
use pais_core::table::{Persons, ReleasedTable, Subjects};

use super::FoundSubjects;
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
                "released rows fit raw rows of different persons, and for those that were assigned it \
                 does not hold; only the run that made the release knows which they are"
            }
        };
        write!(
            formatter,
            "K = {k} over subjects was not decided: each group has at least {k} rows, but {reason}"
        )
    }
}

/// What was found in a table by the persons of its rows.
pub(super) struct SubjectsFinding {
    pub(super) privacy: PrivacyFinding,
    /// `None` where rows were counted.
    pub(super) subjects: Option<FoundSubjects>,
    pub(super) undecided: Option<Undecided>,
}

/// The persons of released rows.
pub(super) struct ReleasedSubjects {
    rows: usize,
    /// The person of each row; `None` if no person has several raw rows.
    of_row: Option<Vec<u32>>,
    /// Exclusive upper bound of the persons.
    codes: usize,
    /// If released rows can be of other persons: rows of a group that are of at least *K* persons in any case.
    sufficient_rows: Option<u64>,
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
        let rows = source_rows.len();
        let Some(subjects) = subjects else {
            return Self {
                rows,
                of_row: None,
                codes: rows,
                sufficient_rows: None,
            };
        };
        let person = |&row: &u32| subjects.of_row().get(row as usize).copied();
        let are_of_one = |rows: &Vec<u32>| {
            rows.windows(2)
                .all(|pair| person(&pair[0]) == person(&pair[1]))
        };
        // Too few persons are too few in any case.
        let is_known = interchangeable.iter().all(are_of_one) || subjects.len() < k;
        let unknown = subjects.codes() as u32;
        let of_row = source_rows.iter();
        Self {
            rows,
            of_row: Some(of_row.map(|row| person(row).unwrap_or(unknown)).collect()),
            codes: subjects.codes() + 1,
            sufficient_rows: (!is_known).then(|| subjects.sufficient_rows(k)),
        }
    }

    /// The persons, as those of a table.
    pub(super) fn persons(&self) -> Persons<'_> {
        match &self.of_row {
            Some(of_row) => Persons::Named(of_row, self.codes),
            None => Persons::Rows(self.rows),
        }
    }

    /// Decides a table by the persons of its rows. Where they are those of one possible assignment, and the model does
    /// not hold for them, its rows decide as far as they can.
    ///
    /// # Errors
    /// Those of `decide`.
    pub(super) fn decide<E>(
        &self,
        table: &ReleasedTable,
        k: u64,
        decide: impl Fn(CountedTable) -> Result<PrivacyFinding, E>,
    ) -> Result<SubjectsFinding, E> {
        let subjects = self.of_row.as_deref();
        let by_persons = decide(CountedTable { table, subjects })?;
        let Some(sufficient) = self.sufficient_rows.filter(|_| !by_persons.holds()) else {
            return Ok(SubjectsFinding {
                privacy: by_persons,
                subjects: Some(FoundSubjects {
                    count: self.len(),
                    are_known: self.sufficient_rows.is_none(),
                }),
                undecided: None,
            });
        };
        let by_rows = decide(table.into())?;
        let is_open = (k..sufficient).contains(&by_rows.smallest_group());
        Ok(SubjectsFinding {
            privacy: by_rows,
            subjects: None,
            undecided: is_open.then_some(Undecided {
                k,
                reason: UndecidedReason::SeveralPersons,
            }),
        })
    }

    /// Number of distinct persons.
    fn len(&self) -> u64 {
        let Some(of_row) = &self.of_row else {
            return self.rows as u64;
        };
        let mut persons = of_row.clone();
        persons.sort_unstable();
        persons.dedup();
        persons.len() as u64
    }
}
