//! Some rows of a table.

use pais_core::table::{Column, Table};

/// Some rows of a table, in this order. Dictionaries have only the values of these rows, so that no label
/// depends on a value of another row.
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
