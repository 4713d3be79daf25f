//! What every class must have: *k* rows, or rows of *k* persons where a person has several.

use pais_core::table::{EncodedTable, Subjects};

/// *k*, and the persons that it counts.
///
/// The rows of every class are ordered by person, so that the persons of any rows, taken in the
/// order of the class, are counted by comparing neighbours.
#[derive(Clone, Copy)]
pub(super) struct Anonymity<'a> {
    /// *k*.
    pub k: usize,
    subjects: Option<&'a Subjects>,
}

impl<'a> Anonymity<'a> {
    /// Counts the persons of a table; rows where no person has two.
    pub(super) fn new(k: usize, table: &'a EncodedTable) -> Self {
        Self {
            k,
            subjects: table.subjects.as_deref(),
        }
    }

    /// Counts rows.
    #[cfg(test)]
    pub(super) fn of_rows(k: usize) -> Self {
        Self { k, subjects: None }
    }

    /// Number of persons of the table.
    pub(super) fn persons(self, table: &EncodedTable) -> u64 {
        self.subjects.map_or(table.rows as u64, Subjects::len)
    }

    /// Whether persons are counted instead of rows.
    pub(super) fn counts_persons(self) -> bool {
        self.subjects.is_some()
    }

    /// All rows, those of a person next to one another.
    pub(super) fn ordered_rows(self, rows: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..rows as u32).collect();
        if let Some(subjects) = self.subjects {
            order.sort_by_key(|&row| subjects.of_row()[row as usize]);
        }
        order
    }

    /// The person of a row.
    #[inline]
    pub(super) fn person(self, row: u32) -> u32 {
        match self.subjects {
            Some(subjects) => subjects.of_row()[row as usize],
            None => row,
        }
    }

    /// Number of persons of rows of a class, in the order of the class.
    pub(super) fn count(self, rows: impl ExactSizeIterator<Item = u32>) -> usize {
        match self.subjects {
            None => rows.len(),
            Some(_) => {
                let mut last = None;
                let is_new = |row: &u32| last.replace(self.person(*row)) != Some(self.person(*row));
                rows.filter(is_new).count()
            }
        }
    }

    /// Whether rows of a class, in the order of the class, have *k* persons.
    pub(super) fn has_enough(self, rows: impl ExactSizeIterator<Item = u32>) -> bool {
        let enough = match self.subjects {
            None => self.k as u64,
            Some(subjects) => subjects.sufficient_rows(self.k as u64),
        };
        rows.len() as u64 >= enough || (rows.len() >= self.k && self.count(rows) >= self.k)
    }
}
