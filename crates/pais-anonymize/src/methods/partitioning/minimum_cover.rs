//! The minimum cover of a group's records by sensitive values (Definitions 6 and 7 of the
//! multiple-sensitive-attribute paper): whether at least *L* values must be eliminated to delete
//! every record. Heuristics prove most groups; a search tree of depth *L - 1* decides the others.

use hashbrown::HashMap;
use pais_core::table::{NULL_CODE, SensitiveColumn};
use rustc_hash::FxHashSet;

/// Answer to "must at least *L* values be eliminated to delete all records?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CoverAnswer {
    /// At least *L* values are needed.
    Yes,
    /// Fewer than *L* values delete all records.
    No,
    /// The budget ran out before the search was finished.
    OutOfBudget,
}

/// Number of records that the exact search may visit before a split is rejected. A group that
/// needs more is not split, which is safe.
const COVER_BUDGET: u64 = 1 << 12;

/// The same for the whole table, where a wrong "no" fails the job.
const WHOLE_TABLE_COVER_BUDGET: u64 = 1 << 24;

/// The sensitive values that may be eliminated, row by row, numbered across columns.
///
/// Columns with a limit of 0 are left out. A missing cell in another column is [`NULL_CODE`]; its
/// row does not contribute to diversity and counts as deleted from the start.
pub(super) struct SensitiveCodes {
    /// *L*.
    pub(super) l: u32,
    /// *L_i* of each column with a limit above 0.
    limits: Vec<u32>,
    /// Number of the first value of each column; the last entry is the count of all values.
    first_values: Vec<u32>,
    /// Rows × columns, row by row.
    codes: Vec<u32>,
}

/// A sensitive column with a limit.
pub(super) struct LimitedColumn<'a> {
    pub(super) column: &'a SensitiveColumn,
    /// *L_i*: the maximum number of values of the column that may be eliminated.
    pub(super) limit: u32,
}

impl SensitiveCodes {
    pub(super) fn new(l: u32, columns: &[LimitedColumn<'_>], rows: usize) -> Self {
        let counted: Vec<_> = columns.iter().filter(|it| it.limit > 0).collect();
        let mut first_values = vec![0u32];
        for it in &counted {
            first_values.push(first_values[first_values.len() - 1] + it.column.values.len() as u32);
        }
        let mut codes = Vec::with_capacity(rows * counted.len());
        for row in 0..rows {
            for (it, first) in counted.iter().zip(&first_values) {
                codes.push(match it.column.codes[row] {
                    NULL_CODE => NULL_CODE,
                    code => first + code,
                });
            }
        }
        Self {
            l,
            limits: counted.iter().map(|it| it.limit).collect(),
            first_values,
            codes,
        }
    }

    /// Number of columns with a limit above 0.
    fn column_count(&self) -> usize {
        self.limits.len()
    }

    /// Number of distinct values over all columns.
    pub(super) fn value_count(&self) -> usize {
        self.first_values[self.limits.len()] as usize
    }

    /// The values of a row; `None` where one of them is missing.
    #[inline]
    fn row(&self, row: u32) -> Option<&[u32]> {
        let width = self.column_count();
        let codes = &self.codes[row as usize * width..][..width];
        (!codes.contains(&NULL_CODE)).then_some(codes)
    }

    /// Whether every limit is *L*, which is Definition 6 rather than 7.
    fn is_unlimited(&self) -> bool {
        self.limits.iter().all(|&limit| limit >= self.l)
    }
}

/// Decides groups by minimum covers: by heuristics first, then by the exact search. Holds working
/// space with entries for each sensitive value of a table.
pub(super) struct CoverChecker {
    disjoint: DisjointRecords,
    frequent: FrequentValues,
}

/// The greatest *L* that some rows are proven to meet.
pub(super) struct GreatestL {
    pub(super) l: u32,
    /// Whether every greater one is proven not to be met.
    pub(super) exact: bool,
}

impl CoverChecker {
    pub(super) fn new(values: usize) -> Self {
        Self {
            disjoint: DisjointRecords::new(values),
            frequent: FrequentValues::new(values),
        }
    }

    /// Whether at least *L* values are proven to be needed to delete all of the rows.
    pub(super) fn accepts(&mut self, sensitive: &SensitiveCodes, rows: &[u32]) -> bool {
        let budget = COVER_BUDGET + 8 * rows.len() as u64;
        self.answer(sensitive, rows, sensitive.l, budget) == CoverAnswer::Yes
    }

    /// Whether at least `l` values must be eliminated to delete all of the rows.
    fn answer(
        &mut self,
        sensitive: &SensitiveCodes,
        rows: &[u32],
        l: u32,
        budget: u64,
    ) -> CoverAnswer {
        // No value may be eliminated, so no row can be deleted.
        if sensitive.column_count() == 0 || l == 0 {
            return CoverAnswer::Yes;
        }
        // Figure 6 without its sorting, which large groups rarely need.
        if self.disjoint.pick(sensitive, rows, l).len() >= l as usize {
            return CoverAnswer::Yes;
        }
        let order = self.disjoint.order(sensitive, rows);
        if self.disjoint.fewest_values_in_a_column(sensitive) < l {
            return CoverAnswer::No;
        }
        let disjoint = self.disjoint.pick(sensitive, &order, l);
        if disjoint.len() >= l as usize
            || (!sensitive.is_unlimited() && self.frequent.proves(sensitive, &order, &disjoint, l))
        {
            return CoverAnswer::Yes;
        }
        needs_at_least(sensitive, &order, l, budget)
    }

