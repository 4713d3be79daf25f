//! One cut in each column with the equivalence classes that it makes ([`CutState`]), and the trial of a split
//! of one value ([`Trial`]): the classes that it would make, and whether they are valid.
//!
//! A trial counts only the rows with the value, and only qids that contain one of its children: every other
//! group of the table stays as it is. A violation is looked for first among the sets of columns that recently
//! violated the requirement.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::super::attribute::Concept;
use super::super::group_index::Slots;
use super::space::{ClassSums, Space, ValueSplit};

/// A cut of every column. Values of a cut have a *place*; the order of places means nothing.
#[derive(Clone)]
pub(super) struct CutState {
    /// By attribute, the values of the cut by place.
    pub(super) cuts: Vec<Vec<Concept>>,
    /// By unit, its class.
    pub(super) class_of: Vec<u32>,
    /// The classes.
    pub(super) classes: Classes,
    /// The sums of the loss.
    pub(super) tally: ClassSums,
    /// Splits that are invalid, each with the attributes of a violating qid in addition to its own. They stay
    /// invalid while none of these is generalized.
    pub(super) refused: FxHashMap<ValueSplit, Box<[u16]>>,
}

/// A cut of one column.
pub(super) struct AttributeCut {
    pub(super) attribute: usize,
    /// Its values.
    pub(super) cut: Vec<Concept>,
}

/// The equivalence classes of a cut.
#[derive(Clone, Default)]
pub(super) struct Classes {
    /// Class after class, the place of its value by attribute.
    pub(super) places: Vec<u32>,
    /// Number of rows.
    pub(super) size: Vec<u32>,
    /// Its part of the loss.
    pub(super) term: Vec<f64>,
    /// NCP of a row, summed over the columns.
    pub(super) ncp: Vec<f64>,
    /// Whether it is released.
    pub(super) is_kept: Vec<bool>,
}

impl CutState {
    /// The topmost table.
    pub(super) fn topmost(space: &Space<'_>) -> Self {
        let cuts: Vec<_> = space
            .dimensions
            .iter()
            .map(|it| vec![it.topmost()])
            .collect();
        let mut state = Self {
            classes: Classes::default(),
            class_of: vec![0; space.units.count()],
            cuts,
            tally: ClassSums::default(),
            refused: FxHashMap::default(),
        };
        state.classes.places = vec![0; space.width()];
        state.count_classes(space, 1);
        state
    }

    /// The loss of the table.
    pub(super) fn loss(&self, space: &Space<'_>) -> f64 {
        space.measure.loss(self.tally)
    }

    /// Whether an attribute is at its topmost value.
    pub(super) fn is_topmost(&self, space: &Space<'_>, attribute: usize) -> bool {
        let cut = &self.cuts[attribute];
        cut.len() == 1 && cut[0].meaning == space.dimensions[attribute].attribute.concept(0).meaning
    }

    /// The place of a value of a cut.
    pub(super) fn place(&self, attribute: usize, concept: &Concept) -> Option<usize> {
        let same = |other: &Concept| other.meaning == concept.meaning;
        self.cuts[attribute].iter().position(same)
    }

    /// Performs the split of a trial.
    pub(super) fn perform(&mut self, space: &Space<'_>, trial: &Trial) {
        let attribute = trial.attribute;
        let Some(place) = self.place(attribute, trial.parent()) else {
            return;
        };
        let width = space.width();
        let dimension = &space.dimensions[attribute];
        let whole_ncp = dimension.attribute.ncp(trial.parent());
        let first_new = self.cuts[attribute].len();
        let mut child_places = Vec::new();
        for (number, child) in trial.children.iter().enumerate() {
            if number == 0 {
                self.cuts[attribute][place] = child.clone();
                child_places.push(place as u32);
            } else {
                self.cuts[attribute].push(child.clone());
                child_places.push((first_new + number - 1) as u32);
            }
        }
        let child_ncp = trial
            .children
            .iter()
            .map(|child| dimension.attribute.ncp(child));
        let child_ncp: Vec<f64> = child_ncp.collect();
        let classes = &mut self.classes;
        // The first share of a class takes its number.
        let mut numbers = Vec::with_capacity(trial.shares.len());
        for share in &trial.shares {
            let class = share.class as usize;
            let child = share.child as usize;
            let number = if share.is_first {
                class
            } else {
                let number = classes.size.len();
                classes
                    .places
                    .extend_from_within(class * width..(class + 1) * width);
                classes.size.push(0);
                classes.term.push(0.0);
                classes.ncp.push(0.0);
                classes.is_kept.push(false);
                number
            };
            classes.places[number * width + attribute] = child_places[child];
            classes.size[number] = share.size;
            classes.term[number] = share.term;
            classes.ncp[number] = share.row_ncp - whole_ncp + child_ncp[child];
            classes.is_kept[number] = share.is_kept;
            numbers.push(number as u32);
        }
        for (unit, share) in trial.unit_shares(space) {
            self.class_of[unit as usize] = numbers[share as usize];
        }
        self.tally = trial.tally;
    }

