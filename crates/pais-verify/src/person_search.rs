//! The qids of the greatest size, as combinations of attributes over groups of classes with their
//! persons.
//!
//! A group is a list of classes, and its persons are the union of theirs. A person can be in several parts of a
//! group, so unions are counted, not added. Most are not counted at all: a group is irrelevant if it has so
//! many rows that even the persons with the most rows would be enough, or if one of its classes has enough
//! persons by itself.

use std::iter::once;
use std::ops::Range;

use pais_core::table::{SubjectCounter, Subjects};

use super::combinations::{Combinations, Group, Part, Search};
use super::group_visitor::{FoundQids, GroupVisitor};
use super::lists::{DividedGroup, Divider, Lists, PartOrder};
use super::profiles::{Grid, KnownValue};
use super::verification::VerifyError;

/// The classes of a table with their persons.
pub(super) struct ClassGroups<'a> {
    pub(super) grid: &'a Grid,
    pub(super) persons: &'a Subjects,
    /// The persons of each class.
    pub(super) lists: &'a Lists<u32>,
    /// Rows of each class.
    pub(super) rows: &'a [u32],
}

impl ClassGroups<'_> {
    /// The group of all classes.
    pub(super) fn all(&self) -> DividedGroup {
        DividedGroup::whole(0..self.rows.len() as u32)
    }

    /// Shows a visitor the relevant groups of all qids of `size` values, in one thread, so that the
    /// same table always gives the same qids.
    ///
    /// # Errors
    /// [`VerifyError::Stopped`].
    pub(super) fn visit<V: GroupVisitor>(&self, visitor: V, size: usize) -> Result<V, VerifyError> {
        let all = self.all();
        let mut search = Search::new(PersonSearch::new(self, visitor));
        search.visit(&all.group(size))?;
        Ok(search.combinations.visitor)
    }

    /// Number of persons that have all values of a qid.
    pub(super) fn persons_of(&self, qid: &[KnownValue]) -> u64 {
        let classes = (0..self.rows.len() as u32).filter(|&class| self.grid.has(class, qid));
        let lists = classes.map(|class| self.lists.of(class));
        SubjectCounter::new(self.persons.codes()).count_lists(u64::MAX, lists)
    }
}

/// The combinations of attributes, over groups of classes.
pub(super) struct PersonSearch<'g, V> {
    groups: &'g ClassGroups<'g>,
    visitor: V,
    counter: SubjectCounter,
    divider: Divider,
}

impl<'g, V: GroupVisitor> PersonSearch<'g, V> {
    pub(super) fn new(groups: &'g ClassGroups<'g>, visitor: V) -> Self {
        Self {
            groups,
            visitor,
            counter: SubjectCounter::new(groups.persons.codes()),
            divider: Divider::new(groups.grid.most_values(), PartOrder::OfMembers),
        }
    }

    /// Rows of a class; more than any group has, if the class alone has at least `limit` persons.
    #[inline]
    fn weight(&self, class: u32, limit: u64) -> u64 {
        if self.groups.lists.of(class).len() as u64 >= limit {
            1 << 32
        } else {
            u64::from(self.groups.rows[class as usize])
        }
    }

    /// Whether no attribute from number `from` on divides a group.
    fn are_alike(&self, classes: &[u32], from: usize) -> bool {
        let rest = |class: u32| &self.groups.grid.values(class)[from..];
        let first = rest(classes[0]);
        classes[1..].iter().all(|&class| rest(class) == first)
    }

    /// Counts the persons of a group that is not divided further.
    fn count(&mut self, known: &[KnownValue], classes: &[u32], from: usize, need: usize) {
        let limit = self.visitor.limit();
        let rows: u64 = classes.iter().map(|&class| self.weight(class, limit)).sum();
        if rows >= self.groups.persons.sufficient_rows(limit) {
            return;
        }
        let groups = self.groups;
        let lists = classes.iter().map(|&class| groups.lists.of(class));
        let persons = self.counter.count_lists(limit, lists);
        if persons < limit {
            let values = groups.grid.values(classes[0])[from..].iter();
            // A table has fewer persons than rows, and fewer than 2³² rows.
            self.visitor.group(persons as u32, None, || FoundQids {
                known: known.to_vec(),
                shared: (from..).zip(values.copied()).collect(),
                more: need,
            });
        }
    }
}

impl<V: GroupVisitor> Combinations for PersonSearch<'_, V> {
    type Known = KnownValue;
    type Parts = DividedGroup;

    fn visit(
        &mut self,
        known: &[KnownValue],
        group: &Group<DividedGroup>,
    ) -> Result<bool, VerifyError> {
        let classes = group.parts.members(&group.range);
        let limit = self.visitor.limit();
        // Every group below has one of these classes. If each has enough persons by itself, no
        // group below has fewer.
        let is_small = |&class: &u32| (self.groups.lists.of(class).len() as u64) < limit;
        if !classes.iter().any(is_small) {
            return Ok(false);
        }
        if self.visitor.should_stop() {
            return Err(VerifyError::Stopped);
        }
        if group.need == 0 || self.are_alike(classes, group.from) {
            self.count(known, classes, group.from, group.need);
            return Ok(false);
        }
        Ok(true)
    }

    fn elements(&self, group: &Group<DividedGroup>) -> Range<usize> {
        group.from..self.groups.grid.attributes() - group.need + 1
    }

    fn divide(
        &mut self,
        group: &Group<DividedGroup>,
        attribute: usize,
        into: &mut DividedGroup,
    ) -> Result<(), VerifyError> {
        let value = |class: u32| once(self.groups.grid.values(class)[attribute]);
        let classes = group.parts.members(&group.range);
        self.divider.divide(classes, value, into);
        Ok(())
    }

    fn part(
        &self,
        parts: &DividedGroup,
        attribute: usize,
        number: usize,
    ) -> Option<Part<KnownValue>> {
        Part::of_attribute(parts, attribute, number)
    }
}
