//! The rows sorted by partition: one permutation, in which every partition is a range.

use rayon::prelude::*;

use pais_core::table::codes::RowCodes;
use pais_core::with_codes;

use super::partitions::{ChildPartition, PartitionId};
use super::scan::{Scan, add_counters};
use super::split_counts::PartialCounts;

/// Number of rows from which on a part of a scan is worth a task of its own; lower in tests, so
/// that small tables are split into tasks too.
const TASK_ROWS: usize = if cfg!(test) { 5 } else { 1 << 14 };

/// Largest number of dense counters for a partition. With more counters, or with more than
/// [`DENSE_COUNTERS_PER_ROW`] per row, the rows are sorted by counter index instead.
const MAX_DENSE_COUNTERS: usize = if cfg!(test) { 32 } else { 1 << 20 };
/// Largest number of dense counters for each row of a partition.
const DENSE_COUNTERS_PER_ROW: usize = 8;

/// A task of a scan of the partitions of a *Link_x*.
enum ScanTask<'a> {
    /// Whole partitions, with up to twice the minimum number of rows of a task in total.
    Whole(&'a [PartitionId]),
    /// One partition with more rows, which threads process piece by piece.
    Pieces(PartitionId),
}

/// The rows of all partitions.
pub(super) struct PartitionOrder {
    /// Row numbers; each partition is a range.
    order: Vec<u32>,
    /// Start of the range of each partition.
    starts: Vec<u32>,
    scratch: Vec<u32>,
}

impl PartitionOrder {
    /// Takes the rows sorted by partition, and the start of each partition.
    pub(super) fn new(order: Vec<u32>, starts: Vec<u32>) -> Self {
        Self {
            order,
            starts,
            scratch: Vec::new(),
        }
    }

    /// The rows of a partition, which has `size` rows.
    #[inline]
    pub(super) fn rows(&self, partition: PartitionId, size: u32) -> &[u32] {
        let start = self.starts[partition as usize];
        &self.order[start as usize..(start + size) as usize]
    }

