//! Algorithm 1 of the 2014 paper, over relational and set-valued attributes together.

use std::time::Duration;

use pais_core::definition::ColumnKind;
use pais_core::model::{Decimal, MinimumAnonymity};
use pais_core::table::{EncodedTable, Subjects};
use pais_core::taxonomy::MinimumLevels;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::class::Anonymity;
use super::class::{ClassSet, EquivalenceClass};
use super::disclosure::DisclosureRound;
use super::hierarchy::Hierarchy;
use super::outcome::DisclosedTable;
use super::vocabulary::Vocabulary;
use crate::error::RunError;
use crate::observer::{Observer, Phase};

/// Gains that differ by less than this are a tie; ties go to the first column.
pub(super) const TIE: f64 = 1e-12;

/// The parameters of a search.
#[derive(Clone, Debug)]
pub(super) struct DisclosureSettings {
    /// *k*.
    pub k: MinimumAnonymity,
    /// Maximum fraction of the rows that may be moved to the trash bin.
    pub suppression_limit: Decimal,
    /// Kind of each relational quasi-identifier, in the order of the table.
    pub kinds: Vec<ColumnKind>,
    /// Weight of each quasi-identifier in the choice by NCP: relational columns first, then
    /// set-valued ones, each in the order of the table.
    pub weights: Vec<f64>,
    /// The parameters of a thorough search; `None` where the search is greedy.
    pub thorough: Option<ThoroughSearch>,
}

/// The parameters of a thorough search.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThoroughSearch {
    /// Maximum time of the search, in addition to the greedy search.
    pub limit: Duration,
    /// What the random choices depend on.
    pub seed: u64,
}

/// The rows hold more items in one column than 32 bits can index.
pub(super) fn too_many_items() -> RunError {
    RunError::limit_exceeded("a set-valued column has more than 4,294,967,295 items")
}

/// A column of *QI\**, by its index among the columns of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextColumn {
    Relational(usize),
    Set(usize),
}

/// Runs Algorithm 1 from the topmost table, and reports its progress.
///
/// # Errors
/// For too many items in a column, and on cancellation.
pub(super) fn search(task: &DisclosureTask) -> Result<Found, RunError> {
    let mut state = DisclosureSearch::new(task, vec![task.whole()?]);
    state.run(|done| task.observer.progress(Phase::Searching, done))?;
    Ok(state.found())
}

/// Runs Algorithm 1 over the set-valued columns alone, with the relational columns at these levels.
///
/// # Errors
/// As [`search`].
pub(super) fn search_sets(task: &DisclosureTask, levels: &[u32]) -> Result<Found, RunError> {
    let whole = task.whole()?;
    let groups = task.group(levels, &whole.rows);
    let classes = whole.divide(groups.groups, |at| groups.group_of[at] as usize);
    let mut state = DisclosureSearch::new(task, classes);
    for (hierarchy, &depth) in state.hierarchies.iter_mut().zip(levels) {
        hierarchy.move_to(depth);
    }
    state.in_qi.fill(false);
    state.run(|_| {})?;
    Ok(state.found())
}

/// Number of items that may still be disclosed, over all columns of a class.
fn hidden_items(class: &EquivalenceClass) -> u64 {
    let open = class.sets.iter().filter(|set| !set.finished);
    open.map(|set| set.items.len() as u64).sum()
}

struct DisclosureSearch<'a> {
    task: &'a DisclosureTask<'a>,
    hierarchies: Vec<Hierarchy<'a>>,
    classes: Vec<EquivalenceClass>,
    /// Whether each relational column is still in *QI\**.
    in_qi: Vec<bool>,
    /// Number of items that could be disclosed at the start.
    candidates: u64,
    suppressed: usize,
}

impl<'a> DisclosureSearch<'a> {
    fn new(task: &'a DisclosureTask<'a>, classes: Vec<EquivalenceClass>) -> Self {
        Self {
            hierarchies: task.hierarchies.clone(),
            candidates: classes.iter().map(hidden_items).sum(),
            in_qi: vec![true; task.hierarchies.len()],
            classes,
            suppressed: 0,
            task,
        }
    }

    /// Refines the table until *QI\** is empty, and tells `progress` the share that is done.
    fn run(&mut self, progress: impl Fn(f64)) -> Result<(), RunError> {
        while let Some(column) = self.choose() {
            match column {
                NextColumn::Relational(column) => self.descend(column),
                NextColumn::Set(set) => self.disclose(set),
            }
            self.task.observer.check()?;
            progress(self.done());
        }
        Ok(())
    }

    fn found(self) -> Found {
        let levels = self.hierarchies.iter().map(Hierarchy::depth).collect();
        self.task.found(levels, self.classes)
    }

