//! Groups of parts that agree on several attributes, formed attribute by attribute.

use rustc_hash::FxHashMap;

/// A group without a number.
const NONE: u32 = u32::MAX;

/// Number of pairs of a group and a value up to which the numbers of new groups are in an array.
const MAX_SLOTS: usize = 1 << 20;

/// [`MAX_SLOTS`]; lower in tests of few members, so that these use the map too.
fn most_slots(members: usize) -> usize {
    match cfg!(test) && members < 500 {
        true => 24,
        false => MAX_SLOTS,
    }
}

/// The next subset in lexicographic order: `chosen` are ascending positions below `of`. Returns
/// the first place that changed, `None` after the last subset.
pub(super) fn next_subset(chosen: &mut [usize], of: usize) -> Option<usize> {
    let size = chosen.len();
    let at = (0..size)
        .rev()
        .find(|&place| chosen[place] + size < of + place)?;
    chosen[at] += 1;
    for place in at + 1..size {
        chosen[place] = chosen[place - 1] + 1;
    }
    Some(at)
}

/// Splits groups by one more attribute. Holds working space.
#[derive(Default)]
pub(super) struct Grouping {
    /// The number of the new group by old group and value; all `NONE` between calls.
    slots: Vec<u32>,
    numbers: FxHashMap<(u32, u32), u32>,
}

impl Grouping {
    /// Splits `count` groups by the values of one more attribute, which are below `width`. `groups`
    /// are the groups of the members, `values` their values. Writes the new group of each member
    /// to `split` and returns the number of new groups, which are numbered in order of appearance.
    pub(super) fn split(
        &mut self,
        (groups, count): (&[u32], usize),
        (values, width): (impl Iterator<Item = u32> + Clone, usize),
        split: &mut Vec<u32>,
    ) -> usize {
        split.clear();
        let mut next = 0;
        let mut numbered = |number: &mut u32| {
            if *number == NONE {
                *number = next;
                next += 1;
            }
            *number
        };
        let members = groups.iter().copied().zip(values);
        let slots = count.saturating_mul(width);
        if slots > most_slots(groups.len()) {
            self.numbers.clear();
            split
                .extend(members.map(|member| numbered(self.numbers.entry(member).or_insert(NONE))));
            return next as usize;
        }
        self.slots.resize(self.slots.len().max(slots), NONE);
        let slot = |(group, value): (u32, u32)| group as usize * width + value as usize;
        split.extend(
            members
                .clone()
                .map(|member| numbered(&mut self.slots[slot(member)])),
        );
        // Only the slots in use are cleared: there may be many more of them than members.
        for member in members {
            self.slots[slot(member)] = NONE;
        }
        next as usize
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

    /// The groups that have members.
    pub(super) fn lists(&self) -> impl Iterator<Item = &[u32]> {
        let count = self.ends.len().saturating_sub(1);
        let list = |group: usize| {
            let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.members[start as usize..self.ends[group] as usize]
        };
        (0..count).map(list).filter(|list| !list.is_empty())
    }
}
