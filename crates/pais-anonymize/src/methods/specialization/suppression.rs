//! The rows that must be suppressed to make a specialization valid.
//!
//! A group that has fewer than *K* rows (or persons, if *K* counts persons) is removed by suppressing all its
//! rows. That removes rows from other groups too, which may then violate the requirement themselves; this
//! repeats until no violating group remains. The trial is given up as soon as the suppressed rows exceed the
//! budget.
//!
//! A group with at least *K* rows that exceeds *C* is suppressed only if the job asks for it: its
//! absence discloses that its rows had the same sensitive value. Otherwise the specialization is
//! invalid. Which rows are suppressed for *K* does not depend on the order in which groups are
//! checked, so *C* is checked on the table that remains.
//!
//! # One trial
//!
//! [`TrialTable::remove_small`] finds the rows to suppress so that no group of a specialization has
//! fewer than *K*. The parts that remain are the largest set of parts in which every group is empty or has *K*
//! rows (or persons). This set is unique, because the union of two such sets is one too, so small groups can be
//! removed in any order. Groups that contain a child are counted by a traversal of the subsets. The other
//! groups were valid before, so only those that lose a part can become small. The [index](GroupIndex) gives
//! their numbers, and how many rows each of them has.
//!
//! [`TrialTable::remove_violating`] suppresses every group that violates *K* or *C*. Unlike *K*,
//! *C* can be met again after some rows of a group were suppressed, so the result depends on the order of the
//! checks. The order is fixed: the children one after the other, then rounds over all groups, each time by
//! attributes and then by values.
//!
//! # Bounds from earlier trials
//!
//! [`SuppressionBounds`] keeps what trials of earlier steps say about a specialization that is
//! tried again: a lower bound of its suppressed rows, and an upper bound of its score. Both hold for the same
//! split of the same value in all later states.
//!
//! Let *R* be the rows that remain after a trial that suppresses only for *K*: the largest set of rows, without
//! those suppressed before, in which each group is empty or has *K* persons. Later the other values of the cut
//! are the same or finer, and more rows are suppressed. Each group of the former state is a union of later
//! groups, so the later *R* also is such a set in the former state, and thus part of the former *R*. Hence the
//! rows suppressed before the trial and in it never decrease in total. A trial that is given up has suppressed
//! some of these rows, which bounds the total too. Rows that are suppressed for *C* as well only add to them.
//!
//! The scores over partitions never increase: they are sums over partitions of products of the sizes of parts,
//! and refining a partition or suppressing its rows does not increase its term.

use rustc_hash::FxHashMap;

use super::attribute::{Concept, ConceptId};
use super::group_index::{GroupIndex, Grouping, LiveParts, MembersByGroup};
use super::partitions::{PartitionId, Partitions, SplitCounts};
use super::persons::{PersonCheck, ShareSubjects};
use super::requirement::{Requirement, ValueRows, as_rows};
use crate::observer::Observer;

/// The rows to suppress with a specialization.
#[derive(Clone, Debug, Default)]
pub(super) struct Suppression {
    /// Parts of refined partitions: the partition and the number of the child.
    pub parts: Vec<(PartitionId, u32)>,
    /// Partitions that are not refined.
    pub partitions: Vec<PartitionId>,
    /// Total number of rows.
    pub rows: u64,
}

/// Caches the counts of partitions at the first access.
#[derive(Default)]
pub(super) struct SensitiveCountCache {
    /// By partition.
    counted: Vec<Option<CountedPartition>>,
}

/// The counts of a partition.
struct CountedPartition {
    /// Its rows by counted value.
    sensitive: Box<[ValueRows]>,
    /// The persons, each once; empty where rows are counted or are enough.
    subjects: Box<[u32]>,
}

impl SensitiveCountCache {
    /// Removes the counts of partitions that change.
    pub(super) fn invalidate(&mut self, partitions: &[PartitionId]) {
        for &partition in partitions {
            if let Some(counted) = self.counted.get_mut(partition as usize) {
                *counted = None;
            }
        }
    }

