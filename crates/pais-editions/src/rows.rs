//! Some rows of a table.

use pais_core::table::{Column, Table};

/// Some rows of a table, in this order. Dictionaries have the values of these rows alone, so that no
/// label is made of another row's value.
pub fn gathered(table: &Table, rows: &[u32]) -> Table {
    let columns = table.columns.iter().map(|column| {
        let cells = rows.iter().map(|&row| column.codes[row as usize]);
        Column::of_cells(&column.dictionary, cells)
    });
    Table {
        rows: rows.len(),
        columns: columns.collect(),
    }
}
