//! The hardest wide table there is: 41 independent coins and a die of 15 sides. Every subset of its
//! columns splits it evenly, so that nearly everything is valid and every subset must be counted.

use std::fmt::Write;

use pais::sample::draw::Draw;
use serde_json::{Value, json};

/// Quasi-identifiers.
const COINS: usize = 41;

/// The body of `POST /v1/datasets`.
pub fn schema() -> Value {
    let coin = |number| json!({ "name": format!("coin{number}"), "role": "quasi_identifier" });
    let mut columns: Vec<Value> = (0..COINS).map(coin).collect();
    columns.push(json!({ "name": "die", "role": "sensitive" }));
    json!({ "name": "coins", "columns": columns })
}

/// The rows as CSV; the same every time.
pub fn csv(rows: u64) -> String {
    let mut text: String = (0..COINS).map(|number| format!("coin{number},")).collect();
    text.push_str("die\n");
    for row in 0..rows {
        let mut draw = Draw::of(41, row);
        for _ in 0..COINS {
            text.push_str(if draw.chance(0.5) { "heads," } else { "tails," });
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "{}", draw.below(15));
    }
    text
}
