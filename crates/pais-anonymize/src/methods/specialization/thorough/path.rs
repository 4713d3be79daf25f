//! The steps from the topmost table to a cut.
//!
//! They are performed one by one, best score first, and each is checked before it is recorded. By
//! anti-monotonicity all of them are valid if the last one is.

use std::collections::BTreeMap;

use pais_core::cancellation::Cancellation;
use pais_core::definition::Objective;
use pais_core::table::{Domain, EncodedTable, SubjectCounter};

use super::super::attribute::{Concept, Meaning};
use super::super::known_group::{ClassPersons, KnownClasses, KnownGroups};
use super::super::score;
use super::cut_state::{CutState, Trial};
use super::space::{REMOVED, Space};
use crate::published_cut::Cut;
use crate::step::{StepItem, StepRecord};

/// The values of a cut as the splits that lead to it.
pub(super) struct Target {
    /// By attribute with a taxonomy, whether a node is in the cut.
    nodes: Vec<Vec<bool>>,
    /// By numeric attribute, the codes at which intervals start, ascending.
    points: Vec<Vec<u32>>,
}

impl Target {
    /// The cuts of a state.
    pub(super) fn of_state(space: &Space<'_>, state: &CutState) -> Self {
        let mut target = Self::empty(space.width());
        for (attribute, cut) in state.cuts.iter().enumerate() {
            let column = space.dimensions[attribute].attribute.column;
            match &column.domain {
                Domain::Taxonomy(tree) => {
                    let mut is_in = vec![false; tree.nodes().len()];
                    for concept in cut {
                        if let Meaning::Node(node) = concept.meaning {
                            is_in[node.index()] = true;
                        }
                    }
                    target.nodes[attribute] = is_in;
                }
                Domain::Numeric { .. } => {
                    let starts = cut.iter().filter(|it| it.meaning != Meaning::Missing);
                    let starts = starts.map(|concept| concept.codes.start);
                    let mut starts: Vec<u32> = starts.filter(|&start| start > 0).collect();
                    starts.sort_unstable();
                    target.points[attribute] = starts;
                }
            }
        }
        target
    }

    /// Cuts that were replayed from steps.
    pub(super) fn of_cuts(table: &EncodedTable, cuts: &[Cut]) -> Self {
        let mut target = Self::empty(cuts.len());
        for (attribute, (column, cut)) in table.quasi_identifiers.iter().zip(cuts).enumerate() {
            match &column.domain {
                Domain::Taxonomy(tree) => {
                    let mut is_in = vec![false; tree.nodes().len()];
                    for node in cut.labels.iter().filter_map(|label| tree.find(label)) {
                        is_in[node.index()] = true;
                    }
                    target.nodes[attribute] = is_in;
                }
                Domain::Numeric { values, .. } => {
                    let changes = |&code: &u32| {
                        let code = code as usize;
                        cut.label_of[code] != cut.label_of[code - 1]
                    };
                    let points = (1..values.len() as u32).filter(changes);
                    target.points[attribute] = points.collect();
                }
            }
        }
        target
    }

    /// By attribute, the points of its intervals.
    pub(super) fn points(&self) -> &[Vec<u32>] {
        &self.points
    }

    fn empty(width: usize) -> Self {
        Self {
            nodes: vec![Vec::new(); width],
            points: vec![Vec::new(); width],
        }
    }

    /// The split of a value that leads to the cut; `None` for a value of the cut.
    fn split(
        &self,
        space: &Space<'_>,
        attribute: usize,
        concept: &Concept,
    ) -> Option<Vec<Concept>> {
        let dimension = &space.dimensions[attribute];
        match concept.meaning {
            Meaning::Missing => None,
            Meaning::Node(node) if self.nodes[attribute][node.index()] => None,
            Meaning::Node(_) => dimension.children(concept, None),
            Meaning::Interval(_) => {
                let points = &self.points[attribute];
                let start = points.partition_point(|&point| point <= concept.codes.start);
                let end = points.partition_point(|&point| point < concept.codes.end);
                let point = *points.get(start..end)?.get((end - start) / 2)?;
                if dimension.rows(concept) == 0 {
                    return None;
                }
                // All rows of a part may be removed ones.
                dimension.attribute.interval_split(concept, point)
            }
        }
    }
}

/// The valid cut with these values.
pub(super) fn state_at(space: &Space<'_>, target: &Target, trial: &mut Trial) -> Option<CutState> {
    let mut state = CutState::topmost(space);
    for attribute in 0..space.width() {
        let mut open = state.cuts[attribute].clone();
        while let Some(concept) = open.pop() {
            let Some(children) = target.split(space, attribute, &concept) else {
                continue;
            };
            open.extend(children.iter().cloned());
            trial.count(space, &state, attribute, &concept, children);
            trial.check(space, &state).ok()?;
            state.perform(space, trial);
        }
    }
    Some(state)
}