    /// Replaces the cuts of some attributes by cuts above them.
    pub(super) fn generalize(&mut self, space: &Space<'_>, cuts: Vec<AttributeCut>) {
        let width = space.width();
        let mut is_changed = vec![false; width];
        for AttributeCut { attribute, cut } in cuts {
            let above = |concept: &Concept| {
                let holds = |new: &Concept| {
                    new.codes.start <= concept.codes.start && concept.codes.end <= new.codes.end
                };
                cut.iter().position(holds).unwrap_or(0) as u32
            };
            let new_places: Vec<u32> = self.cuts[attribute].iter().map(above).collect();
            for class in self.classes.places.chunks_mut(width) {
                class[attribute] = new_places[class[attribute] as usize];
            }
            self.cuts[attribute] = cut;
            is_changed[attribute] = true;
        }
        self.refused
            .retain(|_, attributes| !attributes.iter().any(|&at| is_changed[at as usize]));
        let mut merged: FxHashMap<&[u32], u32> = FxHashMap::default();
        let mut places = Vec::new();
        let number = |class| {
            let next = merged.len() as u32;
            *merged.entry(class).or_insert_with(|| {
                places.extend_from_slice(class);
                next
            })
        };
        let numbers: Vec<u32> = self.classes.places.chunks(width).map(number).collect();
        let count = merged.len();
        self.classes.places = places;
        for class in &mut self.class_of {
            *class = numbers[*class as usize];
        }
        self.count_classes(space, count);
    }

    /// Counts the classes from their places and units.
    fn count_classes(&mut self, space: &Space<'_>, count: usize) {
        let (units, width) = (&space.units, space.width());
        let width_classes = units.classes;
        let mut sizes = vec![0u32; count];
        let mut by_class = vec![0u64; count * width_classes];
        for (unit, &class) in self.class_of.iter().enumerate() {
            sizes[class as usize] += units.weight[unit];
            if let Some(&of_unit) = units.class.get(unit) {
                by_class[class as usize * width_classes + of_unit as usize] +=
                    u64::from(units.weight[unit]);
            }
        }
        let ncp_of: Vec<Vec<f64>> = self
            .cuts
            .iter()
            .zip(&space.dimensions)
            .map(|(cut, it)| {
                cut.iter()
                    .map(|concept| it.attribute.ncp(concept))
                    .collect()
            })
            .collect();
        let row_ncp = |places: &[u32]| -> f64 {
            let places = places.iter().zip(&ncp_of);
            places.map(|(&place, ncp)| ncp[place as usize]).sum()
        };
        let is_kept = self.kept(space, &sizes);
        let classes = &mut self.classes;
        classes.ncp = classes.places.chunks(width).map(row_ncp).collect();
        classes.is_kept = is_kept;
        let term = |class: usize| {
            let counts = &by_class[class * width_classes..(class + 1) * width_classes];
            space.measure.term(sizes[class], counts, classes.ncp[class])
        };
        classes.term = (0..count).map(term).collect();
        classes.size = sizes;
        self.tally = ClassSums::default();
        for class in (0..count).filter(|&class| classes.is_kept[class]) {
            self.tally.sum += classes.term[class];
            self.tally.kept += u64::from(classes.size[class]);
        }
    }

