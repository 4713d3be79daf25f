//! TIPS: taxonomy indexed partitions (KDD'09, Definition 4.1), and the counts of the rows of a
//! candidate.
//!
//! The records have one of two layouts. In [`TableOrder`] they stay in the order of the table, each with the
//! number of its partition. While there are few partitions, a sequential scan of the whole table is faster than
//! a scan of `T[x]` partition by partition: there are no random accesses, and the counters stay in the cache.
//! In [`PartitionOrder`] they are sorted by partition: one permutation, in which every partition is a range.
//!
//! The [`Scan`] of a candidate *x* counts in [`SplitCounts`] how many rows of each partition its specialization
//! would send to each child. One scan of the table or of `T[x]` is shared among the threads. The bounds of the
//! tasks depend only on the rows, and partial counts are merged in task order, so the counts and the sums do
//! not depend on the number of threads.

use std::borrow::Cow;
use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use pais_core::parallel;
use pais_core::table::codes::RowCodes;
use pais_core::table::{SubjectCounter, Subjects};
use pais_core::with_codes;

use super::attribute::{Attribute, Concept, ConceptId};
use super::frequencies::{Multiplicity, RowsOfRecord, with_rows};
use super::known_group::{ClassPersons, KnownClasses, KnownGroups};
use super::requirement::{Requirement, ValueRows, ValueShare, as_rows};
use super::sensitive::{SensitiveSlots, SlotColumn, add_counters};

/// Index of a partition.
pub(super) type PartitionId = u32;

/// Cost of a random access to a row, in rows read sequentially.
const RANDOM_READ_COST: u64 = 4;

/// A partition that results from refining another one. The first child keeps the id of the refined
/// partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChildPartition {
    /// Index of the refined partition in *Link_x*.
    pub link_index: u32,
    /// The number of the child.
    pub child: u32,
    /// The partition.
    pub partition: PartitionId,
    /// Number of rows.
    pub size: u32,
    /// Its most frequent sensitive value.
    pub greatest: ValueShare,
}

/// The layout that gives the records of each partition. Records are rows, or those of a frequency
/// set.
enum RowLayout {
    Table(TableOrder),
    Partition(PartitionOrder),
}

/// Number of persons by partition.
struct PartitionPersons {
    of_row: Vec<u32>,
    counter: SubjectCounter,
    numbers: Vec<u32>,
}

impl PartitionPersons {
    fn new(subjects: &Subjects) -> Self {
        Self {
            of_row: subjects.of_row().to_vec(),
            counter: SubjectCounter::new(subjects.codes()),
            numbers: Vec::new(),
        }
    }

    /// Counts the persons of a partition that has these rows.
    fn count(&mut self, partition: PartitionId, rows: &[u32]) {
        let persons = rows.iter().map(|&row| self.of_row[row as usize]);
        let number = self.counter.count_up_to(u64::MAX, persons);
        let partition = partition as usize;
        self.numbers
            .resize(self.numbers.len().max(partition + 1), 0);
        self.numbers[partition] = number as u32;
    }
}

/// All partitions. Every row that is not suppressed is in exactly one partition. A partition is
/// empty only if its rows were suppressed.
pub(super) struct Partitions {
    layout: RowLayout,
    multiplicity: Multiplicity,
    /// Number of rows of all records.
    rows: u64,
    /// Persons by partition, where *K* counts persons.
    persons: Option<PartitionPersons>,
    /// Rows by partition.
    sizes: Vec<u32>,
    /// By attribute, the concept of each partition.
    records: Vec<Vec<ConceptId>>,
    /// *Link_x*: by attribute and concept, the partitions whose record contains it.
    links: Vec<Vec<Vec<PartitionId>>>,
    /// By partition, its most frequent sensitive value.
    greatest: Vec<ValueShare>,
    /// Σ|T\[qid\]|², the discernibility cost.
    squares: u128,
    /// Number of partitions whose rows were not suppressed.
    live: usize,
    /// Cost of the scans of the whole table so far minus that of scans of `T[x]` instead, in rows
    /// read sequentially; at least 0.
    excess: u64,
}

impl Partitions {
    /// One partition at the topmost values, of `rows` rows without those already `suppressed`
    /// (ascending). `greatest` is their most frequent sensitive value.
    /// With `subjects` the persons of each partition are counted, too.
    pub(super) fn new(
        rows: usize,
        suppressed: &[u32],
        attributes: usize,
        greatest: ValueShare,
        subjects: Option<&Subjects>,
    ) -> Self {
        let left = rows - suppressed.len();
        let layout = if suppressed.is_empty() {
            RowLayout::Table(TableOrder::new(rows))
        } else {
            let mut suppressed = suppressed.iter().copied().peekable();
            let order = (0..rows as u32).filter(|row| suppressed.next_if_eq(row).is_none());
            RowLayout::Partition(PartitionOrder::new(
                order.collect(),
                vec![0],
                vec![left as u32],
            ))
        };
        let mut partitions = Self::topmost(layout, left as u32, attributes, greatest);
        if let Some(subjects) = subjects {
            // The persons of a partition are found by its rows.
            partitions.sort();
            let mut persons = PartitionPersons::new(subjects);
            persons.count(0, &partitions.rows(0));
            partitions.persons = Some(persons);
        }
        partitions
    }

    /// One partition at the topmost values, of `rows` rows, before any records are
    /// [laid out](Self::lay_out).
    pub(super) fn uncounted(rows: u32, attributes: usize, greatest: ValueShare) -> Self {
        Self::topmost(
            RowLayout::Table(TableOrder::new(0)),
            rows,
            attributes,
            greatest,
        )
    }