/// The steps to a cut. `removed` are the rows that the topmost table lacks, ascending. `None` if a
/// step is invalid.
pub(super) fn steps_to(
    space: &Space<'_>,
    target: &Target,
    removed: Vec<u32>,
    trial: &mut Trial,
    cancellation: &Cancellation,
) -> Option<Vec<StepRecord>> {
    let mut state = CutState::topmost(space);
    let mut recorder = Recorder::new(space, removed.len() as u64, cancellation);
    let mut steps = vec![recorder.record(space, &state, None)];
    steps[0].suppressed = removed;
    let mut open = Vec::new();
    let push =
        |open: &mut Vec<(f64, usize, Concept, Vec<Concept>)>, attribute, concept: &Concept| {
            if let Some(children) = target.split(space, attribute, concept) {
                let score = column_score(space, attribute, concept, &children);
                open.push((score, attribute, concept.clone(), children));
            }
        };
    for attribute in 0..space.width() {
        push(&mut open, attribute, &space.dimensions[attribute].topmost());
    }
    loop {
        let best = (0..open.len()).max_by(|&a, &b| open[a].0.total_cmp(&open[b].0));
        let Some(best) = best else {
            return Some(steps);
        };
        let (score, attribute, concept, children) = open.swap_remove(best);
        trial.count(space, &state, attribute, &concept, children);
        trial.check(space, &state).ok()?;
        let score = match space.measure.objective() {
            Objective::Discernibility | Objective::DiscernibilityEq4 => {
                state.tally.sum - trial.tally.sum
            }
            Objective::Ncp | Objective::Classification => score,
        };
        state.perform(space, trial);
        for child in &trial.children {
            push(&mut open, attribute, child);
        }
        let performed = PerformedSplit {
            attribute,
            concept: &concept,
            children: &trial.children,
            score,
        };
        steps.push(recorder.record(space, &state, Some(&performed)));
    }
}

/// *Score(v)* from the rows of a column alone.
fn column_score(
    space: &Space<'_>,
    attribute: usize,
    concept: &Concept,
    children: &[Concept],
) -> f64 {
    let dimension = &space.dimensions[attribute];
    match space.measure.objective() {
        Objective::Ncp => space
            .measure
            .of_ncp_sum(dimension.ncp_gain(concept, children)),
        Objective::Discernibility | Objective::DiscernibilityEq4 => {
            let squared = |concept: &Concept| (dimension.rows(concept) as f64).powi(2);
            squared(concept) - children.iter().map(squared).sum::<f64>()
        }
        Objective::Classification => {
            let units = &space.units;
            let entropy = |concept: &Concept| {
                let mut counts = vec![0u64; units.classes];
                for &unit in units.with(attribute, dimension.bases(concept)) {
                    let unit = unit as usize;
                    counts[units.class[unit] as usize] += u64::from(units.weight[unit]);
                }
                dimension.rows(concept) as f64 * score::entropy(&counts)
            };
            let rows = dimension.rows(concept).max(1) as f64;
            (entropy(concept) - children.iter().map(entropy).sum::<f64>()) / rows
        }
    }
}

/// A split that a step performs.
struct PerformedSplit<'a> {
    attribute: usize,
    concept: &'a Concept,
    children: &'a [Concept],
    score: f64,
}

/// Records steps, and which rows they suppress.
struct Recorder {
    /// Number of the next step.
    next: u32,
    /// Number of rows that no step released, up to the last one.
    removed: u64,
    /// By unit, whether an earlier step suppressed it.
    is_suppressed: Vec<bool>,
    known_groups: KnownGroups,
    /// Where *K* counts persons. Each row is a unit then.
    persons: Option<SubjectCounter>,
}

impl Recorder {
    fn new(space: &Space<'_>, removed: u64, cancellation: &Cancellation) -> Self {
        Self {
            next: 0,
            removed,
            is_suppressed: vec![false; space.units.count()],
            known_groups: KnownGroups::new(space.requirement.l, cancellation),
            persons: (space.requirement.subjects).map(|it| SubjectCounter::new(it.codes())),
        }
    }