    /// *choose_dimension*: the column whose next step has the greatest expected decrease of NCP
    /// times weight; ties go to the first declared column. `None` when *QI\** is empty.
    ///
    /// For a relational column this is the decrease by one more level, from the hierarchy. In a
    /// set-valued column a round discloses at most one item per row, so the expected decrease is
    /// the share of its items that this would disclose. Items that a class turns out not to be
    /// able to disclose are no longer counted in later rounds.
    fn choose(&mut self) -> Option<NextColumn> {
        let weights = &self.task.settings.weights;
        let mut gains = Vec::new();
        for (at, hierarchy) in self.hierarchies.iter_mut().enumerate() {
            if self.in_qi[at] && !hierarchy.is_exhausted() {
                let gain = hierarchy.gain() / self.task.table.rows as f64 * weights[at];
                let position = hierarchy.column().position;
                gains.push((position, gain, NextColumn::Relational(at)));
            }
        }
        let sets = (0..self.task.vocabularies.len()).filter_map(|set| {
            let open = self
                .classes
                .iter()
                .map(|class| class.sets[set].rows_with_candidates());
            let open: usize = open.sum();
            let weight = weights[self.hierarchies.len() + set];
            let gain = open as f64 / self.task.raw_items[set] as f64 * weight;
            let position = self.task.table.sets[set].position;
            (open > 0).then_some((position, gain, NextColumn::Set(set)))
        });
        gains.extend(sets);
        gains.sort_by_key(|(position, ..)| *position);
        let best = gains.iter().map(|(_, gain, _)| *gain).reduce(f64::max)?;
        let first = gains.into_iter().find(|(_, gain, _)| *gain >= best - TIE);
        first.map(|(.., column)| column)
    }

    /// Moves a relational column one level down if every class is divided into parts of at least k
    /// rows; otherwise removes the column from *QI\**.
    fn descend(&mut self, column: usize) {
        let hierarchy = &mut self.hierarchies[column];
        let (below, values) = (hierarchy.next_level(), hierarchy.value_count());
        let codes = &hierarchy.column().codes;
        let value = |row: u32| below[codes.at(row as usize) as usize];
        let anonymity = self.task.anonymity;
        let holds = self.classes.par_iter().all(|class| {
            let first = value(class.rows[0]);
            if class.rows.iter().all(|&row| value(row) == first) {
                return true;
            }
            class.len() >= 2 * anonymity.k
                && class_parts(class, anonymity, value, values).all_have(anonymity.k)
        });
        if !holds {
            self.in_qi[column] = false;
            return;
        }
        hierarchy.descend();
        let classes = std::mem::take(&mut self.classes);
        let divided = classes.into_par_iter().flat_map_iter(|class| {
            let parts = class_parts(&class, anonymity, value, values);
            if parts.sizes.len() == 1 {
                return vec![class];
            }
            class.divide(parts.sizes.len(), |index| parts.part_of[index] as usize)
        });
        self.classes = divided.collect();
    }

    /// Runs a round of disclosure in a set-valued column.
    fn disclose(&mut self, set: usize) {
        let stop = || self.task.observer.must_stop();
        let round = DisclosureRound {
            set,
            items: self.task.vocabularies[set].len(),
            anonymity: self.task.anonymity,
            stop: &stop,
        };
        let classes = std::mem::take(&mut self.classes);
        let (classes, suppressed) = round.run(classes, self.task.budget - self.suppressed);
        self.classes = classes;
        self.suppressed += suppressed.len();
        for row in suppressed {
            for hierarchy in &mut self.hierarchies {
                hierarchy.remove_row(row);
            }
        }
    }

    /// The progress from 0 to 1: the share of items that are disclosed or known to stay hidden.
    fn done(&self) -> f64 {
        let open: u64 = self.classes.iter().map(hidden_items).sum();
        1.0 - open as f64 / self.candidates.max(1) as f64
    }
}

/// The classes after a column moves one level down; `None` where a class would be smaller than k.
pub(super) fn divide_classes(
    classes: &[EquivalenceClass],
    hierarchy: &Hierarchy,
    anonymity: Anonymity<'_>,
) -> Option<Vec<EquivalenceClass>> {
    let (below, values) = (hierarchy.next_level(), hierarchy.value_count());
    let codes = &hierarchy.column().codes;
    let value = |row: u32| below[codes.at(row as usize) as usize];
    let divide = |class: &EquivalenceClass| {
        let parts = class_parts(class, anonymity, value, values);
        let part_of = |index: usize| parts.part_of[index] as usize;
        parts
            .all_have(anonymity.k)
            .then(|| class.divide(parts.sizes.len(), part_of))
    };
    let divided: Option<Vec<Vec<EquivalenceClass>>> = classes.par_iter().map(divide).collect();
    divided.map(|parts| parts.into_iter().flatten().collect())
}

