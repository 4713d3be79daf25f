//! The minimum number of sensitive values that must be eliminated to delete every record of a group
//! (Definitions 6 and 7 of *A Privacy Protection Model for Patient Data with Multiple Sensitive Attributes*,
//! 2008), computed exactly.
//!
//! Eliminating a value deletes the records that have it, so this is a minimum cover of the
//! records by values. It is found with a search tree: at each node, one value of a remaining
//! record must be eliminated. A branch ends where the most frequent values left cannot delete
//! all remaining records, or where too many remaining records share no value with each other.

use hashbrown::{HashMap, HashSet};

use pais_core::cancellation::Cancellation;

use super::verification::VerifyError;

/// The value of a missing cell.
pub(super) const MISSING: u32 = u32::MAX;

/// The search for a minimum cover of a group's records by their sensitive values.
pub(super) struct MinimumCover<'s> {
    /// *L_i*: how many more values of each column may be eliminated.
    limits: Vec<u32>,
    /// The distinct records, one after another, each as long as `limits`.
    records: Vec<u32>,
    /// For each value, the records that have it.
    holders: Vec<Vec<u32>>,
    /// For each column, its values.
    columns: Vec<Vec<u32>>,
    /// For each value, its column.
    column_of: Vec<u32>,
    /// For each record, how many of its values are eliminated; a record with at least 1 is deleted.
    eliminated: Vec<u32>,
    /// Number of records that are not deleted.
    remaining: u32,
    /// For each value, the number of remaining records that have it.
    frequency: Vec<u32>,
    /// Values that were tried without success further up the tree.
    excluded: Vec<bool>,
    /// The records, those with rare values first.
    rare_first: Vec<u32>,
    /// For each value, the last scan of [`Self::has_more_disjoint_than`] that selected a record
    /// with it.
    last_scan: Vec<u32>,
    /// Number of the current scan.
    scan: u32,
    cancellation: &'s Cancellation,
}