    /// By class, whether it is released: if rows may be suppressed, whether it has *K*.
    fn kept(&self, space: &Space<'_>, sizes: &[u32]) -> Vec<bool> {
        let requirement = space.requirement;
        let meets = |&size: &u32| requirement.meets_k(u64::from(size));
        if space.budget == 0 {
            return vec![true; sizes.len()];
        }
        if requirement.subjects.is_none() {
            return sizes.iter().map(meets).collect();
        }
        let mut persons = vec![Vec::new(); sizes.len()];
        for (unit, &class) in self.class_of.iter().enumerate() {
            persons[class as usize].push(space.units.person[unit]);
        }
        let distinct = |persons: &mut Vec<u32>| {
            persons.sort_unstable();
            persons.dedup();
            persons.len() as u64 >= requirement.k.get()
        };
        persons.iter_mut().map(distinct).collect()
    }
}

/// Maximum number of sets of columns that are checked first.
const RECENT: usize = 24;

/// The rows of a class that get the same child.
pub(super) struct Share {
    pub(super) class: u32,
    pub(super) child: u32,
    pub(super) size: u32,
    /// Whether it is the first share of its class.
    pub(super) is_first: bool,
    /// Whether it would be released.
    pub(super) is_kept: bool,
    pub(super) term: f64,
    /// NCP of a row of the class before the split, summed over the columns.
    pub(super) row_ncp: f64,
}

/// Why a split is not performed.
pub(super) enum Refusal {
    /// It is invalid; the attributes of a violating qid in addition to its own.
    Invalid(Box<[u16]>),
    /// The search has to stop.
    Stopped,
}

/// A split that is tried, with buffers that all trials of a chain use.
#[derive(Default)]
pub(super) struct Trial {
    attribute: usize,
    parent: Option<Concept>,
    pub(super) children: Vec<Concept>,
    shares: Vec<Share>,
    /// By unit with the value, in the order of the children, its share.
    unit_shares: Vec<u32>,
    /// Rows by share and counted value.
    values: Vec<u32>,
    /// Rows by share and class.
    by_class: Vec<u64>,
    /// Persons by share, each once; empty where *K* counts rows.
    persons: Vec<Vec<u32>>,
    /// The sums of the loss after the split.
    pub(super) tally: ClassSums,
    slots: Slots,
    class_slots: Slots,
    check: GroupBuffers,
    recent: VecDeque<Box<[u16]>>,
}

/// What the check of groups counts.
#[derive(Default)]
struct GroupBuffers {
    /// Attributes below their topmost value without the one that is split.
    others: Vec<u16>,
    /// By position in `others`, the place of each share's class.
    places: Vec<Vec<u32>>,
    /// By depth, the group of each share.
    groups: Vec<Vec<u32>>,
    sizes: Vec<u32>,
    counts: Vec<u32>,
}

impl Trial {
    /// The value that is split. Only called after [`Self::count`].
    pub(super) fn parent(&self) -> &Concept {
        self.parent.as_ref().unwrap_or(&self.children[0])
    }

    /// The units with the value, each with its share.
    pub(super) fn unit_shares(&self, space: &Space<'_>) -> impl Iterator<Item = (u32, u32)> {
        let units = self.children.iter().flat_map(|child| {
            let bases = space.dimensions[self.attribute].bases(child);
            space.units.with(self.attribute, bases)
        });
        units.copied().zip(self.unit_shares.iter().copied())
    }

    /// Counts what a split would make of the classes.
    pub(super) fn count(
        &mut self,
        space: &Space<'_>,
        state: &CutState,
        attribute: usize,
        parent: &Concept,
        children: Vec<Concept>,
    ) {
        self.attribute = attribute;
        self.parent = Some(parent.clone());
        let (units, width) = (&space.units, children.len());
        let values = space.requirement.counted_values;
        self.shares.clear();
        self.unit_shares.clear();
        self.values.clear();
        self.by_class.clear();
        self.persons.clear();
        let class_count = state.classes.size.len();
        self.slots.begin(class_count * width);
        self.class_slots.begin(class_count);
        self.tally = state.tally;
        for (number, child) in children.iter().enumerate() {
            let bases = space.dimensions[attribute].bases(child);
            for &unit in units.with(attribute, bases) {
                let unit = unit as usize;
                let class = state.class_of[unit] as usize;
                let (share, is_new) = self.slots.number(class * width + number);
                if is_new {
                    let is_first = self.class_slots.number(class).1;
                    let is_kept = state.classes.is_kept[class];
                    if is_first && is_kept {
                        self.tally.sum -= state.classes.term[class];
                        self.tally.kept -= u64::from(state.classes.size[class]);
                    }
                    self.shares.push(Share {
                        class: class as u32,
                        child: number as u32,
                        size: 0,
                        is_first,
                        is_kept,
                        term: 0.0,
                        row_ncp: state.classes.ncp[class],
                    });
                    self.values.resize(self.values.len() + values, 0);
                    self.by_class.resize(self.by_class.len() + units.classes, 0);
                    if !units.person.is_empty() {
                        self.persons.push(Vec::new());
                    }
                }
                let at = share as usize;
                let weight = units.weight[unit];
                self.shares[at].size += weight;
                for &value in units.values(unit) {
                    self.values[at * values + value as usize] += weight;
                }
                if let Some(&class) = units.class.get(unit) {
                    self.by_class[at * units.classes + class as usize] += u64::from(weight);
                }
                if let Some(&person) = units.person.get(unit) {
                    self.persons[at].push(person);
                }
                self.unit_shares.push(share);
            }
        }
        for persons in &mut self.persons {
            persons.sort_unstable();
            persons.dedup();
        }
        self.children = children;
        self.sum(space);
    }

