//! The walk over the subsets of a child's attributes.

use std::sync::atomic::{AtomicBool, Ordering};

use super::bitmaps::Bitmaps;
use super::validity::{Check, Child, Column};
use super::weights::Item;

/// Most counters of sensitive values by value of an attribute that are kept side by side.
const DENSE_COUNTERS: usize = 1 << 16;

/// A depth-first walk over subsets of a child's attributes, on one thread.
pub(super) struct Walk<'a> {
    child: &'a Child<'a>,
    /// Whether another thread has found a qid that is not allowed.
    refused: &'a AtomicBool,
    /// The attributes of the subset at hand; after a refusal those that refused.
    pub(super) chosen: Vec<usize>,
    /// By depth, a group sorted by an attribute.
    sorted: Vec<Vec<u32>>,
    /// By value of the attribute at hand: rows or items, and 0 between uses.
    counts: Vec<u64>,
    /// The values in use.
    seen: Vec<u32>,
    /// By sensitive value, and by value and sensitive value.
    totals: Vec<u64>,
    held: Vec<u64>,
    bitmaps: Bitmaps,
}

impl<'a> Walk<'a> {
    pub(super) fn new(child: &'a Child<'a>, refused: &'a AtomicBool) -> Self {
        let widest = child.columns.first().map_or(0, |column| column.width);
        let values = child.check.requirement.sensitive_values;
        Self {
            child,
            refused,
            chosen: Vec::new(),
            sorted: Vec::new(),
            counts: vec![0; widest],
            seen: Vec::new(),
            totals: vec![0; values],
            held: Vec::new(),
            bitmaps: Bitmaps::default(),
        }
    }

    fn must_stop(&self) -> bool {
        self.refused.load(Ordering::Relaxed) || self.child.check.observer.must_stop()
    }

    /// Whether every group is allowed that `depth` of the columns from `from` on make of these
    /// items; where not, `chosen` holds the attributes.
    pub(super) fn visit(&mut self, group: &[u32], from: usize, depth: usize) -> bool {
        let items = self.child.items;
        if group.iter().all(|&item| items[item as usize].meets) {
            return true;
        }
        if depth == 0 || group.len() == 1 {
            return self.allows(group);
        }
        if depth == 1 {
            return self.count(group, from..self.child.columns.len());
        }
        let sizes = group.iter().map(|&item| items[item as usize].size as usize);
        let rows = sizes.sum();
        for first in from..=self.child.columns.len() - depth {
            if self.bitmaps_pay(group.len(), rows, first) {
                let (child, refused) = (self.child, self.refused);
                let stop = || refused.load(Ordering::Relaxed) || child.check.observer.must_stop();
                let columns = (first, depth);
                return (self.bitmaps).check(child, group, columns, &mut self.chosen, &stop);
            }
            if !self.visit_beginning(group, first, depth) {
                return false;
            }
        }
        true
    }

    /// As [`Self::visit`], the subsets whose first column is `first`.
    pub(super) fn visit_beginning(&mut self, group: &[u32], first: usize, depth: usize) -> bool {
        if self.must_stop() {
            return false;
        }
        self.chosen.push(self.child.columns[first].attribute);
        if self.sorted.len() <= depth {
            self.sorted.resize_with(depth + 1, Vec::new);
        }
        let mut sorted = std::mem::take(&mut self.sorted[depth]);
        let ends = self.sort(group, first, &mut sorted);
        let mut start = 0;
        for end in ends {
            if !self.visit(&sorted[start..end], first + 1, depth - 1) {
                return false;
            }
            start = end;
        }
        self.sorted[depth] = sorted;
        self.chosen.pop();
        true
    }

    /// Sorts a group by the value of a column, in order of appearance; where each value ends.
    fn sort(&mut self, group: &[u32], column: usize, sorted: &mut Vec<u32>) -> Vec<usize> {
        let codes = &self.child.columns[column].codes;
        for &item in group {
            let code = codes[item as usize];
            let count = &mut self.counts[code as usize];
            if *count == 0 {
                self.seen.push(code);
            }
            *count += 1;
        }
        let mut sum = 0;
        for &code in &self.seen {
            sum += std::mem::replace(&mut self.counts[code as usize], sum);
        }
        sorted.clear();
        sorted.resize(group.len(), 0);
        for &item in group {
            let place = &mut self.counts[codes[item as usize] as usize];
            sorted[*place as usize] = item;
            *place += 1;
        }
        let counts = &mut self.counts;
        let end = |code: u32| std::mem::take(&mut counts[code as usize]) as usize;
        self.seen.drain(..).map(end).collect()
    }

