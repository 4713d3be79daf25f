//! Reads the directory of an anatomized release.

use pais_core::definition::{ColumnKind, ColumnRole};
use pais_core::read::reimport;
use pais_core::schema::{DEFAULT_SEPARATOR, Schema, SchemaColumn};
use pais_core::table::{COUNT_COLUMN, Form, GROUP_COLUMN, ReleasedColumn, ReleasedTable, Table};
use pais_verify::ReleaseTables;

use super::directory::Directory;
use super::failure::Failure;

/// Reads the tables of an anatomized release.
///
/// # Errors
/// For tables that are missing, or do not fit the schema.
pub(crate) fn read(schema: &Schema, directory: &Directory) -> Result<ReleaseTables, Failure> {
    let file = directory.file("qit")?;
    let names = file.names()?;
    let is_in_qit = |column: &&SchemaColumn| match column.role {
        ColumnRole::Identifier | ColumnRole::Sensitive => false,
        ColumnRole::Insensitive => names.iter().any(|name| **name == *column.name),
        ColumnRole::QuasiIdentifier | ColumnRole::Class => true,
    };
    let mut columns: Vec<_> = schema.columns.iter().filter(is_in_qit).cloned().collect();
    columns.push(whole_numbers(GROUP_COLUMN));
    let read_by = Schema { columns };
    let qit = released("qit", &read_by, file.read(&read_by)?);
    let sensitive = schema
        .stored()
        .filter(|column| column.role == ColumnRole::Sensitive);
    let counts = sensitive.map(|column| {
        let name = format!("st_{}", column.name);
        let read_by = Schema {
            columns: vec![
                whole_numbers(GROUP_COLUMN),
                column.clone(),
                whole_numbers(COUNT_COLUMN),
            ],
        };
        let table = directory.file(&name)?.read(&read_by)?;
        Ok(released(&name, &read_by, table))
    });
    Ok(ReleaseTables::Anatomized {
        qit,
        counts: counts.collect::<Result<_, Failure>>()?,
    })
}

/// A column of whole numbers that the anatomy adds.
fn whole_numbers(name: &str) -> SchemaColumn {
    SchemaColumn {
        name: name.into(),
        role: ColumnRole::Insensitive,
        kind: ColumnKind::Categorical,
        tree: None,
        ranges: None,
        domain: None,
        separator: DEFAULT_SEPARATOR,
        missing: Vec::new(),
        round_range: false,
    }
}

/// A table read by a schema, as the verifier takes it.
fn released(name: &str, read_by: &Schema, table: Table) -> ReleasedTable {
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
