//! Lists of entries, one list for each number, stored one after the other.

use std::ops::Range;

/// The lists. That of number `i` is `entries[starts[i]..starts[i + 1]]`.
pub(super) struct Lists<T> {
    starts: Vec<u32>,
    entries: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self {
            starts: vec![0],
            entries: Vec::new(),
        }
    }
}

impl<T> Lists<T> {
    /// No lists yet, with room for this many lists with this many entries in total.
    pub(super) fn with_capacity(lists: usize, entries: usize) -> Self {
        let mut starts = Vec::with_capacity(lists + 1);
        starts.push(0);
        Self {
            starts,
            entries: Vec::with_capacity(entries),
        }
    }

    /// Frees unused memory.
    pub(super) fn shrink(&mut self) {
        self.entries.shrink_to_fit();
    }

    /// Adds the list of the next number.
    pub(super) fn push(&mut self, list: impl IntoIterator<Item = T>) {
        self.push_by(|entries| entries.extend(list));
    }

    /// Adds the list of the next number, which is appended to the entries of all.
    pub(super) fn push_by(&mut self, append: impl FnOnce(&mut Vec<T>)) {
        append(&mut self.entries);
        self.starts.push(self.entries.len() as u32);
    }

    /// The list of a number.
    #[inline]
    pub(super) fn of(&self, number: u32) -> &[T] {
        let number = number as usize;
        &self.entries[self.starts[number] as usize..self.starts[number + 1] as usize]
    }

    /// The start of each of these lists and the end of all, and the entries. The other lists must
    /// be empty.
    pub(super) fn into_parts(self, numbers: &[u32]) -> (Vec<u32>, Vec<T>) {
        let starts = numbers.iter().map(|&number| self.starts[number as usize]);
        let ends = starts.chain(self.starts.last().copied());
        (ends.collect(), self.entries)
    }

    /// Number of lists.
    pub(super) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Length of each list.
    pub(super) fn lengths(&self) -> impl Iterator<Item = u32> + '_ {
        self.starts.windows(2).map(|ends| ends[1] - ends[0])
    }

    /// Number of entries of all lists.
    pub(super) fn entries(&self) -> usize {
        self.entries.len()
    }

    /// The lists in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[T]> {
        (0..self.count() as u32).map(|number| self.of(number))
    }
}

impl<T: Copy> Lists<T> {
    /// The lists of these numbers, in this order.
    pub(super) fn in_order(&self, order: &[u32]) -> Self {
        let mut ordered = Self::with_capacity(order.len(), self.entries.len());
        order
            .iter()
            .for_each(|&number| ordered.push(self.of(number).iter().copied()));
        ordered
    }
}

impl<T: Copy + Default> Lists<T> {
    /// The second entry of each pair, in the list of its first, which is below `count`.
    pub(super) fn new(pairs: impl Iterator<Item = (u32, T)> + Clone, count: usize) -> Self {
        let mut starts = vec![0; count + 1];
        // The pairs of several columns are faster to read by `for_each` than by a loop.
        pairs
            .clone()
            .for_each(|(number, _)| starts[number as usize + 1] += 1);
        for number in 0..count {
            starts[number + 1] += starts[number];
        }
        let mut next = starts.clone();
        let mut entries = vec![T::default(); starts[count] as usize];
        pairs.for_each(|(number, entry)| {
            let next = &mut next[number as usize];
            entries[*next as usize] = entry;
            *next += 1;
        });
        Self { starts, entries }
    }
}

impl Lists<u32> {
    /// The positions of each number, which is below `count`; ascending.
    pub(super) fn of_positions(numbers: &[u32], count: usize) -> Self {
        Self::new(numbers.iter().copied().zip(0..), count)
    }
}

/// A divided group: its members by part, with what the members of each part have in common.
#[derive(Default)]
pub(super) struct DividedGroup {
    pub(super) members: Vec<u32>,
    /// What the members of each part have in common.
    keys: Vec<u32>,
    /// The end of each part.
    ends: Vec<usize>,
    /// Number of members of the group that was divided.
    pub(super) divided: usize,
}

impl DividedGroup {
    /// All of these members, as one part.
    pub(super) fn whole(members: impl IntoIterator<Item = u32>) -> Self {
        Self {
            members: members.into_iter().collect(),
            ..Self::default()
        }
    }

    /// The members in a range.
    pub(super) fn members(&self, range: &Range<usize>) -> &[u32] {
        &self.members[range.clone()]
    }

    /// What the members of a part have in common, and their range; `None` after the last part.
    pub(super) fn part(&self, number: usize) -> Option<(u32, Range<usize>)> {
        let key = *self.keys.get(number)?;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some((key, start..self.ends[number]))
    }

    /// The members of each part.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[u32]> {
        let parts = (0..).map_while(|number| self.part(number));
        parts.map(|(_, range)| self.members(&range))
    }
}

/// The order of the parts of a divided group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PartOrder {
    /// By their first members.
    OfMembers,
    /// By what the members have in common, ascending.
    OfKeys,
}

/// Divides groups. Its working space is 4 bytes for each key.
pub(super) struct Divider {
    /// For each key, a count or the next position; 0 between calls.
    places: Vec<u32>,
    order: PartOrder,
}

impl Divider {
    /// For keys below `keys`.
    pub(super) fn new(keys: usize, order: PartOrder) -> Self {
        Self {
            places: vec![0; keys],
            order,
        }
    }

    /// Divides members by their keys; a member is in the part of each of its keys.
    pub(super) fn divide<K: Iterator<Item = u32>>(
        &mut self,
        members: &[u32],
        keys_of: impl Fn(u32) -> K,
        into: &mut DividedGroup,
    ) {
        into.divided = members.len();
        into.keys.clear();
        for &member in members {
            for key in keys_of(member) {
                let count = &mut self.places[key as usize];
                if *count == 0 {
                    into.keys.push(key);
                }
                *count += 1;
            }
        }
        if self.order == PartOrder::OfKeys {
            into.keys.sort_unstable();
        }
        into.ends.clear();
        let mut end = 0;
        for &key in &into.keys {
            let count = std::mem::replace(&mut self.places[key as usize], end as u32);
            end += count as usize;
            into.ends.push(end);
        }
        into.members.clear();
        into.members.resize(end, 0);
        for &member in members {
            for key in keys_of(member) {
                let place = &mut self.places[key as usize];
                into.members[*place as usize] = member;
                *place += 1;
            }
        }
        for &key in &into.keys {
            self.places[key as usize] = 0;
        }
    }
}
