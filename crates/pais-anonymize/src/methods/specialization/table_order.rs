//! The rows in the order of the table, each with the number of its partition.
//!
//! While there are few partitions, a sequential scan of the whole table is faster than a scan of
//! `T[x]` partition by partition: there are no random accesses, and the counters stay in the cache.

use std::ops::Range;

use rayon::prelude::*;

use pais_core::table::codes::RowCodes;
use pais_core::with_codes;

use super::partition_order::PartitionOrder;
use super::partitions::{ChildPartition, PartitionId};
use super::scan::{Scan, add_counters};
use super::sensitive::SlotColumn;

/// Largest number of counters of one pass, without the block of counters that all partitions
/// outside the list share. Together they take at most 2 MiB, the size of a core's cache.
pub(super) const MAX_COUNTERS: usize = if cfg!(test) { 48 } else { 1 << 18 };

/// Rows of a task; lower in tests, so that small tables are split into tasks too.
const TASK_ROWS: usize = if cfg!(test) { 5 } else { 1 << 14 };

/// Marks that there is no partition.
const NONE: PartitionId = PartitionId::MAX;

/// Every row's partition, in the order of the table.
pub(super) struct TableOrder {
    partition_of: Vec<PartitionId>,
}

/// By partition, the start of its block in an array of `entries` entries per partition of `link`.
/// All partitions that are not in `link` share the block after the last one.
fn block_starts(link: &[PartitionId], entries: usize, partitions: usize) -> Vec<u32> {
    let mut block_starts = vec![(link.len() * entries) as u32; partitions];
    for (number, &partition) in link.iter().enumerate() {
        block_starts[partition as usize] = (number * entries) as u32;
    }
    block_starts
}

impl TableOrder {
    /// All `rows` rows are in partition 0.
    pub(super) fn new(rows: usize) -> Self {
        Self {
            partition_of: vec![0; rows],
        }
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.partition_of.len()
    }

    /// Counts the rows of the partitions of `link` (of `partitions` in total) by index of the
    /// partition in `link`, child, and slot of sensitive values. Makes one pass over the table.
    /// Each thread has its own counters, which are added up at the end.
    pub(super) fn count(
        &self,
        link: &[PartitionId],
        partitions: usize,
        scan: &Scan<'_>,
    ) -> Vec<u32> {
        let block_starts = block_starts(link, scan.counters(), partitions);
        let counters = (link.len() + 1) * scan.counters();
        let zeros = || vec![0u32; counters];
        let rows = self.rows();
        let task_rows = TASK_ROWS.max(counters);
        let slots = scan.sensitive.count() as u32;
        let child_of = scan.child_of_code.as_slice();
        let count_task = |counters: &mut [u32], range: Range<usize>, slot_column: &SlotColumn| {
            let partitions = &self.partition_of[range.clone()];
            with_codes!(&scan.column.codes, codes => with_codes!(&slot_column.codes, slot => {
                let (codes, slot) = (codes.part(range.clone()), slot.part(range));
                for (row, &partition) in partitions.iter().enumerate() {
                    let child = child_of[codes.at(row) as usize];
                    let slot = slot_column.first + slot.at(row);
                    let index = block_starts[partition as usize] + child * slots + slot;
                    counters[index as usize] += 1;
                }
            }));
        };
        let count = |mut counters: Vec<u32>, number: usize| {
            let range = number * task_rows..rows.min((number + 1) * task_rows);
            for slot_column in &scan.sensitive.slots {
                count_task(&mut counters, range.clone(), slot_column);
            }
            counters
        };
        match rows.div_ceil(task_rows) {
            1 => count(zeros(), 0),
            tasks => {
                let tasks = (0..tasks).into_par_iter();
                tasks.fold(zeros, count).reduce(zeros, add_counters)
            }
        }
    }

    /// Moves each row to the partition that `child_partitions` gives for the index of the row's
    /// partition in `link` and the row's child. Makes one pass over the table.
    pub(super) fn refine(
        &mut self,
        link: &[PartitionId],
        partitions: usize,
        child_partitions: &[ChildPartition],
        scan: &Scan<'_>,
    ) {
        let width = scan.width;
        let block_starts = block_starts(link, width, partitions);
        let mut next = vec![NONE; (link.len() + 1) * width];
        for child_partition in child_partitions {
            let index =
                child_partition.link_index as usize * width + child_partition.child as usize;
            next[index] = child_partition.partition;
        }
        let child_of = scan.child_of_code.as_slice();
        let move_task = |(number, task): (usize, &mut [PartitionId])| {
            let from = number * TASK_ROWS;
            with_codes!(&scan.column.codes, codes => {
                let codes = codes.part(from..from + task.len());
                for (row, partition) in task.iter_mut().enumerate() {
                    let child = child_of[codes.at(row) as usize];
                    let to = next[(block_starts[*partition as usize] + child) as usize];
                    *partition = if to == NONE { *partition } else { to };
                }
            });
        };
        match self.rows() <= TASK_ROWS {
            true => move_task((0, &mut self.partition_of)),
            false => {
                let tasks = self.partition_of.par_chunks_mut(TASK_ROWS).enumerate();
                tasks.for_each(move_task);
            }
        }
    }

    /// The rows of a partition, ascending. Makes one pass over the table.
    pub(super) fn rows_of(&self, partition: PartitionId) -> Vec<u32> {
        let rows = self.partition_of.iter().enumerate();
        let rows = rows.filter(|(_, of)| **of == partition);
        rows.map(|(row, _)| row as u32).collect()
    }

    /// The rows sorted by partition, ascending within each partition.
    pub(super) fn sorted(&self, sizes: &[u32]) -> PartitionOrder {
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
            let position = &mut next[partition as usize];
            order[*position as usize] = row as u32;
            *position += 1;
        }
        PartitionOrder::new(order, starts)
    }
}
