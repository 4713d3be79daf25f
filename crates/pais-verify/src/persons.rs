//! The persons that the rows of a table are about: numbered, listed by class, and counted.

use pais_core::cancellation::Cancellation;
use pais_core::table::ReleasedTable;

use super::classes::{Classes, Values, refine};
use super::lists::Lists;
use super::verification::VerifyError;

/// A released table, and what its groups are counted by: rows, or the persons of its rows.
///
/// The column that names the person is never released, so the persons come from the raw table. A
/// table alone converts to one whose rows are counted:
///
/// ```
/// use pais_core::table::ReleasedTable;
/// use pais_verify::CountedTable;
///
/// let table = ReleasedTable { name: "data".into(), rows: 0, columns: Vec::new() };
/// assert_eq!(CountedTable::from(&table).subjects, None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CountedTable<'a> {
    /// The released table.
    pub table: &'a ReleasedTable,
    /// The person of each row, as any number; rows of one person have the same. `None` if each row
    /// is a person of its own.
    pub subjects: Option<&'a [u32]>,
}

impl<'a> From<&'a ReleasedTable> for CountedTable<'a> {
    fn from(table: &'a ReleasedTable) -> Self {
        Self {
            table,
            subjects: None,
        }
    }
}

/// The persons of a table in which some person has several rows.
pub(super) struct Persons {
    /// The person of each row, numbered without gaps.
    pub(super) of_row: Vec<u32>,
    /// `most_rows[n]` are the most rows that `n` persons can have together.
    most_rows: Vec<u64>,
}

impl Persons {
    /// Numbers the persons of a table. `None` where every row is a person of its own, so that
    /// rows can be counted.
    ///
    /// # Errors
    /// [`VerifyError::UnevenSubjects`].
    pub(super) fn new(counted: CountedTable) -> Result<Option<Self>, VerifyError> {
        let CountedTable { table, subjects } = counted;
        let Some(subjects) = subjects else {
            return Ok(None);
        };
        if subjects.len() != table.rows {
            return Err(VerifyError::UnevenSubjects {
                found: subjects.len(),
                rows: table.rows,
            });
        }
        if table.rows >= u32::MAX as usize {
            return Err(VerifyError::TooManyRows);
        }
        let greatest = subjects.iter().copied().max().unwrap_or(0) as usize;
        let mut of_row = vec![0; table.rows];
        let count = refine(&mut of_row, 1, subjects.iter().copied(), greatest + 1);
        let mut rows = vec![0u64; count];
        for &person in &of_row {
            rows[person as usize] += 1;
        }
        if rows.len() == of_row.len() {
            return Ok(None);
        }
        rows.sort_unstable_by(|one, other| other.cmp(one));
        let mut most_rows = Vec::with_capacity(count + 1);
        let mut sum = 0;
        most_rows.push(sum);
        for rows in rows {
            sum += rows;
            most_rows.push(sum);
        }
        Ok(Some(Self { of_row, most_rows }))
    }

    /// Number of persons.
    pub(super) fn count(&self) -> usize {
        self.most_rows.len() - 1
    }

    /// Minimum number of rows that always belong to at least this many persons: one more than the maximum
    /// number of rows of one person less.
    pub(super) fn sufficient_rows(&self, persons: u64) -> u64 {
        let fewer = usize::try_from(persons.saturating_sub(1)).unwrap_or(usize::MAX);
        let most = self.most_rows.get(fewer);
        most.map_or(u64::MAX, |rows| rows + 1)
    }

    /// Number of distinct persons of some rows.
    pub(super) fn count_of(&self, rows: &[u32]) -> u32 {
        let mut persons: Vec<u32> = rows.iter().map(|&row| self.of_row[row as usize]).collect();
        persons.sort_unstable();
        persons.dedup();
        persons.len() as u32
    }

    /// The number of persons with a row that equals no row of anybody else, by these classes and columns.
    ///
    /// # Errors
    /// [`VerifyError::Stopped`].
    pub(super) fn alone_by(
        &self,
        classes: &Classes,
        columns: &[Values],
        cancellation: &Cancellation,
    ) -> Result<u64, VerifyError> {
        let of_row = classes.of_row.clone();
        let refined = Classes::divided(of_row, classes.sizes.len(), columns, cancellation)?;
        // By class: the person of its first row, and whether it has others.
        let first = refined.row.iter().map(|&row| self.of_row[row as usize]);
        let first: Vec<u32> = first.collect();
        let mut has_others = vec![false; first.len()];
        for (&class, &person) in refined.of_row.iter().zip(&self.of_row) {
            has_others[class as usize] |= first[class as usize] != person;
        }
        let mut is_alone = vec![false; self.count()];
        for (&person, has_others) in first.iter().zip(has_others) {
            is_alone[person as usize] |= !has_others;
        }
        Ok(is_alone.into_iter().filter(|is_alone| *is_alone).count() as u64)
    }

    /// The distinct persons of each class.
    pub(super) fn by_class(&self, classes: &Classes) -> Lists<u32> {
        let mut counter = PersonCounter::new(self.count());
        let mut persons = Lists::default();
        for rows in classes.rows().iter() {
            counter.begin();
            let of_rows = rows.iter().map(|&row| self.of_row[row as usize]);
            persons.push(of_rows.filter(|&person| counter.add(person)));
        }
        persons
    }
}

/// Records of each class, or distinct persons where rows are not persons.
pub(super) fn class_sizes(classes: &Classes, persons: Option<&Persons>) -> Vec<u32> {
    match persons {
        Some(persons) => persons.by_class(classes).lengths().collect(),
        None => classes.sizes.clone(),
    }
}

/// Counts distinct persons. Its memory is 4 bytes for each person of the table; the time of a count is linear
/// in what it reads.
pub(super) struct PersonCounter {
    /// By person, the last count that saw it.
    seen: Vec<u32>,
    current: u32,
}

impl PersonCounter {
    /// For persons numbered below `count`.
    pub(super) fn new(count: usize) -> Self {
        Self {
            seen: vec![0; count],
            current: 0,
        }
    }

    /// Number of distinct persons; stops at `limit`.
    #[inline]
    pub(super) fn count_up_to(&mut self, limit: u64, persons: impl Iterator<Item = u32>) -> u64 {
        self.begin();
        let mut count = 0;
        for person in persons {
            count += u64::from(self.add(person));
            if count >= limit {
                break;
            }
        }
        count
    }

    /// As [`Self::count_up_to`], of several lists.
    #[inline]
    pub(super) fn count_lists<'p>(
        &mut self,
        limit: u64,
        lists: impl Iterator<Item = &'p [u32]>,
    ) -> u64 {
        self.begin();
        let mut count = 0;
        for list in lists {
            for &person in list {
                count += u64::from(self.add(person));
            }
            // Only a few persons of one list are counted unnecessarily.
            if count >= limit {
                break;
            }
        }
        count
    }

    fn begin(&mut self) {
        if self.current == u32::MAX {
            self.seen.fill(0);
            self.current = 0;
        }
        self.current += 1;
    }

    #[inline]
    fn add(&mut self, person: u32) -> bool {
        let seen = &mut self.seen[person as usize];
        std::mem::replace(seen, self.current) != self.current
    }
}