    fn sum(&mut self, space: &Space<'_>) {
        let dimension = &space.dimensions[self.attribute].attribute;
        let whole = dimension.ncp(self.parent());
        let children = self
            .children
            .iter()
            .map(|child| dimension.ncp(child) - whole);
        let changes: Vec<f64> = children.collect();
        let classes = space.units.classes;
        for (at, share) in self.shares.iter_mut().enumerate() {
            if space.budget > 0 {
                let persons = self.persons.get(at).map(Vec::len);
                let count = persons.map_or(u64::from(share.size), |count| count as u64);
                share.is_kept &= space.requirement.meets_k(count);
            }
            let by_class = &self.by_class[at * classes..(at + 1) * classes];
            let ncp = share.row_ncp + changes[share.child as usize];
            share.term = space.measure.term(share.size, by_class, ncp);
            if share.is_kept {
                self.tally.sum += share.term;
                self.tally.kept += u64::from(share.size);
            }
        }
    }

    /// Checks the requirement on every group that the split would change.
    ///
    /// # Errors
    /// Why it must not be performed.
    pub(super) fn check(&mut self, space: &Space<'_>, state: &CutState) -> Result<(), Refusal> {
        let below_top = |&at: &usize| at != self.attribute && !state.is_topmost(space, at);
        let others: Vec<u16> = (0..space.width())
            .filter(below_top)
            .map(|at| at as u16)
            .collect();
        if space.budget > 0 {
            let suppressed = space
                .units
                .weight
                .iter()
                .map(|&rows| u64::from(rows))
                .sum::<u64>();
            let suppressed = suppressed - self.tally.kept;
            if self.tally.kept > 0 && suppressed <= space.budget {
                return Ok(());
            }
            let all = (0..space.width()).map(|at| at as u16);
            return Err(Refusal::Invalid(all.collect()));
        }
        let width = space.width();
        let mut check = std::mem::take(&mut self.check);
        check
            .places
            .resize_with(others.len().max(check.places.len()), Vec::new);
        for (places, &other) in check.places.iter_mut().zip(&others) {
            places.clear();
            let place =
                |share: &Share| state.classes.places[share.class as usize * width + other as usize];
            places.extend(self.shares.iter().map(place));
        }
        let depth = others.len().min(space.requirement.l - 1);
        check
            .groups
            .resize_with(check.groups.len().max(depth + 1), Vec::new);
        check.groups[0].clear();
        check.groups[0].extend(self.shares.iter().map(|share| share.child));
        check.others = others;
        let found = self.search_violation(space, state, &mut check, depth);
        self.check = check;
        found
    }

