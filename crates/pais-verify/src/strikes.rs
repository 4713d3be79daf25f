//! How many sensitive values have to be struck out before no record of a group is left
//! (Definitions 6 and 7 of *A Privacy Protection Model for Patient Data with Multiple Sensitive
//! Attributes*, 2008), decided exactly.
//!
//! Striking out a value deletes the records that hold it, so this is the smallest cover of the
//! records by values. It is found by a search tree: some value of a record that still stands has
//! to be struck out, and a branch ends where the most frequent values left are too few for the
//! records left, or where too many records stand that have none of them in common.

use hashbrown::HashMap;

/// A record's cell that is missing.
pub(super) const MISSING: u32 = u32::MAX;

/// The records of a group, by their sensitive values.
pub(super) struct Strikes<'s> {
    /// *L_i*, most values of each column that may be struck out.
    limits: Vec<u32>,
    /// Records with distinct values, each as long as `limits`.
    records: Vec<u32>,
    /// Of each value, the records that hold it.
    holders: Vec<Vec<u32>>,
    /// Of each column, its values.
    columns: Vec<Vec<u32>>,
    column_of: Vec<u32>,
    /// How many of the values struck out each record holds.
    struck: Vec<u32>,
    /// Records that still stand.
    standing: u32,
    /// Of each value, the standing records that hold it.
    frequency: Vec<u32>,
    /// Values that were tried in vain further up the tree.
    barred: Vec<bool>,
    /// Records, those with rare values first.
    rare_first: Vec<u32>,
    /// When a value was last met in [`Self::more_apart_than`].
    met: Vec<u32>,
    looks: u32,
    stop: &'s (dyn Fn() -> bool + Sync),
}

/// The search was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stopped;

impl<'s> Strikes<'s> {
    /// Takes the records of a group, each with a value for each column or [`MISSING`].
    ///
    /// A column of which nothing may be struck out does not matter. A missing cell of any other
    /// protects nobody: its record is taken as deleted from the start.
    pub(super) fn of<'r>(
        records: impl Iterator<Item = &'r [u32]>,
        limits: &[u32],
        stop: &'s (dyn Fn() -> bool + Sync),
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
            struck: Vec::new(),
            standing: 0,
            frequency: Vec::new(),
            barred: Vec::new(),
            rare_first: Vec::new(),
            met: Vec::new(),
            looks: 0,
            stop,
        };
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        let mut seen: HashMap<Vec<u32>, ()> = HashMap::new();
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
            if record.len() < counted.len() || seen.contains_key(&record) {
                continue;
            }
            for &value in &record {
                group.holders[value as usize].push(group.standing);
            }
            group.records.extend_from_slice(&record);
            group.standing += 1;
            seen.insert(record.clone(), ());
        }
        group.struck = vec![0; group.standing as usize];
        group.frequency = group.holders.iter().map(|rows| rows.len() as u32).collect();
        group.barred = vec![false; group.holders.len()];
        group.met = vec![0; group.holders.len()];
        let width = group.limits.len();
        let mut order: Vec<u32> = (0..group.standing).collect();
        order.sort_by_cached_key(|&record| {
            let values = &group.records[record as usize * width..][..width];
            let frequencies = values.iter().map(|&value| group.frequency[value as usize]);
            frequencies.map(u64::from).sum::<u64>()
        });
        group.rare_first = order;
        group
    }

    /// The fewest values that delete every record, at most `most` of them being of interest:
    /// `most` too where more are needed, or where no values that may be struck out delete all.
    ///
    /// # Errors
    /// When stopped.
    pub(super) fn fewest(&mut self, most: u32) -> Result<u32, Stopped> {
        if self.standing == 0 {
            return Ok(0);
        }
        if !self.deletable(most.saturating_sub(1))? {
            return Ok(most);
        }
        for values in 1..most {
            if self.deletable(values)? {
                return Ok(values);
            }
        }
        Ok(most)
    }

    /// Whether more than so many standing records share no value that may still be struck out:
    /// each needs a strike of its own.
    fn more_apart_than(&mut self, strikes: u32) -> bool {
        let width = self.limits.len();
        self.looks += 1;
        let mut found = 0;
        for &record in &self.rare_first {
            if self.struck[record as usize] > 0 {
                continue;
            }
            let values = &self.records[record as usize * width..][..width];
            let open = |value: &&u32| {
                let value = **value as usize;
                !self.barred[value] && self.limits[self.column_of[value] as usize] > 0
            };
            if values
                .iter()
                .filter(open)
                .any(|&value| self.met[value as usize] == self.looks)
            {
                continue;
            }
            for &value in values {
                self.met[value as usize] = self.looks;
            }
            found += 1;
            if found > strikes {
                return true;
            }
        }
        false
    }

    /// Whether `values` strikes at most delete every record that stands.
    fn deletable(&mut self, values: u32) -> Result<bool, Stopped> {
        if self.standing == 0 {
            return Ok(true);
        }
        let too_few = self.reach(values) < u64::from(self.standing);
        if values == 0 || too_few || self.more_apart_than(values) {
            return Ok(false);
        }
        if (self.stop)() {
            return Err(Stopped);
        }
        let mut choices = self.choices();
        choices.sort_by_key(|&value| std::cmp::Reverse(self.frequency[value as usize]));
        let mut found = false;
        for &value in &choices {
            self.strike(value);
            let below = self.deletable(values - 1);
            self.restore(value);
            if below? {
                found = true;
                break;
            }
            self.barred[value as usize] = true;
        }
        for &value in &choices {
            self.barred[value as usize] = false;
        }
        Ok(found)
    }

    /// The values, one of which has to be struck out: those of the standing record that has the
    /// fewest and rarest. Empty where a record can no longer be deleted.
    fn choices(&self) -> Vec<u32> {
        let width = self.limits.len();
        let open = |value: &&u32| {
            let value = **value as usize;
            !self.barred[value] && self.limits[self.column_of[value] as usize] > 0
        };
        let standing = (0..self.struck.len()).filter(|&record| self.struck[record] == 0);
        let values = |record: usize| &self.records[record * width..(record + 1) * width];
        let hardest = standing.min_by_key(|&record| {
            let open = values(record).iter().filter(open);
            open.fold((0u32, 0u64), |(count, sum), &value| {
                (count + 1, sum + u64::from(self.frequency[value as usize]))
            })
        });
        let hardest = hardest.map(|record| values(record).iter().filter(open).copied());
        hardest.map(Iterator::collect).unwrap_or_default()
    }

    /// The most records that so many strikes can delete, were no record to hold two of the
    /// values.
    fn reach(&self, values: u32) -> u64 {
        let mut best: Vec<u32> = Vec::new();
        for (column, &limit) in self.columns.iter().zip(&self.limits) {
            let open = column.iter().filter(|&&value| !self.barred[value as usize]);
            let mut counts: Vec<u32> = open.map(|&value| self.frequency[value as usize]).collect();
            keep_greatest(&mut counts, limit.min(values) as usize);
            best.extend(counts);
        }
        keep_greatest(&mut best, values as usize);
        best.iter().map(|&count| u64::from(count)).sum()
    }

    fn strike(&mut self, value: u32) {
        let width = self.limits.len();
        self.limits[self.column_of[value as usize] as usize] -= 1;
        for &record in &self.holders[value as usize] {
            let struck = &mut self.struck[record as usize];
            *struck += 1;
            if *struck == 1 {
                self.standing -= 1;
                for &other in &self.records[record as usize * width..][..width] {
                    self.frequency[other as usize] -= 1;
                }
            }
        }
    }

    fn restore(&mut self, value: u32) {
        let width = self.limits.len();
        self.limits[self.column_of[value as usize] as usize] += 1;
        for &record in &self.holders[value as usize] {
            let struck = &mut self.struck[record as usize];
            *struck -= 1;
            if *struck == 0 {
                self.standing += 1;
                for &other in &self.records[record as usize * width..][..width] {
                    self.frequency[other as usize] += 1;
                }
            }
        }
    }
}

