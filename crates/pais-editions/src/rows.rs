//! Some rows of a table.

use pais_core::table::{Column, NULL_CODE, Table};

/// Some rows of a table, in this order. Dictionaries have the values of these rows alone, so that no
/// label is made of another row's value.
pub fn gathered(table: &Table, rows: &[u32]) -> Table {
    let columns = table.columns.iter();
    Table {
        rows: rows.len(),
        columns: columns
            .map(|column| gathered_column(column, rows))
            .collect(),
    }
}

fn gathered_column(column: &Column, rows: &[u32]) -> Column {
    let mut new_codes = vec![NULL_CODE; column.dictionary.len()];
    let mut gathered = Column {
        dictionary: Vec::new(),
        codes: Vec::with_capacity(rows.len()),
    };
    for &row in rows {
        let code = column.codes[row as usize];
        let Some(new) = new_codes.get_mut(code as usize) else {
            gathered.codes.push(NULL_CODE);
            continue;
        };
        if *new == NULL_CODE {
            *new = gathered.dictionary.len() as u32;
            let text = column.dictionary[code as usize].clone();
            gathered.dictionary.push(text);
        }
        gathered.codes.push(*new);
    }
    gathered
}
