//! The fewest persons of any qid of the greatest size, by depth-first refinement of groups.
//!
//! A group is a list of classes, and its persons are the union of theirs. A person can be in
//! several parts of a group, so unions are counted, not added. Most are not counted at all: a group
//! with so many rows that even the persons with the most rows would be enough of them is not
//! relevant, and neither is one with a class that has enough persons by itself.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use rayon::prelude::*;

use super::classes::Classes;
use super::persons::{ClassPersons, PersonCounter, Persons};
use super::profiles::Grid;
use super::qid_search::{FoundQids, KnownValue};
use super::verification::VerifyError;

/// The end of a chain of places.
const NO_PLACE: u32 = u32::MAX;

/// The classes of a table with their persons.
pub(super) struct ClassGroups<'a> {
    grid: &'a Grid,
    persons: &'a Persons,
    lists: &'a ClassPersons,
    /// Rows of each class.
    rows: &'a [u32],
}

impl<'a> ClassGroups<'a> {
    pub(super) fn new(
        grid: &'a Grid,
        persons: &'a Persons,
        lists: &'a ClassPersons,
        classes: &'a Classes,
    ) -> Self {
        Self {
            grid,
            persons,
            lists,
            rows: &classes.sizes,
        }
    }

    fn all(&self) -> Vec<u32> {
        (0..self.lists.len() as u32).collect()
    }

    /// The fewest persons of any group of a qid of `size` values.
    ///
    /// # Errors
    /// [`VerifyError::Stopped`].
    pub(super) fn smallest(
        &self,
        size: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<u64, VerifyError> {
        let attributes = self.grid.attributes();
        if size == attributes {
            return Ok(self.lists.smallest());
        }
        let smallest = Smallest {
            persons: AtomicU64::new(u64::MAX),
            stop,
            stopped: AtomicBool::new(false),
        };
        if size == 0 {
            PersonSearch::new(self).visit(&mut &smallest, &self.all(), 0, 0);
        } else {
            (0..=attributes - size).into_par_iter().for_each(|first| {
                let mut split = Split::default();
                PersonSearch::new(self).split(&self.all(), first, &mut split);
                split.bounds.par_windows(2).for_each_init(
                    || PersonSearch::new(self),
                    |search, ends| {
                        let group = &split.classes[ends[0]..ends[1]];
                        search.visit_below(&mut &smallest, group, first, size - 1);
                    },
                );
            });
        }
        if smallest.stopped.load(Relaxed) {
            Err(VerifyError::Stopped)
        } else {
            Ok(smallest.persons.load(Relaxed))
        }
    }

    /// Shows a visitor the relevant groups of all qids of `size` values, in one thread, so that the
    /// same table always gives the same qids.
    pub(super) fn visit(&self, visitor: &mut impl SmallGroupVisitor, size: usize) {
        PersonSearch::new(self).visit(visitor, &self.all(), 0, size);
    }

    /// Number of persons that have all values of a qid.
    pub(super) fn persons_of(&self, qid: &[KnownValue]) -> u64 {
        let matches = |class: &u32| {
            let values = self.grid.values(*class);
            qid.iter()
                .all(|&(attribute, value)| values[attribute] == value)
        };
        let classes: Vec<u32> = self.all().into_iter().filter(matches).collect();
        PersonSearch::new(self).count(&classes, u64::MAX)
    }
}

/// Decides which groups are relevant, and receives them.
pub(super) trait SmallGroupVisitor {
    /// Only groups of fewer persons are relevant.
    fn limit(&self) -> u64;

    /// Receives a relevant group: its number of persons, and its qids of the greatest size.
    fn group(&mut self, persons: u64, qids: impl FnOnce() -> FoundQids);

    /// Whether to stop the search.
    fn should_stop(&self) -> bool;
}

/// The fewest persons so far, shared by all threads.
struct Smallest<'s> {
    persons: AtomicU64,
    stop: &'s (dyn Fn() -> bool + Sync),
    stopped: AtomicBool,
}

impl SmallGroupVisitor for &Smallest<'_> {
    fn limit(&self) -> u64 {
        self.persons.load(Relaxed)
    }

    fn group(&mut self, persons: u64, _: impl FnOnce() -> FoundQids) {
        self.persons.fetch_min(persons, Relaxed);
    }

    fn should_stop(&self) -> bool {
        if !self.stopped.load(Relaxed) && (self.stop)() {
            self.stopped.store(true, Relaxed);
        }
        self.stopped.load(Relaxed)
    }
}

/// A group, split by an attribute.
#[derive(Default)]
struct Split {
    /// The classes, ordered by their values.
    classes: Vec<u32>,
    /// Start of the classes with each value; the end last.
    bounds: Vec<usize>,
}

/// A search of one thread, with its working space.
struct PersonSearch<'g> {
    groups: &'g ClassGroups<'g>,
    counter: PersonCounter,
    prefix: Vec<KnownValue>,
    spare: Vec<Split>,
    /// For each value of an attribute: number of its classes, or of their rows; 0 between calls.
    of_value: Vec<u64>,
    /// The values in use.
    used: Vec<u32>,
    /// For each value in use, the last place of a class with it in its group.
    last: Vec<u32>,
    /// For each place in a group, the place before it of a class with the same value.
    before: Vec<u32>,
}

impl<'g> PersonSearch<'g> {
    fn new(groups: &'g ClassGroups<'g>) -> Self {
        let values = groups.grid.cardinalities.iter().copied().max();
        Self {
            groups,
            counter: PersonCounter::new(groups.persons.count()),
            prefix: Vec::new(),
            spare: Vec::new(),
            of_value: vec![0; values.unwrap_or(0)],
            used: Vec::new(),
            last: vec![NO_PLACE; values.unwrap_or(0)],
            before: Vec::new(),
        }
    }

