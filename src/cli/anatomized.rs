//! Reads the directory of an anatomized release.

use pais_core::definition::ColumnRole;
use pais_core::read::anatomized;
use pais_core::schema::Schema;
use pais_verify::ReleaseTables;

use super::directory::Directory;
use super::failure::Failure;

/// Reads the tables of an anatomized release.
///
/// # Errors
/// For tables that are missing, or do not fit the schema.
pub(crate) fn read(schema: &Schema, directory: &Directory) -> Result<ReleaseTables, Failure> {
    let file = directory.file("qit")?;
    let read_by = anatomized::quasi_identifier_columns(schema, &file.names()?);
    let qit = anatomized::released("qit", &read_by, file.read(&read_by)?);
    let sensitive = schema
        .stored()
        .filter(|column| column.role == ColumnRole::Sensitive);
    let counts = sensitive.map(|column| {
        let name = format!("st_{}", column.name);
        let read_by = anatomized::sensitive_columns(column);
        let table = directory.file(&name)?.read(&read_by)?;
        Ok(anatomized::released(&name, &read_by, table))
    });
    Ok(ReleaseTables::Anatomized {
        qit,
        counts: counts.collect::<Result<_, Failure>>()?,
    })
}
