//! TIPS: taxonomy indexed partitions (KDD'09, Definition 4.1).

use super::attribute::ConceptId;
use super::partition_order::PartitionOrder;
use super::scan::Scan;
use super::table_order::{self, TableOrder};
use super::weights::{Counted, Weights};

/// Index of a partition.
pub type PartitionId = u32;

/// What fetching a row from afar costs, in rows read one after another.
const GATHERED: u64 = 4;

/// A partition that refining another one made, or left of it.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// The place of the refined partition in *Link_x*.
    pub place: u32,
    /// The number of the child.
    pub child: u32,
    /// The partition.
    pub partition: PartitionId,
}

/// How the rows of partitions are found.
enum Layout {
    Table(TableOrder),
    Partition(PartitionOrder),
}

/// All partitions: every row that is not suppressed stands in exactly one, and only one whose
/// rows were suppressed is empty.
pub struct Partitions {
    layout: Layout,
    /// Rows by partition.
    sizes: Vec<u32>,
    /// By attribute, the concept of each partition.
    records: Vec<Vec<ConceptId>>,
    /// *Link_x*: by attribute and concept, the partitions whose record contains it.
    links: Vec<Vec<Vec<PartitionId>>>,
    /// By partition, the rows of its most frequent sensitive value.
    most: Vec<u32>,
    /// Σ|T\[qid\]|², the discernibility cost.
    squares: u128,
    /// Partitions whose rows were not suppressed.
    live: usize,
    /// Rows that scans of the whole table read beyond what scans of `T[x]` had cost.
    excess: u64,
}

impl Partitions {
    /// One partition of `rows` rows but for those already `suppressed` (ascending), at the topmost
    /// values; `most` of them have the most frequent sensitive value.
    pub fn new(rows: usize, suppressed: &[u32], attributes: usize, most: u32) -> Self {
        let left = rows - suppressed.len();
        let layout = if suppressed.is_empty() {
            Layout::Table(TableOrder::new(rows))
        } else {
            let mut gone = suppressed.iter().copied().peekable();
            let order = (0..rows as u32).filter(|row| gone.next_if_eq(row).is_none());
            Layout::Partition(PartitionOrder::new(order.collect(), vec![0]))
        };
        Self {
            layout,
            sizes: vec![left as u32],
            live: 1,
            records: vec![vec![0]; attributes],
            links: vec![vec![vec![0]]; attributes],
            most: vec![most],
            squares: (left as u128).pow(2),
            excess: 0,
        }
    }

    /// Number of partitions, the equivalence classes.
    pub fn count(&self) -> usize {
        self.live
    }

    /// All partitions that have rows.
    pub fn all(&self) -> impl Iterator<Item = PartitionId> {
        let live = self.sizes.iter().enumerate().filter(|(_, size)| **size > 0);
        live.map(|(partition, _)| partition as PartitionId)
    }

    /// Suppresses the rows of a partition, and tells which they are.
    pub fn suppress(&mut self, partition: PartitionId) -> Vec<u32> {
        // In the order of the table every row is counted.
        self.sort();
        let rows = self.rows(partition);
        self.sizes[partition as usize] = 0;
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
        let live = self.sizes.iter().zip(&self.most);
        for (&size, &held) in live.filter(|(size, _)| **size > 0) {
            smallest = smallest.min(size);
            let (held, size) = (u64::from(held), u64::from(size));
            if held * of > most * size {
                (most, of) = (held, size);
            }
        }
        let smallest = match self.live {
            0 => 0,
            _ => u64::from(smallest),
        };
        (smallest, most as f64 / of as f64)
    }

    /// *Link_x*.
    pub fn link(&self, attribute: usize, concept: ConceptId) -> &[PartitionId] {
        &self.links[attribute][concept as usize]
    }

    /// Number of rows of a partition.
    #[inline]
    pub fn size(&self, partition: PartitionId) -> u32 {
        self.sizes[partition as usize]
    }

    /// The rows of a partition, ascending. One pass over the table unless they are
    /// [sorted](Self::sort).
    pub fn rows(&self, partition: PartitionId) -> Vec<u32> {
        match &self.layout {
            Layout::Table(order) => order.rows_of(partition),
            Layout::Partition(order) => order.rows(partition, self.size(partition)).to_vec(),
        }
    }

    /// The concept of a partition on an attribute.
    #[inline]
    pub fn concept(&self, partition: PartitionId, attribute: usize) -> ConceptId {
        self.records[attribute][partition as usize]
    }