    /// Number of persons of a group, counted up to `limit`.
    fn count(&mut self, classes: &[u32], limit: u64) -> u64 {
        let lists = classes.iter().map(|&class| self.groups.lists.of(class));
        self.counter.count_lists(limit, lists)
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

    /// Visits the groups of all qids that extend the prefix by `need` of the attributes from
    /// number `from` on.
    fn visit<V: SmallGroupVisitor>(
        &mut self,
        visitor: &mut V,
        classes: &[u32],
        from: usize,
        need: usize,
    ) {
        let limit = visitor.limit();
        // Every group below has one of these classes. If each has enough persons by itself, no
        // group below has fewer.
        let is_small = |&class: &u32| (self.groups.lists.of(class).len() as u64) < limit;
        if !classes.iter().any(is_small) || visitor.should_stop() {
            return;
        }
        if need == 0 || self.are_alike(classes, from) {
            self.visit_whole(visitor, classes, from, need);
            return;
        }
        if need == 1 {
            for attribute in from..self.groups.grid.attributes() {
                self.visit_parts(visitor, classes, attribute);
            }
            return;
        }
        let mut split = self.spare.pop().unwrap_or_default();
        for attribute in from..=self.groups.grid.attributes() - need {
            self.split(classes, attribute, &mut split);
            for ends in split.bounds.windows(2) {
                let part = &split.classes[ends[0]..ends[1]];
                self.visit_below(visitor, part, attribute, need - 1);
            }
        }
        self.spare.push(split);
    }

    /// As [`Self::visit`], for a group that was split by an attribute, by the attributes after it.
    fn visit_below<V: SmallGroupVisitor>(
        &mut self,
        visitor: &mut V,
        classes: &[u32],
        attribute: usize,
        need: usize,
    ) {
        let value = self.groups.grid.values(classes[0])[attribute];
        self.prefix.push((attribute, value));
        self.visit(visitor, classes, attribute + 1, need);
        self.prefix.pop();
    }

    /// Whether no attribute from number `from` on divides a group.
    fn are_alike(&self, classes: &[u32], from: usize) -> bool {
        let grid = self.groups.grid;
        let rest = |class: u32| &grid.values(class)[from..];
        let first = rest(classes[0]);
        classes[1..].iter().all(|&class| rest(class) == first)
    }

    /// Visits a group that is not divided further.
    fn visit_whole<V: SmallGroupVisitor>(
        &mut self,
        visitor: &mut V,
        classes: &[u32],
        from: usize,
        need: usize,
    ) {
        let limit = visitor.limit();
        let rows: u64 = classes.iter().map(|&class| self.weight(class, limit)).sum();
        if rows >= self.groups.persons.sufficient_rows(limit) {
            return;
        }
        let persons = self.count(classes, limit);
        if persons < limit {
            let values = &self.groups.grid.values(classes[0])[from..];
            visitor.group(persons, || FoundQids {
                known: self.prefix.clone(),
                shared: (from..).zip(values.iter().copied()).collect(),
                more: need,
            });
        }
    }

    /// Visits the parts that one last attribute splits a group into.
    fn visit_parts<V: SmallGroupVisitor>(
        &mut self,
        visitor: &mut V,
        classes: &[u32],
        attribute: usize,
    ) {
        let groups = self.groups;
        let limit = visitor.limit();
        self.before.clear();
        for (place, &class) in (0..).zip(classes) {
            let value = groups.grid.values(class)[attribute] as usize;
            let weight = self.weight(class, limit);
            if self.last[value] == NO_PLACE {
                self.used.push(value as u32);
            }
            self.before
                .push(std::mem::replace(&mut self.last[value], place));
            self.of_value[value] += weight;
        }
        for &value in &self.used {
            let rows = std::mem::take(&mut self.of_value[value as usize]);
            let last = std::mem::replace(&mut self.last[value as usize], NO_PLACE);
            let limit = visitor.limit();
            if rows >= groups.persons.sufficient_rows(limit) {
                continue;
            }
            let before = |&place: &u32| {
                let before = self.before[place as usize];
                (before != NO_PLACE).then_some(before)
            };
            let places = std::iter::successors(Some(last), before);
            let lists = places.map(|place| groups.lists.of(classes[place as usize]));
            let persons = self.counter.count_lists(limit, lists);
            if persons < limit {
                visitor.group(persons, || FoundQids {
                    known: self
                        .prefix
                        .iter()
                        .copied()
                        .chain([(attribute, value)])
                        .collect(),
                    ..FoundQids::default()
                });
            }
        }
        self.used.clear();
    }

    /// Splits a group by an attribute.
    fn split(&mut self, classes: &[u32], attribute: usize, into: &mut Split) {
        let grid = self.groups.grid;
        let value_of = |class: u32| grid.values(class)[attribute] as usize;
        for &class in classes {
            let value = value_of(class);
            if self.of_value[value] == 0 {
                self.used.push(value as u32);
            }
            self.of_value[value] += 1;
        }
        into.bounds.clear();
        let mut next = 0;
        for &value in &self.used {
            into.bounds.push(next as usize);
            let classes = std::mem::replace(&mut self.of_value[value as usize], next);
            next += classes;
        }
        into.bounds.push(next as usize);
        into.classes.clear();
        into.classes.resize(classes.len(), 0);
        for &class in classes {
            let free = &mut self.of_value[value_of(class)];
            into.classes[*free as usize] = class;
            *free += 1;
        }
        for value in self.used.drain(..) {
            self.of_value[value as usize] = 0;
        }
    }
}
