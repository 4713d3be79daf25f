//! The persons that the rows of a table are about.

use crate::table::{Column, NULL_CODE};

/// The person of each row, if some person has several rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subjects {
    of_row: Vec<u32>,
    count: usize,
    /// Rows of the persons with the most rows, summed: `most_rows[n]` is the maximum number of rows of `n`
    /// persons.
    most_rows: Vec<u64>,
}

impl Subjects {
    /// The persons named by a column. A null cell is a person of its own. `None` if no person has
    /// two rows: rows can then be counted instead of persons.
    pub fn new(column: Column) -> Option<Self> {
        let mut count = column.dictionary.len();
        let mut of_row = column.codes;
        for code in &mut of_row {
            if *code == NULL_CODE {
                *code = count as u32;
                count += 1;
            }
        }
        Self::from_codes(of_row, count)
    }

    /// As [`Self::new`], from codes below `count`.
    pub fn from_codes(of_row: Vec<u32>, count: usize) -> Option<Self> {
        let mut rows = vec![0u64; count];
        for &subject in &of_row {
            rows[subject as usize] += 1;
        }
        rows.retain(|&rows| rows > 0);
        if rows.len() == of_row.len() {
            return None;
        }
        rows.sort_unstable_by(|one, other| other.cmp(one));
        let found = rows.len();
        let mut most_rows = Vec::with_capacity(found + 1);
        most_rows.push(0);
        let mut sum = 0;
        for rows in rows {
            sum += rows;
            most_rows.push(sum);
        }
        Some(Self {
            of_row,
            count,
            most_rows,
        })
    }

    /// The person of each row, a number below [`Self::codes`].
    pub fn of_row(&self) -> &[u32] {
        &self.of_row
    }

    /// Exclusive upper bound of the numbers of persons; a number may have no row.
    pub fn codes(&self) -> usize {
        self.count
    }

    /// Number of persons.
    pub fn len(&self) -> u64 {
        self.most_rows.len() as u64 - 1
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.of_row.is_empty()
    }

    /// Number of rows that always belong to at least `k` persons: one more than the `k` - 1
    /// persons with the most rows have together.
    pub fn sufficient_rows(&self, k: u64) -> u64 {
        let fewer = usize::try_from(k.saturating_sub(1)).unwrap_or(usize::MAX);
        match self.most_rows.get(fewer) {
            Some(&rows) => rows + 1,
            None => u64::MAX,
        }
    }

    /// The persons of some of the rows, in their order.
    pub fn select(&self, rows: &[u32]) -> Vec<u32> {
        rows.iter().map(|&row| self.of_row[row as usize]).collect()
    }
}

/// Counts the persons of groups. Memory is 4 bytes for each person of the table; the time of a count is linear
/// in its rows, whatever the table's size.
#[derive(Clone, Debug)]
pub struct SubjectCounter {
    /// By person, the last count that saw it.
    seen: Vec<u32>,
    current: u32,
}

impl SubjectCounter {
    /// For persons with numbers below `codes`.
    pub fn new(codes: usize) -> Self {
        Self {
            seen: vec![0; codes],
            current: 0,
        }
    }

    /// Number of distinct persons, counted up to `limit`.
    #[inline]
    pub fn count_up_to(&mut self, limit: u64, subjects: impl IntoIterator<Item = u32>) -> u64 {
        self.begin();
        let mut count = 0;
        for subject in subjects {
            if count >= limit {
                break;
            }
            count += u64::from(self.add(subject));
        }
        count
    }

    /// As [`Self::count_up_to`], of several lists. The last one is counted as a whole.
    #[inline]
    pub fn count_lists<'p>(
        &mut self,
        limit: u64,
        lists: impl IntoIterator<Item = &'p [u32]>,
    ) -> u64 {
        self.begin();
        let mut count = 0;
        for list in lists {
            for &subject in list {
                count += u64::from(self.add(subject));
            }
            if count >= limit {
                break;
            }
        }
        count
    }

    /// Begins a new count.
    pub fn begin(&mut self) {
        if self.current == u32::MAX {
            self.seen.fill(0);
            self.current = 0;
        }
        self.current += 1;
    }

    /// Whether the current count sees this person for the first time.
    #[inline]
    pub fn add(&mut self, subject: u32) -> bool {
        std::mem::replace(&mut self.seen[subject as usize], self.current) != self.current
    }
}

