//! The persons of rows: numbered, listed by class, and counted.

use rustc_hash::FxHashMap;

use super::classes::Classes;
use super::counted_table::CountedTable;
use super::verification::VerifyError;

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
        let (of_row, count) = numbered(subjects);
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

    /// The fewest rows that always belong to at least this many persons: one more than so many
    /// persons less one can have together.
    pub(super) fn sufficient_rows(&self, persons: u64) -> u64 {
        let fewer = usize::try_from(persons.saturating_sub(1)).unwrap_or(usize::MAX);
        let most = self.most_rows.get(fewer);
        most.map_or(u64::MAX, |rows| rows + 1)
    }

    /// Number of distinct persons of some rows.
    pub(super) fn of_rows(&self, rows: &[u32]) -> u32 {
        let mut persons: Vec<u32> = rows.iter().map(|&row| self.of_row[row as usize]).collect();
        persons.sort_unstable();
        persons.dedup();
        persons.len() as u32
    }
}

/// The same persons numbered 0, 1, … in the order of their first rows, and how many there are.
fn numbered(subjects: &[u32]) -> (Vec<u32>, usize) {
    let mut fresh = 0u32;
    let mut next = || {
        fresh += 1;
        fresh - 1
    };
    let greatest = subjects.iter().copied().max().unwrap_or(0) as usize;
    let of_row: Vec<u32> = if greatest <= subjects.len().saturating_mul(4) {
        let mut numbers = vec![u32::MAX; greatest + 1];
        let mut number = |&subject: &u32| {
            let number = &mut numbers[subject as usize];
            if *number == u32::MAX {
                *number = next();
            }
            *number
        };
        subjects.iter().map(&mut number).collect()
    } else {
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        let number = |subject: &u32| *numbers.entry(*subject).or_insert_with(&mut next);
        subjects.iter().map(number).collect()
    };
    (of_row, fresh as usize)
}

/// The distinct persons of each class.
pub(super) struct ClassPersons {
    persons: Vec<u32>,
    /// `persons[starts[i]..starts[i + 1]]` are those of class `i`.
    starts: Vec<u32>,
}

impl ClassPersons {
    /// Takes one pass over the rows by class.
    pub(super) fn new(classes: &Classes, persons: &Persons) -> Self {
        let mut next = Vec::with_capacity(classes.sizes.len());
        let mut start = 0u32;
        for &size in &classes.sizes {
            next.push(start);
            start += size;
        }
        let mut by_class = vec![0u32; persons.of_row.len()];
        for (&class, &person) in classes.of_row.iter().zip(&persons.of_row) {
            let next = &mut next[class as usize];
            by_class[*next as usize] = person;
            *next += 1;
        }
        // Each end is the start of the next class; repeated persons leave gaps, which are closed.
        let mut counter = PersonCounter::new(persons.count());
        let mut starts = Vec::with_capacity(next.len() + 1);
        let (mut from, mut kept) = (0, 0);
        starts.push(0);
        for end in next {
            counter.begin();
            for index in from..end as usize {
                let person = by_class[index];
                if counter.add(person) {
                    by_class[kept] = person;
                    kept += 1;
                }
            }
            from = end as usize;
            starts.push(kept as u32);
        }
        by_class.truncate(kept);
        Self {
            persons: by_class,
            starts,
        }
    }

    /// Number of classes.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The persons of a class.
    #[inline]
    pub(super) fn of(&self, class: u32) -> &[u32] {
        let class = class as usize;
        &self.persons[self.starts[class] as usize..self.starts[class + 1] as usize]
    }

    /// Number of persons of each class.
    pub(super) fn sizes(&self) -> Vec<u32> {
        let ends = self.starts.windows(2);
        ends.map(|ends| ends[1] - ends[0]).collect()
    }

    /// Persons of the class that has fewest; 0 without classes.
    pub(super) fn smallest(&self) -> u64 {
        self.sizes().into_iter().min().map_or(0, u64::from)
    }
}

/// Counts distinct persons. Its memory is 4 bytes for each person of the table; a count costs what
/// it reads.
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
            // Few persons of one list are counted in vain.
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
