//! How many records of a group have each bounded value, and the most that have the same.

/// A cell with a value that the model does not bound.
pub(super) const UNBOUNDED: u32 = u32::MAX - 1;

/// A missing cell that does not count among the records with a value.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// The records of a group by bounded value. Adding, removing and finding the most frequent value
/// take constant time.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    columns: Vec<ColumnTally>,
    /// Records by value, numbered across columns.
    holding: Vec<u32>,
}

/// One column of a tally.
#[derive(Clone, Debug, Default)]
struct ColumnTally {
    /// Records with a value in the column.
    known: u32,
    /// Records with the most frequent bounded value.
    most: u32,
    /// By number of records, the bounded values that have this many; without the values of none.
    values_with: Vec<u32>,
}

impl ColumnTally {
    fn more(&mut self, holding: &mut u32) {
        let before = *holding as usize;
        *holding += 1;
        if self.values_with.len() <= before + 1 {
            self.values_with.resize(before + 2, 0);
        }
        if before > 0 {
            self.values_with[before] -= 1;
        }
        self.values_with[before + 1] += 1;
        self.most = self.most.max(*holding);
    }

    fn fewer(&mut self, holding: &mut u32) {
        let before = *holding as usize;
        *holding -= 1;
        self.values_with[before] -= 1;
        if before > 1 {
            self.values_with[before - 1] += 1;
        }
        // The value that had the most has one less now, so the most is one less or the same.
        if before == self.most as usize && self.values_with[before] == 0 {
            self.most -= 1;
        }
    }
}

impl Tally {
    /// Of no records, with this many columns and values.
    pub(super) fn new(columns: usize, values: usize) -> Self {
        Self {
            columns: vec![ColumnTally::default(); columns],
            holding: vec![0; values],
        }
    }

    /// Adds a record with these cells, one for each column.
    #[inline]
    pub(super) fn add(&mut self, cells: &[u32]) {
        for (column, &cell) in self.columns.iter_mut().zip(cells) {
            column.known += u32::from(cell != UNKNOWN);
            if cell < UNBOUNDED {
                column.more(&mut self.holding[cell as usize]);
            }
        }
    }

    /// Removes a record that was added.
    #[inline]
    pub(super) fn remove(&mut self, cells: &[u32]) {
        for (column, &cell) in self.columns.iter_mut().zip(cells) {
            column.known -= u32::from(cell != UNKNOWN);
            if cell < UNBOUNDED {
                column.fewer(&mut self.holding[cell as usize]);
            }
        }
    }

    /// Records with a value.
    #[inline]
    pub(super) fn holding(&self, value: u32) -> u32 {
        self.holding[value as usize]
    }

    /// By column, the records with the most frequent bounded value and those with any value.
    #[inline]
    pub(super) fn shares(&self) -> impl Iterator<Item = (u32, u32)> {
        self.columns
            .iter()
            .map(|column| (column.most, column.known))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Tally, UNBOUNDED, UNKNOWN};

    proptest! {
        #[test]
        fn the_most_frequent_value_is_known_after_each_change(
            records in prop::collection::vec(([0u32..5, 5u32..8], any::<bool>()), 1..40),
        ) {
            let cell = |cell: u32| match cell {
                0 => UNKNOWN,
                1 => UNBOUNDED,
                cell => cell,
            };
            let mut tally = Tally::new(2, 8);
            let mut present: Vec<[u32; 2]> = Vec::new();
            for (cells, adds) in records {
                let cells = cells.map(cell);
                if adds || present.is_empty() {
                    tally.add(&cells);
                    present.push(cells);
                } else {
                    let gone = present.swap_remove(cells[1] as usize % present.len());
                    tally.remove(&gone);
                }
                let holding = |value: u32| {
                    present.iter().flatten().filter(|&&cell| cell == value).count() as u32
                };
                let known = |column: usize| {
                    present.iter().filter(|record| record[column] != UNKNOWN).count() as u32
                };
                let most = |values: std::ops::Range<u32>| values.map(holding).max().unwrap();
                let expected = vec![(most(0..5), known(0)), (most(5..8), known(1))];
                prop_assert_eq!(tally.shares().collect::<Vec<_>>(), expected);
                prop_assert!((0..8).all(|value| tally.holding(value) == holding(value)));
            }
        }
    }
}
