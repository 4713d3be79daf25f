//! Files in every format, as the command line writes and reads them.

use bytes::Bytes;
use pais_core::definition::{ColumnRole, Output};
use pais_core::reimport;
use pais_core::reimport::anatomized;
use pais_core::schema::Schema;
use pais_core::table::{ReleasedTable, Table};
use pais_io::FileFormat;
use pais_io::chunk::Assembler;
use pais_io::read::{ReadFailure, ReadLimits, csv, ndjson, parquet};
use pais_verify::ReleaseTables;

use crate::case::Case;
use crate::dice::Dice;

/// One of the formats.
pub(crate) fn draw_format(dice: &mut Dice) -> FileFormat {
    dice.pick(&FileFormat::RELEASED)
}

fn write(format: FileFormat, table: &ReleasedTable) -> Vec<u8> {
    let mut file = Vec::new();
    format.write(table, &mut file).unwrap();
    file
}

fn read(format: FileFormat, schema: &Schema, file: Vec<u8>) -> Result<Table, String> {
    let mut rows = Assembler::default();
    let chunk = |chunk| rows.push(chunk);
    let limits = ReadLimits::default();
    let read = match format {
        FileFormat::Text(_) => csv::read(schema, &*file, limits, chunk),
        FileFormat::Ndjson => ndjson::read(schema, &*file, limits, chunk),
        FileFormat::Parquet => parquet::read(schema, Bytes::from(file), limits, chunk),
    };
    match read {
        Ok(_) => Ok(rows.finish()),
        Err(ReadFailure::Refused(error)) => Err(format!("{error} {:?}", error.faults)),
        Err(error) => panic!("{error:?}"),
    }
}

fn names(format: FileFormat, file: &[u8]) -> Vec<String> {
    match format {
        FileFormat::Text(text) => csv::names(file, text).unwrap(),
        FileFormat::Ndjson => ndjson::names(file).unwrap(),
        FileFormat::Parquet => parquet::names(&Bytes::copy_from_slice(file)).unwrap(),
    }
}

/// The raw table of a case, written in its format and read at the door.
pub(crate) fn read_raw(case: &Case) -> Result<Table, String> {
    read(case.format, &case.schema, write(case.format, &case.raw))
}

/// The tables of a release, written in a format and read back.
pub(crate) fn through(
    schema: &Schema,
    tables: &[ReleasedTable],
    output: Output,
    format: FileFormat,
) -> ReleaseTables {
    let file = write(format, &tables[0]);
    let names = names(format, &file);
    if output == Output::Generalized {
        let read_by = reimport::columns(schema, &names);
        let table = read(format, &read_by, file).unwrap();
        let table = reimport::released(schema, &read_by, table, 2);
        return ReleaseTables::Generalized(
            table.unwrap_or_else(|error| panic!("{error} {:?}\n{tables:#?}", error.faults)),
        );
    }
    let read_by = anatomized::quasi_identifier_columns(schema, &names);
    let qit = anatomized::released("qit", &read_by, read(format, &read_by, file).unwrap());
    let sensitive = schema
        .stored()
        .filter(|column| column.role() == ColumnRole::Sensitive);
    let counts = sensitive.zip(&tables[1..]).map(|(column, table)| {
        let read_by = anatomized::sensitive_columns(column);
        let name = &table.name;
        let table = read(format, &read_by, write(format, table)).unwrap();
        anatomized::released(name, &read_by, table)
    });
    ReleaseTables::Anatomized {
        qit,
        counts: counts.collect(),
    }
}
