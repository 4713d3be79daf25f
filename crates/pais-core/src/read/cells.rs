//! Checks and codes the cells of one column for a chunk. A distinct value is checked once.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

use crate::definition::{ColumnKind, ColumnRole};
use crate::taxonomy::interval::number;

use crate::schema::SchemaColumn;
use crate::schema::items;
use crate::table::{Column, NULL_CODE};

/// Why a cell is refused. It never contains the cell's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The body cannot be decoded.
    Undecodable(&'static str),
    /// The cell is not valid for its column.
    Unfit {
        /// What is wrong.
        detail: String,
        /// How to fix it.
        fix: Option<String>,
    },
}

/// Builds one column of a chunk from cells.
pub(super) struct ColumnBuilder<'a> {
    spec: &'a SchemaColumn,
    hasher: DefaultHashBuilder,
    table: HashTable<u32>,
    column: Column,
}

impl<'a> ColumnBuilder<'a> {
    /// An empty column.
    pub(super) fn new(spec: &'a SchemaColumn) -> Self {
        Self {
            spec,
            hasher: DefaultHashBuilder::default(),
            table: HashTable::new(),
            column: Column::default(),
        }
    }

    /// The column as declared.
    pub(super) fn spec(&self) -> &'a SchemaColumn {
        self.spec
    }

    /// Adds a row's cell. A refused cell is added as null, so that all columns keep the same
    /// length.
    ///
    /// # Errors
    /// If the cell is not valid for the column.
    pub(super) fn push(&mut self, cell: &[u8]) -> Result<(), Refusal> {
        let hash = self.hasher.hash_one(cell);
        let dictionary = &self.column.dictionary;
        let found = self
            .table
            .find(hash, |&code| dictionary[code as usize].as_bytes() == cell);
        if let Some(&code) = found {
            self.column.codes.push(code);
            return Ok(());
        }
        let checked = check_text(cell).and_then(|text| check(self.spec, text).map(|()| text));
        let text = match checked {
            Ok(text) => text,
            Err(refusal) => {
                self.column.codes.push(NULL_CODE);
                return Err(refusal);
            }
        };
        let code = self.column.dictionary.len() as u32;
        self.column.dictionary.push(text.into());
        let (dictionary, hasher) = (&self.column.dictionary, &self.hasher);
        self.table.insert_unique(hash, code, |&code| {
            hasher.hash_one(dictionary[code as usize].as_bytes())
        });
        self.column.codes.push(code);
        Ok(())
    }

    /// Adds a row whose cell is null.
    pub(super) fn push_null(&mut self) {
        self.column.codes.push(NULL_CODE);
    }

    /// Returns the column built so far and leaves the builder empty.
    pub(super) fn take(&mut self) -> Column {
        self.table.clear();
        std::mem::take(&mut self.column)
    }
}

/// The text of a cell.
///
/// # Errors
/// If the cell is not UTF-8 or contains NUL, which PostgreSQL cannot store.
pub(super) fn check_text(cell: &[u8]) -> Result<&str, Refusal> {
    let text =
        std::str::from_utf8(cell).map_err(|_| Refusal::Undecodable("a cell is not UTF-8"))?;
    if memchr::memchr(0, cell).is_some() {
        return Err(Refusal::Undecodable("a cell contains the character NUL"));
    }
    Ok(text)
}

/// Checks that a cell is valid for its column.
///
/// # Errors
/// If it is not a leaf of the taxonomy, not a number, or outside the domain.
pub(super) fn check(spec: &SchemaColumn, cell: &str) -> Result<(), Refusal> {
    if spec.is_missing(cell) {
        return Ok(());
    }
    match spec.kind {
        ColumnKind::Numeric => check_number(spec, cell),
        ColumnKind::Categorical => check_label(spec, cell),
        ColumnKind::Set => items(cell, spec.separator).try_for_each(|item| check_item(spec, item)),
    }
}

