//! Builds the codebook of a release from the dataset and the released tables.

use hashbrown::HashSet;

use super::{Codebook, CodebookColumn, CodebookDataset, CodebookOrganization};
use crate::definition::{
    ColumnDefinition, ColumnKind, ColumnRole, DatasetDefinition, GeneratedHierarchy, TaxonomyNode,
};
use crate::schema::{Schema, SchemaColumn, items};
use crate::table::{Form, ReleasedColumn, ReleasedTable};
use crate::taxonomy::{NodeId, Tree};

impl Codebook {
    /// The codebook of a release of these tables.
    ///
    /// `schema` is that of the run: with the roles of the job, and with the hierarchies that were
    /// made from the raw rows. Only labels of released rows, and labels above them, get into the
    /// codebook. Makes one pass over the codes of each generalized column with a taxonomy.
    pub fn of_release(
        organization: CodebookOrganization,
        definition: &DatasetDefinition,
        schema: &Schema,
        tables: &[ReleasedTable],
    ) -> Self {
        let columns = definition.columns.iter().zip(&schema.columns);
        let columns = columns.map(|(declared, spec)| {
            let mut released = tables.iter().flat_map(|table| &table.columns);
            let released = released.find(|column| column.name == spec.name);
            let words = declared.missing.as_ref().or(definition.missing.as_ref());
            column(declared, spec, released, words)
        });
        Self {
            columns: columns.collect(),
            dataset: CodebookDataset {
                name: definition.name.clone(),
                description: definition.description.clone(),
            },
            organization,
        }
    }
}

fn column(
    declared: &ColumnDefinition,
    spec: &SchemaColumn,
    released: Option<&ReleasedColumn>,
    missing: Option<&Vec<String>>,
) -> CodebookColumn {
    let is_set = spec.kind == ColumnKind::Set;
    let tree = spec.tree.as_deref().filter(|_| shows_taxonomy(spec));
    let taxonomy = tree.zip(released).and_then(|(tree, released)| {
        let labels = labels(released)?;
        above(tree, &labels, NodeId::ROOT)
    });
    CodebookColumn {
        name: spec.name.to_string(),
        role: spec.role,
        kind: spec.kind,
        taxonomy,
        domain: declared.domain.clone(),
        separator: is_set.then(|| spec.separator.to_string()),
        format: declared.format.clone(),
        missing: missing.cloned(),
    }
}

/// Whether the labels above the released ones depend on released rows and on declarations alone.
/// The outermost of the intervals that are made from raw numbers encloses suppressed ones too, and
/// such labels need no taxonomy.
fn shows_taxonomy(spec: &SchemaColumn) -> bool {
    let is_made_of_numbers = matches!(spec.made, Some(GeneratedHierarchy::Ranges { .. }));
    spec.role == ColumnRole::QuasiIdentifier && !is_made_of_numbers
}

/// The labels of a generalized column, or of the items of a set, that occur in its rows. `None` for
/// a column that is released as it is.
fn labels(column: &ReleasedColumn) -> Option<HashSet<&str>> {
    let separator = match column.form {
        Form::Generalized => None,
        Form::Set { separator } => Some(separator),
        Form::Text | Form::Number | Form::Integer | Form::Day | Form::Moment => return None,
    };
    let texts = column.column.dictionary.iter();
    let texts = texts.zip(column.column.row_counts());
    let texts = texts.filter_map(|(text, rows)| (rows > 0).then_some(&**text));
    Some(match separator {
        None => texts.collect(),
        Some(separator) => texts.flat_map(|text| items(text, separator)).collect(),
    })
}

/// The part of a subtree that is a released label or above one; `None` if there is none.
fn above(tree: &Tree, released: &HashSet<&str>, id: NodeId) -> Option<TaxonomyNode> {
    let node = tree.node(id);
    let children = node.children.iter();
    let children: Vec<TaxonomyNode> = children
        .filter_map(|&child| above(tree, released, child))
        .collect();
    let is_kept = !children.is_empty() || released.contains(&*node.label);
    is_kept.then(|| TaxonomyNode {
        label: node.label.to_string(),
        children,
    })
}
