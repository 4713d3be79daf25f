//! Several editions as one table.

use std::collections::HashMap;

use pais_core::table::{Column, Form, NULL_CODE, ReleasedColumn, ReleasedTable};

use crate::common::LabelMap;

/// The table of an edition with its number.
#[derive(Clone, Debug)]
pub struct NumberedTable {
    /// The number of the edition.
    pub number: u32,
    /// Its table.
    pub table: ReleasedTable,
}

/// The rows of all tables, each with the number of its edition in a first column of this name. Columns are
/// matched by name; a row of a table that lacks a column has null there. `labels` replace the labels of
/// generalized columns.
pub fn stacked(
    edition: &str,
    tables: &[NumberedTable],
    labels: Option<&LabelMap>,
) -> ReleasedTable {
    let rows = tables.iter().map(|edition| edition.table.rows).sum();
    let mut names: Vec<&ReleasedColumn> = Vec::new();
    for column in tables.iter().flat_map(|edition| &edition.table.columns) {
        if names.iter().all(|known| known.name != column.name) {
            names.push(column);
        }
    }
    let numbers = (0..).zip(tables);
    let codes = numbers.flat_map(|(code, edition)| std::iter::repeat_n(code, edition.table.rows));
    let texts = tables
        .iter()
        .map(|edition| edition.number.to_string().into());
    let numbers = ReleasedColumn {
        name: edition.into(),
        form: Form::Integer,
        column: Column {
            codes: codes.collect(),
            dictionary: texts.collect(),
        },
        missing: Vec::new(),
    };
    let columns = names
        .into_iter()
        .map(|named| stacked_column(named, tables, rows, labels));
    ReleasedTable {
        name: "data".into(),
        rows,
        columns: std::iter::once(numbers).chain(columns).collect(),
    }
}

fn stacked_column(
    named: &ReleasedColumn,
    tables: &[NumberedTable],
    rows: usize,
    labels: Option<&LabelMap>,
) -> ReleasedColumn {
    let labels = labels.and_then(|labels| labels.get(&named.name));
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut column = Column {
        dictionary: Vec::new(),
        codes: Vec::with_capacity(rows),
    };
    let (mut form, mut missing) = (named.form, named.missing.clone());
    for NumberedTable { table, .. } in tables {
        let mut columns = table.columns.iter();
        let Some(own) = columns.find(|own| own.name == named.name) else {
            let rows = std::iter::repeat_n(NULL_CODE, table.rows);
            column.codes.extend(rows);
            continue;
        };
        if own.form != form {
            // The column had another role.
            form = Form::Generalized;
        }
        for word in &own.missing {
            if !missing.contains(word) {
                missing.push(word.clone());
            }
        }
        let texts = own.column.dictionary.iter().map(|text| {
            let label = labels.and_then(|labels| labels.get(text)).unwrap_or(text);
            *numbers.entry(label).or_insert_with(|| {
                column.dictionary.push(label.clone());
                column.dictionary.len() as u32 - 1
            })
        });
        let texts: Vec<u32> = texts.collect();
        let codes = own.column.codes.iter();
        let codes = codes.map(|&code| texts.get(code as usize).copied().unwrap_or(NULL_CODE));
        column.codes.extend(codes);
    }
    ReleasedColumn {
        name: named.name.clone(),
        form,
        column,
        missing,
    }
}
