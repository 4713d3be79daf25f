//! TIPS: taxonomy indexed partitions (KDD'09, Definition 4.1).

use pais_core::table::{SubjectCounter, Subjects};

use super::attribute::ConceptId;
use super::partition_order::PartitionOrder;
use super::requirement::ValueShare;
use super::scan::Scan;
use super::split_counts::{PartialCounts, SplitCounts};
use super::table_order::{self, TableOrder};

/// Index of a partition.
pub(super) type PartitionId = u32;

/// Cost of a random access to a row, in rows read sequentially.
const RANDOM_READ_COST: u64 = 4;

/// A partition that resulted from refining another one. The first child keeps the id of the refined
/// partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChildPartition {
    /// Index of the refined partition in *Link_x*.
    pub link_index: u32,
    /// The number of the child.
    pub child: u32,
    /// The partition.
    pub partition: PartitionId,
}

/// The layout that gives the rows of each partition.
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
        (rows, suppressed): (usize, &[u32]),
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
            RowLayout::Partition(PartitionOrder::new(order.collect(), vec![0]))
        };
        let mut partitions = Self {
            layout,
            persons: None,
            sizes: vec![left as u32],
            live: 1,
            records: vec![vec![0]; attributes],
            links: vec![vec![vec![0]]; attributes],
            greatest: vec![greatest],
            squares: (left as u128).pow(2),
            excess: 0,
        };
        if let Some(subjects) = subjects {
            // The persons of a partition are found by its rows.
            partitions.sort();
            let mut persons = PartitionPersons::new(subjects);
            persons.count(0, &partitions.rows(0));
            partitions.persons = Some(persons);
        }
        partitions
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

    /// Number of rows, or of persons where *K* counts these, of the smallest partition (0 if there is none), and the greatest share of a
    /// partition's rows that have the same sensitive value. Makes one scan of the partitions.
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
            RowLayout::Partition(order) => order.rows(partition, self.size(partition)).to_vec(),
        }
    }

    /// The concept of a partition on an attribute.
    #[inline]
    pub(super) fn concept(&self, partition: PartitionId, attribute: usize) -> ConceptId {
        self.records[attribute][partition as usize]
    }

    /// Counts the rows of *Link_x* by child and sensitive value. `term` computes a partition's term
    /// of the score from its size and the sum of its children's squared sizes.
    pub(super) fn count_split(
        &mut self,
        (attribute, concept): (usize, ConceptId),
        scan: &Scan<'_>,
        term: impl Fn(u64, u128) -> f64 + Sync,
    ) -> PartialCounts {
        self.choose_layout(attribute, concept, scan);
        let link = &self.links[attribute][concept as usize];
        let order = match &self.layout {
            RowLayout::Partition(order) => return order.count(link, &self.sizes, scan, term),
            RowLayout::Table(order) => order,
        };
        let mut counts = PartialCounts::new(scan.width);
        let block = scan.counters();
        for link in link.chunks((table_order::MAX_COUNTERS / block).max(1)) {
            let counters = order.count(link, self.sizes.len(), scan);
            for (&partition, counters) in link.iter().zip(counters.chunks(block)) {
                let counters = counters.iter().copied().enumerate();
                let rows = counters.filter(|(_, count)| *count > 0);
                let squares = scan.add_shares(partition, rows, &mut counts);
                counts.score += term(u64::from(self.sizes[partition as usize]), squares);
            }
        }
        counts
    }

    /// Sorts the rows by partition once the scans of the whole table have cost more than sorting.
    /// This happens when there are many partitions, or when candidates have few rows.
    fn choose_layout(&mut self, attribute: usize, concept: ConceptId, scan: &Scan<'_>) {
        let RowLayout::Table(order) = &self.layout else {
            return;
        };
        let rows = order.rows() as u64;
        let link = &self.links[attribute][concept as usize];
        let sizes = link
            .iter()
            .map(|&partition| u64::from(self.size(partition)));
        let random_access = RANDOM_READ_COST * sizes.sum::<u64>();
        let block = scan.counters();
        let passes = link
            .len()
            .div_ceil((table_order::MAX_COUNTERS / block).max(1)) as u64;
        let read = passes * rows + (link.len() * block) as u64;
        self.excess = (self.excess + read).saturating_sub(random_access);
        if block > table_order::MAX_COUNTERS || self.excess > RANDOM_READ_COST * rows {
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
            self.layout = RowLayout::Partition(order.sorted(&self.sizes));
        }
    }

    /// Refines the partitions of *Link_x* by `children`, as counted in `split_counts`. Calls
    /// `placed` for each resulting partition with the refined partition, the number of the child,
    /// and the resulting partition.
    pub(super) fn refine(
        &mut self,
        concept: ConceptId,
        children: std::ops::Range<ConceptId>,
        split_counts: &SplitCounts,
        scan: &Scan<'_>,
        mut placed: impl FnMut(PartitionId, u32, PartitionId),
    ) {
        let at = split_counts.attribute;
        let mut link = std::mem::take(&mut self.links[at][concept as usize]);
        // Remove suppressed partitions from the link.
        link.retain(|&partition| self.size(partition) > 0);
        self.links[at].resize_with(children.end as usize, Vec::new);
        let before = self.sizes.len();
        let parts = split_counts.parts(&link, before, scan.requirement);
        // No row moves if each partition goes to one child as a whole, as happens for a value whose
        // other children have no rows.
        let moves = parts.len() > link.len();
        if let (RowLayout::Partition(order), true) = (&mut self.layout, moves) {
            order.refine(&link, &self.sizes, scan);
        }
        let mut child_partitions = Vec::with_capacity(parts.len());
        for parts in parts.chunk_by(|a, b| a.link_index == b.link_index) {
            let refined = link[parts[0].link_index as usize];
            self.squares -= u128::from(self.size(refined)).pow(2);
            self.live += parts.len() - 1;
            for (number, part) in parts.iter().enumerate() {
                let id = match number {
                    0 => refined,
                    _ => self.push_like(refined, at),
                };
                self.squares += u128::from(part.size).pow(2);
                self.sizes[id as usize] = part.size;
                self.greatest[id as usize] = part.greatest;
                let concept = children.start + part.child;
                self.records[at][id as usize] = concept;
                self.links[at][concept as usize].push(id);
                child_partitions.push(ChildPartition {
                    link_index: part.link_index,
                    child: part.child,
                    partition: id,
                });
                placed(refined, part.child, id);
            }
        }
        match &mut self.layout {
            _ if !moves => {}
            RowLayout::Table(order) => order.refine(&link, before, &child_partitions, scan),
            RowLayout::Partition(order) => order.set_starts(&child_partitions, &self.sizes),
        }
        if let Some(mut persons) = self.persons.take() {
            if moves {
                for child_partition in &child_partitions {
                    let partition = child_partition.partition;
                    persons.count(partition, &self.rows(partition));
                }
            }
            self.persons = Some(persons);
        }
    }

    /// Adds an empty partition with the record of another one, and links it for every attribute
    /// except `except`. Returns its id.
    fn push_like(&mut self, other: PartitionId, except: usize) -> PartitionId {
        let id = self.sizes.len() as PartitionId;
        self.sizes.push(0);
        self.greatest.push(ValueShare::NONE);
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
