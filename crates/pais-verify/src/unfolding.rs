//! Expansion of profiles to records, as bitmaps.

use super::bitmaps::GroupBitmaps;
use super::profiles::{Grid, ProfileGroup};

/// Maximum number of words of a group's bitmaps: 32 MiB. Larger groups have no bitmaps.
const MOST_WORDS: u64 = 1 << 22;

/// Maximum number of bits of bitmaps for each value of a profile that they replace; with more, profiles are
/// faster. A word of a bitmap has 64 bits, and reading it takes less time than reading a value.
const BITS_PER_VALUE: u64 = 32;

/// A value without a bitmap.
const NONE: u32 = u32::MAX;

/// Makes bitmaps of groups. Its working space is 16 bytes for each value of an attribute.
pub(super) struct Unfolding<'g> {
    grid: &'g Grid,
    /// First cell of each attribute; an attribute has one cell for each of its values.
    offsets: Vec<usize>,
    /// Number of records for each cell; 0 between calls.
    records: Vec<u32>,
    /// The cells in use.
    used: Vec<usize>,
    /// Bitmap of each cell in use, or [`NONE`].
    bitmap: Vec<u32>,
    /// First bitmap of each attribute; the end last.
    first: Vec<usize>,
    /// For each sensitive value, first its number of records, then its number among the
    /// sensitive values of the group.
    sensitive: Vec<u32>,
    /// For each sensitive value of the group, the next bit to set.
    next: Vec<usize>,
}

impl<'g> Unfolding<'g> {
    pub(super) fn new(grid: &'g Grid, sensitive_values: usize) -> Self {
        Self {
            grid,
            offsets: grid.offsets(),
            records: vec![0; grid.cells()],
            used: Vec::new(),
            bitmap: vec![NONE; grid.cells()],
            first: Vec::new(),
            sensitive: vec![0; sensitive_values],
            next: Vec::new(),
        }
    }

    /// Makes bitmaps of a group, for its varying attributes from number `from` on, if searching
    /// them is faster than searching its profiles. Returns whether it made them.
    pub(super) fn unfold(
        &mut self,
        group: &ProfileGroup,
        from: usize,
        into: &mut GroupBitmaps,
    ) -> bool {
        let records = group.records().iter();
        let records: u64 = records.map(|&records| u64::from(records)).sum();
        let reads = group.len() as u64 * (self.grid.attributes() - from) as u64;
        if records > BITS_PER_VALUE * group.len() as u64 {
            return false;
        }
        self.number(group, from);
        let bitmaps = self.first.last().copied().unwrap_or(0);
        if records * bitmaps as u64 > BITS_PER_VALUE * reads {
            return false;
        }
        self.sensitive.fill(0);
        for count in group.all_value_counts() {
            self.sensitive[count.value as usize] += count.records;
        }
        let sizes = std::iter::once(records as u32).chain(self.sensitive.iter().copied());
        let words: u64 = sizes.map(|size| u64::from(size.div_ceil(64))).sum();
        if words * bitmaps as u64 > MOST_WORDS {
            return false;
        }
        into.first.clone_from(&self.first);
        into.records.clear(bitmaps, std::iter::once(records as u32));
        into.sensitive
            .clear(bitmaps, self.sensitive.iter().copied());
        self.fill(group, from, into);
        true
    }

    /// Sets the bits of a group's profiles.
    fn fill(&mut self, group: &ProfileGroup, from: usize, into: &mut GroupBitmaps) {
        self.next.clear();
        for number in self.sensitive.iter_mut().filter(|records| **records > 0) {
            *number = self.next.len() as u32;
            self.next.push(into.sensitive.start(self.next.len()));
        }
        let mut start = 0;
        let profiles = group.classes().iter().zip(group.records());
        for ((&class, &records), counts) in profiles.zip(group.value_counts()) {
            let end = start + records as usize;
            let values = self.grid.values(class)[from..].iter();
            let bitmaps = values
                .zip(&self.offsets[from..])
                .map(|(&value, offset)| self.bitmap[offset + value as usize])
                .filter(|&bitmap| bitmap != NONE);
            into.records.set(bitmaps.clone(), start..end);
            for count in counts {
                let next = &mut self.next[self.sensitive[count.value as usize] as usize];
                let bits = *next..*next + count.records as usize;
                *next = bits.end;
                into.sensitive.set(bitmaps.clone(), bits);
            }
            start = end;
        }
    }

    /// Numbers the bitmaps of a group, attribute by attribute. Attributes with a single value
    /// have none, and of each other attribute the most frequent value has none.
    fn number(&mut self, group: &ProfileGroup, from: usize) {
        self.used.clear();
        for (&class, records) in group.classes().iter().zip(group.records()) {
            let values = &self.grid.values(class)[from..];
            for (&value, offset) in values.iter().zip(&self.offsets[from..]) {
                let cell = offset + value as usize;
                if self.records[cell] == 0 {
                    self.used.push(cell);
                }
                self.records[cell] += records;
            }
        }
        self.used.sort_unstable();
        self.first.clear();
        self.first.push(0);
        let mut bitmaps = 0;
        let mut rest = &self.used[..];
        for attribute in from..self.grid.attributes() {
            let end = self.offsets[attribute] + self.grid.cardinalities[attribute];
            let (cells, others) = rest.split_at(rest.partition_point(|&cell| cell < end));
            rest = others;
            let most = cells.iter().max_by_key(|&&cell| self.records[cell]);
            for cell in cells {
                self.bitmap[*cell] = if Some(cell) == most {
                    NONE
                } else {
                    bitmaps += 1;
                    bitmaps - 1
                };
            }
            if cells.len() > 1 {
                self.first.push(bitmaps as usize);
            }
        }
        for &cell in &self.used {
            self.records[cell] = 0;
        }
    }
}