    /// Counts a partition unless it was counted before.
    pub(super) fn count(
        &mut self,
        partition: PartitionId,
        partitions: &Partitions,
        requirement: &Requirement<'_>,
    ) {
        let at = partition as usize;
        if at >= self.counted.len() {
            self.counted.resize_with(at + 1, || None);
        }
        self.counted[at]
            .get_or_insert_with(|| CountedPartition::new(partition, partitions, requirement));
    }

    /// The rows of a partition that was counted, by sensitive value; empty for another one.
    pub(super) fn sensitive(&self, partition: PartitionId) -> &[ValueRows] {
        self.get(partition)
            .map_or(&[], |counted| &counted.sensitive)
    }

    /// The persons of a partition that was counted; empty for another one.
    pub(super) fn subjects(&self, partition: PartitionId) -> &[u32] {
        self.get(partition).map_or(&[], |counted| &counted.subjects)
    }

    fn get(&self, partition: PartitionId) -> Option<&CountedPartition> {
        self.counted.get(partition as usize)?.as_ref()
    }
}

impl CountedPartition {
    fn new(partition: PartitionId, partitions: &Partitions, requirement: &Requirement<'_>) -> Self {
        let mut values = Vec::new();
        let rows = partitions.rows(partition);
        for &row in &rows {
            requirement.for_each_counted_value(row as usize, |value| values.push(value as u32));
        }
        values.sort_unstable();
        let runs = values.chunk_by(|a, b| a == b).map(|run| ValueRows {
            value: run[0],
            rows: run.len() as u32,
        });
        let listed = requirement.subjects;
        let listed = listed.filter(|_| !requirement.surely_meets_k(rows.len() as u64));
        let mut subjects = listed.map_or_else(Vec::new, |subjects| subjects.select(&rows));
        subjects.sort_unstable();
        subjects.dedup();
        Self {
            sensitive: runs.collect(),
            subjects: subjects.into(),
        }
    }
}

/// Rows of a group by counted value.
struct Totals<'a> {
    /// By value; all 0 before and after.
    counts: &'a mut [u64],
    /// The values whose count is not 0.
    values: Vec<u32>,
}

impl<'a> Totals<'a> {
    fn new(counts: &'a mut [u64]) -> Self {
        let values = Vec::new();
        Self { counts, values }
    }

    fn add(&mut self, counts: &[ValueRows]) {
        for &ValueRows { value, rows } in counts {
            let total = &mut self.counts[value as usize];
            if *total == 0 {
                self.values.push(value);
            }
            *total += u64::from(rows);
        }
    }

    /// Whether a group of `size` rows with these values is allowed.
    fn are_allowed(mut self, size: u64, requirement: &Requirement<'_>) -> bool {
        self.values.sort_unstable();
        let counts = self.values.into_iter();
        let counts: Vec<(u32, u64)> = counts
            .map(|value| (value, std::mem::take(&mut self.counts[value as usize])))
            .collect();
        requirement.allows_counts(size, counts.into_iter())
    }
}

/// Determines the rows to suppress with a candidate.
pub(super) struct SuppressionTrial<'a> {
    /// The partitions of the current table.
    pub partitions: &'a Partitions,
    /// The privacy requirement.
    pub requirement: &'a Requirement<'a>,
    /// The attributes below their topmost value, without the candidate's own.
    pub others: &'a [usize],
    /// The candidate's attribute.
    pub attribute: usize,
    /// The candidate's concept.
    pub concept: ConceptId,
    /// The id that its first child would have.
    pub first_child: ConceptId,
    /// Largest number of rows that may be suppressed.
    pub budget: u64,
    /// Checked at every attribute. A stopped trial returns `None`.
    pub observer: &'a dyn Observer,
}

/// A split of a value: the attribute, the concept and the end of the first child's codes. The
/// children of a node are given, and those of an interval have one border.
pub(super) type SplitKey = (usize, ConceptId, u32);

/// Bounds of one split.
#[derive(Clone, Copy)]
struct SplitBounds {
    suppressed: u64,
    score: f64,
}

/// The bounds by split.
#[derive(Default)]
pub(super) struct SuppressionBounds {
    by_split: FxHashMap<SplitKey, SplitBounds>,
}

impl SuppressionBounds {
    /// The key of a split of a concept.
    pub(super) fn key(attribute: usize, concept: ConceptId, split: &[Concept]) -> SplitKey {
        let first = split.first();
        (attribute, concept, first.map_or(0, |child| child.codes.end))
    }

