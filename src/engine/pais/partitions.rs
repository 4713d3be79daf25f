//! TIPS: taxonomy indexed partitions (KDD'09, Definition 4.1), as ranges of one permutation.

use rayon::prelude::*;

use super::attribute::{Attribute, ConceptId};
use super::weights::Aim;

/// Index of a partition.
pub type PartitionId = u32;

/// The rows of one generalized record.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    len: u32,
}

/// What a thread takes at a time of the partitions of a *Link_x*.
pub enum Share<'a> {
    /// Whole partitions, of up to twice as many rows together as make a share.
    Whole(&'a [PartitionId]),
    /// One partition of more rows, which threads take piece by piece.
    Cut(PartitionId),
}

/// All partitions: every row that is not suppressed stands in exactly one, and only one whose
/// rows were suppressed is empty.
pub struct Partitions {
    /// Row numbers; each partition is a range.
    order: Vec<u32>,
    spans: Vec<Span>,
    /// By attribute, the concept of each partition.
    records: Vec<Vec<ConceptId>>,
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
    /// Rows that make a thread's share of a scan worth handing over; few in tests, so that small
    /// tables are shared out too.
    pub const SHARE: usize = if cfg!(test) { 5 } else { 1 << 14 };

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
            records: vec![vec![0]; attributes],
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
        self.records[attribute][partition as usize]
    }

    /// Shares out a *Link_x* among threads, at least so many rows a share unless few are left; in
    /// its order, and the same whatever their number.
    pub fn shares<'a>(&self, link: &'a [PartitionId], least: usize) -> Vec<Share<'a>> {
        let mut shares = Vec::new();
        let (mut start, mut rows) = (0, 0);
        for (end, &partition) in link.iter().enumerate() {
            let len = self.spans[partition as usize].len as usize;
            if rows + len <= 2 * least {
                rows += len;
                continue;
            }
            if start < end {
                shares.push(Share::Whole(&link[start..end]));
            }
            (start, rows) = (end, len);
            if len > 2 * least {
                shares.push(Share::Cut(partition));
                (start, rows) = (end + 1, 0);
            }
        }
        if start < link.len() {
            shares.push(Share::Whole(&link[start..]));
        }
        shares
    }

    /// Refines the partitions of *Link_x* by the children `first..` of `concept`: one scan of
    /// `T[x]`, a stable counting sort within each partition, shared out among the threads. `aim`
    /// gives the number of the child for a code; `placed` is told of each part: the partition
    /// refined, the number of the child, and the partition made.
    pub fn refine(
        &mut self,
        attribute: &Attribute<'_>,
        at: usize,
        concept: ConceptId,
        children: std::ops::Range<ConceptId>,
        aim: &Aim,
        mut placed: impl FnMut(PartitionId, u32, PartitionId),
    ) {
        let mut link = std::mem::take(&mut self.links[at][concept as usize]);
        // What was suppressed stays in no link.
        link.retain(|&partition| self.spans[partition as usize].len > 0);
        self.links[at].resize_with(children.end as usize, Vec::new);
        let mut scratch = std::mem::take(&mut self.scratch);
        let sorted = self.sort(&link, &mut scratch, |row| {
            aim.child(attribute.column.codes[row as usize])
        });
        let mut pieces = sorted.iter().flat_map(Sorted::pieces);
        let mut from = 0;
        let mut runs: Vec<(u32, usize, u32)> = Vec::new();
        for partition in link {
            let span = self.spans[partition as usize];
            let end = from + span.len as usize;
            runs.clear();
            let mut whole = true;
            let mut at_piece = from;
            while at_piece < end {
                whole = at_piece == from;
                let Some(piece) = pieces.next() else { break };
                for &(child, len) in piece {
                    runs.push((child, at_piece, len));
                    at_piece += len as usize;
                }
            }
            if !whole {
                // Stable, so that the rows of a child keep the order of the pieces.
                runs.sort_by_key(|&(child, ..)| child);
            }
            from = end;
            let mut to = span.start;
            self.squares -= u128::from(span.len).pow(2);
            let mut reused = false;
            for run in runs.chunk_by(|(a, ..), (b, ..)| a == b) {
                let start = to;
                for &(_, from, len) in run {
                    self.order[to as usize..(to + len) as usize]
                        .copy_from_slice(&scratch[from..from + len as usize]);
                    to += len;
                }
                let part = Span {
                    start,
                    len: to - start,
                };
                self.squares += u128::from(part.len).pow(2);
                let id = if reused {
                    self.live += 1;
                    self.push_like(partition, at)
                } else {
                    partition
                };
                reused = true;
                let child = run[0].0;
                placed(partition, child, id);
                self.spans[id as usize] = part;
                self.records[at][id as usize] = children.start + child;
                self.links[at][(children.start + child) as usize].push(id);
            }
        }
        drop(pieces);
        self.scratch = scratch;
    }

    /// The rows of partitions one after another in `scratch`, each piece sorted by child.
    fn sort(
        &self,
        link: &[PartitionId],
        scratch: &mut Vec<u32>,
        child: impl Fn(u32) -> u32 + Sync,
    ) -> Vec<Sorted> {
        let rows = |partition: &PartitionId| self.rows(*partition).len();
        let total = link.iter().map(rows).sum();
        scratch.resize(total, 0);
        let mut tasks: Vec<Vec<&[u32]>> = Vec::new();
        for share in self.shares(link, Self::SHARE) {
            match share {
                Share::Whole(list) => {
                    let pieces = list.iter().map(|&partition| self.rows(partition));
                    tasks.push(pieces.collect());
                }
                Share::Cut(partition) => {
                    let pieces = self.rows(partition).chunks(Self::SHARE);
                    tasks.extend(pieces.map(|piece| vec![piece]));
                }
            }
        }
        let mut left = scratch.as_mut_slice();
        let mut room = |pieces: &[&[u32]]| {
            let rows = pieces.iter().map(|piece| piece.len()).sum();
            left.split_off_mut(..rows).unwrap_or_default()
        };
        let tasks: Vec<_> = tasks
            .into_iter()
            .map(|pieces| (room(&pieces), pieces))
            .collect();
        let sort = |(out, pieces): (&mut [u32], Vec<&[u32]>)| Sorted::of(&pieces, out, &child);
        match tasks.len() {
            0 | 1 => tasks.into_iter().map(sort).collect(),
            _ => tasks.into_par_iter().map(sort).collect(),
        }
    }

    /// A new partition with the record of another, linked wherever that one is but on `except`.
    fn push_like(&mut self, other: PartitionId, except: usize) -> PartitionId {
        let id = self.spans.len() as PartitionId;
        self.spans.push(Span { start: 0, len: 0 });
        self.most.push(0);
        for (attribute, records) in self.records.iter_mut().enumerate() {
            let concept = records[other as usize];
            records.push(concept);
            if attribute != except {
                self.links[attribute][concept as usize].push(id);
            }
        }
        id
    }
}