fn keep_greatest(counts: &mut Vec<u32>, places: usize) {
    if counts.len() > places {
        if places > 0 {
            counts.select_nth_unstable_by(places - 1, |one, other| other.cmp(one));
        }
        counts.truncate(places);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{MISSING, Strikes};

    fn fewest(records: &[Vec<u32>], limits: &[u32], most: u32) -> u32 {
        let records = records.iter().map(Vec::as_slice);
        Strikes::of(records, limits, &|| false)
            .fewest(most)
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
        // Nothing of the second column may be struck out: it does not matter.
        assert_eq!(fewest(&records[..2], &[9, 0], 9), 2);
        // Nothing may be struck out at all.
        assert_eq!(fewest(&records, &[0, 0], 9), 9);
    }

    /// The smallest permitted cover by trying all sets of values.
    fn brute_force(records: &[Vec<u32>], limits: &[u32], most: u32) -> u32 {
        let matters = |column: &usize| limits[*column] > 0;
        let columns: Vec<usize> = (0..limits.len()).filter(matters).collect();
        let whole = |record: &&Vec<u32>| columns.iter().all(|&column| record[column] != MISSING);
        let records: Vec<&Vec<u32>> = records.iter().filter(whole).collect();
        let mut values: Vec<(usize, u32)> = records
            .iter()
            .flat_map(|record| columns.iter().map(|&column| (column, record[column])))
            .collect();
        values.sort_unstable();
        values.dedup();
        let mut best = most;
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
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None,
            rng_seed: proptest::test_runner::RngSeed::Fixed(2008), ..ProptestConfig::default() })]

        #[test]
        fn the_fewest_values_are_those_of_brute_force((records, limits, most) in group()) {
            let expected = brute_force(&records, &limits, most);
            prop_assert_eq!(fewest(&records, &limits, most), expected);
        }
    }
}