    /// Records that after the specialization at least this many rows are suppressed in total, and
    /// its score.
    pub(super) fn record(&mut self, key: SplitKey, suppressed: u64, score: f64) {
        let bounds = self.by_split.entry(key).or_insert(SplitBounds {
            suppressed: 0,
            score,
        });
        bounds.suppressed = bounds.suppressed.max(suppressed);
        bounds.score = bounds.score.min(score);
    }

    /// A lower bound of the number of rows that are suppressed in total after the specialization.
    pub(super) fn suppressed(&self, key: SplitKey) -> u64 {
        self.by_split
            .get(&key)
            .map_or(0, |bounds| bounds.suppressed)
    }

    /// An upper bound of its score, if one is known.
    pub(super) fn score(&self, key: SplitKey) -> Option<f64> {
        self.by_split.get(&key).map(|bounds| bounds.score)
    }
}

/// The data and working space that the trials of one step share.
pub(super) struct TrialIndex {
    live: LiveParts,
    index: GroupIndex,
    grouping: Grouping,
    by_group: MembersByGroup,
    /// By group of the block at hand, the rows that the trial suppresses.
    lost: Vec<u32>,
    /// By group, whether it is in `queue`.
    queued: Vec<bool>,
    /// The groups that lost rows.
    touched: Vec<u32>,
    /// Subsets and groups to check.
    queue: Vec<(u32, u32)>,
    totals: Vec<u64>,
}

impl TrialIndex {
    /// For the current partitions, with these attributes below their topmost value.
    pub(super) fn new(
        partitions: &Partitions,
        requirement: &Requirement<'_>,
        below_top: Vec<usize>,
    ) -> Self {
        let depth = below_top.len().min(requirement.l);
        let live = LiveParts::new(partitions, below_top);
        Self {
            index: GroupIndex::new(&live, depth),
            live,
            grouping: Grouping::default(),
            by_group: MembersByGroup::default(),
            lost: Vec::new(),
            queued: Vec::new(),
            touched: Vec::new(),
            queue: Vec::new(),
            totals: vec![0; requirement.counted_values],
        }
    }

    /// Resets the rows that groups lost.
    fn reset(&mut self) {
        for group in self.touched.drain(..) {
            self.lost[group as usize] = 0;
            self.queued[group as usize] = false;
        }
        self.queue.clear();
    }
}

/// A part of a child.
struct TrialShare {
    /// The part that is refined.
    part: u32,
    child: u32,
    /// Its place among the shares of the child.
    place: u32,
    size: u32,
    /// Whether its rows alone have *K* persons.
    has_enough: bool,
    /// Whether its rows alone also are bounded by *C*.
    meets: bool,
}

/// What is checked of a group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    /// It has *K* rows; otherwise it is suppressed. With `lost`, only groups that lost a part are
    /// checked.
    Size { lost: bool },
    /// It is bounded by *C*; otherwise the trial fails.
    Confidence,
}

/// The parts of the table that would result. An *element* is a part of the current table that is
/// not refined, by its number, or a share, by its number after all parts.
pub(super) struct TrialTable<'a> {
    trial: &'a SuppressionTrial<'a>,
    split_counts: &'a SplitCounts,
    subjects: Option<&'a ShareSubjects>,
    count_cache: &'a mut SensitiveCountCache,
    shared: &'a mut TrialIndex,
    /// The position of the candidate's attribute among those below their topmost value.
    own: Option<usize>,
    shares: Vec<TrialShare>,
    /// By part, its shares.
    shares_by_part: MembersByGroup,
    /// By element.
    is_suppressed: Vec<bool>,
    suppressed: Vec<u32>,
    rows: u64,
    /// How many of `suppressed` were applied to the current block.
    applied: usize,
    persons: PersonCheck<'a>,
}

/// Members with the number of the group that each is in.
#[derive(Clone, Copy)]
struct MemberGroups<'a> {
    members: &'a [u32],
    /// By member, below `count`.
    groups: &'a [u32],
    count: usize,
}