/// Builds the cell of a set from a list of items, joined by the separator as in CSV.
pub(super) struct SetCell<'a> {
    spec: &'a SchemaColumn,
    text: String,
    items: usize,
}

impl<'a> SetCell<'a> {
    /// A set without items.
    pub(super) fn new(spec: &'a SchemaColumn) -> Self {
        Self {
            spec,
            text: String::new(),
            items: 0,
        }
    }

    /// Adds an item.
    ///
    /// # Errors
    /// For an item that contains the separator and would be read as several items.
    pub(super) fn add(&mut self, item: &str) -> Result<(), Refusal> {
        let separator = self.spec.separator;
        if item.contains(separator) {
            return Err(Refusal::Unfit {
                detail: format!("an item of the set contains the column's separator `{separator}`"),
                fix: Some("declare another `separator`".to_owned()),
            });
        }
        if self.items > 0 {
            self.text.push(separator);
        }
        self.text.push_str(item);
        self.items += 1;
        Ok(())
    }

    /// The joined items.
    ///
    /// # Errors
    /// For a single empty item, which would be read as the empty set.
    pub(super) fn text(&self) -> Result<&str, Refusal> {
        if self.items == 1 && self.text.is_empty() {
            return Err(Refusal::Unfit {
                detail: "the only item of the set is empty".to_owned(),
                fix: Some("write the empty set as []".to_owned()),
            });
        }
        Ok(&self.text)
    }
}

fn check_number(spec: &SchemaColumn, cell: &str) -> Result<(), Refusal> {
    let Some(value) = number(cell) else {
        let detail = "the cell is not a number, and the column is numeric";
        let fix = if cell.is_empty() {
            "write the missing value as one of the column's `missing` words".to_owned()
        } else if number(cell.trim()).is_some() {
            "remove the spaces around the number".to_owned()
        } else {
            "write a decimal number with a point, or add the word to the column's `missing`"
                .to_owned()
        };
        return Err(Refusal::Unfit {
            detail: detail.to_owned(),
            fix: Some(fix),
        });
    };
    if let Some((lo, hi)) = spec.domain
        && !(lo..=hi).contains(&value)
    {
        let detail = format!("the number is outside the column's domain [{lo},{hi}]");
        return Err(Refusal::Unfit { detail, fix: None });
    }
    if spec.ranges.is_some() && spec.leaf(cell).is_none() {
        let detail = "the number is not in any range of the column's taxonomy".to_owned();
        return Err(Refusal::Unfit { detail, fix: None });
    }
    Ok(())
}

fn check_item(spec: &SchemaColumn, item: &str) -> Result<(), Refusal> {
    if item.is_empty() && spec.role == ColumnRole::QuasiIdentifier {
        return Err(Refusal::Unfit {
            detail: "an item of the set is empty".to_owned(),
            fix: Some(
                "write exactly one separator between two items, and none at the ends".to_owned(),
            ),
        });
    }
    check_label(spec, item)
}

fn check_label(spec: &SchemaColumn, cell: &str) -> Result<(), Refusal> {
    if let Some(tree) = &spec.tree {
        if tree.leaf_number(cell).is_some() {
            return Ok(());
        }
        let detail = match tree.find(cell) {
            Some(_) => "the cell is an inner label of the column's taxonomy, not a leaf",
            None => "the cell is not a leaf of the column's taxonomy",
        };
        let fix = if cell.is_empty() {
            Some("write the missing value as one of the column's `missing` words".to_owned())
        } else if tree.leaf_number(cell.trim()).is_some() {
            Some("remove the spaces around the value".to_owned())
        } else {
            None
        };
        return Err(Refusal::Unfit {
            detail: detail.to_owned(),
            fix,
        });
    }
    if cell == "*" && spec.role == ColumnRole::QuasiIdentifier {
        let detail = "`*` is reserved for the root label of a column without a taxonomy";
        let fix = "declare a taxonomy for the column, or write another value";
        return Err(Refusal::Unfit {
            detail: detail.to_owned(),
            fix: Some(fix.to_owned()),
        });
    }
    Ok(())
}