    fn search_violation(
        &mut self,
        space: &Space<'_>,
        state: &CutState,
        check: &mut GroupBuffers,
        depth: usize,
    ) -> Result<(), Refusal> {
        let children = self.children.len();
        for recent in 0..self.recent.len() {
            let set = self.recent[recent].clone();
            let position = |at: &u16| check.others.binary_search(at).ok();
            let chosen: Option<Vec<usize>> = set.iter().map(position).collect();
            let Some(chosen) = chosen.filter(|chosen| chosen.len() <= depth) else {
                continue;
            };
            let mut groups = children;
            for (level, &other) in chosen.iter().enumerate() {
                groups = self.refine(state, check, level, groups, other);
            }
            if !self.groups_hold(space, check, chosen.len(), groups) {
                if let Some(set) = self.recent.remove(recent) {
                    self.recent.push_front(set);
                }
                return Err(Refusal::Invalid(set));
            }
        }
        let mut chosen = Vec::new();
        self.descend(space, state, check, &mut chosen, depth, children)
            .inspect_err(|refusal| {
                if let Refusal::Invalid(set) = refusal {
                    self.recent.push_front(set.clone());
                    self.recent.truncate(RECENT);
                }
            })
    }

    /// Checks all sets of `depth` attributes that contain `chosen` and later ones.
    fn descend(
        &mut self,
        space: &Space<'_>,
        state: &CutState,
        check: &mut GroupBuffers,
        chosen: &mut Vec<usize>,
        depth: usize,
        groups: usize,
    ) -> Result<(), Refusal> {
        let level = chosen.len();
        if level == depth {
            return if self.groups_hold(space, check, level, groups) {
                Ok(())
            } else {
                let set = chosen.iter().map(|&other| check.others[other]);
                Err(Refusal::Invalid(set.collect()))
            };
        }
        if space.observer.must_stop() {
            return Err(Refusal::Stopped);
        }
        let start = chosen.last().map_or(0, |last| last + 1);
        for other in start..=check.others.len() - (depth - level) {
            let refined = self.refine(state, check, level, groups, other);
            chosen.push(other);
            self.descend(space, state, check, chosen, depth, refined)?;
            chosen.pop();
        }
        Ok(())
    }

    /// Splits the groups of a level by one more attribute. Returns their number.
    fn refine(
        &mut self,
        state: &CutState,
        check: &mut GroupBuffers,
        level: usize,
        groups: usize,
        other: usize,
    ) -> usize {
        let cut = state.cuts[check.others[other] as usize].len();
        let (before, after) = check.groups.split_at_mut(level + 1);
        let (before, after) = (&before[level], &mut after[0]);
        self.slots.begin(groups * cut);
        after.clear();
        let places = &check.places[other];
        for (&group, &place) in before.iter().zip(places) {
            after.push(self.slots.number(group as usize * cut + place as usize).0);
        }
        self.slots.count()
    }

    /// Whether the groups of a level meet the requirement.
    fn groups_hold(
        &self,
        space: &Space<'_>,
        check: &mut GroupBuffers,
        level: usize,
        groups: usize,
    ) -> bool {
        let requirement = space.requirement;
        let values = requirement.counted_values;
        check.sizes.clear();
        check.sizes.resize(groups, 0);
        check.counts.clear();
        check.counts.resize(groups * values, 0);
        let of_share = &check.groups[level];
        for (at, (share, &group)) in self.shares.iter().zip(of_share).enumerate() {
            let group = group as usize;
            check.sizes[group] += share.size;
            let counts = &mut check.counts[group * values..(group + 1) * values];
            for (sum, count) in counts.iter_mut().zip(&self.values[at * values..]) {
                *sum += count;
            }
        }
        let holds = |group: usize| {
            let size = u64::from(check.sizes[group]);
            if size == 0 {
                return true;
            }
            let counts = check.counts[group * values..(group + 1) * values].iter();
            let counts = counts.enumerate();
            let counts = counts.map(|(value, &count)| (value as u32, u64::from(count)));
            requirement.allows_counts(size, counts)
        };
        if !(0..groups).all(holds) {
            return false;
        }
        self.persons.is_empty() || self.groups_have_persons(space, of_share, &check.sizes)
    }

    fn groups_have_persons(&self, space: &Space<'_>, of_share: &[u32], sizes: &[u32]) -> bool {
        let requirement = space.requirement;
        let mut persons = vec![Vec::new(); sizes.len()];
        for (of_share, &group) in self.persons.iter().zip(of_share) {
            if !requirement.surely_meets_k(u64::from(sizes[group as usize])) {
                persons[group as usize].extend_from_slice(of_share);
            }
        }
        let mut doubtful = persons.iter_mut().filter(|persons| !persons.is_empty());
        doubtful.all(|persons| {
            persons.sort_unstable();
            persons.dedup();
            persons.len() as u64 >= requirement.k.get()
        })
    }
}