impl<'a> TrialTable<'a> {
    pub(super) fn new(
        trial: &'a SuppressionTrial<'a>,
        split_counts: &'a SplitCounts,
        subjects: Option<&'a ShareSubjects>,
        count_cache: &'a mut SensitiveCountCache,
        shared: &'a mut TrialIndex,
    ) -> Self {
        let mut shares = Vec::new();
        for (child, of_child) in split_counts.children.iter().enumerate() {
            for (place, share) in of_child.iter().enumerate() {
                let listed =
                    subjects.map_or(0, |all| all.child(child).of_share(place as u32).len());
                let size = u64::from(share.size);
                let k = trial.requirement.k.get();
                shares.push(TrialShare {
                    part: shared.live.part_of[share.partition as usize],
                    child: child as u32,
                    place: place as u32,
                    size: share.size,
                    has_enough: trial.requirement.surely_meets_k(size) || listed as u64 >= k,
                    meets: share.meets,
                });
            }
        }
        shared.reset();
        let attributes = &shared.live.below_top;
        Self {
            own: attributes
                .iter()
                .position(|&other| other == trial.attribute),
            is_suppressed: vec![false; shared.live.len() + shares.len()],
            persons: PersonCheck::new(trial.requirement),
            trial,
            split_counts,
            subjects,
            count_cache,
            shared,
            shares,
            shares_by_part: MembersByGroup::default(),
            suppressed: Vec::new(),
            rows: 0,
            applied: 0,
        }
    }

    /// Suppresses small groups until there are none. `None` if that exceeds the budget or the run
    /// is stopped.
    pub(super) fn remove_small(&mut self) -> Option<()> {
        self.visit_children(Check::Size { lost: false })?;
        loop {
            let before = self.suppressed.len();
            if before == 0 {
                return Some(());
            }
            let check = Check::Size { lost: true };
            self.visit_index(check)?;
            self.visit_children(check)?;
            if self.suppressed.len() == before {
                return Some(());
            }
        }
    }

    /// Whether the groups that contain a child or lost rows are bounded by *C*; `None` if not.
    pub(super) fn check_confidence(&mut self) -> Option<()> {
        self.visit_children(Check::Confidence)?;
        self.visit_index(Check::Confidence)
    }

    /// Whether no row is left.
    pub(super) fn is_empty(&self) -> bool {
        let sizes = self.shared.live.sizes.iter();
        self.rows == sizes.map(|&size| u64::from(size)).sum::<u64>()
    }

    /// Number of suppressed rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// What is suppressed, in the order of the partitions.
    pub(super) fn suppression(&self) -> Suppression {
        let parts = self.shared.live.len() as u32;
        let mut suppression = Suppression {
            rows: self.rows,
            ..Suppression::default()
        };
        for &element in &self.suppressed {
            match element.checked_sub(parts) {
                None => {
                    let partition = self.shared.live.partitions[element as usize];
                    suppression.partitions.push(partition);
                }
                Some(share) => {
                    let share = &self.shares[share as usize];
                    let partition = self.shared.live.partitions[share.part as usize];
                    suppression.parts.push((partition, share.child));
                }
            }
        }
        suppression.partitions.sort_unstable();
        suppression.parts.sort_unstable();
        suppression
    }

    fn remove(&mut self, elements: &[u32]) -> Option<()> {
        for &element in elements {
            if !std::mem::replace(&mut self.is_suppressed[element as usize], true) {
                self.suppressed.push(element);
                self.rows += self.size(element);
            }
        }
        (self.rows <= self.trial.budget).then_some(())
    }

    /// Checks the groups that contain a child.
    fn visit_children(&mut self, check: Check) -> Option<()> {
        let columns: Vec<usize> = (0..self.shared.live.below_top.len())
            .filter(|column| Some(*column) != self.own)
            .collect();
        let depth = columns.len().min(self.trial.requirement.l - 1);
        let members: Vec<u32> = (0..self.shares.len() as u32).collect();
        let children: Vec<u32> = self.shares.iter().map(|share| share.child).collect();
        let count = self.split_counts.children.len();
        let groups = MemberGroups {
            members: &members,
            groups: &children,
            count,
        };
        self.visit(groups, &columns, depth, check)
    }

