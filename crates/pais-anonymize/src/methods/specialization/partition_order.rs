//! Rows partition by partition: one permutation, in which every partition is a range.

use rayon::prelude::*;

use pais_core::table::codes::{RowCodes};
use pais_core::with_codes;

use super::partitions::{Made, PartitionId};
use super::scan::{Scan, added};
use super::weights::Counted;

/// Rows that make a thread's share of a scan worth handing over; few in tests, so that small
/// tables are shared out too.
const SHARE: usize = if cfg!(test) { 5 } else { 1 << 14 };

/// Most counters that are kept for a partition, and how many for each of its rows; where there
/// would be more, its rows are sorted by place.
const SIDE_BY_SIDE: usize = if cfg!(test) { 32 } else { 1 << 20 };
const SIDE_BY_SIDE_A_ROW: usize = 8;

/// What a thread takes at a time of the partitions of a *Link_x*.
enum Share<'a> {
    /// Whole partitions, of up to twice as many rows together as make a share.
    Whole(&'a [PartitionId]),
    /// One partition of more rows, which threads take piece by piece.
    Cut(PartitionId),
}

/// The rows of all partitions.
pub struct PartitionOrder {
    /// Row numbers; each partition is a range.
    order: Vec<u32>,
    /// Where the range of each partition begins.
    starts: Vec<u32>,
    scratch: Vec<u32>,
}

impl PartitionOrder {
    /// The rows by partition, and where each partition begins.
    pub fn new(order: Vec<u32>, starts: Vec<u32>) -> Self {
        Self {
            order,
            starts,
            scratch: Vec::new(),
        }
    }

    /// The rows of a partition, of which there are so many.
    #[inline]
    pub fn rows(&self, partition: PartitionId, size: u32) -> &[u32] {
        let start = self.starts[partition as usize];
        &self.order[start as usize..(start + size) as usize]
    }

