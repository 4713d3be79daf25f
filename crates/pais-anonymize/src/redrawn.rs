//! The made hierarchies of a release, drawn again from its rows.
//!
//! A search uses the hierarchies that are made from all raw rows. Their labels can reveal a suppressed row: for
//! example, where the outermost range ends, or how long a mask is. So the labels of a release come from
//! hierarchies over the released values alone. The verifier gets hierarchies over all raw values in which these
//! labels are found.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use pais_core::schema::{ReleasedLeaves, Schema, SchemaColumn, items};
use pais_core::table::{
    Domain, Form, NULL_CODE, QuasiIdentifier, ReleasedColumn, ReleasedTable, SetColumn,
};
use pais_core::taxonomy::{MinimumLevels, NodeId, Tree};
use pais_measure::ReleaseRecoding;

use crate::error::RunError;
use crate::method::Candidate;
use crate::prepared::PreparedTable;

/// The made hierarchies of a release.
#[derive(Clone)]
pub(crate) struct Redrawn {
    /// The schema with the hierarchies over the released values.
    pub(crate) schema: Arc<Schema>,
    /// The raw columns whose labels were drawn again, in hierarchies over all raw values that have
    /// the new labels; by position.
    pub(crate) columns: BTreeMap<usize, QuasiIdentifier>,
    /// The same for sets.
    pub(crate) sets: BTreeMap<usize, SetColumn>,
    /// The pre-generalization of these columns and sets.
    minimum_levels: BTreeMap<Box<str>, MinimumLevels>,
    /// By column, the label in place of each searched one.
    renamed: BTreeMap<Box<str>, Renamed>,
}

/// Labels by those that they take the place of.
type Renamed = BTreeMap<Box<str>, Box<str>>;

impl Redrawn {
    /// The hierarchies of the search.
    pub(crate) fn as_searched(input: &PreparedTable) -> Self {
        Self {
            schema: Arc::clone(&input.schema),
            columns: BTreeMap::new(),
            sets: BTreeMap::new(),
            minimum_levels: BTreeMap::new(),
            renamed: BTreeMap::new(),
        }
    }

    /// A raw column before pre-generalization, in a hierarchy with the labels of the release.
    pub(crate) fn raw<'a>(
        &'a self,
        input: &'a PreparedTable,
        column: &'a QuasiIdentifier,
    ) -> &'a QuasiIdentifier {
        let searched = || input.pre_generalization.raw(column);
        self.columns.get(&column.position).unwrap_or_else(searched)
    }

    /// A raw set, as [`Self::raw`].
    pub(crate) fn raw_set<'a>(&'a self, column: &'a SetColumn) -> &'a SetColumn {
        self.sets.get(&column.position).unwrap_or(column)
    }

    /// The pre-generalization of a column or set, as [`Self::raw`].
    pub(crate) fn minimum_levels<'a>(
        &'a self,
        input: &'a PreparedTable,
        column: &str,
    ) -> Option<&'a MinimumLevels> {
        let searched = || input.pre_generalization.minimum_levels(column);
        self.minimum_levels.get(column).or_else(searched)
    }

    /// The nodes that items of a set are generalized to, in the tree of [`Self::raw_set`]; `None` for
    /// a set whose labels stayed.
    pub(crate) fn item_labels(
        &self,
        set: &SetColumn,
        labels: &MinimumLevels,
    ) -> Option<MinimumLevels> {
        let (other, new) = (self.sets.get(&set.position)?, self.renamed.get(&set.name)?);
        Some(labels.in_tree(&set.tree, &other.tree, renamed_node(&other.tree, new)))
    }
}

/// The node of a tree that has the label in place of a searched one.
fn renamed_node<'a>(tree: &'a Tree, renamed: &'a Renamed) -> impl Fn(&str) -> Option<NodeId> + 'a {
    move |label| tree.find(renamed.get(label).map_or(label, |new| &**new))
}

/// A raw column with a made hierarchy, and its released labels.
struct MadeColumn<'a> {
    position: usize,
    spec: &'a SchemaColumn,
    released: &'a ReleasedColumn,
    cells: RawCells<'a>,
}

/// The raw cells of a column, with their hierarchy.
#[derive(Clone, Copy)]
enum RawCells<'a> {
    Values(&'a QuasiIdentifier, &'a Tree),
    Sets(&'a SetColumn),
}

