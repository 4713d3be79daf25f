//! A generalized table compared with the raw one.

use std::collections::BTreeMap;

use pais_core::reimport;
use pais_core::schema::Schema;
use pais_core::table::{EncodedTable, ReleasedTable};
use pais_core::taxonomy::MinimumLevels;

use crate::{
    Assignment, Original, OriginalQuasiIdentifier, OriginalSet, TruthError, assign, assign_rows,
};

/// Assigns the rows of a finished table to raw rows. Columns that the table leaves out are skipped.
/// The raw row of each row is returned only if the schema has a subject column, whose persons are
/// found by it.
pub(super) fn compare(
    schema: &Schema,
    table: &ReleasedTable,
    raw: &EncodedTable,
    minimum_levels: &BTreeMap<Box<str>, MinimumLevels>,
) -> Result<(Assignment, Vec<u32>), TruthError> {
    let minimum_levels = |name: &str| minimum_levels.get(name);
    let stored: Vec<_> = schema.stored().collect();
    let released = |name: &str| table.columns.iter().any(|column| *column.name == *name);
    let untouched: Vec<_> = raw
        .untouched
        .iter()
        .map(|(position, column)| (stored[*position], column))
        .filter(|(spec, _)| released(spec.name()))
        .map(|(spec, column)| (spec, reimport::rewritten(spec, column.clone())))
        .collect();
    let original = Original {
        rows: raw.rows,
        quasi_identifiers: raw
            .quasi_identifiers
            .iter()
            .map(|column| OriginalQuasiIdentifier {
                name: &column.name,
                domain: &column.domain,
                declared_domain: stored[column.position].domain().is_some(),
                codes: &column.codes,
                minimum_levels: minimum_levels(&column.name),
            })
            .collect(),
        sets: raw
            .sets
            .iter()
            .map(|column| OriginalSet {
                column,
                minimum_levels: minimum_levels(&column.name),
            })
            .collect(),
        untouched: untouched
            .iter()
            .map(|(spec, column)| (spec.name(), column))
            .collect(),
    };
    match schema.subject() {
        Some(_) => assign_rows(table, &original),
        None => Ok((assign(table, &original)?, Vec::new())),
    }
}