    /// Checks the groups of shares that result from splitting these by `depth` of the columns.
    fn visit(
        &mut self,
        all: MemberGroups<'_>,
        columns: &[usize],
        depth: usize,
        check: Check,
    ) -> Option<()> {
        let (members, groups) = self.that_may_violate(all, check);
        if members.is_empty() {
            return Some(());
        }
        let left = MemberGroups {
            members: &members,
            groups: &groups,
            count: all.count,
        };
        if depth == 0 {
            return self.check_groups(left, check);
        }
        let mut split = Vec::with_capacity(members.len());
        for (position, &column) in columns[..=columns.len() - depth].iter().enumerate() {
            if self.trial.observer.must_stop() {
                return None;
            }
            let column = &self.shared.live.columns[column];
            let value = |&share: &u32| column.concepts[self.shares[share as usize].part as usize];
            let (values, grouping) = (members.iter().map(value), &mut self.shared.grouping);
            let count = grouping.split(&groups, all.count, values, column.width, &mut split);
            let refined = MemberGroups {
                groups: &split,
                count,
                ..left
            };
            self.visit(refined, &columns[position + 1..], depth - 1, check)?;
        }
        Some(())
    }

    /// The members of groups in which not every part alone passes the check, and of groups that
    /// lost a part where only these are checked.
    fn that_may_violate(&self, all: MemberGroups<'_>, check: Check) -> (Vec<u32>, Vec<u32>) {
        let MemberGroups {
            members,
            groups,
            count,
        } = all;
        const FAILS: u8 = 1;
        const LOST: u8 = 2;
        let parts = self.shared.live.len();
        let needed = match check {
            Check::Size { lost: true } => FAILS | LOST,
            _ => FAILS,
        };
        let mut found = vec![0u8; count];
        for (&member, &group) in members.iter().zip(groups) {
            let share = &self.shares[member as usize];
            let passes = match check {
                Check::Size { .. } => share.has_enough,
                Check::Confidence => share.meets,
            };
            if self.is_suppressed[parts + member as usize] {
                found[group as usize] |= LOST;
            } else if !passes {
                found[group as usize] |= FAILS;
            }
        }
        let members = members.iter().copied().zip(groups.iter().copied());
        members
            .filter(|(_, group)| found[*group as usize] & needed == needed)
            .unzip()
    }

    fn check_groups(&mut self, all: MemberGroups<'_>, check: Check) -> Option<()> {
        let MemberGroups {
            members,
            groups,
            count,
        } = all;
        let parts = self.shared.live.len() as u32;
        let mut sizes = vec![0u64; count];
        for (&member, &group) in members.iter().zip(groups) {
            if !self.is_suppressed[(parts + member) as usize] {
                sizes[group as usize] += u64::from(self.shares[member as usize].size);
            }
        }
        let requirement = self.trial.requirement;
        let is_open = |size: u64| {
            size > 0 && (check == Check::Confidence || !requirement.surely_meets_k(size))
        };
        if !sizes.iter().any(|&size| is_open(size)) {
            return Some(());
        }
        let pairs = groups
            .iter()
            .copied()
            .zip(members.iter().map(|member| parts + member));
        let open = pairs.filter(|(group, element)| {
            is_open(sizes[*group as usize]) && !self.is_suppressed[*element as usize]
        });
        let mut by_group = std::mem::take(&mut self.shared.by_group);
        by_group.fill(count, open);
        let checked = by_group
            .lists()
            .try_for_each(|elements| self.check_group(elements, check));
        self.shared.by_group = by_group;
        checked
    }

    /// Checks a group, given by what is left of it.
    fn check_group(&mut self, elements: &[u32], check: Check) -> Option<()> {
        match check {
            Check::Confidence => self.is_bounded(elements).then_some(()),
            Check::Size { .. } if self.has_enough(elements) => Some(()),
            Check::Size { .. } => self.remove(elements),
        }
    }
}