/// Draws the labels of made hierarchies again, in the table and in the cut.
///
/// # Errors
/// [`pais_core::definition::JobErrorKind::Unfit`] for a hierarchy that cannot be drawn, and
/// [`RunError::Cancelled`].
pub(crate) fn redraw(
    input: &PreparedTable,
    candidate: &mut Candidate,
) -> Result<Redrawn, RunError> {
    let mut redrawn = Redrawn::as_searched(input);
    let Some(table) = candidate.tables.first() else {
        return Ok(redrawn);
    };
    let made = made_columns(input, table);
    if made.is_empty() || candidate.claim.recoding == ReleaseRecoding::Anatomized {
        return Ok(redrawn);
    }
    let rows = candidate.rows.as_slice();
    let released = made.iter();
    let released = released.map(|column| {
        let released = ReleasedLeaves {
            rows: column.released_rows(rows),
            labels: column.released.shown_labels(),
        };
        (column.spec.name().into(), released)
    });
    let released: BTreeMap<Box<str>, ReleasedLeaves<'_>> = released.collect();
    let schema = input.schema.redrawn(&released);
    redrawn.schema = Arc::new(schema.map_err(RunError::unmade_hierarchy)?);
    let (mut columns, mut renamed) = (Vec::new(), BTreeMap::new());
    for column in &made {
        input.cancellation.check()?;
        let name = column.spec.name();
        let drawn = redrawn.schema.stored_at(column.position);
        let (Some(drawn), Some(released)) = (drawn, released.get(name)) else {
            continue;
        };
        let ReleasedLeaves { rows, labels } = released;
        let new = column.spec.relabelled(drawn, rows, labels);
        if new.iter().all(|(old, new)| old == new) {
            continue;
        }
        let labels: BTreeSet<&str> = labels
            .iter()
            .map(|&label| new.get(label).map_or(label, |new| &**new))
            .collect();
        let with_labels = column.spec.with_labels(&column.raw_rows(), rows, &labels);
        let with_labels = with_labels.map_err(RunError::unmade_hierarchy)?;
        columns.push((column, with_labels));
        renamed.insert(name.into(), new);
    }
    redrawn.renamed = renamed;
    for (column, with_labels) in columns {
        column.enter(input, &with_labels, &mut redrawn);
    }
    rename(candidate, &redrawn.renamed);
    for (name, labels) in candidate.cut.iter_mut().flatten() {
        let spec = redrawn.schema.stored_named(name);
        if let Some(spec) = spec.filter(|spec| spec.has_made_tree()) {
            spec.sort_labels(labels);
        }
    }
    Ok(redrawn)
}

/// The quasi-identifiers with a made hierarchy.
fn made_columns<'a>(input: &'a PreparedTable, table: &'a ReleasedTable) -> Vec<MadeColumn<'a>> {
    let column = |position: usize, name: &str, cells: RawCells<'a>| {
        let spec = input.schema.stored_at(position)?;
        Some(MadeColumn {
            position,
            spec,
            released: table.column(name)?,
            cells,
        })
        .filter(|_| spec.has_made_tree())
    };
    let values = input.table.quasi_identifiers.iter().filter_map(|it| {
        let raw = input.pre_generalization.raw(it);
        let Domain::Taxonomy(tree) = &raw.domain else {
            return None;
        };
        column(raw.position, &raw.name, RawCells::Values(raw, tree))
    });
    let sets = input.table.sets.iter();
    let sets = sets.filter_map(|set| column(set.position, &set.name, RawCells::Sets(set)));
    values.chain(sets).collect()
}

