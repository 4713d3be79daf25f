//! The scan of a candidate: which child a row goes to, by what rows are counted, and what the
//! counters of a partition make.

use std::ops::{AddAssign, Range};

use super::attribute::{Attribute, Concept, Split};
use super::partitions::PartitionId;
use super::requirement::Requirement;
use super::sensitive::Sensitive;
use super::weights::{Counted, Item};

/// The number of the child for each code of a candidate's attribute; 0 for codes that it has not.
#[derive(Default)]
pub struct Aim {
    child_of: Vec<u32>,
    /// The codes of the candidate, outside of which all is 0.
    aimed: Range<usize>,
}

impl Aim {
    /// Aims at the children of a split.
    pub fn at(&mut self, attribute: &Attribute<'_>, split: &Split) {
        let first = split.children.iter().map(|child| child.codes.start).min();
        let end = split.children.iter().map(|child| child.codes.end).max();
        self.clear(attribute, first.unwrap_or(0)..end.unwrap_or(0));
        for (number, child) in split.children.iter().enumerate() {
            self.child_of[child.codes.start as usize..child.codes.end as usize].fill(number as u32);
        }
    }

    /// Aims at the runs of numbers that `points`, codes in ascending order, cut an interval into,
    /// and at the missing cells, if it has any; how many children that makes.
    pub fn at_points(
        &mut self,
        attribute: &Attribute<'_>,
        interval: &Concept,
        points: &[u32],
    ) -> usize {
        self.clear(attribute, interval.codes.clone());
        let numbers = attribute.numbers(interval);
        let mut child = 0;
        for code in numbers.clone() {
            child += usize::from(points.get(child) == Some(&code));
            self.child_of[code as usize] = child as u32;
        }
        let missing = numbers.end..interval.codes.end;
        let width = points.len() + 1;
        self.child_of[missing.start as usize..missing.end as usize].fill(width as u32);
        width + missing.len()
    }

    /// Makes all codes 0: those aimed at before, since a column may have a million.
    fn clear(&mut self, attribute: &Attribute<'_>, codes: Range<u32>) {
        self.child_of[self.aimed.clone()].fill(0);
        let count = attribute.histogram.len().max(self.child_of.len());
        self.child_of.resize(count, 0);
        self.aimed = codes.start as usize..codes.end as usize;
    }

    /// By code, the number of the child.
    pub fn child_of(&self) -> &[u32] {
        &self.child_of
    }
}

/// A candidate, and by what its rows are counted.
pub struct Scan<'a> {
    /// The attribute.
    pub column: &'a Attribute<'a>,
    /// The child of each of its codes.
    pub aim: &'a Aim,
    /// Number of children.
    pub width: usize,
    /// The sensitive values of each row.
    pub sensitive: &'a Sensitive,
    /// What must hold.
    pub requirement: &'a Requirement<'a>,
}

impl Scan<'_> {
    /// Counters of a partition: one for each child and slot.
    pub fn counters(&self) -> usize {
        self.width.saturating_mul(self.sensitive.count())
    }

    /// Makes the items of a partition of its rows by place, ascending, which is the number of the
    /// child times that of slots, plus the slot. The sum of their squared sizes.
    pub fn close(
        &self,
        partition: PartitionId,
        rows: impl Iterator<Item = (usize, u32)>,
        counted: &mut Counted,
    ) -> u128 {
        let slots = self.sensitive.count();
        let of_every_row = self.sensitive.of_every_row();
        let mut rows = rows.peekable();
        let mut squares = 0;
        while let Some(&(place, _)) = rows.peek() {
            let child = place / slots;
            let first = counted.holding.len();
            let mut size = 0;
            while let Some((place, count)) = rows.next_if(|(place, _)| *place < (child + 1) * slots)
            {
                let slot = place - child * slots;
                if slot < of_every_row {
                    size += count;
                }
                let values = self.sensitive.values(slot).iter();
                counted.holding.extend(values.map(|&value| (value, count)));
            }
            if !self.sensitive.is_ascending {
                merge(&mut counted.holding, first);
            }
            let holding = &counted.holding[first..];
            let most = holding.iter().map(|&(_, count)| count).max().unwrap_or(0);
            squares += u128::from(size).pow(2);
            counted.children[child].push(Item {
                partition,
                size,
                holding: (first as u32, counted.holding.len() as u32),
                meets: self.requirement.allows(u64::from(size), u64::from(most)),
            });
        }
        squares
    }
}

/// Adds up what is from `first` on of the same value, and puts the values in order.
fn merge(holding: &mut Vec<(u32, u32)>, first: usize) {
    holding[first..].sort_unstable();
    let mut end = first;
    for at in first..holding.len() {
        let (value, count) = holding[at];
        if end > first && holding[end - 1].0 == value {
            holding[end - 1].1 += count;
        } else {
            holding[end] = (value, count);
            end += 1;
        }
    }
    holding.truncate(end);
}

/// What two threads counted, together.
pub fn added<N: AddAssign>(mut one: Vec<N>, other: Vec<N>) -> Vec<N> {
    let counters = one.iter_mut().zip(other);
    counters.for_each(|(one, other)| *one += other);
    one
}
