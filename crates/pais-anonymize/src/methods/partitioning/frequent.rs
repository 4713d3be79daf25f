//! Figure 7 of the multiple-sensitive-attribute paper: a proof of diversity under column limits by
//! the most frequent values.
//!
//! The algorithm as printed accepts groups that are not diverse. Where the limits leave fewer than
//! *x* values to select, all of the selected values together may be fewer than *x*, so the sum of
//! their frequencies must be strictly below the number of records. With *x* values selected,
//! *x - 1* of them leave out a record in any case (Theorem 6).

use super::condition::SensitiveCodes;

/// Checks a group. Holds working space with an entry for each sensitive value of a table.
pub(super) struct FrequentValues {
    /// *f_C(v)*, the number of records of *C* that hold a value; 0 between calls.
    frequency: Vec<u32>,
    /// Index of each value in the list of its column; `u32::MAX` where it is not in the list.
    index: Vec<u32>,
}

/// *C*, a subset of the group's records.
struct Subset<'a> {
    sensitive: &'a SensitiveCodes,
    space: &'a mut FrequentValues,
    /// The values of each column, the most frequent first.
    columns: Vec<Vec<u32>>,
    /// *|C|*.
    records: u64,
}

impl FrequentValues {
    pub(super) fn new(values: usize) -> Self {
        Self {
            frequency: vec![0; values],
            index: vec![u32::MAX; values],
        }
    }

    /// Whether a subset is found that proves the group *l*-diverse. `disjoint` are the records of
    /// `order` that Figure 6 picked.
    pub(super) fn proves(
        &mut self,
        sensitive: &SensitiveCodes,
        order: &[u32],
        disjoint: &[u32],
        l: u32,
    ) -> bool {
        let mut x = disjoint.len() as u32;
        let mut subset = Subset {
            sensitive,
            space: self,
            columns: vec![Vec::new(); sensitive.column_count()],
            records: 0,
        };
        for &row in disjoint {
            subset.add(row);
        }
        // Figure 6 picks in this order, so one pass finds the records that it did not pick.
        let mut disjoint = disjoint.iter().peekable();
        for &row in order {
            if disjoint.next_if_eq(&&row).is_some() {
                continue;
            }
            subset.add(row);
            if !subset.is_diverse(x) {
                subset.remove(row);
            } else if subset.is_diverse(x + 1) {
                x += 1;
            }
            if x >= l {
                break;
            }
        }
        subset.clear();
        x >= l
    }
}

impl Subset<'_> {
    /// The sum of the frequencies of the *x* most frequent values, with at most *L_i* values of
    /// each column, and the number of values that were selected.
    fn most_frequent(&self, x: u32) -> (u64, u32) {
        let columns = self.columns.iter().zip(&self.sensitive.limits);
        let mut best: Vec<u32> = columns
            .flat_map(|(column, &limit)| column.iter().take(limit.min(x) as usize))
            .map(|&value| self.space.frequency[value as usize])
            .filter(|&frequency| frequency > 0)
            .collect();
        best.sort_unstable_by(|one, other| other.cmp(one));
        best.truncate(x as usize);
        let sum = best.iter().map(|&frequency| u64::from(frequency)).sum();
        (sum, best.len() as u32)
    }

    fn is_diverse(&self, x: u32) -> bool {
        let (sum, selected) = self.most_frequent(x);
        if selected == x {
            sum <= self.records
        } else {
            sum < self.records
        }
    }

    fn add(&mut self, row: u32) {
        let Some(values) = self.sensitive.row(row) else {
            return;
        };
        self.records += 1;
        let FrequentValues { frequency, index } = &mut *self.space;
        for (column, &value) in self.columns.iter_mut().zip(values) {
            if index[value as usize] == u32::MAX {
                index[value as usize] = column.len() as u32;
                column.push(value);
            }
            // Move it before all values of equal frequency, so the order is kept when its frequency
            // grows.
            let held = frequency[value as usize];
            let ahead = column.partition_point(|&other| frequency[other as usize] > held);
            exchange(column, index, value, ahead);
            frequency[value as usize] += 1;
        }
    }

    fn remove(&mut self, row: u32) {
        let Some(values) = self.sensitive.row(row) else {
            return;
        };
        self.records -= 1;
        let FrequentValues { frequency, index } = &mut *self.space;
        for (column, &value) in self.columns.iter_mut().zip(values) {
            let held = frequency[value as usize];
            let behind = column.partition_point(|&other| frequency[other as usize] >= held) - 1;
            exchange(column, index, value, behind);
            frequency[value as usize] -= 1;
        }
    }

    fn clear(&mut self) {
        for &value in self.columns.iter().flatten() {
            self.space.frequency[value as usize] = 0;
            self.space.index[value as usize] = u32::MAX;
        }
    }
}

/// Exchanges a value with the one at index `to` of its column's list.
fn exchange(column: &mut [u32], index: &mut [u32], value: u32, to: usize) {
    let from = index[value as usize] as usize;
    let other = column[to];
    column.swap(from, to);
    index[value as usize] = to as u32;
    index[other as usize] = from as u32;
}

#[cfg(test)]
mod tests {
    use super::{FrequentValues, Subset};
    use crate::methods::partitioning::condition::tests::sensitive_codes;
    use crate::methods::partitioning::disjoint::DisjointRecords;

    /// Figure 8: rows as (disease, treatment), limits 4 and 2.
    #[test]
    fn figure_8_reaches_four() {
        let group = [[0, 0], [1, 0], [2, 1], [3, 1], [4, 2], [5, 2]];
        let sensitive = sensitive_codes(&group, 4, &[4, 2]);
        let mut space = FrequentValues::new(sensitive.value_count());
        let mut subset = Subset {
            sensitive: &sensitive,
            space: &mut space,
            columns: vec![Vec::new(); 2],
            records: 0,
        };
        for row in [0, 2, 4] {
            subset.add(row);
        }
        let mut found = Vec::new();
        for (row, x) in [(1, 3), (3, 3), (5, 4)] {
            subset.add(row);
            found.push(subset.most_frequent(x));
        }
        assert_eq!(found, [(4, 3), (5, 3), (6, 4)]);
        assert!(subset.is_diverse(4));
        subset.remove(5);
        assert!(!subset.is_diverse(4));
        subset.clear();
        let rows: Vec<u32> = (0..6).collect();
        let mut disjoint = DisjointRecords::new(sensitive.value_count());
        let order = disjoint.order(&sensitive, &rows);
        let picked = disjoint.pick(&sensitive, &order, 4);
        assert_eq!(picked, [0, 2, 4]);
        assert!(
            FrequentValues::new(sensitive.value_count()).proves(&sensitive, &order, &picked, 4)
        );
    }
}