impl<'s> MinimumCover<'s> {
    /// Takes the records of a group, each with a value for each column or [`MISSING`].
    ///
    /// A column with limit 0 is ignored. A missing cell of any other column protects nobody:
    /// its record counts as deleted from the start.
    pub(super) fn new<'r>(
        records: impl Iterator<Item = &'r [u32]>,
        limits: &[u32],
        cancellation: &'s Cancellation,
    ) -> Self {
        let counted: Vec<usize> = (0..limits.len())
            .filter(|&column| limits[column] > 0)
            .collect();
        let mut group = Self {
            limits: counted.iter().map(|&column| limits[column]).collect(),
            records: Vec::new(),
            holders: Vec::new(),
            columns: vec![Vec::new(); counted.len()],
            column_of: Vec::new(),
            eliminated: Vec::new(),
            remaining: 0,
            frequency: Vec::new(),
            excluded: Vec::new(),
            rare_first: Vec::new(),
            last_scan: Vec::new(),
            scan: 0,
            cancellation,
        };
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        let mut seen: HashSet<Vec<u32>> = HashSet::new();
        let mut record = Vec::with_capacity(counted.len());
        for values in records {
            record.clear();
            for (place, &column) in counted.iter().enumerate() {
                let value = values[column];
                if value == MISSING {
                    break;
                }
                let fresh = known.len() as u32;
                let number = *known.entry((place as u32, value)).or_insert(fresh);
                if number == fresh {
                    group.columns[place].push(number);
                    group.column_of.push(place as u32);
                    group.holders.push(Vec::new());
                }
                record.push(number);
            }
            if record.len() < counted.len() || seen.contains(&record) {
                continue;
            }
            for &value in &record {
                group.holders[value as usize].push(group.remaining);
            }
            group.records.extend_from_slice(&record);
            group.remaining += 1;
            seen.insert(record.clone());
        }
        group.eliminated = vec![0; group.remaining as usize];
        group.frequency = group.holders.iter().map(|rows| rows.len() as u32).collect();
        group.excluded = vec![false; group.holders.len()];
        group.last_scan = vec![0; group.holders.len()];
        let mut order: Vec<u32> = (0..group.remaining).collect();
        order.sort_by_cached_key(|&record| {
            let values = group.values(record).iter();
            let frequencies = values.map(|&value| group.frequency[value as usize]);
            frequencies.map(u64::from).sum::<u64>()
        });
        group.rare_first = order;
        group
    }

    /// The minimum number of values whose elimination deletes every record, counted up to `cap`. Also returns
    /// `cap` if no values within the limits delete all records.
    ///
    /// # Errors
    /// When stopped.
    pub(super) fn fewest(&mut self, cap: u32) -> Result<u32, VerifyError> {
        if self.remaining == 0 {
            return Ok(0);
        }
        if !self.can_delete_all(cap.saturating_sub(1))? {
            return Ok(cap);
        }
        for values in 1..cap {
            if self.can_delete_all(values)? {
                return Ok(values);
            }
        }
        Ok(cap)
    }

    /// Whether more than `limit` remaining records share no value that may still be eliminated.
    /// Each of them needs a value of its own. Greedy, so `false` is no proof that there are
    /// fewer.
    fn has_more_disjoint_than(&mut self, limit: u32) -> bool {
        self.scan += 1;
        let mut found = 0;
        for &record in &self.rare_first {
            let is_shared =
                |&value: &u32| self.is_open(value) && self.last_scan[value as usize] == self.scan;
            if self.eliminated[record as usize] > 0 || self.values(record).iter().any(is_shared) {
                continue;
            }
            let width = self.limits.len();
            for &value in &self.records[record as usize * width..][..width] {
                self.last_scan[value as usize] = self.scan;
            }
            found += 1;
            if found > limit {
                return true;
            }
        }
        false
    }

    /// Whether eliminating at most `values` values deletes every remaining record.
    fn can_delete_all(&mut self, values: u32) -> Result<bool, VerifyError> {
        if self.remaining == 0 {
            return Ok(true);
        }
        let too_few = self.deletable_at_most(values) < u64::from(self.remaining);
        if values == 0 || too_few || self.has_more_disjoint_than(values) {
            return Ok(false);
        }
        self.cancellation.check()?;
        let mut candidates = self.candidates();
        candidates.sort_by_key(|&value| std::cmp::Reverse(self.frequency[value as usize]));
        let mut found = false;
        for &value in &candidates {
            self.eliminate(value);
            let below = self.can_delete_all(values - 1);
            self.restore(value);
            if below? {
                found = true;
                break;
            }
            self.excluded[value as usize] = true;
        }
        for &value in &candidates {
            self.excluded[value as usize] = false;
        }
        Ok(found)
    }

    /// Values of which one must be eliminated: those of the remaining record that has the fewest
    /// and rarest ones left. Empty where a record can no longer be deleted.
    fn candidates(&self) -> Vec<u32> {
        let records = (0..).zip(&self.eliminated);
        let remaining = records.filter(|(_, eliminated)| **eliminated == 0);
        let open = |record| {
            let values = self.values(record).iter().copied();
            values.filter(|&value| self.is_open(value))
        };
        let hardest = remaining.map(|(record, _)| record).min_by_key(|&record| {
            open(record).fold((0u32, 0u64), |(count, sum), value| {
                (count + 1, sum + u64::from(self.frequency[value as usize]))
            })
        });
        hardest
            .map(|record| open(record).collect())
            .unwrap_or_default()
    }

    /// The values of a record.
    fn values(&self, record: u32) -> &[u32] {
        let width = self.limits.len();
        &self.records[record as usize * width..][..width]
    }

    /// Whether a value may still be eliminated.
    fn is_open(&self, value: u32) -> bool {
        let value = value as usize;
        !self.excluded[value] && self.limits[self.column_of[value] as usize] > 0
    }

    /// An upper bound of the records that eliminating `values` values deletes: as if no record
    /// had two of them.
    fn deletable_at_most(&self, values: u32) -> u64 {
        let mut best: Vec<u32> = Vec::new();
        for (column, &limit) in self.columns.iter().zip(&self.limits) {
            let open = column
                .iter()
                .filter(|&&value| !self.excluded[value as usize]);
            let mut counts: Vec<u32> = open.map(|&value| self.frequency[value as usize]).collect();
            keep_greatest(&mut counts, limit.min(values) as usize);
            best.extend(counts);
        }
        keep_greatest(&mut best, values as usize);
        best.iter().map(|&count| u64::from(count)).sum()
    }

    /// Eliminates a value: deletes the records that have it.
    fn eliminate(&mut self, value: u32) {
        let width = self.limits.len();
        self.limits[self.column_of[value as usize] as usize] -= 1;
        for &record in &self.holders[value as usize] {
            let eliminated = &mut self.eliminated[record as usize];
            *eliminated += 1;
            if *eliminated == 1 {
                self.remaining -= 1;
                for &other in &self.records[record as usize * width..][..width] {
                    self.frequency[other as usize] -= 1;
                }
            }
        }
    }

    /// Undoes [`Self::eliminate`].
    fn restore(&mut self, value: u32) {
        let width = self.limits.len();
        self.limits[self.column_of[value as usize] as usize] += 1;
        for &record in &self.holders[value as usize] {
            let eliminated = &mut self.eliminated[record as usize];
            *eliminated -= 1;
            if *eliminated == 0 {
                self.remaining += 1;
                for &other in &self.records[record as usize * width..][..width] {
                    self.frequency[other as usize] += 1;
                }
            }
        }
    }
}