    /// The greatest *L*, at most the requested one, that the rows are proven to meet.
    pub(super) fn greatest_l(&mut self, sensitive: &SensitiveCodes, rows: &[u32]) -> GreatestL {
        let (mut holds, mut fails, mut exact) = (0, sensitive.l + 1, true);
        while holds + 1 < fails {
            let l = holds + (fails - holds) / 2;
            match self.answer(
                sensitive,
                rows,
                l,
                WHOLE_TABLE_COVER_BUDGET + 64 * rows.len() as u64,
            ) {
                CoverAnswer::Yes => holds = l,
                CoverAnswer::No => fails = l,
                CoverAnswer::OutOfBudget => (fails, exact) = (l, false),
            }
        }
        GreatestL { l: holds, exact }
    }
}

/// Whether at least `l` values, 1 or more, must be eliminated to delete all records of a group.
/// `rows` must be in the order of [`DisjointRecords::order`]. `budget` limits the number of
/// records that the search visits, over all nodes of its tree.
fn needs_at_least(sensitive: &SensitiveCodes, rows: &[u32], l: u32, budget: u64) -> CoverAnswer {
    let mut records: Vec<&[u32]> = rows.iter().filter_map(|&row| sensitive.row(row)).collect();
    // Records with equal values are deleted together.
    let mut seen = FxHashSet::default();
    records.retain(|record| seen.insert(*record));
    let mut search = CoverSearch {
        sensitive,
        remaining_limits: sensitive.limits.clone(),
        excluded: FxHashSet::default(),
        budget,
    };
    match search.delete(&records, l - 1) {
        Some(true) => CoverAnswer::No,
        Some(false) => CoverAnswer::Yes,
        None => CoverAnswer::OutOfBudget,
    }
}

/// Number of records, picked greedily in order, that share no value that may be eliminated. Each
/// of them needs a separate elimination (Theorem 4), so this is a lower bound.
fn count_disjoint(records: &[&[u32]], permitted: &HashMap<u32, u32>) -> u32 {
    let mut taken: FxHashSet<u32> = FxHashSet::default();
    let mut found = 0;
    for record in records {
        if record.iter().any(|value| taken.contains(value)) {
            continue;
        }
        taken.extend(record.iter().filter(|value| permitted.contains_key(*value)));
        found += 1;
    }
    found
}

/// The search tree and its current node.
struct CoverSearch<'a> {
    sensitive: &'a SensitiveCodes,
    /// Number of values of each column that may still be eliminated.
    remaining_limits: Vec<u32>,
    /// Values already tried without success further up the tree.
    excluded: FxHashSet<u32>,
    /// Number of records that may still be visited.
    budget: u64,
}

impl CoverSearch<'_> {
    /// Whether this many eliminations can delete these records; `None` when the budget is spent.
    fn delete(&mut self, records: &[&[u32]], eliminations: u32) -> Option<bool> {
        if records.is_empty() {
            return Some(true);
        }
        if eliminations == 0 {
            return Some(false);
        }
        self.budget = self.budget.checked_sub(records.len() as u64)?;
        let mut frequency: HashMap<u32, u32> = HashMap::new();
        for record in records {
            for (column, &value) in record.iter().enumerate() {
                if self.remaining_limits[column] > 0 && !self.excluded.contains(&value) {
                    *frequency.entry(value).or_insert(0) += 1;
                }
            }
        }
        if self.most_deletable(&frequency, eliminations) < records.len() as u64 {
            return Some(false);
        }
        if count_disjoint(records, &frequency) > eliminations {
            return Some(false);
        }
        let open = |record: &[u32]| -> (usize, u64) {
            let known = record.iter().filter_map(|value| frequency.get(value));
            known.fold((0, 0), |(count, sum), &held| {
                (count + 1, sum + u64::from(held))
            })
        };
        let hardest = records.iter().min_by_key(|record| open(record))?;
        let mut choices: Vec<(u32, usize, u32)> = hardest
            .iter()
            .enumerate()
            .filter_map(|(column, &value)| Some((*frequency.get(&value)?, column, value)))
            .collect();
        choices.sort_by(|one, other| other.cmp(one));
        let mut found = Some(false);
        let mut tried = Vec::with_capacity(choices.len());
        for (_, column, value) in choices {
            let remaining = records.iter().filter(|record| record[column] != value);
            let remaining: Vec<&[u32]> = remaining.copied().collect();
            self.remaining_limits[column] -= 1;
            found = self.delete(&remaining, eliminations - 1);
            self.remaining_limits[column] += 1;
            if found != Some(false) {
                break;
            }
            self.excluded.insert(value);
            tried.push(value);
        }
        for value in tried {
            self.excluded.remove(&value);
        }
        found
    }

    /// Upper bound of the number of records that this many eliminations delete: the sum of the
    /// greatest frequencies, which counts a record once for each of its eliminated values
    /// (Lemma 1).
    fn most_deletable(&self, frequency: &HashMap<u32, u32>, eliminations: u32) -> u64 {
        let mut columns: Vec<Vec<u32>> = vec![Vec::new(); self.remaining_limits.len()];
        for (&value, &held) in frequency {
            let column = self
                .sensitive
                .first_values
                .partition_point(|&first| first <= value)
                - 1;
            columns[column].push(held);
        }
        let mut best = Vec::new();
        for (mut held, &left) in columns.into_iter().zip(&self.remaining_limits) {
            held.sort_unstable_by(|one, other| other.cmp(one));
            held.truncate(left as usize);
            best.append(&mut held);
        }
        best.sort_unstable_by(|one, other| other.cmp(one));
        best.iter()
            .take(eliminations as usize)
            .map(|&held| u64::from(held))
            .sum()
    }
}