    fn topmost(layout: RowLayout, rows: u32, attributes: usize, greatest: ValueShare) -> Self {
        Self {
            layout,
            multiplicity: Multiplicity::One,
            rows: u64::from(rows),
            persons: None,
            sizes: vec![rows],
            live: 1,
            records: vec![vec![0]; attributes],
            links: vec![vec![vec![0]]; attributes],
            greatest: vec![greatest],
            squares: u128::from(rows).pow(2),
            excess: 0,
        }
    }

    /// Replaces the records by others of the same rows, with codes in `attributes` and numbers of rows in
    /// `rows`. The partitions stay as they are. Returns whether each of them has as many rows as before; if
    /// not, the partitions must not be used any more.
    #[must_use]
    pub(super) fn lay_out(&mut self, attributes: &[Attribute<'_>], rows: Vec<u32>) -> bool {
        // Both are grouped by one attribute after the other.
        let mut group_of_partition = vec![0u32; self.sizes.len()];
        let mut group_of_record = vec![0u32; rows.len()];
        for (attribute, concepts) in attributes.iter().zip(&self.records) {
            if attribute.is_topmost() {
                continue;
            }
            let mut numbers: FxHashMap<(u32, ConceptId), u32> = FxHashMap::default();
            for (group, &concept) in group_of_partition.iter_mut().zip(concepts) {
                let next = numbers.len() as u32;
                *group = *numbers.entry((*group, concept)).or_insert(next);
            }
            let concept_of = attribute.concept_of_code();
            let all_known = with_codes!(&attribute.codes, codes => {
                let mut records = group_of_record.iter_mut().enumerate();
                records.all(|(record, group)| {
                    let concept = concept_of.get(codes.at(record) as usize);
                    let known = concept.and_then(|&concept| numbers.get(&(*group, concept)));
                    known.map(|&number| *group = number).is_some()
                })
            });
            if !all_known {
                return false;
            }
        }
        // Each partition is a group of its own now.
        let mut partition_of_group = vec![0; self.sizes.len()];
        for (partition, &group) in (0..).zip(&group_of_partition) {
            partition_of_group[group as usize] = partition;
        }
        let mut sizes = vec![0u64; self.sizes.len()];
        for (group, &rows) in group_of_record.iter_mut().zip(&rows) {
            *group = partition_of_group[*group as usize];
            sizes[*group as usize] += u64::from(rows);
        }
        let mut before = self.sizes.iter().map(|&size| u64::from(size));
        let is_same = sizes.iter().all(|&size| before.next() == Some(size)) && !rows.contains(&0);
        self.layout = RowLayout::Table(TableOrder {
            partition_of: group_of_record,
        });
        self.multiplicity = Multiplicity::Of(rows);
        self.excess = 0;
        is_same
    }

    /// Number of non-empty partitions, which are the equivalence classes.
    pub(super) fn count(&self) -> usize {
        self.live
    }

    /// All non-empty partitions.
    pub(super) fn non_empty(&self) -> impl Iterator<Item = PartitionId> {
        let live = self.sizes.iter().enumerate().filter(|(_, size)| **size > 0);
        live.map(|(partition, _)| partition as PartitionId)
    }

    /// Suppresses the rows of a partition and returns them, ascending.
    pub(super) fn suppress(&mut self, partition: PartitionId) -> Vec<u32> {
        // The table order cannot skip rows: a scan counts every row of the table.
        self.sort();
        let rows = self.rows(partition);
        if let RowLayout::Partition(order) = &mut self.layout {
            order.lens[partition as usize] = 0;
        }
        self.sizes[partition as usize] = 0;
        if let Some(persons) = &mut self.persons {
            persons.count(partition, &[]);
        }
        self.squares -= (rows.len() as u128).pow(2);
        self.live -= usize::from(!rows.is_empty());
        rows
    }

    /// Σ|T\[qid\]|², the discernibility cost.
    pub(super) fn squares(&self) -> u128 {
        self.squares
    }

    /// Number of rows, or of persons where *K* counts these, of the smallest partition (0 if there is none), and
    /// the greatest share of a partition's rows that have the same sensitive value. Makes one scan of the
    /// partitions.
    pub(super) fn extremes(&self) -> (u64, ValueShare) {
        let mut smallest = u32::MAX;
        let mut greatest = ValueShare::NONE;
        let sizes = match &self.persons {
            Some(persons) => &persons.numbers,
            None => &self.sizes,
        };
        let live = sizes.iter().zip(&self.greatest);
        for (&size, &share) in live.filter(|(size, _)| **size > 0) {
            smallest = smallest.min(size);
            greatest = greatest.greater(share);
        }
        let smallest = match self.live {
            0 => 0,
            _ => u64::from(smallest),
        };
        (smallest, greatest)
    }

    /// Rows, or persons where *K* counts these, of the smallest group that an adversary of the model
    /// can know; `None` where that would take too much work, and of a stopped run.
    pub(super) fn smallest_known(&mut self, groups: &mut KnownGroups) -> Option<u64> {
        if !groups.can_find() {
            return None;
        }
        let partitions: Vec<PartitionId> = self.non_empty().collect();
        let all = self.sizes.len();
        fn of<'v>(values: &'v [u32], partitions: &[PartitionId], all: usize) -> Cow<'v, [u32]> {
            if partitions.len() == all {
                return Cow::Borrowed(values);
            }
            let values = partitions.iter().map(|&it| values[it as usize]);
            Cow::Owned(values.collect())
        }
        let records = self.records.iter();
        let values: Vec<Cow<'_, [u32]>> = records.map(|it| of(it, &partitions, all)).collect();
        let values = values.iter().map(AsRef::as_ref).collect();
        let (RowLayout::Partition(order), Some(counted)) = (&self.layout, &mut self.persons) else {
            let classes = KnownClasses {
                sizes: &of(&self.sizes, &partitions, all),
                values,
                persons: None,
            };
            return groups.find(classes);
        };
        let rows_of = |&it: &PartitionId| order.records(it);
        let rows: Vec<&[u32]> = partitions.iter().map(rows_of).collect();
        let classes = KnownClasses {
            sizes: &of(&counted.numbers, &partitions, all),
            values,
            persons: Some(ClassPersons {
                rows: &rows,
                of_row: &counted.of_row,
                counter: &mut counted.counter,
            }),
        };
        groups.find(classes)
    }

    /// *Link_x*: the partitions whose record contains a concept.
    pub(super) fn link(&self, attribute: usize, concept: ConceptId) -> &[PartitionId] {
        &self.links[attribute][concept as usize]
    }

    /// Number of rows of a partition.
    #[inline]
    pub(super) fn size(&self, partition: PartitionId) -> u32 {
        self.sizes[partition as usize]
    }

    /// The rows of a partition, ascending. Makes one pass over the table unless the rows are
    /// [sorted](Self::sort).
    pub(super) fn rows(&self, partition: PartitionId) -> Vec<u32> {
        match &self.layout {
            RowLayout::Table(order) => order.rows_of(partition),
            RowLayout::Partition(order) => order.records(partition).to_vec(),
        }
    }

    /// The concept of a partition on an attribute.
    #[inline]
    pub(super) fn concept(&self, partition: PartitionId, attribute: usize) -> ConceptId {
        self.records[attribute][partition as usize]
    }

    /// Counts the rows of *Link_x* by child and sensitive value. `term` computes a partition's term
    /// of the score from its size and the sum of its children's squared sizes. Makes one scan of
    /// the table or of `T[x]`.
    pub(super) fn count_split(
        &mut self,
        scan: &Scan<'_>,
        term: impl Fn(u64, u128) -> u128 + Sync,
    ) -> SplitCounts {
        self.choose_layout(scan);
        let link = self.link(scan.attribute, scan.concept);
        let term = |partition, squares| term(u64::from(self.size(partition)), squares);
        let order = match &self.layout {
            RowLayout::Partition(order) => {
                return order.count(link, &self.multiplicity, scan, term);
            }
            RowLayout::Table(order) => order,
        };
        let mut counts = SplitCounts::new(scan.width);
        let block = scan.counters();
        for link in link.chunks((MAX_COUNTERS / block).max(1)) {
            let counters = order.count(link, self.sizes.len(), &self.multiplicity, scan);
            for (&partition, counters) in link.iter().zip(counters.chunks(block)) {
                let counters = counters.iter().copied().enumerate();
                let rows = counters.filter(|(_, count)| *count > 0);
                let squares = scan.add_shares(partition, rows, &mut counts);
                counts.score += term(partition, squares);
            }
        }
        counts
    }

    /// Sorts the rows by partition once the scans of the whole table have cost more than sorting.
    /// This happens when there are many partitions, or when candidates have few rows.
    fn choose_layout(&mut self, scan: &Scan<'_>) {
        let RowLayout::Table(order) = &self.layout else {
            return;
        };
        let rows = order.records() as u64;
        let link = self.link(scan.attribute, scan.concept);
        let sizes = link
            .iter()
            .map(|&partition| u64::from(self.size(partition)));
        // A partition is taken to have the same share of the records as of the rows.
        let of_link = sizes.sum::<u64>() * rows / self.rows.max(1);
        let random_access = RANDOM_READ_COST * of_link;
        let block = scan.counters();
        let passes = link.len().div_ceil((MAX_COUNTERS / block).max(1)) as u64;
        let read = passes * rows + (link.len() * block) as u64;
        self.excess = (self.excess + read).saturating_sub(random_access);
        if block > MAX_COUNTERS || self.excess > RANDOM_READ_COST * rows {
            self.sort();
        }
    }

    /// Whether the rows are not sorted by partition yet.
    #[cfg(test)]
    pub(super) fn is_in_table_order(&self) -> bool {
        matches!(self.layout, RowLayout::Table(_))
    }

    /// Switches for good to rows sorted by partition, which makes scans of few rows cheap.
    pub(super) fn sort(&mut self) {
        if let RowLayout::Table(order) = &self.layout {
            self.layout = RowLayout::Partition(order.sorted(self.sizes.len()));
        }
    }

    /// Refines the partitions of *Link_x* by `children`, as counted in `split_counts`. Calls
    /// `placed` for each resulting partition with the refined partition, the number of the child,
    /// and the resulting partition.
    pub(super) fn refine(
        &mut self,
        children: Range<ConceptId>,
        split_counts: &SplitCounts,
        scan: &Scan<'_>,
        mut placed: impl FnMut(PartitionId, u32, PartitionId),
    ) {
        let at = scan.attribute;
        let mut link = std::mem::take(&mut self.links[at][scan.concept as usize]);
        // Remove suppressed partitions from the link.
        link.retain(|&partition| self.size(partition) > 0);
        self.links[at].resize_with(children.end as usize, Vec::new);
        let before = self.sizes.len();
        let parts = split_counts.parts(&link, before, scan.requirement);
        // No row moves if each partition goes to one child as a whole, as happens for a value whose
        // other children have no rows.
        let moves = parts.len() > link.len();
        let lens = match &mut self.layout {
            RowLayout::Partition(order) if moves => order.refine(&link, scan),
            _ => Vec::new(),
        };
        let is_added = |part: &ChildPartition| part.partition as usize >= before;
        let added = parts.iter().filter(|part| is_added(part)).count();
        self.live += added;
        self.sizes.resize(before + added, 0);
        self.greatest.resize(before + added, ValueShare::NONE);
        for part in &parts {
            let id = part.partition as usize;
            self.squares -= u128::from(self.sizes[id]).pow(2);
            self.squares += u128::from(part.size).pow(2);
            self.sizes[id] = part.size;
            self.greatest[id] = part.greatest;
            placed(link[part.link_index as usize], part.child, part.partition);
        }
        let columns = self.records.par_iter_mut().zip(&mut self.links);
        let least = MIN_PARALLEL_PARTS.div_ceil(parts.len().max(1));
        let columns = columns.with_min_len(least).enumerate();
        columns.for_each(|(attribute, (records, links))| {
            if attribute == at {
                records.resize(before + added, 0);
                for part in &parts {
                    let concept = children.start + part.child;
                    records[part.partition as usize] = concept;
                    links[concept as usize].push(part.partition);
                }
                return;
            }
            // An added partition has the record of the refined one.
            records.reserve(added);
            for part in parts.iter().filter(|part| is_added(part)) {
                let concept = records[link[part.link_index as usize] as usize];
                records.push(concept);
                links[concept as usize].push(part.partition);
            }
        });
        match &mut self.layout {
            _ if !moves => {}
            RowLayout::Table(order) => order.refine(&link, before, &parts, scan),
            RowLayout::Partition(order) => order.set_ranges(&parts, &lens),
        }
        if let Some(mut persons) = self.persons.take() {
            if moves {
                for part in &parts {
                    persons.count(part.partition, &self.rows(part.partition));
                }
            }
            self.persons = Some(persons);
        }
    }
}

