//! `T[x]` counted: how many rows of each partition a specialization would send to each child.
//!
//! One scan of `T[x]`, shared out among the threads in parts whose bounds depend on the rows
//! alone, so that every number of threads finds the same weights and the same sums.

use rayon::prelude::*;

use super::attribute::{Attribute, Concept, ConceptId, Split};
use super::partitions::{PartitionId, Partitions, Share};
use super::requirement::Requirement;

/// Most counters of sensitive values by child that a scan keeps side by side.
const DENSE_COUNTERS: usize = 1 << 16;

/// The rows of one partition that would go to one child.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The partition they are in.
    pub partition: PartitionId,
    /// How many they are.
    pub size: u32,
    /// Range of its entries in [`Weights::holding`].
    holding: (u32, u32),
    /// Whether they alone are as many as *K* and bounded by *C*.
    pub meets: bool,
}

/// `T[x]` counted: by child, the partitions of *Link_x* that have rows there.
pub struct Weights {
    /// The attribute of the candidate.
    pub attribute: usize,
    counted: Counted,
}

/// What a thread counted, and what its parts make together.
struct Counted {
    children: Vec<Vec<Item>>,
    /// Sensitive value and rows that have it, item after item.
    holding: Vec<(u32, u32)>,
    /// Σ over partitions of the objective's term, where the objective needs it.
    score: f64,
}

/// The number of the child for each code of a candidate's attribute.
#[derive(Default)]
pub struct Aim {
    child_of: Vec<u32>,
}

impl Aim {
    /// Aims at the children of a split.
    pub fn at(&mut self, attribute: &Attribute<'_>, split: &Split) {
        let codes = attribute.histogram.len().max(self.child_of.len());
        self.child_of.resize(codes, 0);
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
        let codes = attribute.histogram.len().max(self.child_of.len());
        self.child_of.resize(codes, 0);
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

    /// The number of the child that a code goes to.
    #[inline]
    pub fn child(&self, code: u32) -> u32 {
        self.child_of[code as usize]
    }
}

impl Weights {
    /// One scan of `T[x]`. `term` makes the score's term of a partition from its size and the
    /// sum of its children's squared sizes.
    pub fn new(
        partitions: &Partitions,
        column: &Attribute<'_>,
        (attribute, concept): (usize, ConceptId),
        width: usize,
        requirement: &Requirement<'_>,
        aim: &Aim,
        term: impl Fn(u64, u128) -> f64 + Sync,
    ) -> Self {
        let tally = || Tally::new(width, requirement.sensitive_values);
        let codes = column.column.codes.as_slice();
        let count = |share: &Share<'_>| {
            let mut counted = Counted::new(width);
            let mut close = |tally: &mut Tally, partition, rows: usize| {
                let squares = tally.close(partition, requirement, &mut counted);
                counted.score += term(rows as u64, squares);
            };
            match *share {
                Share::Whole(list) => {
                    let mut tally = tally();
                    for &partition in list {
                        let rows = partitions.rows(partition);
                        tally.count(rows, codes, aim, requirement);
                        close(&mut tally, partition, rows.len());
                    }
                }
                Share::Cut(partition) => {
                    let rows = partitions.rows(partition);
                    let counted_piece = |piece: &[u32]| {
                        let mut tally = tally();
                        tally.count(piece, codes, aim, requirement);
                        tally
                    };
                    let pieces = rows
                        .par_chunks(Partitions::SHARE.max(width))
                        .map(counted_piece);
                    let mut tally = pieces.reduce(tally, Tally::with);
                    close(&mut tally, partition, rows.len());
                }
            }
            counted
        };
        // A share has lists for all children: it has as many rows as there are of those.
        let least = Partitions::SHARE.max(width);
        let shares = partitions.shares(partitions.link(attribute, concept), least);
        let counted = match shares.as_slice() {
            [only] => count(only),
            shares => {
                let parts: Vec<Counted> = shares.par_iter().map(count).collect();
                let mut parts = parts.into_iter();
                let first = parts.next().unwrap_or_else(|| Counted::new(width));
                parts.fold(first, Counted::followed_by)
            }
        };
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

