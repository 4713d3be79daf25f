//! Counts of a group for the values of each single attribute: the last step of a qid.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::profiles::{Grid, Profiles, ValueCount};
use super::qid_search::KnownValue;

/// Most cells (attribute value × sensitive value) of a dense table.
const DENSE_CELLS: usize = 1 << 22;

/// Most sensitive values for which a profile's counts are stored as a dense row.
const ROW_LENGTH: usize = 256;

const NONE: ValueCount = ValueCount {
    value: 0,
    records: 0,
};

/// For each value of each attribute that may be the last of a qid, counts a group's records and
/// those with their most frequent sensitive value.
pub(super) struct Counter {
    /// First cell of each attribute; an attribute has one cell for each of its values.
    offsets: Vec<usize>,
    /// Number of records for each cell; 0 between calls.
    records: Vec<u32>,
    /// The most frequent sensitive value for each cell.
    most: Vec<ValueCount>,
    /// The cells in use, in the order of their first use.
    used: Vec<(usize, KnownValue)>,
    sensitive_values: usize,
    /// Number of records of the group with each sensitive value; 0 between calls.
    totals: Vec<u32>,
    /// The attributes whose sensitive values are counted.
    wanted: Vec<usize>,
    /// A row of counts for each cell.
    rows: Vec<u32>,
    /// A row of counts for each profile of the group.
    group_rows: Vec<u32>,
    /// A row of counts for each value of one attribute.
    dense: Vec<u32>,
    /// Replaces `dense` where that has too many cells.
    sparse: FxHashMap<u64, u32>,
}

impl Counter {
    pub(super) fn new(grid: &Grid, sensitive_values: usize) -> Self {
        let mut cells = 0;
        let mut offsets = Vec::with_capacity(grid.attributes());
        for &cardinality in &grid.cardinalities {
            offsets.push(cells);
            cells += cardinality;
        }
        let widest = grid.cardinalities.iter().copied().max().unwrap_or(0);
        let table = |rows: usize, fits: bool| {
            let cells = rows.saturating_mul(sensitive_values);
            vec![
                0;
                if fits && cells <= DENSE_CELLS {
                    cells
                } else {
                    0
                }
            ]
        };
        Self {
            offsets,
            records: vec![0; cells],
            most: vec![NONE; cells],
            used: Vec::new(),
            sensitive_values,
            totals: vec![0; sensitive_values],
            wanted: Vec::new(),
            rows: table(cells, sensitive_values <= ROW_LENGTH),
            group_rows: Vec::new(),
            dense: table(widest, true),
            sparse: FxHashMap::default(),
        }
    }

    /// Counts a group by the attributes from number `from` on. Sensitive values are counted only
    /// for attributes with a value for which `matters(most, records)` is true, where `records`
    /// is its number of records and `most`, an upper bound, the number of records of the whole
    /// group with the group's most frequent sensitive value.
    pub(super) fn count(
        &mut self,
        grid: &Grid,
        (profiles, group): (&Profiles, Range<usize>),
        from: usize,
        matters: impl Fn(u32, u32) -> bool,
    ) {
        for profile in group.clone() {
            let values = &grid.values(profiles.class[profile])[from..];
            let records = profiles.records[profile];
            for ((attribute, &value), offset) in (from..).zip(values).zip(&self.offsets[from..]) {
                let cell = offset + value as usize;
                if self.records[cell] == 0 {
                    self.used.push((cell, (attribute, value)));
                }
                self.records[cell] += records;
            }
        }
        let (most, count_entries) = self.total(profiles, group.clone());
        self.wanted.clear();
        for &(cell, (attribute, _)) in &self.used {
            if most > 0 && matters(most, self.records[cell]) {
                self.wanted.push(attribute);
            }
        }
        self.wanted.sort_unstable();
        self.wanted.dedup();
        if self.wanted.is_empty() {
            return;
        }
        // Adding dense rows is several times faster than adding single counts, unless most are 0.
        let filled = count_entries * 4 >= group.len() * self.sensitive_values;
        if filled && !self.rows.is_empty() {
            self.count_by_rows(grid, (profiles, group));
        } else {
            self.count_one_by_one(grid, (profiles, group));
        }
    }