/// Counts about the persons of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubjectCounts {
    /// Number of persons.
    pub subjects: u64,
    /// Rows of the person with the most rows.
    pub rows_per_subject_max: u64,
    /// Number of persons with rows in more than one submission.
    pub shared_subjects: u64,
}

impl SubjectCounts {
    /// Counts the persons that a column names. `submissions` are the numbers of rows of the
    /// submissions that the table consists of, in the order of the rows.
    ///
    /// One pass over the codes, and 13 bytes for each person.
    pub fn new(column: &Column, submissions: impl IntoIterator<Item = u64>) -> Self {
        let persons = column.dictionary.len();
        let mut rows = vec![0u64; persons];
        let mut first_submission = vec![0u32; persons];
        let mut is_shared = vec![false; persons];
        let mut codes = column.codes.iter();
        for (submission, length) in (0u32..).zip(submissions) {
            for &code in codes
                .by_ref()
                .take(usize::try_from(length).unwrap_or(usize::MAX))
            {
                // A row without a person is refused when it is read.
                let person = code as usize;
                let Some(rows) = rows.get_mut(person) else {
                    continue;
                };
                if *rows == 0 {
                    first_submission[person] = submission;
                }
                is_shared[person] |= first_submission[person] != submission;
                *rows += 1;
            }
        }
        Self {
            subjects: rows.iter().filter(|rows| **rows > 0).count() as u64,
            rows_per_subject_max: rows.iter().copied().max().unwrap_or(0),
            shared_subjects: is_shared.into_iter().filter(|shared| *shared).count() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::{SubjectCounter, Subjects};

    #[test]
    fn rows_are_counted_where_no_person_has_two() {
        assert_eq!(Subjects::from_codes(vec![2, 0, 1], 3), None);
        assert_eq!(Subjects::from_codes(Vec::new(), 0), None);
    }

    proptest! {
        #[test]
        fn bounds_enclose_the_exact_count(
            subjects in prop::collection::vec(0..9u32, 1..40),
            chosen in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
            k in 1..9u64,
        ) {
            let Some(of) = Subjects::from_codes(subjects.clone(), 9) else {
                return Ok(());
            };
            let rows: HashSet<u32> =
                chosen.iter().map(|index| index.index(subjects.len()) as u32).collect();
            let rows: Vec<u32> = rows.into_iter().collect();
            let found: HashSet<u32> = of.select(&rows).into_iter().collect();
            let found = found.len() as u64;
            if rows.len() as u64 >= of.sufficient_rows(k) {
                prop_assert!(found >= k);
            }
            let mut counter = SubjectCounter::new(of.codes());
            prop_assert_eq!(counter.count_up_to(u64::MAX, of.select(&rows)), found);
            prop_assert_eq!(counter.count_up_to(k, of.select(&rows)), found.min(k));
            let selected = of.select(&rows);
            prop_assert_eq!(counter.count_lists(u64::MAX, selected.chunks(3)), found);
            prop_assert_eq!(counter.count_lists(k, selected.chunks(3)).min(k), found.min(k));
            let all: HashSet<u32> = subjects.into_iter().collect();
            prop_assert_eq!(of.len(), all.len() as u64);
        }
    }
}

#[cfg(test)]
mod more_tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::SubjectCounts;
    use crate::table::Column;

    proptest! {
        #[test]
        fn persons_are_counted_in_and_across_submissions(
            submissions in prop::collection::vec(prop::collection::vec(0..9u32, 0..20), 0..5),
        ) {
            let column = Column {
                dictionary: (0..9).map(|person| person.to_string().into()).collect(),
                codes: submissions.concat(),
            };
            let mut rows: BTreeMap<u32, u64> = BTreeMap::new();
            let mut found: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
            for (index, persons) in submissions.iter().enumerate() {
                for person in persons {
                    *rows.entry(*person).or_default() += 1;
                    found.entry(*person).or_default().insert(index);
                }
            }
            let expected = SubjectCounts {
                subjects: rows.len() as u64,
                rows_per_subject_max: rows.values().copied().max().unwrap_or(0),
                shared_subjects: found.values().filter(|them| them.len() > 1).count() as u64,
            };
            let lengths = submissions.iter().map(|persons| persons.len() as u64);
            prop_assert_eq!(SubjectCounts::new(&column, lengths), expected);
        }
    }
}