impl MadeColumn<'_> {
    fn tree(&self) -> &Tree {
        match self.cells {
            RawCells::Values(_, tree) => tree,
            RawCells::Sets(set) => &set.tree,
        }
    }

    /// Number of raw rows of each leaf.
    fn raw_rows(&self) -> Vec<u64> {
        let count = self.tree().leaf_count();
        match self.cells {
            RawCells::Values(column, _) => column.codes.counts(count),
            RawCells::Sets(set) => {
                let mut found = vec![0; count];
                for &leaf in (0..set.rows()).flat_map(|row| set.of_row(row)) {
                    found[leaf as usize] += 1;
                }
                found
            }
        }
    }

    /// Number of released rows of each leaf. Of a set, only the items that the row shows count.
    fn released_rows(&self, rows: &[u32]) -> Vec<u64> {
        let tree = self.tree();
        let mut found = vec![0; tree.leaf_count()];
        match self.cells {
            RawCells::Values(column, _) => {
                for &row in rows {
                    found[column.codes.at(row as usize) as usize] += 1;
                }
            }
            RawCells::Sets(set) => {
                let cells = self.released.column.dictionary.iter();
                let shown = cells.map(|cell| tree.find_all(cell, set.separator));
                let shown: Vec<HashSet<NodeId>> = shown.collect();
                let codes = self.released.column.codes.iter().zip(rows);
                for (&cell, &row) in codes.filter(|(cell, _)| **cell != NULL_CODE) {
                    let shows = |leaf: u32| {
                        let mut above = tree.to_root(tree.leaf(leaf));
                        above.any(|node| shown[cell as usize].contains(&node))
                    };
                    for &leaf in set.of_row(row as usize) {
                        found[leaf as usize] += u64::from(shows(leaf));
                    }
                }
            }
        }
        found
    }

    /// Enters the raw column in the hierarchy of `spec`, and its pre-generalization.
    fn enter(&self, input: &PreparedTable, spec: &SchemaColumn, into: &mut Redrawn) {
        let (Some(other), tree) = (spec.tree(), self.tree()) else {
            return;
        };
        let other = match self.cells {
            RawCells::Values(..) if tree.missing_leaf().is_some() => {
                Arc::new(other.with_missing_leaf())
            }
            _ => Arc::clone(other),
        };
        let leaves = 0..tree.leaf_count() as u32;
        let label = |leaf: u32| &*tree.node(tree.leaf(leaf)).label;
        let leaf = |leaf: u32| {
            let found = other.leaf_number(label(leaf));
            found.or_else(|| spec.leaf_of_label(label(leaf)))
        };
        let leaves: Vec<Option<u32>> = leaves.map(leaf).collect();
        let name = self.spec.name();
        let levels = input.pre_generalization.minimum_levels(name);
        if let Some((levels, new)) = levels.zip(into.renamed.get(name)) {
            let levels = levels.in_tree(tree, &other, renamed_node(&other, new));
            into.minimum_levels.insert(name.into(), levels);
        }
        match self.cells {
            RawCells::Values(column, _) => {
                let new = leaves.iter().map(|leaf| leaf.unwrap_or(NULL_CODE));
                let new: Vec<u32> = new.collect();
                let column = QuasiIdentifier {
                    name: column.name.clone(),
                    position: column.position,
                    codes: column.codes.renamed(&new),
                    domain: Domain::Taxonomy(other),
                };
                into.columns.insert(self.position, column);
            }
            RawCells::Sets(set) => {
                into.sets.insert(self.position, set.in_tree(other, &leaves));
            }
        }
    }
}

/// Renames the labels of these columns, in the table and in the cut. Labels that become equal are one.
fn rename(candidate: &mut Candidate, renamed: &BTreeMap<Box<str>, Renamed>) {
    for released in candidate.tables.iter_mut().flat_map(|it| &mut it.columns) {
        let Some(new) = renamed.get(&released.name) else {
            continue;
        };
        let new = |label: &str| new.get(label).map_or_else(|| label.into(), Clone::clone);
        let form = released.form;
        released.column.replace_texts(|cell| {
            let cell: Box<str> = match form {
                Form::Set { separator } => {
                    let mut items: Vec<Box<str>> = items(cell, separator).map(new).collect();
                    items.sort_unstable();
                    items.join(separator.encode_utf8(&mut [0; 4])).into()
                }
                _ => new(cell),
            };
            Some(Cow::Owned(cell.into()))
        });
    }
    for (name, labels) in candidate.cut.iter_mut().flatten() {
        let Some(new) = renamed.get(name.as_str()) else {
            continue;
        };
        let mut known = HashSet::new();
        let new = std::mem::take(labels).into_iter().map(|label| {
            let new = new.get(label.as_str());
            new.map_or(label, |new| new.to_string())
        });
        *labels = new.filter(|label| known.insert(label.clone())).collect();
    }
}