/// Keeps the `kept` greatest counts, in no particular order.
fn keep_greatest(counts: &mut Vec<u32>, kept: usize) {
    if counts.len() > kept {
        if kept > 0 {
            counts.select_nth_unstable_by(kept - 1, |one, other| other.cmp(one));
        }
        counts.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use pais_core::cancellation::Cancellation;

    use super::{MISSING, MinimumCover};

    fn fewest(records: &[Vec<u32>], limits: &[u32], cap: u32) -> u32 {
        let records = records.iter().map(Vec::as_slice);
        MinimumCover::new(records, limits, &Cancellation::new())
            .fewest(cap)
            .unwrap()
    }

    /// Figure 1 of the paper: heart disease and IV delete all four patients.
    #[test]
    fn figure_1_needs_two_values() {
        let records = [[0, 0], [0, 1], [1, 2], [2, 2]].map(Vec::from);
        assert_eq!(fewest(&records, &[9, 9], 9), 2);
    }

    /// Figure 4: three treatments delete all; with at most two of them, two diseases more.
    #[test]
    fn figure_4_needs_three_values_and_four_under_its_limits() {
        let records = [[1, 1], [2, 1], [3, 2], [4, 2], [5, 3], [6, 3]].map(Vec::from);
        assert_eq!(fewest(&records, &[9, 9], 9), 3);
        assert_eq!(fewest(&records, &[4, 2], 9), 4);
        assert_eq!(fewest(&records, &[4, 2], 4), 4);
        // Two treatments and one disease leave a record: no permitted values delete all.
        assert_eq!(fewest(&records, &[1, 2], 9), 9);
    }

    #[test]
    fn a_missing_cell_protects_nobody() {
        let records = [vec![0, MISSING], vec![1, 0], vec![MISSING, MISSING]];
        assert_eq!(fewest(&records, &[9, 9], 9), 1);
        assert_eq!(fewest(&records[..1], &[9, 9], 9), 0);
        // No value of the second column may be eliminated, so the column is ignored.
        assert_eq!(fewest(&records[..2], &[9, 0], 9), 2);
        // No value may be eliminated at all.
        assert_eq!(fewest(&records, &[0, 0], 9), 9);
    }

    /// The size of the smallest permitted cover, found by trying all sets of values.
    fn brute_force(records: &[Vec<u32>], limits: &[u32], cap: u32) -> u32 {
        let counts = |column: &usize| limits[*column] > 0;
        let columns: Vec<usize> = (0..limits.len()).filter(counts).collect();
        let complete = |record: &&Vec<u32>| columns.iter().all(|&column| record[column] != MISSING);
        let records: Vec<&Vec<u32>> = records.iter().filter(complete).collect();
        let mut values: Vec<(usize, u32)> = records
            .iter()
            .flat_map(|record| columns.iter().map(|&column| (column, record[column])))
            .collect();
        values.sort_unstable();
        values.dedup();
        let mut best = cap;
        for set in 0u32..1 << values.len() {
            let chosen: Vec<(usize, u32)> = (0..values.len())
                .filter(|&value| set & 1 << value != 0)
                .map(|value| values[value])
                .collect();
            let of = |column: usize| chosen.iter().filter(|value| value.0 == column).count() as u32;
            let permitted = columns.iter().all(|&column| of(column) <= limits[column]);
            let deletes = |record: &&Vec<u32>| {
                chosen
                    .iter()
                    .any(|&(column, value)| record[column] == value)
            };
            if permitted && records.iter().all(deletes) {
                best = best.min(chosen.len() as u32);
            }
        }
        best
    }

    fn group() -> impl Strategy<Value = (Vec<Vec<u32>>, Vec<u32>, u32)> {
        (1usize..4).prop_flat_map(|columns| {
            let cell = prop_oneof![6 => 0u32..4, 1 => Just(MISSING)];
            let record = prop::collection::vec(cell, columns);
            let limits = prop::collection::vec(0u32..5, columns);
            (prop::collection::vec(record, 1..12), limits, 1u32..7)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn fewest_agrees_with_brute_force((records, limits, cap) in group()) {
            let expected = brute_force(&records, &limits, cap);
            prop_assert_eq!(fewest(&records, &limits, cap), expected);
        }
    }
}