/// The parts of a class by the rows' values in a column, numbered in order of first occurrence.
struct ClassParts {
    /// By index in the class.
    part_of: Vec<u32>,
    /// Persons of each part; rows where these are counted.
    sizes: Vec<u32>,
}

impl ClassParts {
    /// Whether every part has at least `k` persons.
    fn all_have(&self, k: usize) -> bool {
        self.sizes.iter().all(|&size| size as usize >= k)
    }
}

fn class_parts(
    class: &EquivalenceClass,
    anonymity: Anonymity<'_>,
    value: impl Fn(u32) -> u32,
    values: usize,
) -> ClassParts {
    // A table of all values is cheap while it is not much longer than the class.
    let dense = values <= 4 * class.len();
    let mut numbers = vec![u32::MAX; if dense { values } else { 0 }];
    let mut sparse = rustc_hash::FxHashMap::default();
    let mut parts = ClassParts {
        part_of: Vec::with_capacity(class.len()),
        sizes: Vec::new(),
    };
    // By part, the person that was counted last.
    let mut last_person: Vec<u32> = Vec::new();
    for &row in &class.rows {
        let value = value(row);
        let person = anonymity.person(row);
        let fresh = parts.sizes.len() as u32;
        let number = if dense {
            &mut numbers[value as usize]
        } else {
            sparse.entry(value).or_insert(u32::MAX)
        };
        if *number == u32::MAX {
            *number = fresh;
            parts.sizes.push(1);
            last_person.push(person);
        } else {
            let last = std::mem::replace(&mut last_person[*number as usize], person);
            parts.sizes[*number as usize] += u32::from(last != person);
        }
        parts.part_of.push(*number);
    }
    parts
}

/// The table, the labels that may be released, and what every class must have.
pub(super) struct DisclosureTask<'a> {
    pub table: &'a EncodedTable,
    pub settings: &'a DisclosureSettings,
    pub observer: &'a dyn Observer,
    pub anonymity: Anonymity<'a>,
    /// Each relational column, at its topmost value.
    pub hierarchies: Vec<Hierarchy<'a>>,
    /// The items of each set-valued column.
    pub vocabularies: Vec<Vocabulary<'a>>,
    /// Number of items of each set-valued column before pre-generalization.
    pub raw_items: Vec<u64>,
    /// Maximum number of rows in the trash bin.
    pub budget: usize,
}

/// An anonymous table: the level of each relational column, and the classes.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// By relational column, its level.
    pub levels: Vec<u32>,
    /// The classes; rows in none of them are suppressed.
    pub classes: Vec<EquivalenceClass>,
    /// The sum of the mean NCP of every column times its weight; see [`DisclosureTask::loss`].
    pub loss: f64,
}

/// The rows by group, numbered in order of first occurrence.
pub(super) struct RowGroups {
    /// By place in the order of the rows.
    pub group_of: Vec<u32>,
    pub groups: usize,
}