impl TrialTable<'_> {
    /// Number of rows.
    pub(super) fn size(&self, element: u32) -> u64 {
        let parts = self.shared.live.len();
        let element = element as usize;
        u64::from(match element.checked_sub(parts) {
            None => self.shared.live.sizes[element],
            Some(share) => self.shares[share].size,
        })
    }

    /// Counts the parts among some elements that were not counted yet.
    fn count_parts(&mut self, elements: &[u32]) {
        let (partitions, requirement) = (self.trial.partitions, self.trial.requirement);
        for &element in elements {
            if let Some(&partition) = self.shared.live.partitions.get(element as usize) {
                self.count_cache.count(partition, partitions, requirement);
            }
        }
    }

    /// Whether some elements together have *K* persons.
    pub(super) fn has_enough(&mut self, elements: &[u32]) -> bool {
        let requirement = self.trial.requirement;
        let size = elements.iter().map(|&element| self.size(element)).sum();
        if !requirement.meets_k(size) || requirement.surely_meets_k(size) {
            return requirement.meets_k(size);
        }
        self.count_parts(elements);
        let live = &self.shared.live;
        let (shares, count_cache, subjects) = (&self.shares, &*self.count_cache, self.subjects);
        let list = |&element: &u32| -> &[u32] {
            match (element as usize).checked_sub(live.len()) {
                None => count_cache.subjects(live.partitions[element as usize]),
                Some(share) => subjects.map_or(&[], |subjects| {
                    let share = &shares[share];
                    subjects.child(share.child as usize).of_share(share.place)
                }),
            }
        };
        self.persons.has_enough(size, elements.iter().map(list))
    }

    /// Whether some elements together are bounded by *C*.
    pub(super) fn is_bounded(&mut self, elements: &[u32]) -> bool {
        self.count_parts(elements);
        let live = &self.shared.live;
        let mut size = 0;
        let mut totals = Totals::new(&mut self.shared.totals);
        for &element in elements {
            let (rows, counts) = match (element as usize).checked_sub(live.len()) {
                None => {
                    let counts = self
                        .count_cache
                        .sensitive(live.partitions[element as usize]);
                    (live.sizes[element as usize], counts)
                }
                Some(share) => {
                    let share = &self.shares[share];
                    let of_child = &self.split_counts.children[share.child as usize];
                    let counts = self.split_counts.counts_of(&of_child[share.place as usize]);
                    (share.size, counts)
                }
            };
            size += u64::from(rows);
            totals.add(counts);
        }
        totals.are_allowed(size, self.trial.requirement)
    }
}

