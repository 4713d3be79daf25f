//! The worst case of a wide table: 41 independent uniform binary quasi-identifiers and a sensitive
//! column of 15 uniform values. Every subset of the columns splits the rows evenly, so that nearly
//! every specialization is valid and every subset must be counted.

use std::fmt::Write;

use pais_sample::draw::Draw;
use serde_json::{Value, json};

/// Quasi-identifiers.
const COLUMNS: usize = 41;

/// The body of `POST /v1/datasets`.
pub(crate) fn schema() -> Value {
    let binary = |number| json!({ "name": format!("binary{number}"), "role": "quasi_identifier" });
    let mut columns: Vec<Value> = (0..COLUMNS).map(binary).collect();
    columns.push(json!({ "name": "sensitive", "role": "sensitive" }));
    json!({ "name": "binary", "columns": columns })
}

/// The rows as CSV with a header; the same on every machine.
pub(crate) fn csv(rows: u64) -> String {
    let mut text: String = (0..COLUMNS)
        .map(|number| format!("binary{number},"))
        .collect();
    text.push_str("sensitive\n");
    for row in 0..rows {
        let mut draw = Draw::of(41, row);
        for _ in 0..COLUMNS {
            text.push_str(if draw.chance(0.5) { "yes," } else { "no," });
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", draw.below(15));
    }
    text
}
