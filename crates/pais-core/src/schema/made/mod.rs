//! Hierarchies that are made for a column (`"taxonomy": {"generate": …}`).
//!
//! An ordered hierarchy depends on its declared labels alone, so it is made with the schema, unless it
//! is drawn from frequencies. The others depend on the values of the table, as the flat tree of a
//! column without a taxonomy does: they are made for each run, from all its raw rows, and the search
//! takes them as taxonomies like any other. A release has the labels of hierarchies that are drawn again from its own rows
//! (`redrawn`), so that no label depends on a suppressed row.

mod balanced;
mod declared;
mod redrawn;
mod trees;

use std::sync::Arc;

use super::{Schema, SchemaColumn, items};
use crate::definition::{ColumnKind, ColumnRole, GeneratedHierarchy, TaxonomyNode};
use crate::table::{Column, Table};
use crate::taxonomy::{MISSING_LABEL, Tree, TreeError, TreeLimits};

pub(super) use declared::{check, ordered_tree};
pub use redrawn::ReleasedLeaves;
pub(super) use trees::Values;

/// Minimum number of rows of a value that is not rare, if the definition gives none.
const DEFAULT_BELOW: u64 = 20;

impl Schema {
    /// Whether a column has a hierarchy that is made from the values of a table.
    pub fn has_made_hierarchies(&self) -> bool {
        self.columns.iter().any(|column| column.made.is_some())
    }

    /// The schema with the hierarchies that are made from the values of this table.
    ///
    /// Reads the text of each distinct value of such a column once.
    ///
    /// # Errors
    /// A sentence for a column whose hierarchy would be too large.
    pub fn with_made_hierarchies(&self, table: &Table) -> Result<Self, String> {
        let mut schema = self.clone();
        let columns = schema.columns.iter_mut();
        let stored = columns.filter(|column| column.role != ColumnRole::Identifier);
        for (spec, column) in stored.zip(&table.columns) {
            let Some(made) = spec.made.clone() else {
                continue;
            };
            match spec.make(&made, column, table.rows) {
                // Nothing is generalized by it.
                Err(_) if matches!(spec.role, ColumnRole::Insensitive | ColumnRole::Class) => {}
                made => made.map_err(|detail| spec.unmade(&detail))?,
            }
        }
        Ok(schema)
    }
}

impl SchemaColumn {
    /// Makes the tree over the values of a column of this many rows.
    fn make(
        &mut self,
        made: &GeneratedHierarchy,
        column: &Column,
        rows: usize,
    ) -> Result<(), String> {
        let values = self.values_of(column);
        if matches!(made, GeneratedHierarchy::Ranges { balance: true, .. })
            && values.values().sum::<u64>() < rows as u64
        {
            let detail =
                "cannot be balanced, because cells of the column are missing; leave out `balance`";
            return Err(detail.to_owned());
        }
        self.make_tree(made, &values, TreeLimits::default())
    }

    /// The distinct values of a column of this kind; those of sets are their items.
    fn values_of(&self, column: &Column) -> Values {
        let mut values = Values::new();
        let texts = column.dictionary.iter().zip(column.row_counts());
        for (text, rows) in texts.filter(|(_, rows)| *rows > 0) {
            let value = self.canonical(text);
            self.add_values(&value, rows, &mut values);
        }
        values
    }

    /// Adds a cell in canonical form, or its items, unless it is missing.
    pub(super) fn add_values(&self, cell: &str, rows: u64, values: &mut Values) {
        if self.is_missing(cell) || cell == MISSING_LABEL {
            return;
        }
        if self.kind == ColumnKind::Set {
            let items = items(cell, self.separator).map(|item| (item.to_owned(), rows));
            values.extend(items);
        } else {
            *values.entry(cell.to_owned()).or_default() += rows;
        }
    }