    /// Counts the rows of the partitions of `link` by child and slot of sensitive values, partition
    /// by partition. `term` computes a partition's term of the score from its size and the sum of
    /// its children's squared sizes.
    pub(super) fn count(
        &self,
        link: &[PartitionId],
        sizes: &[u32],
        scan: &Scan<'_>,
        term: impl Fn(u64, u128) -> f64 + Sync,
    ) -> PartialCounts {
        let count = |task: &ScanTask<'_>| {
            let mut partial_counts = PartialCounts::new(scan.width);
            let mut counter = PartitionCounter::default();
            let mut count = |partition: PartitionId, in_pieces: bool| {
                let rows = self.rows(partition, sizes[partition as usize]);
                if rows.is_empty() {
                    return;
                }
                match in_pieces {
                    true => counter.count_pieces(rows, scan),
                    false => counter.count(rows, scan),
                }
                let squares = counter.finish(partition, scan, &mut partial_counts);
                partial_counts.score += term(rows.len() as u64, squares);
            };
            match *task {
                ScanTask::Whole(list) => list.iter().for_each(|&partition| count(partition, false)),
                ScanTask::Pieces(partition) => count(partition, true),
            }
            partial_counts
        };
        // A task allocates a list for each child, so it has at least as many rows as there are
        // children.
        let tasks = scan_tasks(link, sizes, TASK_ROWS.max(scan.width));
        match tasks.as_slice() {
            [only] => count(only),
            tasks => {
                let parts: Vec<PartialCounts> = tasks.par_iter().map(count).collect();
                let empty = PartialCounts::new(scan.width);
                parts
                    .into_iter()
                    .reduce(PartialCounts::followed_by)
                    .unwrap_or(empty)
            }
        }
    }

    /// Sorts the rows of each partition of `link` by child within its range. Makes one scan of
    /// `T[x]`, shared among the threads.
    pub(super) fn refine(&mut self, link: &[PartitionId], sizes: &[u32], scan: &Scan<'_>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let child_of = scan.child_of_code.as_slice();
        let sorted = with_codes!(&scan.column.codes, codes => {
            self.sort(link, sizes, &mut scratch, |row| child_of[codes.at(row as usize) as usize])
        });
        let mut pieces = sorted.iter().flat_map(SortedPieces::pieces);
        let mut from = 0;
        let mut runs: Vec<(u32, usize, u32)> = Vec::new();
        for &partition in link {
            let end = from + sizes[partition as usize] as usize;
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
                // A stable sort, so that the rows of a child keep the order of the pieces.
                runs.sort_by_key(|&(child, ..)| child);
            }
            from = end;
            let mut to = self.starts[partition as usize];
            for &(_, from, len) in &runs {
                self.order[to as usize..(to + len) as usize]
                    .copy_from_slice(&scratch[from..from + len as usize]);
                to += len;
            }
        }
        drop(pieces);
        self.scratch = scratch;
    }

    /// Sets the starts of the partitions in `child_partitions`. These are the partitions that each
    /// refined partition was split into, in the order of the children; the first one has the id of
    /// the refined partition.
    pub(super) fn set_starts(&mut self, child_partitions: &[ChildPartition], sizes: &[u32]) {
        self.starts.resize(sizes.len(), 0);
        for parts in child_partitions.chunk_by(|a, b| a.link_index == b.link_index) {
            let mut start = self.starts[parts[0].partition as usize];
            for child_partition in parts {
                self.starts[child_partition.partition as usize] = start;
                start += sizes[child_partition.partition as usize];
            }
        }
    }

    /// Copies the rows of the partitions one after another to `scratch`, each piece sorted by
    /// child.
    fn sort(
        &self,
        link: &[PartitionId],
        sizes: &[u32],
        scratch: &mut Vec<u32>,
        child: impl Fn(u32) -> u32 + Sync,
    ) -> Vec<SortedPieces> {
        let rows = |partition: PartitionId| self.rows(partition, sizes[partition as usize]);
        let total = link.iter().map(|&partition| rows(partition).len()).sum();
        scratch.resize(total, 0);
        let mut tasks: Vec<Vec<&[u32]>> = Vec::new();
        for task in scan_tasks(link, sizes, TASK_ROWS) {
            match task {
                ScanTask::Whole(list) => {
                    tasks.push(list.iter().map(|&partition| rows(partition)).collect());
                }
                ScanTask::Pieces(partition) => {
                    let pieces = rows(partition).chunks(TASK_ROWS);
                    tasks.extend(pieces.map(|piece| vec![piece]));
                }
            }
        }
        let mut left = scratch.as_mut_slice();
        let mut take_output = |pieces: &[&[u32]]| {
            let rows = pieces.iter().map(|piece| piece.len()).sum();
            left.split_off_mut(..rows).unwrap_or_default()
        };
        let tasks: Vec<_> = tasks
            .into_iter()
            .map(|pieces| (take_output(&pieces), pieces))
            .collect();
        let sort =
            |(out, pieces): (&mut [u32], Vec<&[u32]>)| SortedPieces::sort(&pieces, out, &child);
        match tasks.len() {
            0 | 1 => tasks.into_iter().map(sort).collect(),
            _ => tasks.into_par_iter().map(sort).collect(),
        }
    }
}

/// Splits partitions into tasks of at least `least` rows each, except where too few rows remain
/// before a large partition or at the end. Keeps their order. The tasks do not depend on the number
/// of threads.
fn scan_tasks<'a>(link: &'a [PartitionId], sizes: &[u32], least: usize) -> Vec<ScanTask<'a>> {
    let mut tasks = Vec::new();
    let (mut start, mut rows) = (0, 0);
    for (end, &partition) in link.iter().enumerate() {
        let len = sizes[partition as usize] as usize;
        if rows + len <= 2 * least {
            rows += len;
            continue;
        }
        if start < end {
            tasks.push(ScanTask::Whole(&link[start..end]));
        }
        (start, rows) = (end, len);
        if len > 2 * least {
            tasks.push(ScanTask::Pieces(partition));
            (start, rows) = (end + 1, 0);
        }
    }
    if start < link.len() {
        tasks.push(ScanTask::Whole(&link[start..]));
    }
    tasks
}

/// Whether the rows of a partition are counted in dense counters rather than sorted by counter
/// index.
fn is_counted_densely(rows: usize, scan: &Scan<'_>) -> bool {
    scan.counters() <= MAX_DENSE_COUNTERS.min(DENSE_COUNTERS_PER_ROW.saturating_mul(rows))
}

/// Counts the rows of one partition by counter index, which combines child and slot of sensitive
/// values.
#[derive(Default)]
struct PartitionCounter {
    /// Dense counters, all 0 between partitions.
    counters: Vec<u32>,
    /// Without dense counters, one counter index for each row and slot column; sorted after the
    /// last row was added.
    indexes: Vec<u64>,
}

impl PartitionCounter {
    fn count(&mut self, rows: &[u32], scan: &Scan<'_>) {
        match is_counted_densely(rows.len(), scan) {
            true => self.count_dense(rows, scan),
            false => {
                self.push_indexes(rows, scan);
                self.indexes.sort_unstable();
            }
        }
    }

