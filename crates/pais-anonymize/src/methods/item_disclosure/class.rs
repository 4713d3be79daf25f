//! Equivalence classes: rows with equal values in all quasi-identifiers at the current step.

use pais_core::table::{EncodedTable, Subjects};

use super::vocabulary::Vocabulary;

/// A set-valued column in one class.
#[derive(Clone, Debug, Default)]
pub(super) struct ClassSet {
    /// Items that every row of the class discloses, in order of disclosure.
    pub disclosed: Vec<u32>,
    /// Start of each row's hidden items in `items`; one entry more than there are rows.
    pub starts: Vec<u32>,
    /// *Cand(c)*: hidden items that may still be disclosed, row by row, ascending in each row.
    pub items: Vec<u32>,
    /// Whether nothing more can be disclosed unless the class is divided.
    pub finished: bool,
}

impl ClassSet {
    /// The hidden items of the row with this index in the class.
    #[inline]
    pub(super) fn items_of(&self, index: usize) -> &[u32] {
        &self.items[self.starts[index] as usize..self.starts[index + 1] as usize]
    }

    /// Number of rows that may still disclose an item.
    pub(super) fn rows_with_candidates(&self) -> usize {
        if self.finished || self.items.is_empty() {
            return 0;
        }
        let pairs = self.starts.windows(2);
        pairs.filter(|pair| pair[0] < pair[1]).count()
    }

    /// Keeps only the hidden items that `keeps` accepts.
    pub(super) fn retain(&mut self, keeps: impl Fn(u32) -> bool) {
        let (mut kept, mut start) = (0usize, 0usize);
        for row_end in 1..self.starts.len() {
            let end = self.starts[row_end] as usize;
            for at in start..end {
                let item = self.items[at];
                if keeps(item) {
                    self.items[kept] = item;
                    kept += 1;
                }
            }
            start = end;
            self.starts[row_end] = kept as u32;
        }
        self.items.truncate(kept);
    }

    /// The column with the same disclosed items and no rows.
    fn empty_part(&self) -> Self {
        Self {
            disclosed: self.disclosed.clone(),
            starts: vec![0],
            items: Vec::new(),
            finished: false,
        }
    }

    /// Appends a row with these hidden items.
    fn push(&mut self, items: &[u32]) {
        self.items.extend_from_slice(items);
        self.starts.push(self.items.len() as u32);
    }
}

/// An equivalence class *c*.
#[derive(Clone, Debug)]
pub(super) struct EquivalenceClass {
    /// Row numbers: ascending, or those of a person next to one another where persons are counted.
    pub rows: Vec<u32>,
    /// One for each set-valued column.
    pub sets: Vec<ClassSet>,
}

impl EquivalenceClass {
    /// The class of all rows, in this order, with every item hidden; `None` where the rows have 2³²
    /// items or more in a column.
    pub(super) fn whole(rows: Vec<u32>, sets: &[Vocabulary]) -> Option<Self> {
        let set = |vocabulary: &Vocabulary| {
            let mut set = ClassSet::default();
            set.starts.reserve_exact(rows.len() + 1);
            set.starts.push(0);
            for &row in &rows {
                vocabulary.push_row(row as usize, &mut set.items);
                set.starts.push(u32::try_from(set.items.len()).ok()?);
            }
            Some(set)
        };
        let sets = sets.iter().map(set).collect::<Option<_>>()?;
        Some(Self { rows, sets })
    }

    /// Number of rows, *|c|*.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Divides the class into `parts` classes. `part_of` gives the part of the row with each index,
    /// from 0; rows with `parts` or more are left out. Each part may disclose again, because items
    /// that could not be disclosed in the whole class may be disclosed in a part.
    pub(super) fn divide(&self, parts: usize, part_of: impl Fn(usize) -> usize) -> Vec<Self> {
        let mut classes: Vec<Self> = (0..parts)
            .map(|_| Self {
                rows: Vec::new(),
                sets: self.sets.iter().map(ClassSet::empty_part).collect(),
            })
            .collect();
        for (index, &row) in self.rows.iter().enumerate() {
            let Some(part) = classes.get_mut(part_of(index)) else {
                continue;
            };
            part.rows.push(row);
            for (set, whole) in part.sets.iter_mut().zip(&self.sets) {
                set.push(whole.items_of(index));
            }
        }
        for part in &mut classes {
            part.rows.shrink_to_fit();
            for set in &mut part.sets {
                set.starts.shrink_to_fit();
                set.items.shrink_to_fit();
            }
        }
        classes
    }
}

/// What every class must have: *k* rows, or rows of *k* persons where a person has several.
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
    /// Counts the persons of a table; rows if no person has two.
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
