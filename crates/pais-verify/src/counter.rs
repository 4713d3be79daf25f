//! Counts of a group by the values of each attribute alone: the last step of a qid.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::profiles::{Grid, Profiles, Tally};
use super::search::Known;

/// Cells of a table with sensitive values up to which it is dense.
const DENSE_CELLS: usize = 1 << 22;

/// Sensitive values up to which a profile's counts are laid out as a row.
const ROW_LENGTH: usize = 256;

const NONE: Tally = Tally {
    value: 0,
    records: 0,
};

/// Counts a group's records by the values of each attribute that may come last, and the most
/// frequent sensitive value among them.
pub(super) struct Counter {
    /// First cell of each attribute; a cell for each of its values.
    offsets: Vec<usize>,
    records: Vec<u32>,
    most: Vec<Tally>,
    /// The cells in use, in the order in which they came into use.
    used: Vec<(usize, Known)>,
    sensitive_values: usize,
    /// Records of each sensitive value in the group, 0 between calls.
    totals: Vec<u32>,
    /// The attributes whose sensitive values are counted.
    wanted: Vec<usize>,
    /// A row of counts for each cell.
    rows: Vec<u32>,
    /// A row of counts for each profile of the group.
    group_rows: Vec<u32>,
    /// A row of counts for each value of one attribute.
    dense: Vec<u32>,
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

    /// Counts a group by the attributes from number `from` on. Sensitive values are counted for
    /// those attributes alone where `minds(most, records)` says of some value of theirs that it
    /// may be of interest, were all records of the group with one sensitive value among its own.
    pub(super) fn count(
        &mut self,
        grid: &Grid,
        (profiles, group): (&Profiles, Range<usize>),
        from: usize,
        minds: impl Fn(u32, u32) -> bool,
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
        let (most, tallied) = self.total(profiles, group.clone());
        self.wanted.clear();
        for &(cell, (attribute, _)) in &self.used {
            if most > 0 && minds(most, self.records[cell]) {
                self.wanted.push(attribute);
            }
        }
        self.wanted.sort_unstable();
        self.wanted.dedup();
        if self.wanted.is_empty() {
            return;
        }
        // Adding a row is several times faster than scattering its counts, unless most are 0.
        let filled = tallied * 4 >= group.len() * self.sensitive_values;
        if filled && !self.rows.is_empty() {
            self.tally_rows(grid, (profiles, group));
        } else {
            self.tally_one_by_one(grid, (profiles, group));
        }
    }

    /// Records of the group's most frequent sensitive value, and how many counts its profiles
    /// have.
    fn total(&mut self, profiles: &Profiles, group: Range<usize>) -> (u32, usize) {
        let (mut most, mut tallied) = (0, 0);
        for tally in group.clone().flat_map(|profile| profiles.tallies(profile)) {
            let total = &mut self.totals[tally.value as usize];
            *total += tally.records;
            most = most.max(*total);
            tallied += 1;
        }
        for tally in group.flat_map(|profile| profiles.tallies(profile)) {
            self.totals[tally.value as usize] = 0;
        }
        (most, tallied)
    }

    fn tally_rows(&mut self, grid: &Grid, (profiles, group): (&Profiles, Range<usize>)) {
        let length = self.sensitive_values;
        self.group_rows.clear();
        self.group_rows.resize(group.len() * length, 0);
        for (row, profile) in self.group_rows.chunks_exact_mut(length).zip(group.clone()) {
            for tally in profiles.tallies(profile) {
                row[tally.value as usize] = tally.records;
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
                    *most = Tally {
                        value: value as u32,
                        records,
                    };
                }
            }
        }
    }

    fn tally_one_by_one(&mut self, grid: &Grid, (profiles, group): (&Profiles, Range<usize>)) {
        for index in 0..self.wanted.len() {
            let attribute = self.wanted[index];
            let offset = self.offsets[attribute];
            for profile in group.clone() {
                let value = grid.values(profiles.class[profile])[attribute] as usize;
                for tally in profiles.tallies(profile) {
                    let records = self.tally(value, tally);
                    // Counts only grow, so the greatest on the way is the greatest in the end.
                    let most = &mut self.most[offset + value];
                    if records > most.records {
                        *most = Tally {
                            value: tally.value,
                            records,
                        };
                    }
                }
            }
            self.forget_tallies(grid, (profiles, group.clone()), attribute);
        }
    }

    #[inline]
    fn tally(&mut self, value: usize, tally: &Tally) -> u32 {
        let key = value * self.sensitive_values + tally.value as usize;
        let count = if self.dense.is_empty() {
            self.sparse.entry(key as u64).or_insert(0)
        } else {
            &mut self.dense[key]
        };
        *count += tally.records;
        *count
    }

    fn forget_tallies(
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
            for tally in profiles.tallies(profile) {
                self.dense[value * self.sensitive_values + tally.value as usize] = 0;
            }
        }
    }

    /// Hands out the counts and forgets them.
    pub(super) fn drain(&mut self, mut found: impl FnMut(Known, u32, Option<Tally>)) {
        for (cell, known) in self.used.drain(..) {
            let records = std::mem::take(&mut self.records[cell]);
            let most = std::mem::replace(&mut self.most[cell], NONE);
            found(known, records, (most.records > 0).then_some(most));
        }
    }
}