/// How a thread's rows fell: by piece, the children that have rows, ascending, and how many.
#[derive(Default)]
struct Sorted {
    runs: Vec<(u32, u32)>,
    /// Where the runs of each piece end.
    ends: Vec<usize>,
}

impl Sorted {
    /// Sorts each piece by child into its part of `out`, keeping the order of rows otherwise.
    fn of(pieces: &[&[u32]], mut out: &mut [u32], child: impl Fn(u32) -> u32) -> Self {
        let mut sorted = Self::default();
        let mut places: Vec<u32> = Vec::new();
        let mut children: Vec<u32> = Vec::new();
        for piece in pieces {
            let first = sorted.runs.len();
            children.clear();
            for &row in *piece {
                let child = child(row);
                children.push(child);
                if child as usize >= places.len() {
                    places.resize(child as usize + 1, 0);
                }
                let count = &mut places[child as usize];
                if *count == 0 {
                    sorted.runs.push((child, 0));
                }
                *count += 1;
            }
            sorted.runs[first..].sort_unstable();
            let mut sum = 0;
            for (child, len) in &mut sorted.runs[first..] {
                *len = std::mem::replace(&mut places[*child as usize], sum);
                sum += *len;
            }
            let (here, rest) = std::mem::take(&mut out).split_at_mut(piece.len());
            for (&row, &child) in piece.iter().zip(&children) {
                let place = &mut places[child as usize];
                here[*place as usize] = row;
                *place += 1;
            }
            out = rest;
            for &(child, _) in &sorted.runs[first..] {
                places[child as usize] = 0;
            }
            sorted.ends.push(sorted.runs.len());
        }
        sorted
    }

    fn pieces(&self) -> impl Iterator<Item = &[(u32, u32)]> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        let bounds = starts.zip(&self.ends);
        bounds.map(|(start, &end)| &self.runs[start..end])
    }
}
