//! The qids of the greatest length that extend a group: its records and sensitive values by each value of
//! each further attribute, counted in one pass over its classes instead of one division for each
//! attribute.

use super::classes_of_table::TableClasses;
use super::found_qids::QidFigures;
use crate::profiles::Share;
use crate::sensitive::ClassCounts;

/// Maximum number of counters of sensitive values. They are kept by each thread.
const MOST_COUNTERS: usize = 1 << 20;

/// The counts of a group. A cell is a value of an attribute.
pub(super) struct LastValues {
    /// First cell of each attribute.
    offsets: Vec<usize>,
    /// Records by cell; 0 between calls.
    records: Vec<u32>,
    sensitive: Vec<CellValues>,
    /// The cells in use.
    used: Vec<usize>,
}

/// The sensitive values of the records of each cell, in one denominator.
struct CellValues {
    value_count: usize,
    /// By cell, the records in the denominator; 0 between calls. Empty where it has all records.
    of: Vec<u32>,
    /// By cell and value, the records with it; 0 between calls.
    with_value: Vec<u32>,
    /// By cell, the records of the most frequent value; 0 except while figures are passed on.
    most: Vec<u32>,
    /// The places of `with_value` in use.
    used: Vec<u32>,
}

impl LastValues {
    /// `None` if persons are counted, or if there would be too many counters.
    pub(super) fn new(classes: &TableClasses) -> Option<Self> {
        let cells = classes.grid.cells();
        let values = classes.sensitive.iter().map(|counts| counts.value_count);
        let counters = cells.checked_mul(values.sum())?;
        if classes.persons.is_some() || counters > MOST_COUNTERS {
            return None;
        }
        let of_denominator = |counts: &ClassCounts| {
            let has_all = counts.records == classes.sizes;
            CellValues {
                value_count: counts.value_count,
                of: vec![0; if has_all { 0 } else { cells }],
                with_value: vec![0; cells * counts.value_count],
                most: vec![0; cells],
                used: Vec::new(),
            }
        };
        Some(Self {
            offsets: classes.grid.offsets(),
            records: vec![0; cells],
            sensitive: classes.sensitive.iter().map(of_denominator).collect(),
            used: Vec::new(),
        })
    }

    /// Counts the classes of a group by the attributes from number `from` on; sensitive values only
    /// where `with_confidence`.
    pub(super) fn count(
        &mut self,
        classes: &TableClasses,
        group: &[u32],
        from: usize,
        with_confidence: bool,
    ) {
        for &class in group {
            let size = classes.sizes[class as usize];
            for cell in cells(&self.offsets, classes, class, from) {
                let records = &mut self.records[cell];
                if *records == 0 {
                    self.used.push(cell);
                }
                *records += size;
            }
            if !with_confidence {
                continue;
            }
            for (counts, found) in classes.sensitive.iter().zip(&mut self.sensitive) {
                if !found.of.is_empty() {
                    for cell in cells(&self.offsets, classes, class, from) {
                        found.of[cell] += counts.records[class as usize];
                    }
                }
                for count in counts.values.of(class) {
                    for cell in cells(&self.offsets, classes, class, from) {
                        let place = cell * found.value_count + count.value as usize;
                        let records = &mut found.with_value[place];
                        if *records == 0 {
                            found.used.push(place as u32);
                        }
                        *records += count.records;
                    }
                }
            }
        }
    }

    /// The classes of the counted group that are in a cell of fewer than `k` records.
    pub(super) fn below<'a>(
        &'a self,
        classes: &'a TableClasses,
        group: &'a [u32],
        from: usize,
        k: u64,
    ) -> impl Iterator<Item = u32> + 'a {
        let is_below = move |cell: usize| u64::from(self.records[cell]) < k;
        let group = if self.used.iter().any(|&cell| is_below(cell)) {
            group
        } else {
            &[]
        };
        let in_one = move |class: u32| cells(&self.offsets, classes, class, from).any(is_below);
        group.iter().copied().filter(move |&class| in_one(class))
    }

    /// Passes the figures of each cell to `found`, and forgets them.
    pub(super) fn drain(&mut self, mut found: impl FnMut(QidFigures)) {
        for counts in &mut self.sensitive {
            for place in counts.used.drain(..) {
                let place = place as usize;
                let records = std::mem::take(&mut counts.with_value[place]);
                let most = &mut counts.most[place / counts.value_count];
                *most = records.max(*most);
            }
        }
        for cell in self.used.drain(..) {
            let size = std::mem::take(&mut self.records[cell]);
            let mut greatest = Share::NONE;
            for counts in &mut self.sensitive {
                let of = counts.of.get_mut(cell).map_or(size, std::mem::take);
                let most = std::mem::take(&mut counts.most[cell]);
                if of > 0 {
                    greatest = greatest.max(Share { most, of });
                }
            }
            found(QidFigures { size, greatest });
        }
    }
}

/// The cells of a class, of the attributes from number `from` on. Merged classes lack the first attributes.
#[inline]
fn cells<'a>(
    offsets: &'a [usize],
    classes: &'a TableClasses,
    class: u32,
    from: usize,
) -> impl Iterator<Item = usize> + 'a {
    let values = &classes.grid.values(class)[from..];
    let cells = offsets[offsets.len() - values.len()..].iter().zip(values);
    cells.map(|(offset, &value)| offset + value as usize)
}