/// Finds disjoint records, which share no sensitive value. Deleting them takes one eliminated value
/// each (Theorem 4), so *L* of them prove *L*-diversity. Holds working space with an entry for each
/// sensitive value of a table.
struct DisjointRecords {
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
    fn new(values: usize) -> Self {
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

    /// Lines 1 to 3 of Figure 6: the rows in ascending order of their total frequency; ties keep
    /// their order. Rows with a missing value are left out.
    fn order(&mut self, sensitive: &SensitiveCodes, rows: &[u32]) -> Vec<u32> {
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
    fn fewest_values_in_a_column(&self, sensitive: &SensitiveCodes) -> u32 {
        let columns = self.distinct.iter().zip(&sensitive.limits);
        let all = columns.filter(|(distinct, limit)| distinct <= limit);
        all.map(|(&distinct, _)| distinct).min().unwrap_or(u32::MAX)
    }

    /// Lines 4 to 10 of Figure 6: *C*, the disjoint records picked in this order, at most `l`.
    fn pick(&mut self, sensitive: &SensitiveCodes, order: &[u32], l: u32) -> Vec<u32> {
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

/// Figure 7: a proof of diversity under column limits by the most frequent values.
///
/// The algorithm as printed accepts groups that are not diverse. Where the limits leave fewer than
/// *x* values to select, all of the selected values together may be fewer than *x*, so the sum of
/// their frequencies must be strictly below the number of records. With *x* values selected,
/// *x - 1* of them leave out a record in any case (Theorem 6).
///
/// Holds working space with an entry for each sensitive value of a table.
struct FrequentValues {
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
    fn new(values: usize) -> Self {
        Self {
            frequency: vec![0; values],
            index: vec![u32::MAX; values],
        }
    }

    /// Whether a subset is found that proves the group *l*-diverse. `disjoint` are the records of
    /// `order` that Figure 6 picked.
    fn proves(
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
pub(super) mod tests {
    use super::{DisjointRecords, FrequentValues, LimitedColumn, SensitiveCodes, Subset};
    use crate::methods::partitioning::condition::tests::accepts;
    use pais_core::table::{NULL_CODE, SensitiveColumn};

    /// Records given by the codes of their values.
    pub(crate) fn sensitive_codes<const M: usize>(
        records: &[[u32; M]],
        l: u32,
        limits: &[u32; M],
    ) -> SensitiveCodes {
        let columns: Vec<SensitiveColumn> = (0..M)
            .map(|column| {
                let codes: Vec<u32> = records.iter().map(|record| record[column]).collect();
                let values = codes.iter().filter(|&&code| code != NULL_CODE).max();
                let values = values.map_or(0, |&last| last as usize + 1);
                SensitiveColumn {
                    name: column.to_string().into(),
                    position: column,
                    values: vec!["".into(); values],
                    codes,
                }
            })
            .collect();
        let columns = columns.iter().zip(limits);
        let columns = columns.map(|(column, &limit)| LimitedColumn { column, limit });
        let columns: Vec<_> = columns.collect();
        SensitiveCodes::new(l, &columns, records.len())
    }

    /// Figure 1 as (disease, treatment): Figure 6 picks rows 1 and 3, and two values delete all
    /// records.
    #[test]
    fn figure_1_is_two_diverse_and_not_three() {
        let patients = [[0, 0], [0, 1], [1, 2], [2, 2]];
        let sensitive = sensitive_codes(&patients, 2, &[2, 2]);
        let mut disjoint = DisjointRecords::new(sensitive.value_count());
        let order = disjoint.order(&sensitive, &[0, 1, 2, 3]);
        assert_eq!(order, [0, 1, 2, 3]);
        assert_eq!(disjoint.pick(&sensitive, &order, 2), [0, 2]);
        assert!(accepts(&patients, 2, &[2, 2]));
        assert!(!accepts(&patients, 3, &[3, 3]));
    }

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
