//! Hierarchies that are made for a column (`"taxonomy": {"generate": …}`).
//!
//! An ordered hierarchy depends on its declared labels alone, so it is made with the schema. The
//! others depend on the values of the table, as the flat tree of a column without a taxonomy does:
//! they are made for each run, from all its raw rows, and are then taxonomies like any other.

mod declared;
mod trees;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Schema, SchemaColumn, items};
use crate::definition::{ColumnKind, ColumnRole, GeneratedHierarchy};
use crate::table::Table;
use crate::taxonomy::{MISSING_LABEL, Tree, TreeLimits};

pub(super) use declared::{check, ordered_tree};

/// Fewest rows of a value that is not rare, where the definition does not say.
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
            let texts = column.dictionary.iter().map(AsRef::as_ref);
            let texts = texts.zip(column.row_counts());
            spec.make_tree(&made, texts)
                .map_err(|detail| format!("the hierarchy of `{}` {detail}", spec.name))?;
        }
        Ok(schema)
    }
}

impl SchemaColumn {
    /// Makes the tree over these values, each with its number of rows. Without values there is
    /// nothing to generalize, and no tree.
    fn make_tree<'t>(
        &mut self,
        made: &GeneratedHierarchy,
        texts: impl Iterator<Item = (&'t str, u64)>,
    ) -> Result<(), String> {
        let mut values: BTreeSet<String> = BTreeSet::new();
        let mut rare: BTreeSet<String> = BTreeSet::new();
        let below = match made {
            GeneratedHierarchy::Rare { below } => below.unwrap_or(DEFAULT_BELOW),
            _ => 0,
        };
        for (text, rows) in texts {
            let value = self.canonical(text);
            if self.is_missing(&value) || &*value == MISSING_LABEL || rows == 0 {
                continue;
            }
            if self.kind == ColumnKind::Set {
                values.extend(items(&value, self.separator).map(str::to_owned));
                continue;
            }
            if rows < below {
                rare.insert(value.to_string());
            }
            values.insert(value.into_owned());
        }
        if values.is_empty() {
            return Ok(());
        }
        let limits = TreeLimits::default();
        if values.len() > limits.leaves {
            return Err(format!(
                "would have {} leaves, and {} can be; give the column a taxonomy",
                values.len(),
                limits.leaves
            ));
        }
        let root = match made {
            GeneratedHierarchy::Prefix { lengths } => trees::prefixes(&values, lengths.as_deref()),
            GeneratedHierarchy::MaskRight => trees::masks(&values, trees::Side::Right)?,
            GeneratedHierarchy::MaskLeft => trees::masks(&values, trees::Side::Left)?,
            GeneratedHierarchy::Calendar { levels } => {
                trees::periods(&values, self.kind, levels.as_deref())
            }
            GeneratedHierarchy::Age { at, widths } => trees::ages(&values, at, widths.as_deref())?,
            GeneratedHierarchy::Rare { .. } => trees::rare(&values, &rare),
            GeneratedHierarchy::Ranges { start, widths } => {
                trees::ranges(&values, *start, widths.as_deref(), limits)?
            }
            // Made with the schema.
            GeneratedHierarchy::Ordered { .. } => return Ok(()),
        };
        let tree = Tree::new(&root, limits).map_err(|error| format!("cannot be made: {error}"))?;
        if self.kind == ColumnKind::Numeric {
            self.ranges = Some(tree.ranges()?.into());
        }
        self.tree = Some(Arc::new(tree));
        Ok(())
    }
}
