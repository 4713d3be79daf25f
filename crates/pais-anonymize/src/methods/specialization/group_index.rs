//! The groups of the current table by number, shared by all trials of one step.
//!
//! For each subset of *L* attributes below their topmost value, [`GroupIndex`] has the group of each partition,
//! and the rows of each group. A trial that suppresses a part finds its groups without a search. Groups of
//! parts that agree on several attributes are formed attribute by attribute ([`Grouping`]).
//!
//! Memory: 4 bytes for each subset and partition, and 17 for each group with what a trial notes of
//! it; a group has at least *K* rows. At most 2^24 pairs of a subset and a partition are indexed at
//! a time: with more of them, the subsets are indexed block by block.

use pais_core::subsets::{self, choose};
use rustc_hash::FxHashMap;

use super::attribute::ConceptId;
use super::partitions::{PartitionId, Partitions};
use crate::observer::Observer;

/// Maximum number of entries of an index: one for each subset and partition.
pub(super) const MAX_ENTRIES: usize = 1 << 24;

/// Parts below which a table is small enough for the lower limits of tests.
const FEW_PARTS_IN_TESTS: usize = 500;

/// [`MAX_ENTRIES`]; lower in tests of few parts, so that these need several blocks.
fn most_entries(parts: usize) -> usize {
    if cfg!(test) && parts < FEW_PARTS_IN_TESTS {
        64
    } else {
        MAX_ENTRIES
    }
}

/// The partitions that have rows, numbered without gaps.
pub(super) struct LiveParts {
    /// The partition of each part.
    pub partitions: Vec<PartitionId>,
    /// The part of each partition; meaningless for an empty one.
    pub part_of: Vec<u32>,
    /// Rows by part.
    pub sizes: Vec<u32>,
    /// The attributes below their topmost value.
    pub below_top: Vec<usize>,
    /// By attribute below its topmost value, in that order.
    pub columns: Vec<PartColumn>,
}

/// The values of an attribute.
pub(super) struct PartColumn {
    /// By part.
    pub concepts: Vec<ConceptId>,
    /// All values are below.
    pub width: usize,
}

impl LiveParts {
    pub(super) fn new(partitions: &Partitions, below_top: Vec<usize>) -> Self {
        let live: Vec<PartitionId> = partitions.non_empty().collect();
        let mut part_of = vec![0; live.last().map_or(0, |last| *last as usize + 1)];
        for (part, &partition) in (0..).zip(&live) {
            part_of[partition as usize] = part;
        }
        let column = |&attribute: &usize| {
            let concepts = live.iter();
            let concepts = concepts.map(|&partition| partitions.concept(partition, attribute));
            let concepts: Vec<ConceptId> = concepts.collect();
            let width = concepts.iter().max().map_or(0, |last| *last as usize + 1);
            PartColumn { concepts, width }
        };
        Self {
            sizes: live.iter().map(|&part| partitions.size(part)).collect(),
            columns: below_top.iter().map(column).collect(),
            partitions: live,
            part_of,
            below_top,
        }
    }

    /// Number of parts.
    pub(super) fn len(&self) -> usize {
        self.partitions.len()
    }
}

/// The groups of a block of subsets.
pub(super) struct GroupIndex {
    /// Number of attributes of a subset.
    depth: usize,
    /// Subsets of a block.
    subsets_per_block: usize,
    blocks: usize,
    /// The block at hand.
    loaded: Option<usize>,
    /// By subset, the positions of its attributes in [`LiveParts::below_top`].
    subsets: Vec<usize>,
    /// By subset and part, the group.
    group_of: Vec<u32>,
    /// By subset, its first group, and the end of the last one.
    pub starts: Vec<u32>,
    /// By group.
    pub rows: Vec<u32>,
    /// By group, one of its parts.
    pub example: Vec<u32>,
}

impl GroupIndex {
    /// An empty index of the groups of `depth` attributes.
    pub(super) fn new(live: &LiveParts, depth: usize) -> Self {
        let count = choose(live.below_top.len(), depth.min(live.below_top.len()));
        let per_block = (most_entries(live.len()) / live.len().max(1)).max(1);
        let blocks = count.div_ceil(per_block as u64);
        Self {
            depth,
            subsets_per_block: per_block,
            blocks: if depth == 0 { 0 } else { blocks as usize },
            loaded: None,
            subsets: Vec::new(),
            group_of: Vec::new(),
            starts: vec![0],
            rows: Vec::new(),
            example: Vec::new(),
        }
    }

    /// Number of blocks.
    pub(super) fn blocks(&self) -> usize {
        self.blocks
    }

    /// Whether a block is the one at hand.
    pub(super) fn is_loaded(&self, block: usize) -> bool {
        self.loaded == Some(block)
    }

    /// Number of subsets of the block at hand.
    pub(super) fn subset_count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The positions of the attributes of a subset.
    pub(super) fn subset(&self, subset: usize) -> &[usize] {
        &self.subsets[subset * self.depth..][..self.depth]
    }

    /// The groups of the parts under a subset.
    pub(super) fn groups(&self, subset: usize, live: &LiveParts) -> &[u32] {
        &self.group_of[subset * live.len()..][..live.len()]
    }