    /// By child, in the order of *Link_x*: how many rows of a partition that go to the child have
    /// the most frequent sensitive value among them; only of partitions that have rows there.
    pub fn most(&self) -> Vec<impl Iterator<Item = u32> + '_> {
        let of_item = |item: &Item| {
            let counts = self.holding(item).iter().map(|&(_, count)| count);
            counts.max().unwrap_or(0)
        };
        let children = self.children().iter();
        children.map(|items| items.iter().map(of_item)).collect()
    }
}

impl Counted {
    fn new(width: usize) -> Self {
        Self {
            children: vec![Vec::new(); width],
            holding: Vec::new(),
            score: 0.0,
        }
    }

    /// The items of this part, then those of the next.
    fn followed_by(mut self, next: Self) -> Self {
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

/// Rows of one partition by child, and by child and sensitive value.
struct Tally {
    values: usize,
    sizes: Vec<u32>,
    /// Children that have rows, in the order in which they were met.
    seen: Vec<u32>,
    /// A counter for each child and value while they are few; else they are sorted.
    held: Vec<u32>,
    /// Counters in use; without counters one entry for each row that holds a value.
    places: Vec<u64>,
}

impl Tally {
    fn new(width: usize, values: usize) -> Self {
        let counters = width.saturating_mul(values);
        Self {
            values,
            sizes: vec![0; width],
            seen: Vec::new(),
            held: vec![
                0;
                if counters <= DENSE_COUNTERS {
                    counters
                } else {
                    0
                }
            ],
            places: Vec::new(),
        }
    }

    #[inline]
    fn add(&mut self, child: u32, rows: u32) {
        let size = &mut self.sizes[child as usize];
        if *size == 0 {
            self.seen.push(child);
        }
        *size += rows;
    }

    #[inline]
    fn hold(&mut self, place: u64, rows: u32) {
        let Some(count) = self.held.get_mut(place as usize) else {
            self.places.push(place);
            return;
        };
        if *count == 0 {
            self.places.push(place);
        }
        *count += rows;
    }

    fn count(&mut self, rows: &[u32], codes: &[u32], aim: &Aim, requirement: &Requirement<'_>) {
        if self.values == 0 {
            for &row in rows {
                self.add(aim.child(codes[row as usize]), 1);
            }
            return;
        }
        for &row in rows {
            let child = aim.child(codes[row as usize]);
            self.add(child, 1);
            let first = u64::from(child) * self.values as u64;
            requirement.sensitive_of(row as usize, |value| self.hold(first + value as u64, 1));
        }
    }

    /// This piece of a partition and another one together.
    fn with(mut self, other: Self) -> Self {
        for &child in &other.seen {
            self.add(child, other.sizes[child as usize]);
        }
        for &place in &other.places {
            self.hold(place, other.held.get(place as usize).copied().unwrap_or(1));
        }
        self
    }

    /// Makes the items of a partition, and is empty again; the sum of their squared sizes.
    fn close(
        &mut self,
        partition: PartitionId,
        requirement: &Requirement<'_>,
        counted: &mut Counted,
    ) -> u128 {
        self.seen.sort_unstable();
        self.places.sort_unstable();
        let mut squares = 0;
        let mut places = self.places.iter().copied().peekable();
        for &child in &self.seen {
            let size = std::mem::take(&mut self.sizes[child as usize]);
            squares += u128::from(size).pow(2);
            let first = counted.holding.len() as u32;
            let base = u64::from(child) * self.values as u64;
            let mut meets = requirement.allows(u64::from(size), 0);
            while let Some(place) = places.next_if(|&place| place < base + self.values as u64) {
                let count = match self.held.get_mut(place as usize) {
                    Some(count) => std::mem::take(count),
                    None => {
                        let mut count = 1;
                        while places.next_if_eq(&place).is_some() {
                            count += 1;
                        }
                        count
                    }
                };
                meets = meets && requirement.allows(u64::from(size), u64::from(count));
                counted.holding.push(((place - base) as u32, count));
            }
            counted.children[child as usize].push(Item {
                partition,
                size,
                holding: (first, counted.holding.len() as u32),
                meets,
            });
        }
        self.seen.clear();
        self.places.clear();
        squares
    }
}
