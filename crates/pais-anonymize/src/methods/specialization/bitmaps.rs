//! Groups of small partitions as bitmaps: a bit a row, a bitmap for each value of an attribute.
//!
//! The rows that share a qid are the intersection of its values' bitmaps, 64 rows at a time. That
//! makes the 4.5 million subsets of 41 attributes at *L* = 6 affordable where nearly every row is
//! a partition of its own.

use std::ops::Range;

use super::requirement::Requirement;
use super::validity::Child;

/// Bitmaps of one group, and memory for their intersections.
#[derive(Default)]
pub(super) struct Bitmaps {
    /// Words of a bitmap.
    words: usize,
    /// Bitmap after bitmap.
    bits: Vec<u64>,
    /// Attribute and bitmaps of each column; one with a single value in the group is left out.
    columns: Vec<(usize, Range<usize>)>,
    /// The bitmaps of the sensitive values; none where nothing is bounded.
    values: Range<usize>,
    /// Intersections, one after another by depth.
    masks: Vec<u64>,
    /// The bitmap of each value of the column at hand, [`NONE`] between columns.
    bitmap_of: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Bitmaps {
    /// Most rows of a group.
    pub(super) const ROWS: usize = 1 << 16;

    /// Most words of a group's columns: 32 MiB.
    pub(super) const WORDS: usize = 1 << 22;

    /// Most sensitive values.
    pub(super) const VALUES: usize = 64;

    /// Whether every group is allowed that `depth` of the columns from `from` on make of a group
    /// of a child's items; where not, `chosen` gets their attributes. `stop` makes it refuse.
    pub(super) fn check(
        &mut self,
        child: &Child<'_>,
        group: &[u32],
        (from, depth): (usize, usize),
        chosen: &mut Vec<usize>,
        stop: &dyn Fn() -> bool,
    ) -> bool {
        let rows = self.lay_out(child, group, from);
        let depth = depth.min(self.columns.len());
        let mut masks = std::mem::take(&mut self.masks);
        masks.clear();
        masks.resize((depth + 1) * self.words, 0);
        let (all, deeper) = masks.split_at_mut(self.words);
        set(all, 0..rows);
        let requirement = child.check.requirement;
        let mut walk = Walk {
            bitmaps: self,
            requirement,
            held: vec![0; self.values.len()],
            chosen,
            stop,
        };
        let group = Group {
            mask: all,
            rows: rows as u64,
        };
        let allowed = match depth {
            0 => {
                let greatest = hold(self, group.mask, &mut walk.held);
                requirement.allows(group.rows, greatest)
            }
            _ => walk.visit(group, deeper, 0, depth),
        };
        self.masks = masks;
        allowed
    }

    /// Makes the bitmaps; how many rows the group has.
    fn lay_out(&mut self, child: &Child<'_>, group: &[u32], from: usize) -> usize {
        let items = || group.iter().map(|&item| &child.items[item as usize]);
        let rows: usize = items().map(|item| item.size as usize).sum();
        self.words = rows.div_ceil(64);
        self.bits.clear();
        self.columns.clear();
        let mut made = 0;
        for column in &child.columns[from..] {
            let first = made;
            self.bitmap_of
                .resize(column.width.max(self.bitmap_of.len()), NONE);
            let mut row = 0;
            for &item in group {
                let bitmap = &mut self.bitmap_of[column.codes[item as usize] as usize];
                if *bitmap == NONE {
                    *bitmap = made as u32;
                    made += 1;
                    self.bits.resize(made * self.words, 0);
                }
                let bitmap = *bitmap as usize * self.words;
                let size = child.items[item as usize].size as usize;
                set(&mut self.bits[bitmap..bitmap + self.words], row..row + size);
                row += size;
            }
            for &item in group {
                self.bitmap_of[column.codes[item as usize] as usize] = NONE;
            }
            if made - first == 1 {
                made = first;
                self.bits.truncate(made * self.words);
            } else {
                self.columns.push((column.attribute, first..made));
            }
        }
        let check = child.check;
        self.values = made..made;
        if check.requirement.bounds_confidence() {
            self.values.end += check.requirement.sensitive_values;
            self.bits.resize(self.values.end * self.words, 0);
            let mut row = 0;
            for item in items() {
                // All rows of an item go together, so it is all one which of them hold a value.
                for &(value, count) in check.weights.holding(item) {
                    let bitmap = (made + value as usize) * self.words;
                    let bitmap = &mut self.bits[bitmap..bitmap + self.words];
                    set(bitmap, row..row + count as usize);
                }
                row += item.size as usize;
            }
        }
        rows
    }

    #[inline(always)]
    fn bitmap(&self, number: usize) -> &[u64] {
        &self.bits[number * self.words..(number + 1) * self.words]
    }
}

fn set(bitmap: &mut [u64], bits: Range<usize>) {
    for bit in bits {
        bitmap[bit / 64] |= 1 << (bit % 64);
    }
}

/// Rows of the group that is laid out.
#[derive(Clone, Copy)]
struct Group<'m> {
    mask: &'m [u64],
    rows: u64,
}

