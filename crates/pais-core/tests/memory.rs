//! The memory that the risk of a table takes, beside what is reserved for it. It is the only test here, because
//! the peak is that of the process.

use pais_core::cancellation::Cancellation;
use pais_core::risk;
use pais_core::schema::Schema;
use pais_core::table::{Column, Table};
use pais_test_support::memory::peak_of;
use serde_json::json;

const ROWS: usize = 600_000;

/// A key in each column.
fn keys(columns: usize) -> Table {
    let column = |at: usize| Column {
        dictionary: (0..ROWS).map(|row| format!("{at}-{row}").into()).collect(),
        codes: (0..ROWS as u32).collect(),
    };
    Table {
        rows: ROWS,
        columns: (0..columns).map(column).collect(),
    }
}

#[test]
fn what_is_reserved_for_a_table_of_keys_covers_its_risk() {
    let columns: Vec<_> = [
        "quasi_identifier",
        "insensitive",
        "insensitive",
        "quasi_identifier",
    ]
    .iter()
    .enumerate()
    .map(|(at, role)| json!({"name": format!("c{at}"), "role": role}))
    .collect();
    let definition = json!({"name": "t", "columns": columns});
    let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
    let table = keys(4).as_released(&schema);
    let (rows, text_bytes) = (ROWS as u64, table.text_bytes());

    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak_of(std::process::id());
    risk::assess(&schema, table, 2, &Cancellation::new()).unwrap();
    let taken = peak_of(std::process::id()) - before;
    let reserved = risk::bytes_needed(&schema, rows, text_bytes, 2);
    assert!(taken <= reserved, "{taken} bytes of {reserved}");
}
