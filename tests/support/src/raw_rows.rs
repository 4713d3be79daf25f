//! Raw rows as a table that the writers take.

use pais_core::schema::Schema;
use pais_core::table::{Form, ReleasedColumn, ReleasedTable, Table};

/// The stored columns of the schema as they were read.
pub fn as_released(schema: &Schema, rows: Table) -> ReleasedTable {
    let columns = schema.stored().zip(rows.columns);
    let columns = columns.map(|(spec, column)| ReleasedColumn {
        name: spec.name().into(),
        form: Form::untouched(spec),
        column,
        missing: spec.missing().to_vec(),
    });
    ReleasedTable {
        name: "raw".into(),
        rows: rows.rows,
        columns: columns.collect(),
    }
}
