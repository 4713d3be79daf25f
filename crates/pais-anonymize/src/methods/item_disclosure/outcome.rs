//! What a run ends with, ready to be released.

use crate::methods::specialization::Cut;
use pais_core::table::{EncodedTable, NULL_CODE};

use super::class::Class;
use super::vocabulary::Vocabulary;

/// The anonymous table: where each relational column stands, and what each row discloses.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The level of each relational quasi-identifier, as in the table.
    pub cuts: Vec<Cut>,
    /// Number of classes.
    pub classes: usize,
    /// The cells of each set-valued quasi-identifier, as in the table.
    pub sets: Vec<DisclosedSet>,
    /// Whether each row is released; the others are in the trash bin.
    pub released: Vec<bool>,
}

/// The cells of a set-valued column.
#[derive(Clone, Debug)]
pub struct DisclosedSet {
    /// Cells, each once.
    pub cells: Vec<Box<str>>,
    /// By row; no cell where the row is not released.
    pub codes: Vec<u32>,
}

impl Outcome {
    /// Reads the cells off the classes.
    pub(super) fn new(
        table: &EncodedTable,
        cuts: Vec<Cut>,
        vocabularies: &[Vocabulary],
        classes: &[Class],
    ) -> Self {
        let mut released = vec![false; table.rows];
        for &row in classes.iter().flat_map(|class| &class.rows) {
            released[row as usize] = true;
        }
        let sets = vocabularies.iter().enumerate().map(|(set, vocabulary)| {
            let mut known = hashbrown::HashMap::new();
            let mut cells: Vec<Box<str>> = Vec::new();
            let mut codes = vec![NULL_CODE; table.rows];
            for class in classes {
                let cell = vocabulary.cell(&class.sets[set].disclosed);
                let fresh = cells.len() as u32;
                let code = *known.entry(cell).or_insert_with_key(|cell: &String| {
                    cells.push(cell.as_str().into());
                    fresh
                });
                for &row in &class.rows {
                    codes[row as usize] = code;
                }
            }
            DisclosedSet { cells, codes }
        });
        Self {
            cuts,
            classes: classes.len(),
            sets: sets.collect(),
            released,
        }
    }
}
