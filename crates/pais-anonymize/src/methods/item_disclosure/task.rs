//! What every search for one anonymous table shares, and how its results are compared.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use pais_core::table::EncodedTable;
use pais_core::taxonomy::MinimumLevels;

use super::anonymity::Anonymity;
use super::class::{ClassSet, EquivalenceClass};
use super::hierarchy::Hierarchy;
use super::outcome::DisclosedTable;
use super::search::{DisclosureError, DisclosureSettings};
use super::vocabulary::Vocabulary;
use crate::observer::Observer;

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
    /// Greatest number of rows in the trash bin.
    pub budget: usize,
}

/// An anonymous table: the level of each relational column, and the classes.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// By relational column, its level.
    pub levels: Vec<u32>,
    /// The classes; the rows of none of them are suppressed.
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
    ) -> Result<Self, DisclosureError> {
        let k = settings.k.get();
        let rows = table.rows as u64;
        if rows < k {
            return Err(DisclosureError::FewerRowsThanK { rows, k });
        }
        // At most the number of rows, which is a `usize`.
        let anonymity = Anonymity::new(k as usize, table);
        let subjects = anonymity.persons(table);
        if subjects < k {
            return Err(DisclosureError::FewerSubjectsThanK { subjects, k });
        }
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
    pub(super) fn whole(&self) -> Result<EquivalenceClass, DisclosureError> {
        let rows = self.anonymity.ordered_rows(self.table.rows);
        EquivalenceClass::whole(rows, &self.vocabularies).ok_or(DisclosureError::TooManyItems)
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
                let key = (*group, values[codes[row as usize] as usize]);
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
                    rows.map(|&row| 1.0 - ncp[codes[row as usize] as usize])
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

    /// What an item of a set-valued column counts in a row.
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