impl<'a> DisclosureTask<'a> {
    /// Reads a table. `minimum_levels` gives the pre-generalization of a column by its name.
    ///
    /// # Errors
    /// For fewer rows or persons than *k*.
    pub(super) fn new<'b>(
        table: &'a EncodedTable,
        minimum_levels: impl Fn(&str) -> Option<&'b MinimumLevels>,
        settings: &'a DisclosureSettings,
        observer: &'a dyn Observer,
    ) -> Result<Self, RunError> {
        let k = settings.k.get();
        let rows = table.rows as u64;
        RunError::check_k(rows, table.subjects.as_deref().map(Subjects::len), k)?;
        // At most the number of rows, which is a `usize`.
        let anonymity = Anonymity::new(k as usize, table);
        let columns = table.quasi_identifiers.iter().zip(&settings.kinds);
        let sets = table.sets.iter();
        let vocabularies: Vec<_> = sets
            .map(|column| Vocabulary::new(column, minimum_levels(&column.name)))
            .collect();
        Ok(Self {
            hierarchies: columns
                .map(|(column, &kind)| Hierarchy::new(column, kind, minimum_levels(&column.name)))
                .collect(),
            raw_items: vocabularies.iter().map(Vocabulary::raw_items).collect(),
            vocabularies,
            budget: settings.suppression_limit.floor_of(rows) as usize,
            anonymity,
            table,
            settings,
            observer,
        })
    }

    /// The class of all rows.
    ///
    /// # Errors
    /// Where the rows hold more items in one column than 32 bits can index.
    pub(super) fn whole(&self) -> Result<EquivalenceClass, RunError> {
        let rows = self.anonymity.ordered_rows(self.table.rows);
        EquivalenceClass::whole(rows, &self.vocabularies).ok_or_else(too_many_items)
    }

    /// The class of some rows that disclose these items, ascending in each column, and hide their
    /// others.
    pub(super) fn class_of(&self, mut rows: Vec<u32>, disclosed: &[Vec<u32>]) -> EquivalenceClass {
        rows.sort_unstable_by_key(|&row| (self.anonymity.person(row), row));
        let columns = self.vocabularies.iter().zip(disclosed);
        let sets = columns.map(|(vocabulary, disclosed)| {
            let mut set = ClassSet {
                disclosed: disclosed.clone(),
                starts: vec![0],
                ..ClassSet::default()
            };
            for &row in &rows {
                vocabulary.push_row(row as usize, &mut set.items);
                // No more items than the class of all rows has.
                set.starts.push(set.items.len() as u32);
            }
            if !disclosed.is_empty() {
                set.retain(|item| disclosed.binary_search(&item).is_err());
            }
            set
        });
        EquivalenceClass {
            sets: sets.collect(),
            rows,
        }
    }

    /// Groups rows by their values in the relational columns at these levels.
    pub(super) fn group(&self, levels: &[u32], rows: &[u32]) -> RowGroups {
        let mut found = RowGroups {
            group_of: vec![0; rows.len()],
            groups: usize::from(!rows.is_empty()),
        };
        for (hierarchy, &depth) in self.hierarchies.iter().zip(levels) {
            if depth == 0 {
                continue;
            }
            let (values, codes) = (hierarchy.level(depth), &hierarchy.column().codes);
            let mut numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
            for (group, &row) in found.group_of.iter_mut().zip(rows) {
                let fresh = numbers.len() as u32;
                let key = (*group, values[codes.at(row as usize) as usize]);
                *group = *numbers.entry(key).or_insert(fresh);
            }
            found.groups = numbers.len();
        }
        found
    }

    /// The sum of the mean NCP of every column times its weight. A hidden item has NCP 1, and so
    /// has every value and item of a suppressed row.
    pub(super) fn loss(&self, levels: &[u32], classes: &[EquivalenceClass]) -> f64 {
        let rows = self.table.rows.max(1) as f64;
        let columns = self.hierarchies.iter().zip(levels);
        let relational = columns
            .zip(&self.settings.weights)
            .map(|((column, &depth), weight)| {
                let (ncp, codes) = (column.ncp_at(depth), &column.column().codes);
                let of_class = |class: &EquivalenceClass| -> f64 {
                    let rows = class.rows.iter();
                    rows.map(|&row| 1.0 - ncp[codes.at(row as usize) as usize])
                        .sum()
                };
                // Summed in order, so that the result does not depend on the threads.
                let kept: Vec<f64> = classes.par_iter().map(of_class).collect();
                weight * (1.0 - kept.iter().sum::<f64>() / rows)
            });
        let relational: f64 = relational.sum();
        let kept: Vec<f64> = classes.par_iter().map(|class| self.kept(class)).collect();
        let set_weights = &self.settings.weights[self.hierarchies.len()..];
        let filled = set_weights.iter().zip(&self.raw_items);
        let all: f64 = filled
            .filter(|(_, items)| **items > 0)
            .map(|(weight, _)| weight)
            .sum();
        relational + all - kept.iter().sum::<f64>()
    }

    /// The share of their items that the rows of a class disclose, times weight, summed over the
    /// set-valued columns.
    pub(super) fn kept(&self, class: &EquivalenceClass) -> f64 {
        let columns = class.sets.iter().zip(&self.vocabularies).enumerate();
        let kept = columns.map(|(set, (items, vocabulary))| {
            let mut disclosed = items.disclosed.clone();
            disclosed.sort_unstable();
            let kept: f64 = if vocabulary.joins_items() {
                let rows = class.rows.iter();
                rows.map(|&row| vocabulary.kept(row, &disclosed)).sum()
            } else {
                let shown = disclosed.iter().map(|&item| 1.0 - vocabulary.ncp(item));
                shown.sum::<f64>() * class.len() as f64
            };
            kept * self.item_weight(set)
        });
        kept.sum()
    }

    /// The weight of one item of a set-valued column in a row.
    pub(super) fn item_weight(&self, set: usize) -> f64 {
        let weight = self.settings.weights[self.hierarchies.len() + set];
        weight / self.raw_items[set].max(1) as f64
    }

    /// A result with its loss.
    pub(super) fn found(&self, levels: Vec<u32>, classes: Vec<EquivalenceClass>) -> Found {
        Found {
            loss: self.loss(&levels, &classes),
            levels,
            classes,
        }
    }

    /// The cells of a result.
    pub(super) fn disclosed(&self, found: &Found) -> DisclosedTable {
        let columns = self.hierarchies.iter().zip(&found.levels);
        let cuts = columns.map(|(column, &depth)| column.cut_at(depth));
        DisclosedTable::new(
            self.table,
            cuts.collect(),
            &self.vocabularies,
            &found.classes,
        )
    }
}