impl TrialTable<'_> {
    /// Checks the groups of the current table that lose a part. Those that become small are
    /// suppressed; for [`Check::Confidence`] all that lost a part must also be bounded by *C*.
    fn visit_index(&mut self, check: Check) -> Option<()> {
        if self.suppressed.is_empty() {
            return Some(());
        }
        self.index_shares();
        for block in 0..self.shared.index.blocks() {
            self.load(block)?;
            self.apply();
            while let Some((subset, group)) = self.shared.queue.pop() {
                self.shared.queued[group as usize] = false;
                let elements = self.elements(subset as usize, group);
                if !self.has_enough(&elements) {
                    self.remove(&elements)?;
                    self.apply();
                }
                if self.trial.observer.must_stop() {
                    return None;
                }
            }
            if check == Check::Confidence {
                self.check_touched()?;
            }
        }
        Some(())
    }

    /// Lists the shares of each part, at the first call.
    fn index_shares(&mut self) {
        if self.shares_by_part.is_empty() {
            let shares = (0..).zip(&self.shares);
            let shares = shares.map(|(number, share)| (share.part, number));
            self.shares_by_part.fill(self.shared.live.len(), shares);
        }
    }

    fn load(&mut self, block: usize) -> Option<()> {
        let shared = &mut *self.shared;
        if shared.index.is_loaded(block) {
            return Some(());
        }
        // The lost rows refer to the groups of the previous block.
        shared.reset();
        let (index, observer) = (&mut shared.index, self.trial.observer);
        index.load(block, &shared.live, &mut shared.grouping, observer)?;
        shared.lost.clear();
        shared.lost.resize(shared.index.rows.len(), 0);
        shared.queued.clear();
        shared.queued.resize(shared.index.rows.len(), false);
        self.applied = 0;
        Some(())
    }

    /// Removes the rows that were suppressed since the last call from their groups.
    fn apply(&mut self) {
        let shared = &mut *self.shared;
        let parts = shared.live.len();
        let requirement = self.trial.requirement;
        for &element in &self.suppressed[self.applied..] {
            let element = element as usize;
            let (part, size, refined) = match element.checked_sub(parts) {
                None => (element, shared.live.sizes[element], false),
                Some(share) => {
                    let share = &self.shares[share];
                    (share.part as usize, share.size, true)
                }
            };
            for subset in 0..shared.index.subset_count() {
                // The group is divided among the children, which are checked by themselves.
                let own = self.own.filter(|_| refined);
                if own.is_some_and(|own| shared.index.subset(subset).contains(&own)) {
                    continue;
                }
                let group = shared.index.groups(subset, &shared.live)[part];
                let lost = &mut shared.lost[group as usize];
                if *lost == 0 {
                    shared.touched.push(group);
                }
                *lost += size;
                let left = u64::from(shared.index.rows[group as usize] - *lost);
                let queued = &mut shared.queued[group as usize];
                if left > 0 && !requirement.surely_meets_k(left) && !*queued {
                    *queued = true;
                    shared.queue.push((subset as u32, group));
                }
            }
        }
        self.applied = self.suppressed.len();
    }

    /// What is left of a group of the index.
    fn elements(&self, subset: usize, group: u32) -> Vec<u32> {
        let (live, index) = (&self.shared.live, &self.shared.index);
        let example = index.example[group as usize] as usize;
        let link = |&position: &usize| {
            let concept = live.columns[position].concepts[example];
            self.trial
                .partitions
                .link(live.below_top[position], concept)
        };
        let links = index.subset(subset).iter().map(link);
        let shortest = links.min_by_key(|link| link.len()).unwrap_or_default();
        let group_of = index.groups(subset, live);
        let mut elements = Vec::new();
        for &partition in shortest {
            if self.trial.partitions.size(partition) > 0 {
                let part = live.part_of[partition as usize];
                if group_of[part as usize] == group {
                    self.push_elements(part, |element| elements.push(element));
                }
            }
        }
        elements
    }

    /// Calls `found` with what is left of a part.
    fn push_elements(&self, part: u32, mut found: impl FnMut(u32)) {
        let parts = self.shared.live.len() as u32;
        let shares = self.shares_by_part.list(part as usize);
        if shares.is_empty() && !self.is_suppressed[part as usize] {
            found(part);
        }
        for share in shares {
            if !self.is_suppressed[(parts + share) as usize] {
                found(parts + share);
            }
        }
    }

    /// Whether each group of the block at hand that lost rows is bounded by *C*.
    fn check_touched(&mut self) -> Option<()> {
        let index = &self.shared.index;
        let mut is_touched = vec![false; index.subset_count()];
        for &group in &self.shared.touched {
            is_touched[index.starts.partition_point(|&start| start <= group) - 1] = true;
        }
        let mut pairs = Vec::new();
        let touched = is_touched
            .iter()
            .enumerate()
            .filter(|(_, touched)| **touched);
        for subset in touched.map(|(subset, _)| subset) {
            if self.trial.observer.must_stop() {
                return None;
            }
            let (start, end) = (
                self.shared.index.starts[subset],
                self.shared.index.starts[subset + 1],
            );
            let groups = self.shared.index.groups(subset, &self.shared.live);
            pairs.clear();
            for (part, &group) in (0..).zip(groups) {
                if self.shared.lost[group as usize] > 0 {
                    self.push_elements(part, |element| pairs.push((group - start, element)));
                }
            }
            let mut by_group = std::mem::take(&mut self.shared.by_group);
            by_group.fill((end - start) as usize, pairs.iter().copied());
            let bounded = by_group.lists().all(|elements| self.is_bounded(elements));
            self.shared.by_group = by_group;
            if !bounded {
                return None;
            }
        }
        Some(())
    }
}

