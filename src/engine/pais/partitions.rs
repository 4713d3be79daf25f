//! TIPS: taxonomy indexed partitions (KDD'09, Definition 4.1), as ranges of one permutation.

use super::attribute::{Attribute, ConceptId};

/// Index of a partition.
pub type PartitionId = u32;

/// The rows of one generalized record.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    len: u32,
}

/// All partitions: every row that is not suppressed stands in exactly one, and only one whose
/// rows were suppressed is empty.
pub struct Partitions {
    /// Row numbers; each partition is a range.
    order: Vec<u32>,
    spans: Vec<Span>,
    /// The concept of each partition on each attribute, attributes side by side.
    records: Vec<ConceptId>,
    attributes: usize,
    /// *Link_x*: by attribute and concept, the partitions whose record contains it.
    links: Vec<Vec<Vec<PartitionId>>>,
    scratch: Vec<u32>,
    /// By partition, the rows of its most frequent sensitive value.
    most: Vec<u32>,
    /// Σ|T\[qid\]|², the discernibility cost.
    squares: u128,
    /// Partitions whose rows were not suppressed.
    live: usize,
}

impl Partitions {
    /// One partition of these rows, at the topmost values; `most` of them have the most frequent
    /// sensitive value.
    pub fn new(order: Vec<u32>, attributes: usize, most: u32) -> Self {
        let rows = order.len();
        Self {
            order,
            spans: vec![Span {
                start: 0,
                len: rows as u32,
            }],
            live: 1,
            records: vec![0; attributes],
            attributes,
            links: vec![vec![vec![0]]; attributes],
            scratch: Vec::new(),
            most: vec![most],
            squares: (rows as u128).pow(2),
        }
    }

    /// Number of partitions, the equivalence classes.
    pub fn count(&self) -> usize {
        self.live
    }

    /// All partitions that have rows.
    pub fn all(&self) -> impl Iterator<Item = PartitionId> {
        let live = self
            .spans
            .iter()
            .enumerate()
            .filter(|(_, span)| span.len > 0);
        live.map(|(partition, _)| partition as PartitionId)
    }

    /// Suppresses the rows of a partition, and tells which they are.
    pub fn suppress(&mut self, partition: PartitionId) -> Vec<u32> {
        let rows = self.rows(partition).to_vec();
        self.spans[partition as usize].len = 0;
        self.squares -= (rows.len() as u128).pow(2);
        self.live -= usize::from(!rows.is_empty());
        rows
    }

    /// Σ|T\[qid\]|².
    pub fn squares(&self) -> u128 {
        self.squares
    }

    /// Rows of the smallest partition, and the greatest share of a partition's rows that have one
    /// sensitive value: one scan of the partitions.
    pub fn extremes(&self) -> (u64, f64) {
        let mut smallest = u32::MAX;
        let (mut most, mut of) = (0u64, 1u64);
        let live = self.spans.iter().zip(&self.most);
        for (span, &held) in live.filter(|(span, _)| span.len > 0) {
            smallest = smallest.min(span.len);
            let (held, len) = (u64::from(held), u64::from(span.len));
            if held * of > most * len {
                (most, of) = (held, len);
            }
        }
        let smallest = if self.live == 0 {
            0
        } else {
            u64::from(smallest)
        };
        (smallest, most as f64 / of as f64)
    }

    /// Notes how many rows of a partition have its most frequent sensitive value.
    pub fn note_most(&mut self, partition: PartitionId, most: u32) {
        self.most[partition as usize] = most;
    }

    /// *Link_x*.
    pub fn link(&self, attribute: usize, concept: ConceptId) -> &[PartitionId] {
        &self.links[attribute][concept as usize]
    }

    /// The rows of a partition.
    #[inline]
    pub fn rows(&self, partition: PartitionId) -> &[u32] {
        let span = self.spans[partition as usize];
        &self.order[span.start as usize..(span.start + span.len) as usize]
    }

    /// The concept of a partition on an attribute.
    #[inline]
    pub fn concept(&self, partition: PartitionId, attribute: usize) -> ConceptId {
        self.records[partition as usize * self.attributes + attribute]
    }

    /// Refines the partitions of *Link_x* by the children `first..` of `concept`: one scan of
    /// `T[x]`, a stable counting sort within each partition. `child_of` gives the number of the
    /// child for a code; `placed` is told of each part: the partition refined, the number of the
    /// child, and the partition made.
    pub fn refine(
        &mut self,
        attribute: &Attribute<'_>,
        at: usize,
        concept: ConceptId,
        children: std::ops::Range<ConceptId>,
        child_of: &[u32],
        mut placed: impl FnMut(PartitionId, u32, PartitionId),
    ) {
        let width = children.len();
        let codes = &attribute.column.codes;
        let link = std::mem::take(&mut self.links[at][concept as usize]);
        self.links[at].resize_with(children.end as usize, Vec::new);
        let mut ends = vec![0u32; width];
        for partition in link {
            let span = self.spans[partition as usize];
            let range = span.start as usize..(span.start + span.len) as usize;
            ends.fill(0);
            for &row in &self.order[range.clone()] {
                ends[child_of[codes[row as usize] as usize] as usize] += 1;
            }
            let mut sum = 0;
            for end in &mut ends {
                sum += *end;
                *end = sum - *end;
            }
            self.scratch.resize(range.len().max(self.scratch.len()), 0);
            for &row in &self.order[range.clone()] {
                let place = &mut ends[child_of[codes[row as usize] as usize] as usize];
                self.scratch[*place as usize] = row;
                *place += 1;
            }
            self.order[range.clone()].copy_from_slice(&self.scratch[..range.len()]);
            self.squares -= u128::from(span.len).pow(2);
            let mut start = 0;
            let mut reused = false;
            for (child, &end) in children.clone().zip(&ends) {
                if end == start {
                    continue;
                }
                let part = Span {
                    start: span.start + start,
                    len: end - start,
                };
                start = end;
                self.squares += u128::from(part.len).pow(2);
                let id = if reused {
                    self.live += 1;
                    self.push_like(partition, at)
                } else {
                    partition
                };
                reused = true;
                placed(partition, child - children.start, id);
                self.spans[id as usize] = part;
                self.records[id as usize * self.attributes + at] = child;
                self.links[at][child as usize].push(id);
            }
        }
    }

    /// A new partition with the record of another, linked wherever that one is but on `except`.
    fn push_like(&mut self, other: PartitionId, except: usize) -> PartitionId {
        let id = self.spans.len() as PartitionId;
        self.spans.push(Span { start: 0, len: 0 });
        self.most.push(0);
        let record = other as usize * self.attributes;
        self.records
            .extend_from_within(record..record + self.attributes);
        for attribute in (0..self.attributes).filter(|&attribute| attribute != except) {
            let concept = self.concept(id, attribute);
            self.links[attribute][concept as usize].push(id);
        }
        id
    }
}
