//! Validity of a specialization (KDD'09, Section 4.3.2), over weighted partitions.
//!
//! A specialization of *x* is valid when, for each child *c*, every qid of at most *L* values
//! that contains *c* is shared by at least *K* rows and bounded by *C*. Only qids of the full
//! size need looking at: a shorter one is a union of full ones, and sizes only add up while a
//! union's confidence is no more than the greatest of its parts. For the same reason
//!  - an attribute at its topmost value adds nothing to a qid;
//!  - a partition that alone meets *K* and *C* can only help, so a group without a partition
//!    that falls short is done, and so is a candidate without any.

use crate::engine::Observer;

use super::attribute::{Attribute, ConceptId, Split};
use super::partitions::{PartitionId, Partitions};
use super::requirement::Requirement;

/// Most counters of sensitive values by child that a scan keeps side by side.
const DENSE_COUNTERS: usize = 1 << 20;

/// The rows of one partition that would go to one child.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The partition they are in.
    pub partition: PartitionId,
    /// How many they are.
    pub size: u64,
    /// Range of its entries in [`Weights::holding`].
    holding: (u32, u32),
    /// Whether they alone are as many as *K* and bounded by *C*.
    pub meets: bool,
}

/// `T[x]` counted: by child, the partitions of *Link_x* that have rows there.
pub struct Weights {
    /// The attribute of the candidate.
    pub attribute: usize,
    children: Vec<Vec<Item>>,
    /// Sensitive value and rows that have it, item after item.
    holding: Vec<(u32, u32)>,
    /// Σ over partitions of the objective's term, where the objective needs it.
    pub score: f64,
}

/// Memory that scans share: one entry a code, and one a child and sensitive value.
#[derive(Default)]
pub struct Scratch {
    /// The number of the child for each code of the candidate's attribute.
    pub child_of: Vec<u32>,
    sizes: Vec<u64>,
    holding: Vec<u32>,
}

impl Scratch {
    /// Fills `child_of` for a split.
    pub fn aim(&mut self, attribute: &Attribute<'_>, split: &Split) {
        self.child_of
            .resize(attribute.histogram.len().max(self.child_of.len()), 0);
        for (number, child) in split.children.iter().enumerate() {
            self.child_of[child.codes.start as usize..child.codes.end as usize].fill(number as u32);
        }
    }
}

impl Weights {
    /// By child, in the order of *Link_x*: how many rows of a partition that go to the child have
    /// the most frequent sensitive value among them; only of partitions that have rows there.
    pub fn most(&self) -> Vec<impl Iterator<Item = u32> + '_> {
        let of_item = |item: &Item| {
            let held = &self.holding[item.holding.0 as usize..item.holding.1 as usize];
            held.iter().map(|&(_, count)| count).max().unwrap_or(0)
        };
        let children = self.children.iter();
        children.map(|items| items.iter().map(of_item)).collect()
    }

    /// One scan of `T[x]`. `term` makes the score's term of a partition from its size and the
    /// sum of its children's squared sizes.
    pub fn new(
        partitions: &Partitions,
        column: &Attribute<'_>,
        (attribute, concept): (usize, ConceptId),
        width: usize,
        requirement: &Requirement<'_>,
        scratch: &mut Scratch,
        term: impl Fn(u64, u128) -> f64,
    ) -> Self {
        let values = requirement.sensitive_values;
        let mut weights = Self {
            attribute,
            children: vec![Vec::new(); width],
            holding: Vec::new(),
            score: 0.0,
        };
        scratch.sizes.clear();
        scratch.sizes.resize(width, 0);
        // A counter for each child and value while they are few, sorting where they are many.
        let dense = width * values <= DENSE_COUNTERS;
        scratch.holding.clear();
        scratch
            .holding
            .resize(if dense { width * values } else { 0 }, 0);
        let codes = &column.column.codes;
        let mut touched: Vec<u64> = Vec::new();
        for &partition in partitions.link(attribute, concept) {
            let rows = partitions.rows(partition);
            if values == 0 {
                for &row in rows {
                    let child = scratch.child_of[codes[row as usize] as usize] as usize;
                    scratch.sizes[child] += 1;
                }
            } else {
                for &row in rows {
                    let child = scratch.child_of[codes[row as usize] as usize] as usize;
                    scratch.sizes[child] += 1;
                    requirement.sensitive_of(row as usize, |value| {
                        let place = child * values + value;
                        if !dense {
                            touched.push(place as u64);
                            return;
                        }
                        let count = &mut scratch.holding[place];
                        if *count == 0 {
                            touched.push(place as u64);
                        }
                        *count += 1;
                    });
                }
                touched.sort_unstable();
            }
            let mut squares = 0;
            let mut entries = touched.iter().copied().peekable();
            for (child, size) in scratch.sizes.iter_mut().enumerate() {
                let size = std::mem::take(size);
                if size == 0 {
                    continue;
                }
                squares += u128::from(size).pow(2);
                let first = weights.holding.len() as u32;
                let mut meets = requirement.allows(size, 0);
                while let Some(place) = entries.next_if(|&place| place as usize / values == child) {
                    let mut count = 1;
                    if dense {
                        count = std::mem::take(&mut scratch.holding[place as usize]);
                    } else {
                        while entries.next_if_eq(&place).is_some() {
                            count += 1;
                        }
                    }
                    meets = meets && requirement.allows(size, u64::from(count));
                    weights
                        .holding
                        .push(((place as usize - child * values) as u32, count));
                }
                let holding = (first, weights.holding.len() as u32);
                weights.children[child].push(Item {
                    partition,
                    size,
                    holding,
                    meets,
                });
            }
            touched.clear();
            weights.score += term(rows.len() as u64, squares);
        }
        weights
    }

    /// By child, the partitions that have rows there.
    pub fn children(&self) -> &[Vec<Item>] {
        &self.children
    }

    /// The sensitive values of an item's rows, each with how many have it.
    pub fn holding(&self, item: &Item) -> &[(u32, u32)] {
        &self.holding[item.holding.0 as usize..item.holding.1 as usize]
    }

    /// Whether every qid of at most *L* values that contains a child is allowed. `others` are
    /// the attributes below their topmost value, the candidate's own left out; the ones that
    /// refused the last candidate are best tried first.
    ///
    /// # Errors
    /// The attributes of a qid that is not allowed.
    pub fn check(
        &self,
        partitions: &Partitions,
        requirement: &Requirement<'_>,
        others: &[usize],
        observer: &dyn Observer,
    ) -> Result<(), Vec<usize>> {
        let depth = others.len().min(requirement.l - 1);
        let mut check = Check {
            weights: self,
            partitions,
            requirement,
            observer,
            buffers: vec![Vec::new(); depth + 1],
            chosen: Vec::with_capacity(depth),
            totals: vec![0; requirement.sensitive_values],
        };
        for items in &self.children {
            if !check.holds(items, others, depth) {
                return Err(check.chosen);
            }
        }
        Ok(())
    }
}