impl TrialTable<'_> {
    /// Suppresses groups in rounds until none violates *K* or *C*. Each round but the last
    /// suppresses at least one element for good, so the rounds end. `None` if the rows exceed the
    /// budget, if fewer than *K* would be left, or if the run is stopped.
    pub(super) fn remove_violating(&mut self) -> Option<Suppression> {
        let (trial, requirement) = (self.trial, self.trial.requirement);
        let parts = self.shared.live.len() as u32;
        let mut meets = vec![false; parts as usize];
        meets.extend(self.shares.iter().map(|share| share.meets));
        let depth = trial.others.len().min(requirement.l - 1);
        let mut end = parts;
        for shares in &self.split_counts.children {
            let start = end;
            end += shares.len() as u32;
            let group: Vec<u32> = (start..end).collect();
            self.visit_groups(
                &group,
                trial.others,
                depth,
                &Visited {
                    meets: &meets,
                    changed: false,
                },
            )?;
        }
        let stays = |part: &u32| self.concept(*part, trial.attribute) != trial.concept;
        let mut every: Vec<u32> = (0..parts).filter(stays).collect();
        self.count_parts(&every);
        for &part in &every {
            meets[part as usize] = self.part_meets(part);
        }
        every.extend(parts..end);
        let mut attributes = trial.others.to_vec();
        attributes.push(trial.attribute);
        let depth = attributes.len().min(requirement.l);
        loop {
            let before = self.rows;
            self.visit_groups(
                &every,
                &attributes,
                depth,
                &Visited {
                    meets: &meets,
                    changed: true,
                },
            )?;
            if self.rows == before {
                break;
            }
        }
        every.retain(|&element| !self.is_suppressed[element as usize]);
        self.has_enough(&every).then(|| self.suppression())
    }

    /// Checks every group that results from splitting `group` by `depth` of the attributes, and
    /// suppresses those that violate the requirement. `None` if the budget is exceeded.
    fn visit_groups(
        &mut self,
        group: &[u32],
        attributes: &[usize],
        depth: usize,
        visited: &Visited,
    ) -> Option<()> {
        let is_left = |element: &u32| !self.is_suppressed[*element as usize];
        let may_violate = |element: &u32| is_left(element) && !visited.meets[*element as usize];
        let is_skipped = visited.changed && group.iter().all(is_left);
        if is_skipped || !group.iter().any(may_violate) {
            return Some(());
        }
        if depth == 0 {
            let left: Vec<u32> = group.iter().copied().filter(is_left).collect();
            if self.has_enough(&left) && self.is_bounded(&left) {
                return Some(());
            }
            return self.remove(&left);
        }
        for (position, &attribute) in attributes[..=attributes.len() - depth].iter().enumerate() {
            if self.trial.observer.must_stop() {
                return None;
            }
            let mut sorted: Vec<(ConceptId, u32)> = group
                .iter()
                .map(|&element| (self.concept(element, attribute), element))
                .collect();
            sorted.sort_unstable();
            let mut run: Vec<u32> = Vec::new();
            for members in sorted.chunk_by(|(a, _), (b, _)| a == b) {
                run.clear();
                run.extend(members.iter().map(|&(_, element)| element));
                self.visit_groups(&run, &attributes[position + 1..], depth - 1, visited)?;
            }
        }
        Some(())
    }

    fn concept(&self, element: u32, attribute: usize) -> ConceptId {
        let live = &self.shared.live;
        let share = (element as usize).checked_sub(live.len());
        let share = share.map(|share| &self.shares[share]);
        let part = share.map_or(element, |share| share.part);
        match share {
            Some(share) if attribute == self.trial.attribute => {
                self.trial.first_child + share.child as ConceptId
            }
            _ => {
                let partition = live.partitions[part as usize];
                self.trial.partitions.concept(partition, attribute)
            }
        }
    }

    /// Whether a part that was counted meets *K* and *C* alone.
    fn part_meets(&self, part: u32) -> bool {
        let (requirement, partition) = (
            self.trial.requirement,
            self.shared.live.partitions[part as usize],
        );
        let size = self.size(part);
        let persons = self.count_cache.subjects(partition).len() as u64;
        let counts = as_rows(self.count_cache.sensitive(partition));
        (requirement.surely_meets_k(size) || persons >= requirement.k.get())
            && requirement.allows_counts(size, counts)
    }
}

/// Which groups are checked.
struct Visited<'a> {
    /// By element, whether it alone meets *K* and *C*: a group of such elements does too.
    meets: &'a [bool],
    /// Whether only groups that have lost an element are checked, since the others were valid
    /// before.
    changed: bool,
}