    /// Number of records with the group's most frequent sensitive value, and number of counts
    /// that its profiles have.
    fn total(&mut self, profiles: &Profiles, group: Range<usize>) -> (u32, usize) {
        let (mut most, mut count_entries) = (0, 0);
        for entry in group
            .clone()
            .flat_map(|profile| profiles.value_counts(profile))
        {
            let total = &mut self.totals[entry.value as usize];
            *total += entry.records;
            most = most.max(*total);
            count_entries += 1;
        }
        for entry in group.flat_map(|profile| profiles.value_counts(profile)) {
            self.totals[entry.value as usize] = 0;
        }
        (most, count_entries)
    }

    fn count_by_rows(&mut self, grid: &Grid, (profiles, group): (&Profiles, Range<usize>)) {
        let length = self.sensitive_values;
        self.group_rows.clear();
        self.group_rows.resize(group.len() * length, 0);
        for (row, profile) in self.group_rows.chunks_exact_mut(length).zip(group.clone()) {
            for entry in profiles.value_counts(profile) {
                row[entry.value as usize] = entry.records;
            }
        }
        for (row, profile) in self.group_rows.chunks_exact(length).zip(group) {
            let values = grid.values(profiles.class[profile]);
            for &attribute in &self.wanted {
                let cell = (self.offsets[attribute] + values[attribute] as usize) * length;
                for (sum, &records) in self.rows[cell..cell + length].iter_mut().zip(row) {
                    *sum += records;
                }
            }
        }
        let wanted = |attribute: &usize| self.wanted.binary_search(attribute).is_ok();
        for &(cell, _) in self
            .used
            .iter()
            .filter(|(_, (attribute, _))| wanted(attribute))
        {
            let row = &mut self.rows[cell * length..(cell + 1) * length];
            let most = &mut self.most[cell];
            for (value, sum) in row.iter_mut().enumerate() {
                let records = std::mem::take(sum);
                if records > most.records {
                    *most = ValueCount {
                        value: value as u32,
                        records,
                    };
                }
            }
        }
    }

    fn count_one_by_one(&mut self, grid: &Grid, (profiles, group): (&Profiles, Range<usize>)) {
        for index in 0..self.wanted.len() {
            let attribute = self.wanted[index];
            let offset = self.offsets[attribute];
            for profile in group.clone() {
                let value = grid.values(profiles.class[profile])[attribute] as usize;
                for entry in profiles.value_counts(profile) {
                    let records = self.add_count(value, entry);
                    // Counts only grow, so the running maximum is the final maximum.
                    let most = &mut self.most[offset + value];
                    if records > most.records {
                        *most = ValueCount {
                            value: entry.value,
                            records,
                        };
                    }
                }
            }
            self.reset_counts(grid, (profiles, group.clone()), attribute);
        }
    }

    #[inline]
    fn add_count(&mut self, value: usize, entry: &ValueCount) -> u32 {
        let key = value * self.sensitive_values + entry.value as usize;
        let count = if self.dense.is_empty() {
            self.sparse.entry(key as u64).or_insert(0)
        } else {
            &mut self.dense[key]
        };
        *count += entry.records;
        *count
    }

    fn reset_counts(
        &mut self,
        grid: &Grid,
        (profiles, group): (&Profiles, Range<usize>),
        attribute: usize,
    ) {
        self.sparse.clear();
        if self.dense.is_empty() {
            return;
        }
        for profile in group {
            let value = grid.values(profiles.class[profile])[attribute] as usize;
            for entry in profiles.value_counts(profile) {
                self.dense[value * self.sensitive_values + entry.value as usize] = 0;
            }
        }
    }

    /// Passes the counts of each cell to `found` and resets them.
    pub(super) fn drain(&mut self, mut found: impl FnMut(KnownValue, u32, Option<ValueCount>)) {
        for (cell, known) in self.used.drain(..) {
            let records = std::mem::take(&mut self.records[cell]);
            let most = std::mem::replace(&mut self.most[cell], NONE);
            found(known, records, (most.records > 0).then_some(most));
        }
    }
}