/// Minimum number of partitions times attributes that a task records; lower in tests, so that small tables
/// have several tasks too.
const MIN_PARALLEL_PARTS: usize = if cfg!(test) { 5 } else { 1 << 13 };

/// Largest number of counters of one pass, without the block of counters that all partitions
/// outside the list share. Together they take at most 2 MiB, the size of a core's cache.
pub(super) const MAX_COUNTERS: usize = if cfg!(test) { 48 } else { 1 << 18 };

/// Rows of a task that scans partitions; lower in tests, so that small tables are split into tasks too.
const ROWS_PER_SCAN_TASK: usize = if cfg!(test) { 5 } else { 1 << 14 };

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

    /// Number of records.
    pub(super) fn records(&self) -> usize {
        self.partition_of.len()
    }

    /// Counts the rows of the partitions of `link` (of `partitions` in total) by index of the
    /// partition in `link`, child, and slot of sensitive values. Makes one pass over the table.
    /// Each thread has its own counters, which are added up at the end.
    pub(super) fn count(
        &self,
        link: &[PartitionId],
        partitions: usize,
        multiplicity: &Multiplicity,
        scan: &Scan<'_>,
    ) -> Vec<u32> {
        let block_starts = block_starts(link, scan.counters(), partitions);
        let counters = (link.len() + 1) * scan.counters();
        let zeros = || vec![0u32; counters];
        let rows = self.records();
        let task_rows = ROWS_PER_SCAN_TASK.max(counters);
        let slots = scan.sensitive.count() as u32;
        let child_of = scan.child_of_code.as_slice();
        let count_task = |counters: &mut [u32], range: Range<usize>, slot_column: &SlotColumn| {
            let partitions = &self.partition_of[range.clone()];
            with_codes!(&scan.column.codes, codes => with_codes!(&slot_column.codes, slot => {
                with_rows!(multiplicity, rows_of => {
                    let (codes, slot) = (codes.part(range.clone()), slot.part(range.clone()));
                    let rows_of = rows_of.slice(range);
                    for (row, &partition) in partitions.iter().enumerate() {
                        let child = child_of[codes.at(row) as usize];
                        let slot = slot_column.first + slot.at(row);
                        let index = block_starts[partition as usize] + child * slots + slot;
                        counters[index as usize] += rows_of.rows(row);
                    }
                })
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
            tasks => parallel::sum(tasks, &zeros, &count, &add_counters),
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
            let from = number * ROWS_PER_SCAN_TASK;
            with_codes!(&scan.column.codes, codes => {
                let codes = codes.part(from..from + task.len());
                for (row, partition) in task.iter_mut().enumerate() {
                    let child = child_of[codes.at(row) as usize];
                    let to = next[(block_starts[*partition as usize] + child) as usize];
                    *partition = if to == NONE { *partition } else { to };
                }
            });
        };
        if self.records() <= ROWS_PER_SCAN_TASK {
            move_task((0, &mut self.partition_of))
        } else {
            let tasks = self.partition_of.chunks_mut(ROWS_PER_SCAN_TASK).enumerate();
            parallel::map(tasks, move_task);
        }
    }

    /// The rows of a partition, ascending. Makes one pass over the table.
    pub(super) fn rows_of(&self, partition: PartitionId) -> Vec<u32> {
        let rows = self.partition_of.iter().enumerate();
        let rows = rows.filter(|(_, of)| **of == partition);
        rows.map(|(row, _)| row as u32).collect()
    }

    /// The rows sorted by partition, ascending within each partition.
    pub(super) fn sorted(&self, partitions: usize) -> PartitionOrder {
        let mut lens = vec![0; partitions];
        for &partition in &self.partition_of {
            lens[partition as usize] += 1;
        }
        let mut sum = 0;
        let starts: Vec<u32> = lens
            .iter()
            .map(|len| {
                let start = sum;
                sum += len;
                start
            })
            .collect();
        let mut next = starts.clone();
        let mut order = vec![0; self.records()];
        for (row, &partition) in self.partition_of.iter().enumerate() {
            let position = &mut next[partition as usize];
            order[*position as usize] = row as u32;
            *position += 1;
        }
        PartitionOrder::new(order, starts, lens)
    }
}

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

/// The records of all partitions.
pub(super) struct PartitionOrder {
    /// Record numbers; each partition is a range.
    order: Vec<u32>,
    /// Start of the range of each partition.
    starts: Vec<u32>,
    /// Number of records of each partition.
    lens: Vec<u32>,
    scratch: Vec<u32>,
}

impl PartitionOrder {
    /// Takes the records sorted by partition, and the start and length of each partition.
    pub(super) fn new(order: Vec<u32>, starts: Vec<u32>, lens: Vec<u32>) -> Self {
        Self {
            order,
            starts,
            lens,
            scratch: Vec::new(),
        }
    }

    /// The records of a partition.
    #[inline]
    pub(super) fn records(&self, partition: PartitionId) -> &[u32] {
        let start = self.starts[partition as usize];
        let end = start + self.lens[partition as usize];
        &self.order[start as usize..end as usize]
    }

    /// Counts the rows of the partitions of `link` by child and slot of sensitive values, partition
    /// by partition. `term` computes a partition's term of the score from the sum of its
    /// children's squared sizes.
    pub(super) fn count(
        &self,
        link: &[PartitionId],
        multiplicity: &Multiplicity,
        scan: &Scan<'_>,
        term: impl Fn(PartitionId, u128) -> u128 + Sync,
    ) -> SplitCounts {
        let count = |task: &ScanTask<'_>| {
            let mut partial_counts = SplitCounts::new(scan.width);
            let mut counter = PartitionCounter::new(multiplicity);
            let mut count = |partition: PartitionId, in_pieces: bool| {
                let rows = self.records(partition);
                if rows.is_empty() {
                    return;
                }
                if in_pieces {
                    counter.count_pieces(rows, scan)
                } else {
                    counter.count(rows, scan)
                }
                let squares = counter.finish(partition, scan, &mut partial_counts);
                partial_counts.score += term(partition, squares);
            };
            match *task {
                ScanTask::Whole(list) => list.iter().for_each(|&partition| count(partition, false)),
                ScanTask::Pieces(partition) => count(partition, true),
            }
            partial_counts
        };
        // A task allocates a list for each child, so it has at least as many rows as there are
        // children.
        let tasks = scan_tasks(link, &self.lens, ROWS_PER_SCAN_TASK.max(scan.width));
        match tasks.as_slice() {
            [only] => count(only),
            tasks => {
                let parts = parallel::map(tasks, count);
                SplitCounts::concatenated(&parts, scan.width)
            }
        }
    }

    /// Sorts the records of each partition of `link` by child within its range. Returns the number
    /// of records of each part, in the order of `link` and by ascending child. Makes one scan of
    /// `T[x]`, shared among the threads.
    pub(super) fn refine(&mut self, link: &[PartitionId], scan: &Scan<'_>) -> Vec<u32> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let child_of = scan.child_of_code.as_slice();
        let sorted = with_codes!(&scan.column.codes, codes => {
            self.sort(link, &mut scratch, |row| child_of[codes.at(row as usize) as usize])
        });
        let mut pieces = sorted.iter().flat_map(SortedPieces::pieces);
        let mut from = 0;
        let mut lens = Vec::new();
        let mut runs: Vec<(u32, usize, u32)> = Vec::new();
        for &partition in link {
            let records = self.lens[partition as usize] as usize;
            let end = from + records;
            let start = self.starts[partition as usize] as usize;
            let order = &mut self.order[start..start + records];
            let Some(mut piece) = pieces.next() else {
                break;
            };
            let len_of =
                |piece: &[(u32, u32)]| piece.iter().map(|(_, len)| *len as usize).sum::<usize>();
            if records == len_of(piece) {
                order.copy_from_slice(&scratch[from..end]);
                lens.extend(piece.iter().map(|(_, len)| *len));
                from = end;
                continue;
            }
            runs.clear();
            loop {
                for &(child, len) in piece {
                    runs.push((child, from, len));
                    from += len as usize;
                }
                if from == end {
                    break;
                }
                let Some(next) = pieces.next() else { break };
                piece = next;
            }
            // A stable sort, so that the rows of a child keep the order of the pieces.
            runs.sort_by_key(|&(child, ..)| child);
            let mut to = 0;
            for &(_, from, len) in &runs {
                let len = len as usize;
                order[to..to + len].copy_from_slice(&scratch[from..from + len]);
                to += len;
            }
            let parts = runs.chunk_by(|(a, ..), (b, ..)| a == b);
            lens.extend(parts.map(|runs| runs.iter().map(|(.., len)| len).sum::<u32>()));
        }
        drop(pieces);
        self.scratch = scratch;
        lens
    }

    /// Sets the ranges of the partitions in `child_partitions`, with these numbers of records. They
    /// are the partitions that each refined partition was split into, in the order of the children;
    /// the first one has the id of the refined partition.
    pub(super) fn set_ranges(&mut self, child_partitions: &[ChildPartition], lens: &[u32]) {
        let last = child_partitions.iter().map(|child| child.partition).max();
        let count = last.map_or(0, |last| last as usize + 1);
        let count = count.max(self.starts.len());
        self.starts.resize(count, 0);
        self.lens.resize(count, 0);
        let mut lens = lens.iter();
        for parts in child_partitions.chunk_by(|a, b| a.link_index == b.link_index) {
            let mut start = self.starts[parts[0].partition as usize];
            for (child_partition, &len) in parts.iter().zip(&mut lens) {
                self.starts[child_partition.partition as usize] = start;
                self.lens[child_partition.partition as usize] = len;
                start += len;
            }
        }
    }

    /// Copies the rows of the partitions one after another to `scratch`, each piece sorted by
    /// child.
    fn sort(
        &self,
        link: &[PartitionId],
        scratch: &mut Vec<u32>,
        child: impl Fn(u32) -> u32 + Sync,
    ) -> Vec<SortedPieces> {
        let rows = |partition: PartitionId| self.records(partition);
        let total = link.iter().map(|&partition| rows(partition).len()).sum();
        scratch.resize(total, 0);
        let mut tasks: Vec<Vec<&[u32]>> = Vec::new();
        for task in scan_tasks(link, &self.lens, ROWS_PER_SCAN_TASK) {
            match task {
                ScanTask::Whole(list) => {
                    tasks.push(list.iter().map(|&partition| rows(partition)).collect());
                }
                ScanTask::Pieces(partition) => {
                    let pieces = rows(partition).chunks(ROWS_PER_SCAN_TASK);
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
            _ => parallel::map(tasks, sort),
        }
    }
}

/// Splits partitions with `lens` records into tasks of at least `least` records each, except where
/// too few remain before a large partition or at the end. Keeps their order. The tasks do not
/// depend on the number of threads.
fn scan_tasks<'a>(link: &'a [PartitionId], lens: &[u32], least: usize) -> Vec<ScanTask<'a>> {
    let mut tasks = Vec::new();
    let (mut start, mut rows) = (0, 0);
    for (end, &partition) in link.iter().enumerate() {
        let len = lens[partition as usize] as usize;
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
struct PartitionCounter<'a> {
    multiplicity: &'a Multiplicity,
    /// Dense counters, all 0 between partitions.
    counters: Vec<u32>,
    /// Without dense counters, one counter index for each row and slot column; sorted after the
    /// last row was added.
    indexes: Vec<u64>,
    /// The same for records, with their numbers of rows.
    weighted: Vec<(u64, u32)>,
}

impl<'a> PartitionCounter<'a> {
    fn new(multiplicity: &'a Multiplicity) -> Self {
        Self {
            multiplicity,
            counters: Vec::new(),
            indexes: Vec::new(),
            weighted: Vec::new(),
        }
    }

    fn count(&mut self, rows: &[u32], scan: &Scan<'_>) {
        if is_counted_densely(rows.len(), scan) {
            self.count_dense(rows, scan)
        } else {
            self.push_indexes(rows, scan);
            self.indexes.sort_unstable();
            self.weighted.sort_unstable();
        }
    }

    /// Like [`Self::count`], with the rows shared among the threads.
    fn count_pieces(&mut self, rows: &[u32], scan: &Scan<'_>) {
        let multiplicity = self.multiplicity;
        let is_dense = is_counted_densely(rows.len(), scan);
        // A piece has its own counters, so it has at least as many rows as counters.
        let least = if is_dense { scan.counters() } else { 0 };
        let pieces: Vec<&[u32]> = rows.chunks(ROWS_PER_SCAN_TASK.max(least)).collect();
        if is_dense {
            let zeros = || vec![0; scan.counters()];
            let count = |counters, piece: usize| {
                let mut counter = Self::new(multiplicity);
                counter.counters = counters;
                counter.count_dense(pieces[piece], scan);
                counter.counters
            };
            self.counters = parallel::sum(pieces.len(), &zeros, &count, &add_counters);
        } else {
            let list = |piece: &[u32]| {
                let mut counter = Self::new(multiplicity);
                counter.push_indexes(piece, scan);
                counter
            };
            for list in parallel::map(pieces, list) {
                self.indexes.extend(list.indexes);
                self.weighted.extend(list.weighted);
            }
            self.indexes.par_sort_unstable();
            self.weighted.par_sort_unstable();
        }
    }

    fn count_dense(&mut self, rows: &[u32], scan: &Scan<'_>) {
        let child_of = scan.child_of_code.as_slice();
        let slots = scan.sensitive.count();
        self.counters.resize(scan.counters(), 0);
        let counters = self.counters.as_mut_slice();
        for slot_column in &scan.sensitive.slots {
            with_codes!(&scan.column.codes, codes => with_codes!(&slot_column.codes, slot => {
                with_rows!(self.multiplicity, rows_of => for &row in rows {
                    let child = child_of[codes.at(row as usize) as usize];
                    let slot = slot_column.first + slot.at(row as usize);
                    let rows = rows_of.rows(row as usize);
                    counters[child as usize * slots + slot as usize] += rows;
                })
            }));
        }
    }

    fn push_indexes(&mut self, rows: &[u32], scan: &Scan<'_>) {
        match self.multiplicity {
            Multiplicity::One => push_entries(&mut self.indexes, rows, scan, |index, _| index),
            Multiplicity::Of(rows_of) => {
                let entry = |index, record: u32| (index, rows_of[record as usize]);
                push_entries(&mut self.weighted, rows, scan, entry);
            }
        }
    }

    /// Adds the shares of a partition to `partial_counts` and resets the counters. Returns the sum
    /// of the squared sizes of the shares.
    fn finish(
        &mut self,
        partition: PartitionId,
        scan: &Scan<'_>,
        partial_counts: &mut SplitCounts,
    ) -> u128 {
        if self.indexes.is_empty() && self.weighted.is_empty() {
            let counters = self.counters.iter_mut().enumerate();
            let rows = counters.filter(|(_, count)| **count > 0);
            let rows = rows.map(|(index, count)| (index, std::mem::take(count)));
            return scan.add_shares(partition, rows, partial_counts);
        }
        let runs = self.indexes.chunk_by(|a, b| a == b);
        let rows = runs.map(|run| (run[0] as usize, run.len() as u32));
        let weighted = self.weighted.chunk_by(|(a, _), (b, _)| a == b);
        let weighted = weighted.map(|run| (run[0].0 as usize, run.iter().map(|(_, n)| n).sum()));
        let squares = scan.add_shares(partition, rows.chain(weighted), partial_counts);
        self.indexes.clear();
        self.weighted.clear();
        squares
    }
}

/// Appends an entry for each record and slot column, made of its counter index and its number.
fn push_entries<E>(
    entries: &mut Vec<E>,
    records: &[u32],
    scan: &Scan<'_>,
    entry: impl Fn(u64, u32) -> E,
) {
    let child_of = scan.child_of_code.as_slice();
    let slots = scan.sensitive.count() as u64;
    for slot_column in &scan.sensitive.slots {
        with_codes!(&scan.column.codes, codes => with_codes!(&slot_column.codes, slot => {
            entries.extend(records.iter().map(|&record| {
                let child = child_of[codes.at(record as usize) as usize];
                let slot = slot_column.first + slot.at(record as usize);
                entry(u64::from(child) * slots + u64::from(slot), record)
            }));
        }));
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

/// The number of the child for each code of a candidate's attribute; 0 for codes outside the
/// candidate.
#[derive(Default)]
pub(super) struct ChildOfCode {
    child_of: Vec<u32>,
    /// The codes of the candidate. All entries outside this range are 0.
    assigned: Range<usize>,
}

impl ChildOfCode {
    /// Assigns the codes to the children of a split.
    pub(super) fn assign_split(&mut self, attribute: &Attribute<'_>, split: &[Concept]) {
        let first = split.iter().map(|child| child.codes.start).min();
        let end = split.iter().map(|child| child.codes.end).max();
        self.clear(attribute, first.unwrap_or(0)..end.unwrap_or(0));
        for (number, child) in split.iter().enumerate() {
            self.child_of[child.codes.start as usize..child.codes.end as usize].fill(number as u32);
        }
    }

    /// Splits an interval at `points` (codes in ascending order) and assigns the codes to the
    /// resulting runs of numbers; missing cells, if the interval has any, are one more child.
    /// Returns the number of children.
    pub(super) fn assign_points(
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

    /// Resets all entries to 0. Only the entries of the previous candidate are written, since a
    /// column may have a million codes.
    fn clear(&mut self, attribute: &Attribute<'_>, codes: Range<u32>) {
        self.child_of[self.assigned.clone()].fill(0);
        let count = attribute.histogram.len().max(self.child_of.len());
        self.child_of.resize(count, 0);
        self.assigned = codes.start as usize..codes.end as usize;
    }

    /// By code, the number of the child.
    pub(super) fn as_slice(&self) -> &[u32] {
        &self.child_of
    }
}

/// A candidate, and what is needed to count its rows.
pub(super) struct Scan<'a> {
    /// Index of the attribute.
    pub attribute: usize,
    /// The concept *x*.
    pub concept: ConceptId,
    /// The attribute.
    pub column: &'a Attribute<'a>,
    /// The child of each code.
    pub child_of_code: &'a ChildOfCode,
    /// Number of children.
    pub width: usize,
    /// The sensitive values of each row.
    pub sensitive: &'a SensitiveSlots,
    /// The privacy requirement.
    pub requirement: &'a Requirement<'a>,
}

impl Scan<'_> {
    /// Number of counters of a partition: one for each child and slot.
    pub(super) fn counters(&self) -> usize {
        self.width.saturating_mul(self.sensitive.count())
    }

    /// Adds the shares of a partition to `partial_counts`. `rows` gives the number of rows by
    /// counter index, ascending; the index is child × number of slots + slot. Returns the sum of
    /// the squared sizes of the shares.
    pub(super) fn add_shares(
        &self,
        partition: PartitionId,
        rows: impl Iterator<Item = (usize, u32)>,
        partial_counts: &mut SplitCounts,
    ) -> u128 {
        let slots = self.sensitive.count();
        let first_column_count = self.sensitive.first_column_count();
        let mut rows = rows.peekable();
        let mut squares = 0;
        while let Some(&(index, _)) = rows.peek() {
            let child = index / slots;
            let first = partial_counts.sensitive_counts.len();
            let mut size = 0;
            while let Some((index, count)) = rows.next_if(|(index, _)| *index < (child + 1) * slots)
            {
                let slot = index - child * slots;
                if slot < first_column_count {
                    size += count;
                }
                let values = self.sensitive.values(slot).iter();
                partial_counts
                    .sensitive_counts
                    .extend(values.map(|&value| ValueRows { value, rows: count }));
            }
            if !self.sensitive.is_ascending {
                merge(&mut partial_counts.sensitive_counts, first);
            }
            let sensitive_counts = &partial_counts.sensitive_counts[first..];
            let counts = as_rows(sensitive_counts);
            let greatest = self.requirement.greatest_share(u64::from(size), counts);
            squares += u128::from(size).pow(2);
            partial_counts.children[child].push(PartitionShare {
                partition,
                size,
                sensitive_range: (first as u32, partial_counts.sensitive_counts.len() as u32),
                meets: self.requirement.surely_meets_k(u64::from(size))
                    && self.requirement.allows(u64::from(size), greatest),
            });
        }
        squares
    }
}

/// Merges the entries from `first` on that have the same value, and sorts them by value.
fn merge(sensitive_counts: &mut Vec<ValueRows>, first: usize) {
    sensitive_counts[first..].sort_unstable();
    let mut end = first;
    for at in first..sensitive_counts.len() {
        let counted = sensitive_counts[at];
        if end > first && sensitive_counts[end - 1].value == counted.value {
            sensitive_counts[end - 1].rows += counted.rows;
        } else {
            sensitive_counts[end] = counted;
            end += 1;
        }
    }
    sensitive_counts.truncate(end);
}

/// The rows of one partition that would go to one child.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartitionShare {
    /// The partition that the rows are in.
    pub partition: PartitionId,
    /// Number of rows.
    pub size: u32,
    /// Range of its entries in [`SplitCounts::sensitive_counts`].
    pub(super) sensitive_range: (u32, u32),
    /// Whether these rows alone meet *K* and are bounded by *C*.
    pub meets: bool,
}

/// The counts of `T[x]`, or of those rows that a task counted.
pub(super) struct SplitCounts {
    /// By child, the partitions of *Link_x* that have rows in it.
    pub children: Vec<Vec<PartitionShare>>,
    /// The rows by sensitive value, share after share.
    pub sensitive_counts: Vec<ValueRows>,
    /// Σ over partitions of the objective's term, if the objective needs it.
    pub score: u128,
}

impl SplitCounts {
    /// No rows, for `width` children.
    pub(super) fn new(width: usize) -> Self {
        Self {
            children: vec![Vec::new(); width],
            sensitive_counts: Vec::new(),
            score: 0,
        }
    }

    /// The rows of a share by sensitive value.
    pub(super) fn counts_of(&self, share: &PartitionShare) -> &[ValueRows] {
        &self.sensitive_counts[share.sensitive_range.0 as usize..share.sensitive_range.1 as usize]
    }

    /// The partitions that the partitions of `link` (of `partitions` in total) are split into: in
    /// the order of `link`, and by ascending child. The first one of each keeps its id, and the others
    /// have the ids from `partitions` on.
    pub(super) fn parts(
        &self,
        link: &[PartitionId],
        partitions: usize,
        requirement: &Requirement<'_>,
    ) -> Vec<ChildPartition> {
        let mut link_index_of = vec![0u32; partitions];
        for (link_index, &partition) in (0..).zip(link) {
            link_index_of[partition as usize] = link_index;
        }
        // By index in `link`, the place of its next part.
        let mut next = vec![0u32; link.len()];
        for share in self.children.iter().flatten() {
            next[link_index_of[share.partition as usize] as usize] += 1;
        }
        let mut total = 0;
        for count in &mut next {
            total += std::mem::replace(count, total);
        }
        let unplaced = ChildPartition {
            link_index: 0,
            child: 0,
            partition: 0,
            size: 0,
            greatest: ValueShare::NONE,
        };
        let mut parts = vec![unplaced; total as usize];
        for (child, shares) in (0..).zip(&self.children) {
            for share in shares {
                let link_index = link_index_of[share.partition as usize];
                let place = &mut next[link_index as usize];
                let counts = as_rows(self.counts_of(share));
                parts[*place as usize] = ChildPartition {
                    link_index,
                    child,
                    partition: share.partition,
                    size: share.size,
                    greatest: requirement.greatest_share(u64::from(share.size), counts),
                };
                *place += 1;
            }
        }
        let mut id = partitions as PartitionId;
        for of_link in parts.chunk_by_mut(|a, b| a.link_index == b.link_index) {
            for part in &mut of_link[1..] {
                part.partition = id;
                id += 1;
            }
        }
        parts
    }

    /// The counts of consecutive tasks as one.
    pub(super) fn concatenated(parts: &[Self], width: usize) -> Self {
        let starts: Vec<u32> = parts
            .iter()
            .scan(0, |start, part| {
                let len = part.sensitive_counts.len() as u32;
                Some(std::mem::replace(start, *start + len))
            })
            .collect();
        let shares_of = |child: usize| {
            let shares = parts.iter().map(|part| part.children[child].len()).sum();
            let mut all = Vec::with_capacity(shares);
            for (part, start) in parts.iter().zip(&starts) {
                let shares = part.children[child].iter();
                all.extend(shares.map(|share| PartitionShare {
                    sensitive_range: (
                        share.sensitive_range.0 + start,
                        share.sensitive_range.1 + start,
                    ),
                    ..*share
                }));
            }
            all
        };
        let counts = parts.iter().map(|part| part.sensitive_counts.as_slice());
        let counts: Vec<&[ValueRows]> = counts.collect();
        let (children, sensitive_counts) =
            rayon::join(|| parallel::map(0..width, shares_of), || counts.concat());
        Self {
            children,
            sensitive_counts,
            score: parts.iter().map(|part| part.score).sum(),
        }
    }
}
