//! One trial: the rows to suppress so that no group of a specialization has fewer than *K*.
//!
//! The parts that remain are the largest set of parts in which every group is empty or has *K* rows
//! (or persons): the union of two such sets is one. Such a set exists once, so the order in which
//! small groups are removed is free. Groups that contain a child are counted by a traversal of the
//! subsets. The other groups were valid before, so only those that lose a part can become
//! small. The [index](GroupIndex) gives their numbers, and how many rows each of them has.

mod elements;
mod lost_parts;

use super::group_index::{GroupIndex, LiveParts};
use super::grouping::{Grouping, MembersByGroup};
use super::partitions::Partitions;
use super::requirement::Requirement;
use super::share_subjects::{PersonCheck, ShareSubjects};
use super::split_counts::SplitCounts;
use super::suppression::{SensitiveCountCache, Suppression, SuppressionTrial};

/// What the trials of one step share, and their working space.
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

    /// Forgets what groups lost.
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
    /// By part, the end of its shares in `shares_by_part`.
    share_ends: Vec<u32>,
    shares_by_part: Vec<u32>,
    /// By element.
    is_suppressed: Vec<bool>,
    suppressed: Vec<u32>,
    rows: u64,
    /// How many of `suppressed` the block at hand has been told.
    applied: usize,
    persons: PersonCheck<'a>,
}

impl<'a> TrialTable<'a> {
    pub(super) fn new(
        trial: &'a SuppressionTrial<'a>,
        (split_counts, subjects): (&'a SplitCounts, Option<&'a ShareSubjects>),
        count_cache: &'a mut SensitiveCountCache,
        shared: &'a mut TrialIndex,
    ) -> Self {
        let mut shares = Vec::new();
        for (child, of_child) in split_counts.children().iter().enumerate() {
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
                .position(|&other| other == trial.candidate.0),
            is_suppressed: vec![false; shared.live.len() + shares.len()],
            persons: PersonCheck::new(trial.requirement),
            trial,
            split_counts,
            subjects,
            count_cache,
            shared,
            shares,
            share_ends: Vec::new(),
            shares_by_part: Vec::new(),
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
            self.visit_index(false)?;
            self.visit_children(Check::Size { lost: true })?;
            if self.suppressed.len() == before {
                return Some(());
            }
        }
    }

    /// Whether the groups that contain a child or lost rows are bounded by *C*; `None` if not.
    pub(super) fn check_confidence(&mut self) -> Option<()> {
        self.visit_children(Check::Confidence)?;
        self.visit_index(true)
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
        let count = self.split_counts.children().len();
        self.visit((&members, &children, count), &columns, depth, check)
    }

    /// Checks the groups that result from splitting `count` groups by `depth` of the columns.
    /// `members` are shares, each with its group.
    fn visit(
        &mut self,
        (members, groups, count): (&[u32], &[u32], usize),
        columns: &[usize],
        depth: usize,
        check: Check,
    ) -> Option<()> {
        let (members, groups) = self.that_may_violate((members, groups, count), check);
        if members.is_empty() {
            return Some(());
        }
        if depth == 0 {
            return self.check_groups((&members, &groups, count), check);
        }
        let mut split = Vec::with_capacity(members.len());
        for (position, &column) in columns[..=columns.len() - depth].iter().enumerate() {
            if self.trial.observer.must_stop() {
                return None;
            }
            let column = &self.shared.live.columns[column];
            let value = |&share: &u32| column.concepts[self.shares[share as usize].part as usize];
            let values = (members.iter().map(value), column.width);
            let grouping = &mut self.shared.grouping;
            let count = grouping.split((&groups, count), values, &mut split);
            let groups = (&*members, &*split, count);
            self.visit(groups, &columns[position + 1..], depth - 1, check)?;
        }
        Some(())
    }

    /// The members of groups in which not every part alone passes the check, and of groups that
    /// lost a part where only these are checked.
    fn that_may_violate(
        &self,
        (members, groups, count): (&[u32], &[u32], usize),
        check: Check,
    ) -> (Vec<u32>, Vec<u32>) {
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
            found[group as usize] |= match self.is_suppressed[parts + member as usize] {
                true => LOST,
                false if passes => 0,
                false => FAILS,
            };
        }
        let members = members.iter().copied().zip(groups.iter().copied());
        members
            .filter(|(_, group)| found[*group as usize] & needed == needed)
            .unzip()
    }

    fn check_groups(
        &mut self,
        (members, groups, count): (&[u32], &[u32], usize),
        check: Check,
    ) -> Option<()> {
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
