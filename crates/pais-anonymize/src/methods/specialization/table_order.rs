//! Rows as they stand in the table, each with the number of its partition.
//!
//! As long as partitions are few, a scan of the whole table in order is faster than one of `T[x]`
//! partition by partition: nothing is fetched from afar, and the counters stay in the cache.

use std::ops::Range;

use rayon::prelude::*;

use pais_core::table::codes::{RowCodes};
use pais_core::with_codes;

use super::partition_order::PartitionOrder;
use super::partitions::{Made, PartitionId};
use super::scan::{Scan, added};
use super::sensitive::Slots;

/// Most counters of one pass, beside those that all other partitions share: with them two mebibytes
/// at most, as a core's cache has.
pub const COUNTERS: usize = if cfg!(test) { 48 } else { 1 << 18 };

/// Rows of a thread's share.
const SHARE: usize = if cfg!(test) { 5 } else { 1 << 14 };

/// What stands for no partition.
const NONE: PartitionId = PartitionId::MAX;

/// Every row's partition, in the order of the table.
pub struct TableOrder {
    partition_of: Vec<PartitionId>,
}

/// Where a partition's part of a list of so many entries a partition begins; all partitions that
/// are not in the list share the part behind the last.
fn places(link: &[PartitionId], entries: usize, partitions: usize) -> Vec<u32> {
    let mut places = vec![(link.len() * entries) as u32; partitions];
    for (number, &partition) in link.iter().enumerate() {
        places[partition as usize] = (number * entries) as u32;
    }
    places
}

impl TableOrder {
    /// So many rows in partition 0.
    pub fn new(rows: usize) -> Self {
        Self {
            partition_of: vec![0; rows],
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.partition_of.len()
    }

    /// The rows of the partitions of `link`, of `partitions` in all, by place of the partition in
    /// `link`, child, and slot of sensitive values: one pass over the table. Threads count
    /// for themselves, and their counters are added up.
    pub fn count(&self, link: &[PartitionId], partitions: usize, scan: &Scan<'_>) -> Vec<u32> {
        let places = places(link, scan.counters(), partitions);
        let counters = (link.len() + 1) * scan.counters();
        let none = || vec![0u32; counters];
        let rows = self.rows();
        let share = SHARE.max(counters);
        let slots = scan.sensitive.count() as u32;
        let child_of = scan.aim.child_of();
        let count_share = |counters: &mut [u32], range: Range<usize>, held: &Slots| {
            let partitions = &self.partition_of[range.clone()];
            with_codes!(&scan.column.codes, codes => with_codes!(&held.codes, slot => {
                let (codes, slot) = (codes.part(range.clone()), slot.part(range));
                for (row, &partition) in partitions.iter().enumerate() {
                    let child = child_of[codes.at(row) as usize];
                    let slot = held.first + slot.at(row);
                    let place = places[partition as usize] + child * slots + slot;
                    counters[place as usize] += 1;
                }
            }));
        };
        let count = |mut counters: Vec<u32>, number: usize| {
            let range = number * share..rows.min((number + 1) * share);
            for held in &scan.sensitive.slots {
                count_share(&mut counters, range.clone(), held);
            }
            counters
        };
        match rows.div_ceil(share) {
            1 => count(none(), 0),
            shares => {
                let shares = (0..shares).into_par_iter();
                shares.fold(none, count).reduce(none, added)
            }
        }
    }

    /// Moves rows to the partition that `made` gives for the place of their partition in `link`
    /// and their child. One pass over the table.
    pub fn refine(
        &mut self,
        link: &[PartitionId],
        partitions: usize,
        made: &[Made],
        scan: &Scan<'_>,
    ) {
        let width = scan.width;
        let places = places(link, width, partitions);
        let mut next = vec![NONE; (link.len() + 1) * width];
        for made in made {
            next[made.place as usize * width + made.child as usize] = made.partition;
        }
        let child_of = scan.aim.child_of();
        let move_share = |(number, share): (usize, &mut [PartitionId])| {
            let from = number * SHARE;
            with_codes!(&scan.column.codes, codes => {
                let codes = codes.part(from..from + share.len());
                for (row, partition) in share.iter_mut().enumerate() {
                    let child = child_of[codes.at(row) as usize];
                    let to = next[(places[*partition as usize] + child) as usize];
                    *partition = if to == NONE { *partition } else { to };
                }
            });
        };
        match self.rows() <= SHARE {
            true => move_share((0, &mut self.partition_of)),
            false => {
                let shares = self.partition_of.par_chunks_mut(SHARE).enumerate();
                shares.for_each(move_share);
            }
        }
    }

    /// The rows of a partition.
    pub fn rows_of(&self, partition: PartitionId) -> Vec<u32> {
        let rows = self.partition_of.iter().enumerate();
        let rows = rows.filter(|(_, of)| **of == partition);
        rows.map(|(row, _)| row as u32).collect()
    }

    /// The rows partition by partition, ascending within each.
    pub fn sorted(&self, sizes: &[u32]) -> PartitionOrder {
        let mut sum = 0;
        let starts: Vec<u32> = sizes
            .iter()
            .map(|size| {
                let start = sum;
                sum += size;
                start
            })
            .collect();
        let mut next = starts.clone();
        let mut order = vec![0; self.rows()];
        for (row, &partition) in self.partition_of.iter().enumerate() {
            let place = &mut next[partition as usize];
            order[*place as usize] = row as u32;
            *place += 1;
        }
        PartitionOrder::new(order, starts)
    }
}
