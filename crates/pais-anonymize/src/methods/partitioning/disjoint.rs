//! Disjoint records, which share no sensitive value. Deleting them takes one eliminated value
//! each (Theorem 4 of the multiple-sensitive-attribute paper), so *L* of them prove *L*-diversity.

use super::condition::SensitiveCodes;

/// Finds disjoint records. Holds working space with an entry for each sensitive value of a table.
pub(super) struct DisjointRecords {
    /// *f(v)*, the number of records of the group that hold a value; 0 between calls.
    frequency: Vec<u32>,
    /// The number of the last turn in which a value was taken. Counting turns saves clearing the
    /// marks.
    taken: Vec<u32>,
    turn: u32,
    /// Number of distinct values of each column in the group last passed to `order`.
    distinct: Vec<u32>,
}

impl DisjointRecords {
    pub(super) fn new(values: usize) -> Self {
        Self {
            frequency: vec![0; values],
            taken: vec![0; values],
            turn: 0,
            distinct: Vec::new(),
        }
    }

    /// Takes the values of a record and returns true, unless one of them is already taken.
    #[inline]
    fn take(&mut self, values: &[u32]) -> bool {
        if values
            .iter()
            .any(|&value| self.taken[value as usize] == self.turn)
        {
            return false;
        }
        for &value in values {
            self.taken[value as usize] = self.turn;
        }
        true
    }

    fn next_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        if self.turn == 0 {
            self.taken.fill(0);
            self.turn = 1;
        }
    }

    /// Whether `l` disjoint records are found when rows are visited in the given order: Figure 6
    /// without its sorting, which large groups rarely need.
    pub(super) fn any(&mut self, sensitive: &SensitiveCodes, rows: &[u32], l: u32) -> bool {
        self.next_turn();
        let mut found = 0;
        for &row in rows {
            if sensitive.row(row).is_some_and(|values| self.take(values)) {
                found += 1;
                if found >= l {
                    return true;
                }
            }
        }
        false
    }

    /// Lines 1 to 3 of Figure 6: the rows in ascending order of their total frequency; ties keep
    /// their order. Rows with a missing value are left out.
    pub(super) fn order(&mut self, sensitive: &SensitiveCodes, rows: &[u32]) -> Vec<u32> {
        self.distinct.clear();
        self.distinct.resize(sensitive.column_count(), 0);
        let whole = || {
            rows.iter()
                .filter_map(|&row| Some((row, sensitive.row(row)?)))
        };
        for (_, values) in whole() {
            for (column, &value) in values.iter().enumerate() {
                let frequency = &mut self.frequency[value as usize];
                self.distinct[column] += u32::from(*frequency == 0);
                *frequency += 1;
            }
        }
        let total = |values: &[u32]| -> u64 {
            let frequencies = values.iter().map(|&value| self.frequency[value as usize]);
            frequencies.map(u64::from).sum()
        };
        let mut order: Vec<(u64, u32)> =
            whole().map(|(row, values)| (total(values), row)).collect();
        order.sort_by_key(|&(total, _)| total);
        for (_, values) in whole() {
            for &value in values {
                self.frequency[value as usize] = 0;
            }
        }
        order.into_iter().map(|(_, row)| row).collect()
    }

    /// The smallest number of distinct values of a column in the group last passed to `order`,
    /// over the columns whose values may all be eliminated. Eliminating them deletes all records,
    /// so this is an upper bound of the minimum cover; `u32::MAX` where there is no such column.
    pub(super) fn fewest_values_in_a_column(&self, sensitive: &SensitiveCodes) -> u32 {
        let columns = self.distinct.iter().zip(&sensitive.limits);
        let all = columns.filter(|(distinct, limit)| distinct <= limit);
        all.map(|(&distinct, _)| distinct).min().unwrap_or(u32::MAX)
    }

    /// Lines 4 to 10 of Figure 6: *C*, the disjoint records picked in this order, at most `l`.
    pub(super) fn pick(&mut self, sensitive: &SensitiveCodes, order: &[u32], l: u32) -> Vec<u32> {
        self.next_turn();
        let mut picked = Vec::new();
        for &row in order {
            if picked.len() >= l as usize {
                break;
            }
            if sensitive.row(row).is_some_and(|values| self.take(values)) {
                picked.push(row);
            }
        }
        picked
    }
}
