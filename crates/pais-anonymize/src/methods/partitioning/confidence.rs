//! The bound on the shares of sensitive values in a group: *C* of LKC-privacy (KDD'09, Definition
//! 3.1), (α,k)-anonymity and confidence bounding.
//!
//! The union of two groups in which no bounded value exceeds *C* does not exceed it either: its
//! share is the mean of the two, weighted by their records with a value. So a group that is not
//! split still meets the model.

use pais_core::model::{Confidence, Lkc, MissingSensitive};
use pais_core::table::{EncodedTable, SensitiveColumn};
use rustc_hash::FxHashMap;

use crate::methods::bounded_values::{
    BoundedValue, ExceedingShare, bounded_values, greatest_of_columns,
};

/// The bounded values of a table, row by row.
pub(super) struct ConfidenceCheck {
    cells: BoundedCells,
    columns: Vec<BoundedColumn>,
}

/// The bounded values of some records.
pub(super) struct BoundedCells {
    bound: Confidence,
    /// Number of columns with a bounded value.
    width: usize,
    /// By column, the number of the first of its values and the one after the last.
    ranges: Vec<(u32, u32)>,
    /// Records × columns, record by record: the number of a bounded value, [`UNBOUNDED`] or
    /// [`UNKNOWN`].
    cells: Vec<u32>,
}

/// A sensitive column with a bounded value.
struct BoundedColumn {
    name: Box<str>,
    /// By value, its place in the job where it is listed.
    places: Vec<Option<usize>>,
}

impl ConfidenceCheck {
    /// The check of a model on a table; `None` if it bounds no value of the table.
    pub(super) fn new(model: &Lkc, table: &EncodedTable) -> Option<Self> {
        let mut columns = Vec::new();
        let mut ranges = Vec::new();
        let mut numbers: Vec<(Vec<u32>, &SensitiveColumn)> = Vec::new();
        let mut values = 0;
        for (column, bounded) in bounded_values(model, table) {
            let first = values;
            let mut number = |value: &Option<BoundedValue>| {
                if value.is_none() {
                    return UNBOUNDED;
                }
                values += 1;
                values - 1
            };
            numbers.push((bounded.iter().map(&mut number).collect(), column));
            ranges.push((first, values));
            columns.push(BoundedColumn {
                name: column.name.clone(),
                places: bounded.iter().flatten().map(|it| it.place).collect(),
            });
        }
        if columns.is_empty() {
            return None;
        }
        let missing = match model.missing_sensitive {
            MissingSensitive::Excluded => UNKNOWN,
            MissingSensitive::Counted => UNBOUNDED,
        };
        let mut cells = Vec::with_capacity(table.rows * columns.len());
        for row in 0..table.rows {
            for (of_code, column) in &numbers {
                let code = column.codes[row] as usize;
                cells.push(of_code.get(code).copied().unwrap_or(missing));
            }
        }
        let cells = BoundedCells {
            bound: model.c,
            width: columns.len(),
            ranges,
            cells,
        };
        Some(Self { cells, columns })
    }

    /// The bounded values of these rows, as records with the numbers from 0 on.
    pub(super) fn select(&self, rows: &[u32]) -> BoundedCells {
        let BoundedCells { bound, width, .. } = self.cells;
        let mut values = 0;
        let mut ranges = Vec::with_capacity(width);
        let mut cells = vec![0; rows.len() * width];
        for column in 0..width {
            let first = values;
            let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
            for (record, &row) in rows.iter().enumerate() {
                let cell = self.cells.record(row as usize)[column];
                cells[record * width + column] = match cell {
                    UNBOUNDED | UNKNOWN => cell,
                    value => *numbers.entry(value).or_insert_with(|| {
                        values += 1;
                        values - 1
                    }),
                };
            }
            ranges.push((first, values));
        }
        BoundedCells {
            bound,
            width,
            ranges,
            cells,
        }
    }

    /// Working space of [`Self::accepts`].
    pub(super) fn empty_tally(&self) -> Tally {
        self.cells.empty_tally()
    }