    /// Counts the rows of *Link_x* by child and sensitive value. `term` makes the score's term of
    /// a partition from its size and the sum of its children's squared sizes.
    pub fn weigh(
        &mut self,
        (attribute, concept): (usize, ConceptId),
        scan: &Scan<'_>,
        term: impl Fn(u64, u128) -> f64 + Sync,
    ) -> Counted {
        self.lay_out(attribute, concept, scan);
        let link = &self.links[attribute][concept as usize];
        let order = match &self.layout {
            Layout::Partition(order) => return order.count(link, &self.sizes, scan, term),
            Layout::Table(order) => order,
        };
        let mut counted = Counted::new(scan.width);
        let block = scan.counters();
        for link in link.chunks((table_order::COUNTERS / block).max(1)) {
            let counters = order.count(link, self.sizes.len(), scan);
            for (&partition, counters) in link.iter().zip(counters.chunks(block)) {
                let counters = counters.iter().copied().enumerate();
                let rows = counters.filter(|(_, count)| *count > 0);
                let squares = scan.close(partition, rows, &mut counted);
                counted.score += term(u64::from(self.sizes[partition as usize]), squares);
            }
        }
        counted
    }

    /// Sorts the rows by partition once scans of the whole table have cost more than that: when
    /// partitions have become many, or the candidates small.
    fn lay_out(&mut self, attribute: usize, concept: ConceptId, scan: &Scan<'_>) {
        let Layout::Table(order) = &self.layout else {
            return;
        };
        let rows = order.rows() as u64;
        let link = &self.links[attribute][concept as usize];
        let sizes = link
            .iter()
            .map(|&partition| u64::from(self.size(partition)));
        let gathered = GATHERED * sizes.sum::<u64>();
        let block = scan.counters();
        let passes = link.len().div_ceil((table_order::COUNTERS / block).max(1)) as u64;
        let read = passes * rows + (link.len() * block) as u64;
        self.excess = (self.excess + read).saturating_sub(gathered);
        if block > table_order::COUNTERS || self.excess > GATHERED * rows {
            self.sort();
        }
    }

    /// Whether rows are not sorted yet.
    #[cfg(test)]
    pub fn is_in_table_order(&self) -> bool {
        matches!(self.layout, Layout::Table(_))
    }

    /// Sorts the rows by partition, once and for all: for scans of few rows.
    pub fn sort(&mut self) {
        if let Layout::Table(order) = &self.layout {
            self.layout = Layout::Partition(order.sorted(&self.sizes));
        }
    }

    /// Refines the partitions of *Link_x* by `children` as they were weighed. `placed` is told of
    /// each part: the partition refined, the number of the child, and the partition made.
    pub fn refine(
        &mut self,
        concept: ConceptId,
        children: std::ops::Range<ConceptId>,
        weights: &Weights,
        scan: &Scan<'_>,
        mut placed: impl FnMut(PartitionId, u32, PartitionId),
    ) {
        let at = weights.attribute;
        let mut link = std::mem::take(&mut self.links[at][concept as usize]);
        // What was suppressed stays in no link.
        link.retain(|&partition| self.size(partition) > 0);
        self.links[at].resize_with(children.end as usize, Vec::new);
        let before = self.sizes.len();
        let parts = weights.parts(&link, before);
        // No row moves where all of a partition go to one child, as they do below a value that
        // no row has.
        let moves = parts.len() > link.len();
        if let (Layout::Partition(order), true) = (&mut self.layout, moves) {
            order.refine(&link, &self.sizes, scan);
        }
        let mut made = Vec::with_capacity(parts.len());
        for parts in parts.chunk_by(|a, b| a.place == b.place) {
            let refined = link[parts[0].place as usize];
            self.squares -= u128::from(self.size(refined)).pow(2);
            self.live += parts.len() - 1;
            for (number, part) in parts.iter().enumerate() {
                let id = match number {
                    0 => refined,
                    _ => self.push_like(refined, at),
                };
                self.squares += u128::from(part.size).pow(2);
                self.sizes[id as usize] = part.size;
                self.most[id as usize] = part.most;
                let concept = children.start + part.child;
                self.records[at][id as usize] = concept;
                self.links[at][concept as usize].push(id);
                made.push(Made {
                    place: part.place,
                    child: part.child,
                    partition: id,
                });
                placed(refined, part.child, id);
            }
        }
        match &mut self.layout {
            _ if !moves => {}
            Layout::Table(order) => order.refine(&link, before, &made, scan),
            Layout::Partition(order) => order.place(&made, &self.sizes),
        }
    }

    /// A new partition with the record of another, linked wherever that one is but on `except`.
    fn push_like(&mut self, other: PartitionId, except: usize) -> PartitionId {
        let id = self.sizes.len() as PartitionId;
        self.sizes.push(0);
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