    /// Makes a block the one at hand. `None` if the run is stopped.
    pub(super) fn load(
        &mut self,
        block: usize,
        live: &LiveParts,
        grouping: &mut Grouping,
        observer: &dyn Observer,
    ) -> Option<()> {
        self.loaded = None;
        self.subsets.clear();
        self.group_of.clear();
        self.starts.truncate(1);
        self.rows.clear();
        self.example.clear();
        let of = live.below_top.len();
        let mut chosen: Vec<usize> = (0..self.depth).collect();
        for _ in 0..block * self.subsets_per_block {
            if subsets::next(&mut chosen, of).is_none() {
                return Some(());
            }
        }
        // By number of attributes, the groups of the prefix of the subset; level 0 is the table.
        let mut levels = vec![(Vec::new(), 0usize); self.depth + 1];
        levels[0] = (vec![0; live.len()], 1);
        let mut changed = 0;
        for _ in 0..self.subsets_per_block {
            if observer.must_stop() {
                return None;
            }
            for place in changed..self.depth {
                let column = &live.columns[chosen[place]];
                let (before, after) = levels.split_at_mut(place + 1);
                let (groups, count) = &before[place];
                let (values, (split, number)) = (column.concepts.iter().copied(), &mut after[0]);
                *number = grouping.split(groups, *count, values, column.width, split);
            }
            let (groups, count) = &levels[self.depth];
            self.add(&chosen, groups, *count, live);
            let Some(place) = subsets::next(&mut chosen, of) else {
                break;
            };
            changed = place;
        }
        self.loaded = Some(block);
        Some(())
    }

    fn add(&mut self, chosen: &[usize], groups: &[u32], count: usize, live: &LiveParts) {
        let start = self.rows.len();
        self.subsets.extend_from_slice(chosen);
        self.rows.resize(start + count, 0);
        self.example.resize(start + count, 0);
        self.group_of.reserve(groups.len());
        for (part, (&group, &size)) in (0..).zip(groups.iter().zip(&live.sizes)) {
            let group = start + group as usize;
            self.rows[group] += size;
            self.example[group] = part;
            self.group_of.push(group as u32);
        }
        self.starts.push(self.rows.len() as u32);
    }
}

/// Number of pairs of a group and a value up to which the numbers of new groups are in an array.
const MAX_SLOTS: usize = 1 << 20;

/// [`MAX_SLOTS`]; lower in tests of few parts, so that these use the map too.
fn most_slots(parts: usize) -> usize {
    if cfg!(test) && parts < FEW_PARTS_IN_TESTS {
        24
    } else {
        MAX_SLOTS
    }
}

/// Splits groups by one more attribute. Holds working space.
#[derive(Default)]
pub(super) struct Grouping {
    slots: Slots,
    numbers: FxHashMap<(u32, u32), u32>,
}

impl Grouping {
    /// Splits `count` groups by the values of one more attribute, which are below `width`. `groups`
    /// are the groups of the members, `values` their values. Writes the new group of each member
    /// to `split` and returns the number of new groups, which are numbered in order of appearance.
    pub(super) fn split(
        &mut self,
        groups: &[u32],
        count: usize,
        values: impl Iterator<Item = u32>,
        width: usize,
        split: &mut Vec<u32>,
    ) -> usize {
        split.clear();
        let members = groups.iter().copied().zip(values);
        let slots = count.saturating_mul(width);
        if slots > most_slots(groups.len()) {
            self.numbers.clear();
            split.extend(members.map(|member| {
                let next = self.numbers.len() as u32;
                *self.numbers.entry(member).or_insert(next)
            }));
            return self.numbers.len();
        }
        self.slots.begin(slots);
        split.extend(members.map(|(group, value)| {
            let slot = group as usize * width + value as usize;
            self.slots.number(slot).0
        }));
        self.slots.count()
    }
}

/// Numbers keys in the order in which they occur.
#[derive(Default)]
pub(super) struct Slots {
    /// By key, the use that numbered it and its number.
    numbered: Vec<(u32, u32)>,
    current: u32,
    count: u32,
}

impl Slots {
    /// Begins a new use with keys below `keys`.
    pub(super) fn begin(&mut self, keys: usize) {
        if self.numbered.len() < keys {
            self.numbered.resize(keys, (0, 0));
        }
        if self.current == u32::MAX {
            self.numbered.fill((0, 0));
            self.current = 0;
        }
        self.current += 1;
        self.count = 0;
    }

    /// The number of a key, and whether this is its first occurrence.
    #[inline]
    pub(super) fn number(&mut self, key: usize) -> (u32, bool) {
        let entry = &mut self.numbered[key];
        let is_new = entry.0 != self.current;
        if is_new {
            *entry = (self.current, self.count);
            self.count += 1;
        }
        (entry.1, is_new)
    }

    /// Number of keys that occurred.
    pub(super) fn count(&self) -> usize {
        self.count as usize
    }
}

/// Lists of members by group. Holds working space.
#[derive(Default)]
pub(super) struct MembersByGroup {
    ends: Vec<u32>,
    members: Vec<u32>,
}

impl MembersByGroup {
    /// Sorts members into `count` groups. `members` are pairs of a group and a member.
    pub(super) fn fill(&mut self, count: usize, members: impl Iterator<Item = (u32, u32)> + Clone) {
        self.ends.clear();
        self.ends.resize(count + 1, 0);
        for (group, _) in members.clone() {
            self.ends[group as usize + 1] += 1;
        }
        for group in 0..count {
            self.ends[group + 1] += self.ends[group];
        }
        self.members.clear();
        self.members.resize(self.ends[count] as usize, 0);
        // `ends` has the starts now, and each becomes the end of its group.
        for (group, member) in members {
            let at = &mut self.ends[group as usize];
            self.members[*at as usize] = member;
            *at += 1;
        }
    }

    /// Whether nothing was sorted yet.
    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The members of a group.
    #[inline]
    pub(super) fn list(&self, group: usize) -> &[u32] {
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.members[start as usize..self.ends[group] as usize]
    }

    /// The groups that have members.
    pub(super) fn lists(&self) -> impl Iterator<Item = &[u32]> {
        let count = self.ends.len().saturating_sub(1);
        let lists = (0..count).map(|group| self.list(group));
        lists.filter(|list| !list.is_empty())
    }
}
