//! One cut in each column, and the equivalence classes that it makes.

use rustc_hash::FxHashMap;

use super::super::attribute::Concept;
use super::dimension::SplitKey;
use super::measure::Tally;
use super::space::Space;
use super::trial::Trial;

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
    pub(super) tally: Tally,
    /// Splits that are invalid, each with the attributes of a violating qid beside its own. They
    /// stay invalid while none of these is generalized.
    pub(super) refused: FxHashMap<SplitKey, Box<[u16]>>,
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
            tally: Tally::default(),
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
        let attribute = trial.attribute();
        let Some(place) = self.place(attribute, trial.parent()) else {
            return;
        };
        let width = space.width();
        let dimension = &space.dimensions[attribute];
        let whole_ncp = dimension.attribute.ncp(trial.parent());
        let first_new = self.cuts[attribute].len();
        let mut child_places = Vec::new();
        for (number, child) in trial.children().iter().enumerate() {
            if number == 0 {
                self.cuts[attribute][place] = child.clone();
                child_places.push(place as u32);
            } else {
                self.cuts[attribute].push(child.clone());
                child_places.push((first_new + number - 1) as u32);
            }
        }
        let child_ncp = trial
            .children()
            .iter()
            .map(|child| dimension.attribute.ncp(child));
        let child_ncp: Vec<f64> = child_ncp.collect();
        let classes = &mut self.classes;
        // The first share of a class takes its number.
        let mut numbers = Vec::with_capacity(trial.shares().len());
        for share in trial.shares() {
            let class = share.class as usize;
            let child = share.child as usize;
            let number = match share.is_first {
                true => class,
                false => {
                    let number = classes.size.len();
                    classes
                        .places
                        .extend_from_within(class * width..(class + 1) * width);
                    classes.size.push(0);
                    classes.term.push(0.0);
                    classes.ncp.push(0.0);
                    classes.is_kept.push(false);
                    number
                }
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
        self.tally = trial.tally();
    }

    /// Replaces the cuts of some attributes by cuts above them.
    pub(super) fn generalize(&mut self, space: &Space<'_>, changes: Vec<(usize, Vec<Concept>)>) {
        let width = space.width();
        let mut is_changed = vec![false; width];
        for (attribute, cut) in changes {
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
        self.tally = Tally::default();
        for class in (0..count).filter(|&class| classes.is_kept[class]) {
            self.tally.sum += classes.term[class];
            self.tally.kept += u64::from(classes.size[class]);
        }
    }

    /// By class whether it is released: where rows may be suppressed, whether it has *K*.
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
