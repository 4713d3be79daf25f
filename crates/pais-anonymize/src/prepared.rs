//! A raw table encoded for a job.

use std::sync::Arc;

use pais_core::definition::{ColumnRole, JobDefinition, Output};
use pais_core::schema::Schema;
use pais_core::table::{Column, EncodedTable, Table};

use crate::error::RunError;
use crate::pre_generalization::PreGeneralized;

/// A raw table encoded for a job; what methods and the gate work on. Clones share the rows.
#[derive(Clone)]
pub(crate) struct PreparedTable {
    pub(crate) schema: Arc<Schema>,
    pub(crate) job: JobDefinition,
    pub(crate) table: Arc<EncodedTable>,
    pub(crate) pre_generalization: Arc<PreGeneralized>,
    /// Quasi-identifiers as they were read, with their positions, where they are released so.
    pub(crate) exact: Arc<Vec<(usize, Column)>>,
}

impl PreparedTable {
    /// Encodes the rows for a job. `check` looks at the encoded table before it is generalized
    /// further; with `one_cut` relational columns are replaced by pre-generalized ones.
    pub(crate) fn new(
        schema: Arc<Schema>,
        job: JobDefinition,
        table: Table,
        (output, one_cut): (Output, bool),
        check: impl FnOnce(&EncodedTable) -> Result<(), RunError>,
    ) -> Result<Self, RunError> {
        let exact = match output {
            Output::Anatomized => {
                let positions = schema.stored_with(ColumnRole::QuasiIdentifier);
                let column = |position: usize| (position, table.columns[position].clone());
                positions.into_iter().map(column).collect()
            }
            Output::Generalized => Vec::new(),
        };
        let mut table = EncodedTable::new(&schema, table);
        check(&table)?;
        let pre_generalization = PreGeneralized::new(&job, &mut table, one_cut)?;
        Ok(Self {
            schema,
            job,
            table: Arc::new(table),
            pre_generalization: Arc::new(pre_generalization),
            exact: Arc::new(exact),
        })
    }

    /// Names of the stored columns with a role, in the declared order.
    pub(crate) fn names(&self, role: ColumnRole) -> Vec<Box<str>> {
        names(&self.schema, role)
    }

    /// Names of all stored columns, in the declared order.
    pub(crate) fn stored_names(&self) -> Vec<&str> {
        self.schema.stored().map(|column| &*column.name).collect()
    }
}

/// Names of the stored columns with a role, in the declared order.
pub(crate) fn names(schema: &Schema, role: ColumnRole) -> Vec<Box<str>> {
    let columns = schema.stored().filter(|column| column.role == role);
    columns.map(|column| column.name.clone()).collect()
}
