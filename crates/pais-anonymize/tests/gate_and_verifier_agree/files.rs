//! Files in every format, as the command line writes and reads them.

use bytes::Bytes;
use pais_core::definition::{ColumnRole, Output};
use pais_core::read::{
    ReadFailure, ReadLimits, TextFormat, anatomized, csv, ndjson, parquet, reimport,
};
use pais_core::schema::Schema;
use pais_core::table::chunk::Assembler;
use pais_core::table::{ReleasedTable, Table};
use pais_verify::ReleaseTables;

use crate::case::Case;
use crate::dice::Dice;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Csv,
    Ndjson,
    Parquet,
}

impl Format {
    /// One of the formats.
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        dice.pick(&[Self::Csv, Self::Ndjson, Self::Parquet])
    }

    fn write(self, table: &ReleasedTable) -> Vec<u8> {
        let mut file = Vec::new();
        match self {
            Self::Csv => table.write_csv(&mut file),
            Self::Ndjson => table.write_ndjson(&mut file),
            Self::Parquet => table.write_parquet(&mut file),
        }
        .unwrap();
        file
    }

    fn read(self, schema: &Schema, file: Vec<u8>) -> Result<Table, String> {
        let mut rows = Assembler::default();
        let chunk = |chunk| rows.push(chunk);
        let read = match self {
            Self::Csv => csv::read(schema, &*file, ReadLimits::default(), chunk),
            Self::Ndjson => ndjson::read(schema, &*file, ReadLimits::default(), chunk),
            Self::Parquet => parquet::read(schema, Bytes::from(file), ReadLimits::default(), chunk),
        };
        match read {
            Ok(_) => Ok(rows.finish()),
            Err(ReadFailure::Refused(error)) => Err(format!("{error} {:?}", error.faults)),
            Err(error) => panic!("{error:?}"),
        }
    }

    fn names(self, file: &[u8]) -> Vec<String> {
        match self {
            Self::Csv => csv::names(file, TextFormat::CSV).unwrap(),
            Self::Ndjson => ndjson::names(file).unwrap(),
            Self::Parquet => parquet::names(&Bytes::copy_from_slice(file)).unwrap(),
        }
    }
}

/// The raw table of a case, written in its format and read at the door.
pub(crate) fn read_raw(case: &Case) -> Result<Table, String> {
    case.format.read(&case.schema, case.format.write(&case.raw))
}

/// The tables of a release, written in a format and read back.
pub(crate) fn through(
    schema: &Schema,
    tables: &[ReleasedTable],
    output: Output,
    format: Format,
) -> ReleaseTables {
    let file = format.write(&tables[0]);
    let names = format.names(&file);
    if output == Output::Generalized {
        let read_by = reimport::columns(schema, &names);
        let table = format.read(&read_by, file).unwrap();
        let table = reimport::released(schema, &read_by, table, 2);
        return ReleaseTables::Generalized(
            table.unwrap_or_else(|error| panic!("{error} {:?}\n{tables:#?}", error.faults)),
        );
    }
    let read_by = anatomized::quasi_identifier_columns(schema, &names);
    let qit = anatomized::released("qit", &read_by, format.read(&read_by, file).unwrap());
    let sensitive = schema
        .stored()
        .filter(|column| column.role() == ColumnRole::Sensitive);
    let counts = sensitive.zip(&tables[1..]).map(|(column, table)| {
        let read_by = anatomized::sensitive_columns(column);
        let read = format.read(&read_by, format.write(table)).unwrap();
        anatomized::released(&table.name, &read_by, read)
    });
    ReleaseTables::Anatomized {
        qit,
        counts: counts.collect(),
    }
}