    /// Counts the rows of the partitions of `link` by child and slot of sensitive values, partition
    /// by partition.
    pub fn count(
        &self,
        link: &[PartitionId],
        sizes: &[u32],
        scan: &Scan<'_>,
        term: impl Fn(u64, u128) -> f64 + Sync,
    ) -> Counted {
        let count = |share: &Share<'_>| {
            let mut counted = Counted::new(scan.width);
            let mut tally = Tally::default();
            let mut count = |partition: PartitionId, cut: bool| {
                let rows = self.rows(partition, sizes[partition as usize]);
                if rows.is_empty() {
                    return;
                }
                match cut {
                    true => tally.count_pieces(rows, scan),
                    false => tally.count(rows, scan),
                }
                let squares = tally.close(partition, scan, &mut counted);
                counted.score += term(rows.len() as u64, squares);
            };
            match *share {
                Share::Whole(list) => list.iter().for_each(|&partition| count(partition, false)),
                Share::Cut(partition) => count(partition, true),
            }
            counted
        };
        // A share has lists for all children: it has as many rows as there are of those.
        let shares = shares(link, sizes, SHARE.max(scan.width));
        match shares.as_slice() {
            [only] => count(only),
            shares => {
                let parts: Vec<Counted> = shares.par_iter().map(count).collect();
                let none = Counted::new(scan.width);
                parts
                    .into_iter()
                    .reduce(Counted::followed_by)
                    .unwrap_or(none)
            }
        }
    }

    /// Sorts the rows of the partitions of `link` by child, each within its range: one scan of
    /// `T[x]`, shared out among the threads.
    pub fn refine(&mut self, link: &[PartitionId], sizes: &[u32], scan: &Scan<'_>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let child_of = scan.aim.child_of();
        let sorted = with_codes!(&scan.column.codes, codes => {
            self.sort(link, sizes, &mut scratch, |row| child_of[codes.at(row as usize) as usize])
        });
        let mut pieces = sorted.iter().flat_map(Sorted::pieces);
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
                // Stable, so that the rows of a child keep the order of the pieces.
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

    /// Notes where the parts of refined partitions begin: `made` has the partitions that each
    /// became, in the order of their children, first the one that was refined.
    pub fn place(&mut self, made: &[Made], sizes: &[u32]) {
        self.starts.resize(sizes.len(), 0);
        for parts in made.chunk_by(|a, b| a.place == b.place) {
            let mut start = self.starts[parts[0].partition as usize];
            for made in parts {
                self.starts[made.partition as usize] = start;
                start += sizes[made.partition as usize];
            }
        }
    }

    /// The rows of partitions one after another in `scratch`, each piece sorted by child.
    fn sort(
        &self,
        link: &[PartitionId],
        sizes: &[u32],
        scratch: &mut Vec<u32>,
        child: impl Fn(u32) -> u32 + Sync,
    ) -> Vec<Sorted> {
        let rows = |partition: PartitionId| self.rows(partition, sizes[partition as usize]);
        let total = link.iter().map(|&partition| rows(partition).len()).sum();
        scratch.resize(total, 0);
        let mut tasks: Vec<Vec<&[u32]>> = Vec::new();
        for share in shares(link, sizes, SHARE) {
            match share {
                Share::Whole(list) => {
                    tasks.push(list.iter().map(|&partition| rows(partition)).collect());
                }
                Share::Cut(partition) => {
                    let pieces = rows(partition).chunks(SHARE);
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
}

/// Shares out partitions among threads, at least so many rows a share unless few are left; in
/// their order, and the same whatever the number of threads.
fn shares<'a>(link: &'a [PartitionId], sizes: &[u32], least: usize) -> Vec<Share<'a>> {
    let mut shares = Vec::new();
    let (mut start, mut rows) = (0, 0);
    for (end, &partition) in link.iter().enumerate() {
        let len = sizes[partition as usize] as usize;
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

/// Whether the rows of a partition are counted side by side rather than sorted by place.
fn has_counters(rows: usize, scan: &Scan<'_>) -> bool {
    scan.counters() <= SIDE_BY_SIDE.min(SIDE_BY_SIDE_A_ROW.saturating_mul(rows))
}

/// Rows of one partition by place: child and slot of sensitive values.
#[derive(Default)]
struct Tally {
    /// A counter for each place, all 0 between partitions.
    counters: Vec<u32>,
    /// Without counters one entry for each row, ascending once all are listed.
    places: Vec<u64>,
}

impl Tally {
    fn count(&mut self, rows: &[u32], scan: &Scan<'_>) {
        match has_counters(rows.len(), scan) {
            true => self.count_side_by_side(rows, scan),
            false => {
                self.list_places(rows, scan);
                self.places.sort_unstable();
            }
        }
    }

    /// As [`Self::count`], the rows shared out among the threads.
    fn count_pieces(&mut self, rows: &[u32], scan: &Scan<'_>) {
        let side_by_side = has_counters(rows.len(), scan);
        // A piece has its own counters, and more rows than those.
        let least = if side_by_side { scan.counters() } else { 0 };
        let pieces = rows.par_chunks(SHARE.max(least));
        if side_by_side {
            let count = |piece: &[u32]| {
                let mut tally = Self::default();
                tally.count_side_by_side(piece, scan);
                tally.counters
            };
            let none = || vec![0; scan.counters()];
            self.counters = pieces.map(count).reduce(none, added);
        } else {
            let list = |piece: &[u32]| {
                let mut tally = Self::default();
                tally.list_places(piece, scan);
                tally.places
            };
            self.places = pieces.flat_map_iter(list).collect();
            self.places.par_sort_unstable();
        }
    }

    fn count_side_by_side(&mut self, rows: &[u32], scan: &Scan<'_>) {
        let child_of = scan.aim.child_of();
        let slots = scan.sensitive.count();
        self.counters.resize(scan.counters(), 0);
        let counters = self.counters.as_mut_slice();
        for held in &scan.sensitive.slots {
            with_codes!(&scan.column.codes, codes => with_codes!(&held.codes, slot => {
                for &row in rows {
                    let child = child_of[codes.at(row as usize) as usize];
                    let slot = held.first + slot.at(row as usize);
                    counters[child as usize * slots + slot as usize] += 1;
                }
            }));
        }
    }

    fn list_places(&mut self, rows: &[u32], scan: &Scan<'_>) {
        let child_of = scan.aim.child_of();
        let slots = scan.sensitive.count() as u64;
        for held in &scan.sensitive.slots {
            with_codes!(&scan.column.codes, codes => with_codes!(&held.codes, slot => {
                self.places.extend(rows.iter().map(|&row| {
                    let child = child_of[codes.at(row as usize) as usize];
                    u64::from(child) * slots + u64::from(held.first + slot.at(row as usize))
                }));
            }));
        }
    }

    /// Makes the items of a partition, and is empty again; the sum of their squared sizes.
    fn close(&mut self, partition: PartitionId, scan: &Scan<'_>, counted: &mut Counted) -> u128 {
        if self.places.is_empty() {
            let counters = self.counters.iter_mut().enumerate();
            let rows = counters.filter(|(_, count)| **count > 0);
            let rows = rows.map(|(place, count)| (place, std::mem::take(count)));
            return scan.close(partition, rows, counted);
        }
        let runs = self.places.chunk_by(|a, b| a == b);
        let rows = runs.map(|run| (run[0] as usize, run.len() as u32));
        let squares = scan.close(partition, rows, counted);
        self.places.clear();
        squares
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
