//! Builds the codebook of a release from the dataset and the released tables.

use super::{Codebook, CodebookColumn, CodebookDataset, CodebookOrganization};
use crate::definition::{ColumnDefinition, ColumnKind, ColumnRole, DatasetDefinition};
use crate::schema::{Schema, SchemaColumn};
use crate::table::{Form, ReleasedColumn, ReleasedTable};

impl Codebook {
    /// The codebook of a release of these tables.
    ///
    /// `schema` is the schema of the release: with the roles of the job and the hierarchies drawn from the
    /// released rows. Only labels of released rows and their ancestors enter the codebook. Makes one pass over
    /// the codes of each generalized column with a taxonomy.
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
    let is_quasi_identifier = spec.role == ColumnRole::QuasiIdentifier;
    let labelled = released.filter(|column| is_quasi_identifier && has_labels(column));
    let taxonomy = labelled.and_then(|column| spec.shown_tree(&column.shown_labels()));
    CodebookColumn {
        name: spec.name.to_string(),
        role: spec.role,
        kind: spec.kind,
        from: declared.from.clone(),
        taxonomy,
        domain: declared.domain.clone(),
        separator: is_set.then(|| spec.separator.to_string()),
        format: declared.format.clone(),
        round: declared.round.filter(|_| spec.is_unchanged()),
        missing: missing.cloned(),
    }
}

/// Whether a column has labels, or items that can be labels; others are released unchanged.
fn has_labels(column: &ReleasedColumn) -> bool {
    matches!(column.form, Form::Generalized | Form::Set { .. })
}