/// A depth-first walk over the subsets of the columns.
struct Walk<'a> {
    bitmaps: &'a Bitmaps,
    requirement: &'a Requirement<'a>,
    /// Rows of the group at hand that hold each sensitive value.
    held: Vec<u64>,
    chosen: &'a mut Vec<usize>,
    stop: &'a dyn Fn() -> bool,
}

impl Walk<'_> {
    fn visit(&mut self, group: Group<'_>, masks: &mut [u64], from: usize, depth: usize) -> bool {
        if depth == 1 {
            return self.count(group, from);
        }
        if (self.stop)() {
            return false;
        }
        let bitmaps = self.bitmaps;
        let (here, deeper) = masks.split_at_mut(bitmaps.words);
        for at in from..=bitmaps.columns.len() - depth {
            let (attribute, numbers) = &bitmaps.columns[at];
            self.chosen.push(*attribute);
            for number in numbers.clone() {
                let rows = intersect(here, group.mask, bitmaps.bitmap(number));
                if rows == 0 {
                    continue;
                }
                if !self.requirement.allows(rows, 0) {
                    return false;
                }
                // With one value here the column adds nothing to what those after it make.
                if rows == group.rows && bitmaps.columns.len() - at > depth {
                    break;
                }
                let part = Group { mask: here, rows };
                if !self.visit(part, deeper, at + 1, depth - 1) {
                    return false;
                }
            }
            self.chosen.pop();
        }
        true
    }

    /// Whether every group is allowed that one of the columns from `from` on makes of a group.
    fn count(&mut self, group: Group<'_>, from: usize) -> bool {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("popcnt") {
            // SAFETY: the one thing the function needs, that the processor knows `popcnt`, was
            // found out in the line above.
            return unsafe { self.count_by_popcnt(group, from) };
        }
        self.count_portably(group, from)
    }

    /// One instruction for the bits of a word, which takes a dozen without.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt")]
    fn count_by_popcnt(&mut self, group: Group<'_>, from: usize) -> bool {
        self.count_portably(group, from)
    }

    #[inline(always)]
    fn count_portably(&mut self, group: Group<'_>, from: usize) -> bool {
        let bitmaps = self.bitmaps;
        // No part has more rows with a sensitive value than the group has: a part with enough rows
        // for the most frequent one is allowed whatever it holds.
        let mut enough = None;
        for (attribute, numbers) in &bitmaps.columns[from..] {
            let mut left = group.rows;
            for number in numbers.clone() {
                let bitmap = bitmaps.bitmap(number);
                let rows = if number + 1 < numbers.end {
                    ones(group.mask.iter().zip(bitmap).map(|(a, b)| a & b))
                } else {
                    left
                };
                left -= rows;
                if rows == 0 {
                    continue;
                }
                if !self.requirement.allows(rows, 0) {
                    self.chosen.push(*attribute);
                    return false;
                }
                if bitmaps.values.is_empty() {
                    continue;
                }
                let enough = *enough.get_or_insert_with(|| {
                    let greatest = hold(bitmaps, group.mask, &mut self.held);
                    self.requirement.enough_for(greatest)
                });
                if rows < enough && !self.is_bounded(group, bitmap, rows) {
                    self.chosen.push(*attribute);
                    return false;
                }
            }
        }
        true
    }

    /// Whether no sensitive value exceeds *C* among the rows that a group shares with a bitmap. Only
    /// those are counted that would if all their rows in the group were among them.
    #[inline(always)]
    fn is_bounded(&self, group: Group<'_>, bitmap: &[u64], rows: u64) -> bool {
        let values = self.bitmaps.values.clone().zip(&self.held);
        let mut doubtful = values.filter(|&(_, &held)| !self.requirement.allows(rows, held));
        doubtful.all(|(value, _)| {
            let value = self.bitmaps.bitmap(value);
            let shared = group.mask.iter().zip(bitmap).map(|(a, b)| a & b);
            let held = ones(shared.zip(value).map(|(a, b)| a & b));
            self.requirement.allows(rows, held)
        })
    }
}

/// Counts the rows of a mask that hold each sensitive value; the greatest of the counts.
#[inline(always)]
fn hold(bitmaps: &Bitmaps, mask: &[u64], held: &mut [u64]) -> u64 {
    let mut greatest = 0;
    for (value, held) in bitmaps.values.clone().zip(held) {
        *held = ones(mask.iter().zip(bitmaps.bitmap(value)).map(|(a, b)| a & b));
        greatest = greatest.max(*held);
    }
    greatest
}

#[inline(always)]
fn ones(words: impl Iterator<Item = u64>) -> u64 {
    words.map(|word| u64::from(word.count_ones())).sum()
}

/// The rows that two bitmaps share, and how many they are.
fn intersect(into: &mut [u64], a: &[u64], b: &[u64]) -> u64 {
    let mut rows = 0;
    for (into, (a, b)) in into.iter_mut().zip(a.iter().zip(b)) {
        *into = a & b;
        rows += u64::from(into.count_ones());
    }
    rows
}
