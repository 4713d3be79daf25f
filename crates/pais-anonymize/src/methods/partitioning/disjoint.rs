//! Records that share no sensitive value: each needs a strike of its own (Theorem 4 of the
//! multiple-sensitive-attribute paper), so that *L* of them prove *L*-diversity.

use super::condition::Cells;

/// Finds such records. Working space over the values of a table.
pub(super) struct Disjoint {
    /// *f(v)*, records of the group that hold a value; 0 between calls.
    frequency: Vec<u32>,
    /// The turn in which a value was last taken.
    taken: Vec<u32>,
    turn: u32,
    /// Distinct values of each column in the group last ordered.
    distinct: Vec<u32>,
}

impl Disjoint {
    pub(super) fn new(values: usize) -> Self {
        Self {
            frequency: vec![0; values],
            taken: vec![0; values],
            turn: 0,
            distinct: Vec::new(),
        }
    }

    /// Takes a record's values, if none of them is taken.
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

    /// Whether `l` such records are met when rows are taken as they come: Figure 6 without its
    /// order, which large groups hardly need.
    pub(super) fn any(&mut self, cells: &Cells, rows: &[u32], l: u32) -> bool {
        self.next_turn();
        let mut found = 0;
        for &row in rows {
            if cells.row(row).is_some_and(|values| self.take(values)) {
                found += 1;
                if found >= l {
                    return true;
                }
            }
        }
        false
    }

    /// Lines 1 to 3 of Figure 6: rows in ascending order of their total frequency, equal ones as
    /// they come. Rows with a missing value are left out.
    pub(super) fn order(&mut self, cells: &Cells, rows: &[u32]) -> Vec<u32> {
        self.distinct.clear();
        self.distinct.resize(cells.width(), 0);
        let whole = || rows.iter().filter_map(|&row| Some((row, cells.row(row)?)));
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

    /// The fewest distinct values of a column in the group last ordered, over the columns of
    /// which all values may be struck out: no more than so many are needed.
    pub(super) fn fewest_in_a_column(&self, cells: &Cells) -> u32 {
        let columns = self.distinct.iter().zip(&cells.limits);
        let all = columns.filter(|(distinct, limit)| distinct <= limit);
        all.map(|(&distinct, _)| distinct).min().unwrap_or(u32::MAX)
    }

    /// Lines 4 to 10 of Figure 6: *C*, the records picked in this order, `l` at most.
    pub(super) fn pick(&mut self, cells: &Cells, order: &[u32], l: u32) -> Vec<u32> {
        self.next_turn();
        let mut picked = Vec::new();
        for &row in order {
            if picked.len() >= l as usize {
                break;
            }
            if cells.row(row).is_some_and(|values| self.take(values)) {
                picked.push(row);
            }
        }
        picked
    }
}