    fn record(
        &mut self,
        space: &Space<'_>,
        state: &CutState,
        performed: Option<&PerformedSplit<'_>>,
    ) -> StepRecord {
        let units = &space.units;
        let classes = &state.classes;
        let kept = || (0..classes.size.len()).filter(|&class| classes.is_kept[class]);
        let kept_rows = state.tally.kept;
        let rows = (units.of_row.len() as f64).max(1.0);
        let suppressed_rows = units.of_row.len() as u64 - kept_rows;
        let squares: f64 = kept()
            .map(|class| f64::from(classes.size[class]).powi(2))
            .sum();
        let names = space
            .dimensions
            .iter()
            .enumerate()
            .map(|(attribute, dimension)| {
                let cut = &state.cuts[attribute];
                let ncp: Vec<f64> = cut.iter().map(|it| dimension.attribute.ncp(it)).collect();
                let place =
                    |class: usize| classes.places[class * space.width() + attribute] as usize;
                let of_class = |class| f64::from(classes.size[class]) * ncp[place(class)];
                let sum: f64 = kept().map(of_class).sum();
                let name = dimension.attribute.column.name.to_string();
                (name, (sum + suppressed_rows as f64) / rows)
            });
        let ncp_by_column: BTreeMap<String, f64> = names.collect();
        let ncp = ncp_by_column.values().sum::<f64>() / space.width().max(1) as f64;
        let column = performed.map(|split| &space.dimensions[split.attribute].attribute);
        let labels = |concepts: &[Concept]| {
            let label = |concept| column.map(|column| column.label(concept));
            concepts.iter().filter_map(label).collect()
        };
        let (smallest_group, smallest_known_group) =
            self.smallest(space, state, &kept().collect::<Vec<_>>());
        let item = StepItem {
            step: self.next,
            attribute: column.map(|column| column.column.name.to_string()),
            value: performed.and_then(|split| Some(column?.label(split.concept))),
            children: performed.map_or_else(Vec::new, |split| labels(split.children)),
            score: performed.map(|split| split.score),
            groups: kept().count() as u64,
            smallest_group,
            smallest_known_group,
            greatest_confidence: greatest_confidence(space, state),
            dr: squares / (kept_rows as f64).powi(2).max(1.0),
            ncp,
            ncp_by_column,
            suppressed_rows,
        };
        self.next += 1;
        StepRecord {
            suppressed: self.newly_suppressed(space, state),
            item,
        }
    }

    /// The rows, or the persons where *K* counts these, of the smallest of the released classes, and of
    /// the smallest group that an adversary can know ("The person is the unit" in
    /// `docs/methods/values.md`); `None` where the latter would take too much work.
    fn smallest(
        &mut self,
        space: &Space<'_>,
        state: &CutState,
        kept: &[usize],
    ) -> (u64, Option<u64>) {
        let (units, classes) = (&space.units, &state.classes);
        let mut sizes: Vec<u32> = kept.iter().map(|&class| classes.size[class]).collect();
        let mut rows: Vec<Vec<u32>> = Vec::new();
        if let Some(counter) = &mut self.persons {
            rows.resize(classes.size.len(), Vec::new());
            for (unit, &class) in (0..).zip(&state.class_of) {
                rows[class as usize].push(unit);
            }
            for (size, &class) in sizes.iter_mut().zip(kept) {
                let persons = rows[class].iter().map(|&unit| units.person[unit as usize]);
                *size = counter.count_up_to(u64::MAX, persons) as u32;
            }
        }
        let smallest = sizes.iter().copied().min().unwrap_or(0).into();
        if !self.known_groups.can_find() {
            return (smallest, None);
        }
        let value =
            |attribute: usize, class: usize| classes.places[class * space.width() + attribute];
        let values = (0..space.width())
            .map(|attribute| kept.iter().map(|&class| value(attribute, class)).collect());
        let values: Vec<Vec<u32>> = values.collect();
        let rows = kept.iter().filter_map(|&class| rows.get(class));
        let rows: Vec<&[u32]> = rows.map(Vec::as_slice).collect();
        let known = self.known_groups.find(KnownClasses {
            sizes: &sizes,
            values: values.iter().map(Vec::as_slice).collect(),
            persons: self.persons.as_mut().map(|counter| ClassPersons {
                rows: &rows,
                of_row: &units.person,
                counter,
            }),
        });
        (smallest, known)
    }

    fn newly_suppressed(&mut self, space: &Space<'_>, state: &CutState) -> Vec<u32> {
        let units = &space.units;
        let rows = units.of_row.len() as u64;
        if rows - state.tally.kept == self.removed {
            return Vec::new();
        }
        self.removed = rows - state.tally.kept;
        let before = self.is_suppressed.clone();
        for (unit, is_suppressed) in self.is_suppressed.iter_mut().enumerate() {
            *is_suppressed |= !state.classes.is_kept[state.class_of[unit] as usize];
        }
        let is_new = |&row: &u32| match units.of_row[row as usize] {
            REMOVED => false,
            unit => self.is_suppressed[unit as usize] && !before[unit as usize],
        };
        (0..rows as u32).filter(is_new).collect()
    }
}

/// The greatest share of a bounded value in a class; `None` where none is bounded.
fn greatest_confidence(space: &Space<'_>, state: &CutState) -> Option<f64> {
    let values = space.requirement.counted_values;
    if values == 0 {
        return None;
    }
    let classes = &state.classes;
    let mut counts = vec![0u64; classes.size.len() * values];
    for (unit, &class) in state.class_of.iter().enumerate() {
        for &value in space.units.values(unit) {
            counts[class as usize * values + value as usize] += u64::from(space.units.weight[unit]);
        }
    }
    let share = |class: usize| {
        let counts = counts[class * values..(class + 1) * values]
            .iter()
            .enumerate();
        let counts = counts.map(|(value, &count)| (value as u32, count));
        let size = u64::from(classes.size[class]);
        space.requirement.greatest_share(size, counts).as_f64()
    };
    let kept = (0..classes.size.len()).filter(|&class| classes.is_kept[class]);
    Some(kept.map(share).fold(0.0, f64::max))
}
