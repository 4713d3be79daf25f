//! How the rows of a table are spread over persons and submissions.

use crate::table::Column;

/// The persons of a table in numbers.
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