    /// Like [`Self::count`], with the rows shared among the threads.
    fn count_pieces(&mut self, rows: &[u32], scan: &Scan<'_>) {
        let is_dense = is_counted_densely(rows.len(), scan);
        // A piece has its own counters, so it has at least as many rows as counters.
        let least = if is_dense { scan.counters() } else { 0 };
        let pieces = rows.par_chunks(TASK_ROWS.max(least));
        if is_dense {
            let count = |piece: &[u32]| {
                let mut counter = Self::default();
                counter.count_dense(piece, scan);
                counter.counters
            };
            let zeros = || vec![0; scan.counters()];
            self.counters = pieces.map(count).reduce(zeros, add_counters);
        } else {
            let list = |piece: &[u32]| {
                let mut counter = Self::default();
                counter.push_indexes(piece, scan);
                counter.indexes
            };
            self.indexes = pieces.flat_map_iter(list).collect();
            self.indexes.par_sort_unstable();
        }
    }

    fn count_dense(&mut self, rows: &[u32], scan: &Scan<'_>) {
        let child_of = scan.child_of_code.as_slice();
        let slots = scan.sensitive.count();
        self.counters.resize(scan.counters(), 0);
        let counters = self.counters.as_mut_slice();
        for slot_column in &scan.sensitive.slots {
            with_codes!(&scan.column.codes, codes => with_codes!(&slot_column.codes, slot => {
                for &row in rows {
                    let child = child_of[codes.at(row as usize) as usize];
                    let slot = slot_column.first + slot.at(row as usize);
                    counters[child as usize * slots + slot as usize] += 1;
                }
            }));
        }
    }

    fn push_indexes(&mut self, rows: &[u32], scan: &Scan<'_>) {
        let child_of = scan.child_of_code.as_slice();
        let slots = scan.sensitive.count() as u64;
        for slot_column in &scan.sensitive.slots {
            with_codes!(&scan.column.codes, codes => with_codes!(&slot_column.codes, slot => {
                self.indexes.extend(rows.iter().map(|&row| {
                    let child = child_of[codes.at(row as usize) as usize];
                    u64::from(child) * slots + u64::from(slot_column.first + slot.at(row as usize))
                }));
            }));
        }
    }

    /// Adds the shares of a partition to `partial_counts` and resets the counters. Returns the sum
    /// of the squared sizes of the shares.
    fn finish(
        &mut self,
        partition: PartitionId,
        scan: &Scan<'_>,
        partial_counts: &mut PartialCounts,
    ) -> u128 {
        if self.indexes.is_empty() {
            let counters = self.counters.iter_mut().enumerate();
            let rows = counters.filter(|(_, count)| **count > 0);
            let rows = rows.map(|(index, count)| (index, std::mem::take(count)));
            return scan.add_shares(partition, rows, partial_counts);
        }
        let runs = self.indexes.chunk_by(|a, b| a == b);
        let rows = runs.map(|run| (run[0] as usize, run.len() as u32));
        let squares = scan.add_shares(partition, rows, partial_counts);
        self.indexes.clear();
        squares
    }
}

/// The result of a sorting task: by piece, the children that have rows, ascending, each with its
/// number of rows.
#[derive(Default)]
struct SortedPieces {
    runs: Vec<(u32, u32)>,
    /// End of the runs of each piece.
    ends: Vec<usize>,
}

impl SortedPieces {
    /// Sorts each piece by child into its part of `out`. The sort is stable.
    fn sort(pieces: &[&[u32]], mut out: &mut [u32], child: impl Fn(u32) -> u32) -> Self {
        let mut sorted = Self::default();
        let mut positions: Vec<u32> = Vec::new();
        let mut children: Vec<u32> = Vec::new();
        for piece in pieces {
            let first = sorted.runs.len();
            children.clear();
            for &row in *piece {
                let child = child(row);
                children.push(child);
                if child as usize >= positions.len() {
                    positions.resize(child as usize + 1, 0);
                }
                let count = &mut positions[child as usize];
                if *count == 0 {
                    sorted.runs.push((child, 0));
                }
                *count += 1;
            }
            sorted.runs[first..].sort_unstable();
            let mut sum = 0;
            for (child, len) in &mut sorted.runs[first..] {
                *len = std::mem::replace(&mut positions[*child as usize], sum);
                sum += *len;
            }
            let (here, rest) = std::mem::take(&mut out).split_at_mut(piece.len());
            for (&row, &child) in piece.iter().zip(&children) {
                let position = &mut positions[child as usize];
                here[*position as usize] = row;
                *position += 1;
            }
            out = rest;
            for &(child, _) in &sorted.runs[first..] {
                positions[child as usize] = 0;
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