/// A depth-first refinement of the items of one child, sharing prefixes of subsets.
struct Check<'a> {
    weights: &'a Weights,
    partitions: &'a Partitions,
    requirement: &'a Requirement<'a>,
    /// Asked at every attribute: one check may take seconds. A check that is stopped refuses, and
    /// the search, which asks next, ends.
    observer: &'a dyn Observer,
    /// Sorted items, one buffer a depth.
    buffers: Vec<Vec<(ConceptId, Item)>>,
    chosen: Vec<usize>,
    totals: Vec<u64>,
}

impl Check<'_> {
    fn holds(&mut self, items: &[Item], others: &[usize], depth: usize) -> bool {
        if items.iter().all(|item| item.meets) {
            return true;
        }
        if depth == 0 || items.len() == 1 {
            return self.allows(items);
        }
        if items.iter().map(|item| item.size).sum::<u64>() < self.requirement.k.get() {
            return false;
        }
        let mut sorted = std::mem::take(&mut self.buffers[depth]);
        let mut group = Vec::new();
        for (position, &attribute) in others[..=others.len() - depth].iter().enumerate() {
            if self.observer.must_stop() {
                return false;
            }
            sorted.clear();
            sorted.extend(
                items
                    .iter()
                    .map(|&item| (self.partitions.concept(item.partition, attribute), item)),
            );
            sorted.sort_unstable_by_key(|(concept, _)| *concept);
            self.chosen.push(attribute);
            for part in sorted.chunk_by(|(a, _), (b, _)| a == b) {
                if part.iter().all(|(_, item)| item.meets) {
                    continue;
                }
                group.clear();
                group.extend(part.iter().map(|(_, item)| *item));
                if !self.holds(&group, &others[position + 1..], depth - 1) {
                    return false;
                }
            }
            self.chosen.pop();
        }
        self.buffers[depth] = sorted;
        true
    }

    fn allows(&mut self, items: &[Item]) -> bool {
        let size: u64 = items.iter().map(|item| item.size).sum();
        if !self.requirement.allows(size, 0) {
            return false;
        }
        let weights = self.weights;
        let mut greatest = 0;
        for item in items {
            for &(value, count) in weights.holding(item) {
                let total = &mut self.totals[value as usize];
                *total += u64::from(count);
                greatest = greatest.max(*total);
            }
        }
        for item in items {
            for &(value, _) in weights.holding(item) {
                self.totals[value as usize] = 0;
            }
        }
        self.requirement.allows(size, greatest)
    }
}
