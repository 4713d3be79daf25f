//! Whether a released table is read back exactly as it is, from every format.

use hashbrown::HashSet;
use thiserror::Error;

use super::{canonical_label, exact_text};
use crate::definition::{ColumnKind, ColumnRole};
use crate::schema::{Schema, SchemaColumn};
use crate::table::{Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable};

/// A column of a released table that would not be read back as it is. It does not contain the
/// cells, because they can be raw values.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the column `{column}` would not be read back as it is released")]
pub struct ReadBackError {
    /// Name of the column.
    pub column: Box<str>,
}

/// The first column of a released table that [`crate::reimport`] would not read back exactly from CSV, NDJSON
/// and Parquet; `None` if a reader gets exactly this table.
///
/// A column is read back exactly if its labels, or its exact values, are in canonical form and
/// distinct, and if null is read back as null or missing. Numbers of unchanged columns with `round`
/// must be rounded. Reads each distinct text a few times, and
/// makes one pass over the codes of each column in which null would not be.
pub fn read_back_error(schema: &Schema, table: &ReleasedTable) -> Option<ReadBackError> {
    let mut columns = table.columns.iter();
    let column = columns.find(|column| !reads_back(schema, column))?;
    Some(ReadBackError {
        column: column.name.clone(),
    })
}

fn reads_back(schema: &Schema, column: &ReleasedColumn) -> bool {
    let texts = &column.column.dictionary;
    let mut distinct = HashSet::with_capacity(texts.len());
    // CSV readers may take a carriage return at the end of a cell as part of the line ending.
    let is_readable = |text: &str| !text.ends_with('\r') && !text.contains('\0');
    if !texts
        .iter()
        .all(|text| is_readable(text) && distinct.insert(text))
    {
        return false;
    }
    if column.form == Form::Integer {
        let is_whole = |text: &str| text.parse().is_ok_and(|n: u64| n.to_string() == *text);
        return texts.iter().all(|text| is_whole(text)) && !has_null(&column.column);
    }
    let Some(spec) = schema.stored_named(&column.name) else {
        return false;
    };
    let is_label = match column.form {
        Form::Generalized => true,
        Form::Set { .. } => spec.role == ColumnRole::QuasiIdentifier,
        Form::Text | Form::Number | Form::Integer | Form::Day | Form::Moment => false,
    };
    if is_label {
        labels_read_back(spec, column)
    } else {
        exact_values_read_back(spec, column)
    }
}

fn labels_read_back(spec: &SchemaColumn, column: &ReleasedColumn) -> bool {
    let is_set = matches!(column.form, Form::Set { .. });
    let is_label = |text: &str| {
        // A word for missing would be null in formats that have types.
        !column.is_missing(text) && canonical_label(spec, text).as_deref() == Some(text)
    };
    is_set == (spec.kind == ColumnKind::Set)
        && column.column.dictionary.iter().all(|text| is_label(text))
        && !has_null(&column.column)
}

fn exact_values_read_back(spec: &SchemaColumn, column: &ReleasedColumn) -> bool {
    let is_exact = |text: &str| {
        let is_missing = spec.is_missing(text);
        // An empty word for missing and null are the same in CSV.
        let is_same = match exact_text(spec, text) {
            Some(read) => *read == *text,
            None => is_missing,
        };
        let is_rounded = !spec.is_unchanged() || *spec.rounded(text) == *text;
        is_same && is_rounded && column.is_missing(text) == is_missing
    };
    column.form == Form::untouched(spec)
        && column.column.dictionary.iter().all(|text| is_exact(text))
        && (spec.is_empty_null() || !has_null(&column.column))
}

fn has_null(column: &Column) -> bool {
    column.codes.contains(&NULL_CODE)
}
