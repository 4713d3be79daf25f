//! The result of a search, ready to be released.

use std::collections::BTreeMap;

use crate::published_cut::Cut;
use pais_core::table::{EncodedTable, NULL_CODE};
use pais_core::taxonomy::MinimumLevels;

use super::class::EquivalenceClass;
use super::vocabulary::Vocabulary;

/// The anonymous table: the cut of each relational column, and the items that each row discloses.
#[derive(Clone, Debug)]
pub(super) struct DisclosedTable {
    /// The cut of each relational quasi-identifier, in the order of the table.
    pub cuts: Vec<Cut>,
    /// The cells of each set-valued quasi-identifier, in the order of the table.
    pub sets: Vec<DisclosedSet>,
    /// Whether each row is released; the others were moved to the trash bin.
    pub released: Vec<bool>,
    /// By set-valued column, the node that each of its items is generalized to, where the method
    /// chose labels of a declared taxonomy itself.
    pub labels: BTreeMap<Box<str>, MinimumLevels>,
}

/// The released cells of a set-valued column.
#[derive(Clone, Debug)]
pub(super) struct DisclosedSet {
    /// Distinct cells.
    pub cells: Vec<Box<str>>,
    /// By row, an index into `cells`; [`NULL_CODE`] where the row is not released.
    pub codes: Vec<u32>,
}

impl DisclosedSet {
    /// The cells of a column of `rows` rows. `disclosed` gives rows that disclose the same items,
    /// with these items, ascending.
    pub(super) fn new<'r>(
        rows: usize,
        vocabulary: &Vocabulary,
        disclosed: impl Iterator<Item = (&'r [u32], Vec<u32>)>,
    ) -> Self {
        let mut known: hashbrown::HashMap<Vec<u32>, u32> = hashbrown::HashMap::new();
        let mut cells: Vec<Box<str>> = Vec::new();
        let mut codes = vec![NULL_CODE; rows];
        for (rows, items) in disclosed {
            let next_code = cells.len() as u32;
            let code = *known.entry(items).or_insert_with_key(|items| {
                cells.push(vocabulary.cell(items).into());
                next_code
            });
            for &row in rows {
                codes[row as usize] = code;
            }
        }
        Self { cells, codes }
    }
}

impl DisclosedTable {
    /// A table of which every row is released.
    pub(super) fn of_all_rows(rows: usize, cuts: Vec<Cut>, sets: Vec<DisclosedSet>) -> Self {
        Self {
            cuts,
            sets,
            released: vec![true; rows],
            labels: BTreeMap::new(),
        }
    }

    /// Builds the cells from what each class discloses.
    pub(super) fn new(
        table: &EncodedTable,
        cuts: Vec<Cut>,
        vocabularies: &[Vocabulary],
        classes: &[EquivalenceClass],
    ) -> Self {
        let mut released = vec![false; table.rows];
        for &row in classes.iter().flat_map(|class| &class.rows) {
            released[row as usize] = true;
        }
        let sets = vocabularies.iter().enumerate().map(|(set, vocabulary)| {
            let disclosed = classes.iter().map(|class| {
                let mut items = class.sets[set].disclosed.clone();
                items.sort_unstable();
                (class.rows.as_slice(), items)
            });
            DisclosedSet::new(table.rows, vocabulary, disclosed)
        });
        Self {
            cuts,
            sets: sets.collect(),
            released,
            labels: BTreeMap::new(),
        }
    }
}