    /// Makes the tree over these values. Without values there is nothing to generalize, and no tree.
    pub(super) fn make_tree(
        &mut self,
        made: &GeneratedHierarchy,
        values: &Values,
        limits: TreeLimits,
    ) -> Result<(), String> {
        self.tree = None;
        self.ranges = None;
        if values.is_empty() {
            return Ok(());
        }
        let mut made = made.clone();
        if let GeneratedHierarchy::Ranges {
            widths, balance, ..
        } = &mut made
        {
            // These widths apply whichever rows are released.
            let widths = widths.get_or_insert_with(|| trees::default_widths(values));
            widths.truncate(if *balance { 1 } else { widths.len() });
        }
        let Some(root) = self.draw(&made, values, limits)? else {
            return Ok(());
        };
        self.made = Some(made);
        self.set_tree(&root)
    }

    /// The tree of a hierarchy over these values; `None` for one that is made with the schema.
    fn draw(
        &self,
        made: &GeneratedHierarchy,
        values: &Values,
        limits: TreeLimits,
    ) -> Result<Option<TaxonomyNode>, String> {
        if values.len() > limits.leaves {
            return Err(format!(
                "would have {} leaves, and {} can be; give the column a taxonomy",
                values.len(),
                limits.leaves
            ));
        }
        Ok(Some(match made {
            GeneratedHierarchy::Prefix { lengths } => trees::prefixes(values, lengths.as_deref()),
            GeneratedHierarchy::MaskRight => trees::masks(values, trees::Side::Right)?,
            GeneratedHierarchy::MaskLeft => trees::masks(values, trees::Side::Left)?,
            GeneratedHierarchy::Calendar { levels } => {
                trees::periods(values, self.kind, levels.as_deref())
            }
            GeneratedHierarchy::Age { at, widths } => trees::ages(values, at, widths.as_deref())?,
            GeneratedHierarchy::Rare { below } => {
                trees::rare(values, below.unwrap_or(DEFAULT_BELOW))
            }
            GeneratedHierarchy::Ranges {
                start,
                widths,
                balance: true,
            } => {
                let leaves = balanced::ranges(values, *start, widths.as_deref(), limits)?;
                leaves.draw(&leaves.rows(values), declared::fanout_of(None))
            }
            GeneratedHierarchy::Ranges { start, widths, .. } => {
                let widths = widths.as_deref().unwrap_or_default();
                trees::ranges(values, *start, widths, limits)?
            }
            GeneratedHierarchy::Ordered {
                order: Some(order),
                fanout,
                balance: true,
            } => {
                let leaves = balanced::Leaves::Labels(order.clone());
                leaves.draw(&leaves.rows(values), declared::fanout_of(*fanout))
            }
            GeneratedHierarchy::Ordered { .. } => return Ok(None),
        }))
    }

    /// Whether the column's tree is drawn from frequencies.
    pub fn is_balanced(&self) -> bool {
        matches!(
            self.made,
            Some(
                GeneratedHierarchy::Ordered { balance: true, .. }
                    | GeneratedHierarchy::Ranges { balance: true, .. }
            )
        )
    }

    pub(super) fn unmade(&self, detail: &str) -> String {
        format!("the hierarchy of `{}` {detail}", self.name)
    }

    fn set_tree(&mut self, root: &TaxonomyNode) -> Result<(), String> {
        let limits = TreeLimits::default();
        if root.children.is_empty() {
            return Err("has nothing below its root".to_owned());
        }
        let tree = Tree::with_missing_below(root, limits, limits.depth);
        let tree = tree.map_err(|error| match error {
            // The label is a value of a row.
            TreeError::RepeatedLabel { .. } => {
                "cannot be made: a value is written like a label above others; correct the cells, or declare a taxonomy"
                    .to_owned()
            }
            error => format!("cannot be made: {error}"),
        })?;
        if self.kind == ColumnKind::Numeric {
            // Only numbers that a column cannot have cannot be ends of ranges.
            let too_wide =
                |_| "cannot be made: a range of it is too wide; declare smaller `widths`";
            self.ranges = Some(tree.ranges().map_err(too_wide)?.into());
        }
        self.tree = Some(Arc::new(tree));
        Ok(())
    }
}
