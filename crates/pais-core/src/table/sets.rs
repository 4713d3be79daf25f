//! Set-valued quasi-identifiers: the items of each row as leaves of one tree.

use std::sync::Arc;

use crate::taxonomy::Tree;

use crate::schema::SchemaColumn;
use crate::schema::items;
use crate::table::{Column, NULL_CODE};

/// A set-valued quasi-identifier, a transactional attribute of the 2014 paper.
///
/// Equal cells are stored once: 4 bytes per row, and 4 bytes per item of each distinct set. A missing cell is
/// the empty set, because nothing is known about its items. For the same reason a word for missing among the
/// items is not an item.
#[derive(Clone, Debug)]
pub struct SetColumn {
    /// The name, as in the header.
    pub name: Box<str>,
    /// Position among the stored columns of the schema.
    pub position: usize,
    /// The character between two items, in formats without lists.
    pub separator: char,
    /// The tree of the items. Items are its leaf numbers.
    pub tree: Arc<Tree>,
    /// The number of the distinct set of each row.
    codes: Vec<u32>,
    /// The start of each distinct set in `items`; one entry more than there are sets.
    starts: Vec<usize>,
    /// Items of the distinct sets, ascending within each set.
    items: Vec<u32>,
}

impl SetColumn {
    /// Encodes a column whose cells were checked when they were read. A repeated item counts once.
    pub fn new(spec: &SchemaColumn, position: usize, column: Column) -> Self {
        let separator = spec.separator;
        let items_of = |text| items(text, separator).filter(|item| !spec.is_missing(item));
        let tree = match &spec.tree {
            Some(tree) => Arc::clone(tree),
            None => {
                let cells = column.dictionary.iter();
                let mut values: Vec<&str> = cells.flat_map(|text| items_of(text)).collect();
                values.sort_unstable();
                values.dedup();
                Arc::new(Tree::flat(values))
            }
        };
        let mut starts = Vec::with_capacity(column.dictionary.len() + 2);
        starts.push(0);
        let mut leaves: Vec<u32> = Vec::new();
        let mut set: Vec<u32> = Vec::new();
        for text in &column.dictionary {
            set.clear();
            set.extend(items_of(text).filter_map(|item| tree.leaf_number(item)));
            set.sort_unstable();
            set.dedup();
            leaves.extend_from_slice(&set);
            starts.push(leaves.len());
        }
        // The empty set, for rows whose cell is null.
        starts.push(leaves.len());
        let empty = column.dictionary.len() as u32;
        let mut codes = column.codes;
        for code in codes.iter_mut().filter(|code| **code == NULL_CODE) {
            *code = empty;
        }
        Self {
            name: spec.name.clone(),
            position,
            separator,
            tree,
            codes,
            starts,
            items: leaves,
        }
    }

    /// The same sets with their items in another tree: the leaf `leaves[i]` is item `i`. An item
    /// without a leaf there is left out.
    pub fn in_tree(&self, tree: Arc<Tree>, leaves: &[Option<u32>]) -> Self {
        let mut starts = vec![0];
        let mut all: Vec<u32> = Vec::new();
        for code in 0..self.code_count() as u32 {
            let items = self.set(code).iter();
            let mut set: Vec<u32> = items.filter_map(|&item| leaves[item as usize]).collect();
            set.sort_unstable();
            set.dedup();
            all.extend(set);
            starts.push(all.len());
        }
        Self {
            tree,
            starts,
            items: all,
            ..self.clone()
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.codes.len()
    }

    /// The number of a row's set among the distinct cells.
    #[inline]
    pub fn code(&self, row: usize) -> u32 {
        self.codes[row]
    }

    /// Number of distinct cells. Some of them can be equal sets.
    pub fn code_count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The items of a distinct set, ascending.
    #[inline]
    pub fn set(&self, code: u32) -> &[u32] {
        &self.items[self.starts[code as usize]..self.starts[code as usize + 1]]
    }

    /// The items of a row, ascending.
    #[inline]
    pub fn of_row(&self, row: usize) -> &[u32] {
        self.set(self.codes[row])
    }
}
