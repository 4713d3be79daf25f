//! `T[x]` counted: how many rows of each partition a specialization would send to each child.
//!
//! One scan of the table or of `T[x]`, shared out among the threads. What they count is put together
//! in parts whose bounds depend on the rows alone, so that every number of threads finds the same
//! weights and the same sums.

use super::attribute::ConceptId;
use super::partitions::{PartitionId, Partitions};
use super::scan::Scan;

/// The rows of one partition that would go to one child.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The partition they are in.
    pub partition: PartitionId,
    /// How many they are.
    pub size: u32,
    /// Range of its entries in [`Weights::holding`].
    pub(super) holding: (u32, u32),
    /// Whether they alone are as many as *K* and bounded by *C*.
    pub meets: bool,
}

/// What becomes a partition of its own.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The place of the partition refined in *Link_x*.
    pub place: u32,
    /// The number of the child.
    pub child: u32,
    /// How many rows.
    pub size: u32,
    /// How many of them have the most frequent sensitive value.
    pub most: u32,
}

/// `T[x]` counted: by child, the partitions of *Link_x* that have rows there.
pub struct Weights {
    /// The attribute of the candidate.
    pub attribute: usize,
    counted: Counted,
}

/// What a thread counted, and what its parts make together.
pub struct Counted {
    /// By child, the partitions that have rows there.
    pub children: Vec<Vec<Item>>,
    /// Sensitive value and rows that have it, item after item.
    pub holding: Vec<(u32, u32)>,
    /// Σ over partitions of the objective's term, where the objective needs it.
    pub score: f64,
}

impl Weights {
    /// One scan of `T[x]`. `term` makes the score's term of a partition from its size and the
    /// sum of its children's squared sizes.
    pub fn new(
        partitions: &mut Partitions,
        (attribute, concept): (usize, ConceptId),
        scan: &Scan<'_>,
        term: impl Fn(u64, u128) -> f64 + Sync,
    ) -> Self {
        let counted = partitions.weigh((attribute, concept), scan, term);
        Self { attribute, counted }
    }

    /// Σ over partitions of the objective's term.
    pub fn score(&self) -> f64 {
        self.counted.score
    }

    /// By child, the partitions that have rows there.
    pub fn children(&self) -> &[Vec<Item>] {
        &self.counted.children
    }

    /// The sensitive values of an item's rows, each with how many have it.
    pub fn holding(&self, item: &Item) -> &[(u32, u32)] {
        &self.counted.holding[item.holding.0 as usize..item.holding.1 as usize]
    }

    /// The parts that `link`, of `partitions` in all, falls into: partition by partition, each by
    /// ascending child.
    pub fn parts(&self, link: &[PartitionId], partitions: usize) -> Vec<Part> {
        let mut place_of = vec![0u32; partitions];
        for (place, &partition) in link.iter().enumerate() {
            place_of[partition as usize] = place as u32;
        }
        let children = self.children().iter().enumerate();
        let parts =
            children.flat_map(|(child, items)| items.iter().map(move |item| (child as u32, item)));
        let mut parts: Vec<_> = parts
            .map(|(child, item)| {
                let counts = self.holding(item).iter().map(|&(_, count)| count);
                Part {
                    place: place_of[item.partition as usize],
                    child,
                    size: item.size,
                    most: counts.max().unwrap_or(0),
                }
            })
            .collect();
        parts.sort_unstable_by_key(|part| (part.place, part.child));
        parts
    }
}

impl Counted {
    /// Nothing, of so many children.
    pub fn new(width: usize) -> Self {
        Self {
            children: vec![Vec::new(); width],
            holding: Vec::new(),
            score: 0.0,
        }
    }

    /// The items of this part, then those of the next.
    pub fn followed_by(mut self, next: Self) -> Self {
        let shift = self.holding.len() as u32;
        self.holding.extend(next.holding);
        for (items, more) in self.children.iter_mut().zip(next.children) {
            items.extend(more.into_iter().map(|item| Item {
                holding: (item.holding.0 + shift, item.holding.1 + shift),
                ..item
            }));
        }
        self.score += next.score;
        self
    }
}
