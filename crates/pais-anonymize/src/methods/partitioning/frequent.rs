//! Figure 7 of the multiple-sensitive-attribute paper: diversity under column limits, proven by
//! the most frequent values.
//!
//! As printed it accepts too much. Where the limits leave fewer than *x* values to select, all
//! of them may already be fewer than *x*, so that their sum must stay strictly below the number
//! of records; with *x* values selected, *x - 1* of them miss a record anyway (Theorem 6).

use super::condition::Cells;

/// Checks a group. Working space over the values of a table.
pub(super) struct Frequent {
    /// *f_C(v)*, records of *C* that hold a value; 0 between calls.
    frequency: Vec<u32>,
    /// Place of each value in its column's list.
    place: Vec<u32>,
}

/// *C*, a subset of the group, with the values of each column, the most frequent first.
struct Subset<'a> {
    cells: &'a Cells,
    space: &'a mut Frequent,
    columns: Vec<Vec<u32>>,
    /// *|C|*.
    records: u64,
}

impl Frequent {
    pub(super) fn new(values: usize) -> Self {
        Self {
            frequency: vec![0; values],
            place: vec![u32::MAX; values],
        }
    }

    /// Whether a subset is found that proves the group *l*-diverse; `apart` are the records of
    /// `order` that Figure 6 picked.
    pub(super) fn proves(&mut self, cells: &Cells, order: &[u32], apart: &[u32], l: u32) -> bool {
        let mut x = apart.len() as u32;
        let mut subset = Subset {
            cells,
            space: self,
            columns: vec![Vec::new(); cells.width()],
            records: 0,
        };
        for &row in apart {
            subset.add(row);
        }
        // Figure 6 picks in this order, so that one pass finds what it left.
        let mut apart = apart.iter().peekable();
        for &row in order {
            if apart.next_if_eq(&&row).is_some() {
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
    /// The sum of the frequencies of the *x* most frequent values, with at most *L_i* of each
    /// column, and how many values were selected.
    fn most_frequent(&self, x: u32) -> (u64, u32) {
        let columns = self.columns.iter().zip(&self.cells.limits);
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
        let Some(values) = self.cells.row(row) else {
            return;
        };
        self.records += 1;
        let Frequent { frequency, place } = &mut *self.space;
        for (column, &value) in self.columns.iter_mut().zip(values) {
            if place[value as usize] == u32::MAX {
                place[value as usize] = column.len() as u32;
                column.push(value);
            }
            // Ahead of all that are as frequent as it was, the order holds when it grows.
            let held = frequency[value as usize];
            let ahead = column.partition_point(|&other| frequency[other as usize] > held);
            exchange(column, place, value, ahead);
            frequency[value as usize] += 1;
        }
    }

    fn remove(&mut self, row: u32) {
        let Some(values) = self.cells.row(row) else {
            return;
        };
        self.records -= 1;
        let Frequent { frequency, place } = &mut *self.space;
        for (column, &value) in self.columns.iter_mut().zip(values) {
            let held = frequency[value as usize];
            let behind = column.partition_point(|&other| frequency[other as usize] >= held) - 1;
            exchange(column, place, value, behind);
            frequency[value as usize] -= 1;
        }
    }

    fn clear(&mut self) {
        for &value in self.columns.iter().flatten() {
            self.space.frequency[value as usize] = 0;
            self.space.place[value as usize] = u32::MAX;
        }
    }
}

/// Moves a value to a place of its column's list, and the one there to its own.
fn exchange(column: &mut [u32], place: &mut [u32], value: u32, to: usize) {
    let from = place[value as usize] as usize;
    let other = column[to];
    column.swap(from, to);
    place[value as usize] = to as u32;
    place[other as usize] = from as u32;
}

#[cfg(test)]
mod tests {
    use super::{Frequent, Subset};
    use crate::methods::partitioning::condition::tests::cells;
    use crate::methods::partitioning::disjoint::Disjoint;

    /// Figure 8: rows as (disease, treatment), limits 4 and 2.
    #[test]
    fn figure_8_reaches_four() {
        let group = [[0, 0], [1, 0], [2, 1], [3, 1], [4, 2], [5, 2]];
        let cells = cells(&group, 4, &[4, 2]);
        let mut space = Frequent::new(cells.values());
        let mut subset = Subset {
            cells: &cells,
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
        let mut disjoint = Disjoint::new(cells.values());
        let order = disjoint.order(&cells, &rows);
        let apart = disjoint.pick(&cells, &order, 4);
        assert_eq!(apart, [0, 2, 4]);
        assert!(Frequent::new(cells.values()).proves(&cells, &order, &apart, 4));
    }
}
