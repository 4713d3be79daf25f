//! Distortion of single columns: figures by hand.

use pais_core::cancellation::Cancellation;
use pais_core::table::{Column, EncodedTable, Form, ReleasedColumn};
use pais_io::read::csv;
use serde_json::{Value, json};

use super::distorted_column::DistortedColumn;
use crate::test_data::schema;

/// Entropy loss and survival of frequencies of a column that releases these labels for its rows.
fn measured(column: Value, cells: &[&str], labels: &[&str]) -> (f64, f64) {
    let schema = schema(json!([column]));
    let file = format!("x\n{}\n", cells.join("\n"));
    let table = EncodedTable::new(&schema, csv::read_table(&schema, file.as_bytes()).unwrap());
    let released = ReleasedColumn {
        name: "x".into(),
        form: Form::Generalized,
        column: Column {
            dictionary: labels.iter().map(|&label| label.into()).collect(),
            codes: (0..labels.len() as u32).collect(),
        },
        missing: Vec::new(),
    };
    let spec = schema.stored().next().unwrap();
    // The last rows are suppressed.
    let rows = labels.len();
    let raw = &table.quasi_identifiers[0];
    let column = DistortedColumn {
        spec,
        raw,
        released: &released,
        rows,
        sampled: &(0..rows).map(|row| raw.codes.at(row)).collect::<Vec<_>>(),
        raw_counts: &raw.codes.counts(raw.domain.code_count()),
        label_counts: &released.column.row_counts(),
    };
    (
        column.entropy_loss(),
        column.frequency_survival(&Cancellation::new()),
    )
}

fn letters() -> Value {
    json!({"name": "x", "role": "quasi_identifier", "taxonomy": {"label": "all", "children": [
        {"label": "X", "children": [{"label": "a"}, {"label": "b"}]},
        {"label": "Y", "children": [{"label": "c"}, {"label": "d"}]}]}})
}

const CELLS: [&str; 8] = ["a", "a", "a", "b", "c", "c", "d", "d"];

#[track_caller]
fn close(found: (f64, f64), expected: (f64, f64)) {
    let differences = ((found.0 - expected.0).abs(), (found.1 - expected.1).abs());
    assert!(differences.0 < 1e-12 && differences.1 < 1e-12, "{found:?}");
}

/// By hand: 3 log(8/3) + log 8 + 4 log 4 bits are in the raw column, and 3 log(4/3) + log 4 + 4 log 2
/// of them are lost. The estimated shares are a quarter each; a has three eighths.
#[test]
fn half_generalized_values_lose_the_entropy_below_their_labels() {
    let found = measured(letters(), &CELLS, &["X", "X", "X", "X", "Y", "Y", "Y", "Y"]);
    let whole = 3.0 * (8.0f64 / 3.0).log2() + 3.0 + 8.0;
    let lost = 3.0 * (4.0f64 / 3.0).log2() + 2.0 + 4.0;
    close(found, (lost / whole, 0.875));
}

#[test]
fn exact_values_lose_nothing_and_the_root_everything() {
    close(measured(letters(), &CELLS, &CELLS), (0.0, 1.0));
    close(measured(letters(), &CELLS, &["all"; 8]), (1.0, 0.875));
}

/// Of the raw 11 + 3 log(8/3) bits the two rows that are left keep 2 log(8/3).
#[test]
fn suppressed_rows_lose_their_entropy() {
    let found = measured(letters(), &CELLS, &["a", "a"]);
    let bits = (8.0f64 / 3.0).log2();
    close(found, (1.0 - 2.0 * bits / (11.0 + 3.0 * bits), 0.375));
}

/// Two of twenty bins of width 1 have half of the rows each; the whole interval gives each bin a
/// twentieth.
#[test]
fn intervals_are_spread_over_bins_of_equal_width() {
    let ages = json!({"name": "x", "role": "quasi_identifier", "kind": "numeric",
                      "domain": [0, 20]});
    let cells = ["1", "1", "9", "9"];
    close(measured(ages.clone(), &cells, &["[0,20]"; 4]), (1.0, 0.1));
    close(
        measured(ages.clone(), &cells, &["1", "1", "9", "9"]),
        (0.0, 1.0),
    );
    let halves = ["[0,5)", "[0,5)", "[5,20]", "[5,20]"];
    // Bins of a fifth and of a fifteenth of a half.
    let survival = 0.1 + 1.0 / 30.0;
    close(measured(ages, &cells, &halves), (0.0, survival));
}

/// Only the outermost interval is above missing cells ("Missing values" in `docs/methods/values.md`):
/// the declared domain, or all released numbers, where they are several. Beside `?` it is so only where a
/// missing cell is under it.
#[test]
fn a_number_and_an_inner_interval_are_not_above_missing_cells() {
    let numbers = json!({"name": "x", "role": "quasi_identifier", "kind": "numeric",
                         "missing": ["NA"]});
    let mut with_domain = numbers.clone();
    with_domain["domain"] = json!([0, 100]);
    let (fives, others) = (["NA", "NA", "5", "5"], ["NA", "NA", "5", "8"]);
    close(
        measured(with_domain.clone(), &fives, &["?", "?", "5", "5"]),
        (0.0, 1.0),
    );
    // Of 6 bits that are in the raw column two are lost, those that tell 5 from 8.
    let inner = ["?", "?", "[5,8]", "[5,8]"];
    close(
        measured(with_domain.clone(), &others, &inner),
        (1.0 / 3.0, 1.0),
    );
    let loss = |column: &Value, cells: &[&str], labels: &[&str]| {
        let loss = measured(column.clone(), cells, labels).0;
        (loss * 1e9).round() / 1e9
    };
    assert_eq!(loss(&with_domain, &others, &["[0,100]"; 4]), 1.0);
    assert_eq!(loss(&numbers, &others, &inner), 0.333333333);
    assert_eq!(loss(&numbers, &others, &["[5,8]"; 4]), 1.0);
    assert_eq!(
        loss(&numbers, &others, &["?", "[5,8]", "[5,8]", "[5,8]"]),
        0.833333333
    );
    assert_eq!(loss(&numbers, &others, &["?", "?", "5", "8"]), 0.0);
    assert_eq!(loss(&numbers, &fives, &["?", "?", "5", "5"]), 0.0);
    assert_eq!(loss(&numbers, &fives, &["*"; 4]), 1.0);
}

/// By hand: bins of 0.3 have a third of the rows each, the sixth to the eighth. The labels give the
/// first six a sixth of a third, the seventh a third, and the last thirteen a thirteenth of a third.
#[test]
fn a_number_at_the_start_of_a_bin_is_in_that_bin() {
    let temperatures = json!({"name": "x", "role": "quasi_identifier", "kind": "numeric",
                              "domain": [36, 42]});
    let cells = ["37.5", "37.5", "37.8", "37.8", "38.1", "38.1"];
    let [low, middle, high] = ["[36,37.8)", "[37.8,38.1)", "[38.1,42]"];
    let found = measured(
        temperatures,
        &cells,
        &[low, low, middle, middle, high, high],
    );
    close(found, (0.0, (1.0 / 6.0 + 1.0 + 1.0 / 13.0) / 3.0));
}
