//! Counts of a group for the values of each single attribute: the last step of a qid.

use rustc_hash::FxHashMap;

use super::profiles::{Grid, KnownValue, ProfileGroup, Share, ValueCount};

/// Maximum number of cells (attribute value × sensitive value) of a dense table.
const DENSE_CELLS: usize = 1 << 22;

/// Maximum number of sensitive values for which a profile's counts are stored as a dense row.
const ROW_LENGTH: usize = 256;

/// For each value of each attribute that may be the last of a qid, counts a group's records and
/// those with their most frequent sensitive value.
pub(super) struct Counter<'g> {
    grid: &'g Grid,
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

impl<'g> Counter<'g> {
    pub(super) fn new(grid: &'g Grid, sensitive_values: usize) -> Self {
        let cells = grid.cells();
        let table = |rows: usize| {
            let cells = rows.saturating_mul(sensitive_values);
            vec![0; if cells <= DENSE_CELLS { cells } else { 0 }]
        };
        Self {
            grid,
            offsets: grid.offsets(),
            records: vec![0; cells],
            most: vec![ValueCount::default(); cells],
            used: Vec::new(),
            sensitive_values,
            totals: vec![0; sensitive_values],
            wanted: Vec::new(),
            rows: if sensitive_values <= ROW_LENGTH {
                table(cells)
            } else {
                Vec::new()
            },
            group_rows: Vec::new(),
            dense: table(grid.most_values()),
            sparse: FxHashMap::default(),
        }
    }

    /// Counts a group by the attributes from number `from` on. Sensitive values are counted only for attributes
    /// with a value for which `matters` is true for an upper bound of its share: the group's records with its
    /// most frequent sensitive value, among the records with the attribute's value.
    pub(super) fn count(
        &mut self,
        group: &ProfileGroup,
        from: usize,
        matters: impl Fn(Share) -> bool,
    ) {
        for (&class, &records) in group.classes().iter().zip(group.records()) {
            let values = &self.grid.values(class)[from..];
            for ((attribute, &value), offset) in (from..).zip(values).zip(&self.offsets[from..]) {
                let cell = offset + value as usize;
                if self.records[cell] == 0 {
                    self.used.push((cell, (attribute, value)));
                }
                self.records[cell] += records;
            }
        }
        let most = self.most_frequent(group);
        self.wanted.clear();
        for &(cell, (attribute, _)) in &self.used {
            let of = self.records[cell];
            if most > 0 && matters(Share { most, of }) {
                self.wanted.push(attribute);
            }
        }
        self.wanted.sort_unstable();
        self.wanted.dedup();
        if self.wanted.is_empty() {
            return;
        }
        // Adding dense rows is several times faster than adding single counts, unless most are 0.
        let filled = group.all_value_counts().len() * 4 >= group.len() * self.sensitive_values;
        if filled && !self.rows.is_empty() {
            self.count_by_rows(group);
        } else {
            self.count_one_by_one(group);
        }
    }

    /// Number of records with the group's most frequent sensitive value.
    fn most_frequent(&mut self, group: &ProfileGroup) -> u32 {
        let mut most = 0;
        for count in group.all_value_counts() {
            let total = &mut self.totals[count.value as usize];
            *total += count.records;
            most = most.max(*total);
        }
        for count in group.all_value_counts() {
            self.totals[count.value as usize] = 0;
        }
        most
    }

    fn count_by_rows(&mut self, group: &ProfileGroup) {
        let length = self.sensitive_values;
        self.group_rows.clear();
        self.group_rows.resize(group.len() * length, 0);
        for (row, counts) in self
            .group_rows
            .chunks_exact_mut(length)
            .zip(group.value_counts())
        {
            for count in counts {
                row[count.value as usize] = count.records;
            }
        }
        for (row, &class) in self.group_rows.chunks_exact(length).zip(group.classes()) {
            let values = self.grid.values(class);
            for &attribute in &self.wanted {
                let cell = (self.offsets[attribute] + values[attribute] as usize) * length;
                for (sum, &records) in self.rows[cell..cell + length].iter_mut().zip(row) {
                    *sum += records;
                }
            }
        }
        for &(cell, (attribute, _)) in &self.used {
            if self.wanted.binary_search(&attribute).is_err() {
                continue;
            }
            let row = &mut self.rows[cell * length..(cell + 1) * length];
            for (value, sum) in (0..).zip(row) {
                let records = std::mem::take(sum);
                self.most[cell].raise(ValueCount { value, records });
            }
        }
    }

    fn count_one_by_one(&mut self, group: &ProfileGroup) {
        for index in 0..self.wanted.len() {
            let attribute = self.wanted[index];
            for (&class, counts) in group.classes().iter().zip(group.value_counts()) {
                let value = self.grid.values(class)[attribute] as usize;
                for count in counts {
                    let records = self.add_count(value, count);
                    // Counts only grow, so the running maximum is the final maximum.
                    self.most[self.offsets[attribute] + value].raise(ValueCount {
                        value: count.value,
                        records,
                    });
                }
            }
            self.reset_counts(group, attribute);
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

    fn reset_counts(&mut self, group: &ProfileGroup, attribute: usize) {
        self.sparse.clear();
        if self.dense.is_empty() {
            return;
        }
        for (&class, counts) in group.classes().iter().zip(group.value_counts()) {
            let value = self.grid.values(class)[attribute] as usize;
            for count in counts {
                self.dense[value * self.sensitive_values + count.value as usize] = 0;
            }
        }
    }

    /// Passes the counts of each cell to `found` and resets them.
    pub(super) fn drain(&mut self, mut found: impl FnMut(KnownValue, u32, Option<ValueCount>)) {
        for (cell, known) in self.used.drain(..) {
            let records = std::mem::take(&mut self.records[cell]);
            let most = std::mem::take(&mut self.most[cell]);
            found(known, records, (most.records > 0).then_some(most));
        }
    }
}