    /// Whether every group is allowed that one of the columns makes of these items.
    pub(super) fn count(&mut self, group: &[u32], columns: std::ops::Range<usize>) -> bool {
        if self.must_stop() {
            return false;
        }
        let Check {
            requirement,
            weights,
            ..
        } = *self.child.check;
        let items = self.child.items;
        let mut greatest = 0;
        if requirement.bounds_confidence() {
            for &item in group {
                for &(value, count) in weights.holding(&items[item as usize]) {
                    let total = &mut self.totals[value as usize];
                    *total += u64::from(count);
                    greatest = greatest.max(*total);
                }
            }
            for &item in group {
                for &(value, _) in weights.holding(&items[item as usize]) {
                    self.totals[value as usize] = 0;
                }
            }
        }
        for column in columns {
            let column = &self.child.columns[column];
            for &item in group {
                let code = column.codes[item as usize];
                let count = &mut self.counts[code as usize];
                if *count == 0 {
                    self.seen.push(code);
                }
                *count += u64::from(items[item as usize].size);
            }
            // No part has more rows with a sensitive value than the whole group.
            let least = self
                .seen
                .iter()
                .map(|&code| self.counts[code as usize])
                .min();
            let least = least.unwrap_or(0);
            let allowed = requirement.allows(least, 0)
                && (requirement.allows(least, greatest) || self.are_bounded(group, column));
            for code in self.seen.drain(..) {
                self.counts[code as usize] = 0;
            }
            if !allowed {
                self.chosen.push(column.attribute);
                return false;
            }
        }
        true
    }

    /// Whether the groups that a column makes of these items are bounded by *C*; their sizes are
    /// counted.
    fn are_bounded(&mut self, group: &[u32], column: &Column) -> bool {
        let Check {
            requirement,
            weights,
            ..
        } = *self.child.check;
        let items = self.child.items;
        let values = requirement.sensitive_values;
        let counters = column.width.saturating_mul(values);
        if counters > DENSE_COUNTERS {
            return self.are_bounded_sorted(group, column);
        }
        self.held.resize(counters.max(self.held.len()), 0);
        let mut bounded = true;
        for &item in group {
            let code = column.codes[item as usize] as usize;
            for &(value, count) in weights.holding(&items[item as usize]) {
                let held = &mut self.held[code * values + value as usize];
                *held += u64::from(count);
                bounded &= requirement.allows(self.counts[code], *held);
            }
        }
        for &code in &self.seen {
            self.held[code as usize * values..(code as usize + 1) * values].fill(0);
        }
        bounded
    }

    /// As [`Self::are_bounded`], where values and sensitive values are too many for counters.
    fn are_bounded_sorted(&self, group: &[u32], column: &Column) -> bool {
        let Check {
            requirement,
            weights,
            ..
        } = *self.child.check;
        let entries = group.iter().flat_map(|&item| {
            let code = column.codes[item as usize];
            let held = weights.holding(&self.child.items[item as usize]);
            held.iter().map(move |&(value, count)| (code, value, count))
        });
        let mut entries: Vec<_> = entries.collect();
        entries.sort_unstable();
        let mut runs = entries.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1));
        runs.all(|run| {
            let held = run.iter().map(|&(.., count)| u64::from(count)).sum();
            requirement.allows(self.counts[run[0].0 as usize], held)
        })
    }

    fn allows(&self, group: &[u32]) -> bool {
        let items = self.child.items;
        let items: Vec<Item> = group.iter().map(|&item| items[item as usize]).collect();
        self.child.check.allows(&items)
    }

    /// Whether counting the columns from `from` on by bitmaps of the rows costs less than item by
    /// item: a word of 64 rows takes about as long as an item.
    fn bitmaps_pay(&self, items: usize, rows: usize, from: usize) -> bool {
        let requirement = self.child.check.requirement;
        if requirement.bounds_confidence() && requirement.sensitive_values > Bitmaps::VALUES {
            return false;
        }
        let columns = self.child.columns.len() - from;
        let words = self.child.widths[from] * rows.div_ceil(64);
        rows <= Bitmaps::ROWS && words <= Bitmaps::WORDS && words <= items * columns
    }
}
