//! What is counted in a scan of `T[x]`, and what a partition's counters make.

use std::ops::AddAssign;

use super::aim::Aim;
use super::attribute::Attribute;
use super::partitions::PartitionId;
use super::requirement::Requirement;
use super::sensitive::Sensitive;
use super::weights::{Counted, Item};

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
    /// Counters of a partition: one for each child and combination of sensitive values.
    pub fn counters(&self) -> usize {
        self.width.saturating_mul(self.sensitive.count())
    }

    /// Makes the items of a partition of its rows by place, ascending, which is the number of the
    /// child times that of combinations, plus the combination. The sum of their squared sizes.
    pub fn close(
        &self,
        partition: PartitionId,
        rows: impl Iterator<Item = (usize, u32)>,
        counted: &mut Counted,
    ) -> u128 {
        let slots = self.sensitive.count();
        let mut rows = rows.peekable();
        let mut squares = 0;
        while let Some(&(place, _)) = rows.peek() {
            let child = place / slots;
            let first = counted.holding.len();
            let mut size = 0;
            while let Some((place, count)) = rows.next_if(|(place, _)| *place < (child + 1) * slots)
            {
                size += count;
                let values = self.sensitive.values((place - child * slots) as u32);
                counted
                    .holding
                    .extend(values.iter().map(|&value| (value, count)));
            }
            if !self.sensitive.is_single {
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
