//! Reads the tables of an anatomized release: their cells are exact, apart from the columns that the anatomy
//! adds.

use crate::definition::ColumnRole;
use crate::reimport;
use crate::schema::{Schema, SchemaColumn};
use crate::table::{COUNT_COLUMN, Form, GROUP_COLUMN, ReleasedColumn, ReleasedTable, Table};

/// The schema for reading a quasi-identifier table that has columns with these names. Insensitive
/// columns can be absent.
pub fn quasi_identifier_columns(schema: &Schema, names: &[String]) -> Schema {
    let is_expected = |column: &&SchemaColumn| match column.role {
        ColumnRole::Identifier | ColumnRole::Subject | ColumnRole::Sensitive => false,
        ColumnRole::Insensitive => names.iter().any(|name| **name == *column.name),
        ColumnRole::QuasiIdentifier | ColumnRole::Class => true,
    };
    let columns = schema.columns.iter().filter(is_expected);
    let mut columns: Vec<_> = columns.map(reimport::exact_column).collect();
    columns.push(whole_numbers(GROUP_COLUMN));
    Schema { columns }
}

/// The schema for reading the sensitive table of a column.
pub fn sensitive_columns(column: &SchemaColumn) -> Schema {
    let (group, count) = (whole_numbers(GROUP_COLUMN), whole_numbers(COUNT_COLUMN));
    Schema {
        columns: vec![group, reimport::exact_column(column), count],
    }
}

/// Converts a table that was read with the schema `read_by` to a released table.
pub fn released(name: &str, read_by: &Schema, table: Table) -> ReleasedTable {
    let columns = read_by.columns.iter().zip(table.columns);
    let columns = columns.map(|(spec, column)| ReleasedColumn {
        name: spec.name.clone(),
        form: Form::untouched(spec),
        column: reimport::rewritten(spec, column),
        missing: spec.missing.clone(),
    });
    ReleasedTable {
        name: name.into(),
        rows: table.rows,
        columns: columns.collect(),
    }
}

/// A column of whole numbers that the anatomy adds.
fn whole_numbers(name: &str) -> SchemaColumn {
    SchemaColumn::of_labels(name.into())
}