    /// Whether these rows meet *C*. `tally` has no records, and has none afterwards.
    pub(super) fn accepts(&self, rows: &[u32], tally: &mut Tally) -> bool {
        for &row in rows {
            tally.add(self.cells.record(row as usize));
        }
        let allowed = self.cells.allows(tally);
        for &row in rows {
            tally.remove(self.cells.record(row as usize));
        }
        allowed
    }

    /// By column, the value with the greatest share above *C* among all rows.
    pub(super) fn exceeding(&self, rows: &[u32]) -> Vec<ExceedingShare> {
        let mut tally = self.empty_tally();
        for &row in rows {
            tally.add(self.cells.record(row as usize));
        }
        let columns = self.columns.iter().zip(&self.cells.ranges);
        let values = columns
            .zip(tally.shares())
            .flat_map(|((column, range), (_, known))| {
                (range.0..range.1).map(move |value| (column, value, value - range.0, known))
            });
        let exceeding = values.filter(|&(_, value, _, known)| {
            let bound = self.cells.bound;
            bound.is_exceeded_by(tally.holding(value).into(), known.into())
        });
        let shares = exceeding.map(|(column, value, index, known)| {
            let place = column.places.get(index as usize).copied().flatten();
            ExceedingShare::new(
                &column.name,
                place,
                tally.holding(value).into(),
                known.into(),
            )
        });
        greatest_of_columns(shares)
    }
}

impl BoundedCells {
    /// The cells of a record, one for each column.
    #[inline]
    pub(super) fn record(&self, record: usize) -> &[u32] {
        &self.cells[record * self.width..][..self.width]
    }

    /// A tally of no records.
    pub(super) fn empty_tally(&self) -> Tally {
        let values = self.ranges.last().map_or(0, |&(_, end)| end);
        Tally::new(self.width, values as usize)
    }

    /// Whether no bounded value exceeds *C* among the records of a tally.
    #[inline]
    pub(super) fn allows(&self, tally: &Tally) -> bool {
        self.allows_with(tally, 0)
    }

    /// Whether no bounded value exceeds *C* once `more` records with an unbounded value in each
    /// column are added.
    #[inline]
    pub(super) fn allows_with(&self, tally: &Tally, more: u32) -> bool {
        let exceeds = |(most, known): (u32, u32)| {
            let known = u64::from(known) + u64::from(more);
            self.bound.is_exceeded_by(most.into(), known)
        };
        !tally.shares().any(exceeds)
    }

    /// By value, the minimum number of its records that a part of `size` of the records must have so that the
    /// rest meets *C*, if each record of the part has a value in each column.
    pub(super) fn least_in_part(&self, whole: &Tally, size: usize) -> Vec<u32> {
        let columns = self.ranges.iter().zip(whole.shares());
        let least = columns.flat_map(|(&(first, end), (_, known))| {
            let rest = self
                .bound
                .most_of((known as usize).saturating_sub(size) as u64);
            let excess = move |value| u64::from(whole.holding(value)).saturating_sub(rest) as u32;
            (first..end).map(excess)
        });
        least.collect()
    }

    /// By column, how many records `tally` still lacks of the values in `least`.
    pub(super) fn lacking(&self, least: &[u32], tally: &Tally) -> Vec<u32> {
        let lacks = |value: u32| least[value as usize].saturating_sub(tally.holding(value));
        let columns = self.ranges.iter();
        columns
            .map(|&(first, end)| (first..end).map(lacks).sum())
            .collect()
    }

    /// Whether a record has, in each column with no place left for other records, a value that
    /// `tally` lacks.
    #[inline]
    pub(super) fn fills(
        &self,
        record: usize,
        least: &[u32],
        tally: &Tally,
        is_full: impl Fn(usize) -> bool,
    ) -> bool {
        let cells = self.record(record).iter().enumerate();
        let mut full = cells.filter(|(column, _)| is_full(*column));
        full.all(|(_, &cell)| cell < UNBOUNDED && tally.holding(cell) < least[cell as usize])
    }
}

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
        // The most frequent value has one record less now, so the maximum is one less or the same.
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
mod tally_tests {
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
