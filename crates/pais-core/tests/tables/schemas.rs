//! Tests of the checks of column definitions, and of the forms of values.

use pais_core::definition::DatasetDefinition;
use pais_core::schema::{Schema, SchemaError};
use pais_core::table::{Domain, EncodedTable};
use pais_core::warning::WarningCode;
use pais_io::read::csv;
use proptest::prelude::*;
use serde_json::{Value, json};

fn resolve(columns: Value) -> Result<Schema, SchemaError> {
    let definition = json!({"name": "t", "columns": columns});
    let definition: DatasetDefinition = serde_json::from_value(definition).unwrap();
    Schema::inline(&definition)
}

fn pointers(columns: Value) -> Vec<String> {
    let error = resolve(columns).unwrap_err();
    let pointers = error.faults.iter().filter_map(|fault| fault.pointer());
    pointers.map(str::to_owned).collect()
}

#[test]
fn only_a_grown_range_can_be_widened() {
    let tree = json!({"label": "[0,9]", "children": [{"label": "[0,5)"}, {"label": "[5,9]"}]});
    for column in [
        json!({"name": "x", "role": "quasi_identifier", "round_range": true}),
        json!({"name": "x", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 9],
            "round_range": true}),
        json!({"name": "x", "role": "quasi_identifier", "kind": "numeric", "taxonomy": tree,
            "round_range": true}),
    ] {
        assert_eq!(pointers(json!([column])), ["/columns/0/round_range"]);
    }
}

#[test]
fn only_grown_intervals_of_numbers_are_rounded() {
    let tree = json!({"label": "[0,9]", "children": [{"label": "[0,5)"}, {"label": "[5,9]"}]});
    for column in [
        json!({"name": "x", "role": "quasi_identifier", "round": 5}),
        json!({"name": "x", "role": "quasi_identifier", "kind": "set", "round": 5}),
        json!({"name": "x", "role": "quasi_identifier", "kind": "date", "round": 5}),
        json!({"name": "x", "role": "quasi_identifier", "kind": "numeric", "round": 5,
            "taxonomy": tree}),
        json!({"name": "x", "role": "quasi_identifier", "kind": "numeric", "round": 5,
            "taxonomy": {"generate": "ranges"}}),
        json!({"name": "x", "role": "quasi_identifier", "kind": "numeric", "round": 0}),
        json!({"name": "x", "role": "quasi_identifier", "kind": "numeric", "round": -5}),
        json!({"name": "x", "role": "quasi_identifier", "kind": "numeric", "round": 1e301}),
    ] {
        assert_eq!(pointers(json!([column])), ["/columns/0/round"], "{column}");
    }
}

#[test]
fn a_number_that_cannot_be_rounded_is_refused() {
    let column = json!({"name": "x", "role": "quasi_identifier", "kind": "numeric", "round": 0.1});
    let schema = resolve(json!([column])).unwrap();
    let read = |file: &str| csv::read_table(&schema, file.as_bytes());
    assert!(read("x\n1e-200\n-7e30\n").is_ok());
    let error = format!("{:?}", read("x\n1\n1e200\n").unwrap_err());
    assert!(error.contains("`round`"), "{error}");
}

#[test]
fn a_word_for_missing_can_be_written_in_every_format() {
    let column = json!({"name": "x", "role": "sensitive", "missing": ["NA", "NA\r"]});
    assert_eq!(pointers(json!([column])), ["/columns/0/missing/1"]);
}

fn range(column: Value, file: &str) -> (f64, f64) {
    let schema = resolve(json!([column])).unwrap();
    let table = csv::read_table(&schema, file.as_bytes()).unwrap();
    let encoded = EncodedTable::new(&schema, table);
    match encoded.quasi_identifiers[0].domain {
        Domain::Numeric { lo, hi, .. } => (lo, hi),
        Domain::Taxonomy(_) => panic!("a numeric column"),
    }
}

#[test]
fn the_outermost_interval_does_not_disclose_the_greatest_number_where_it_is_widened() {
    let mut column = json!({"name": "age", "role": "quasi_identifier", "kind": "numeric"});
    let file = "age\n23\n\n107\n";
    assert_eq!(range(column.clone(), file), (23.0, 107.0));
    // The width is 84, so the unit is 10.
    column["round_range"] = json!(true);
    assert_eq!(range(column.clone(), file), (20.0, 110.0));
    column["round"] = json!(25);
    assert_eq!(range(column.clone(), file), (0.0, 125.0));
    column["round_range"] = json!(false);
    assert_eq!(range(column.clone(), "age\n50\n50\n"), (50.0, 75.0));
    // A declared domain says nothing of the rows, and stays.
    column["domain"] = json!([17, 110]);
    assert_eq!(range(column, file), (17.0, 110.0));
}

#[test]
fn an_exact_range_is_a_warning_of_the_dataset() {
    let tree = json!({"label": "[0,9]", "children": [{"label": "[0,5)"}, {"label": "[5,9]"}]});
    let schema = resolve(json!([
        {"name": "name", "role": "identifier"},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "rounded", "role": "quasi_identifier", "kind": "numeric", "round_range": true},
        {"name": "multiples", "role": "quasi_identifier", "kind": "numeric", "round": 5},
        {"name": "declared", "role": "quasi_identifier", "kind": "numeric", "domain": [0, 9]},
        {"name": "tree", "role": "quasi_identifier", "kind": "numeric", "taxonomy": tree},
        {"name": "made", "role": "quasi_identifier", "kind": "numeric", "taxonomy": {"generate": "ranges"}},
        {"name": "load", "role": "sensitive", "kind": "numeric"},
        {"name": "job", "role": "quasi_identifier"},
    ]));
    let warnings = schema.unwrap().warnings();
    let [warning] = warnings.as_slice() else {
        panic!("one warning: {warnings:?}");
    };
    assert_eq!(warning.code, WarningCode::ExactRange);
    assert_eq!(warning.pointer.as_deref(), Some("/columns/1/domain"));
}

#[test]
fn taxonomy_labels_that_differ_in_spaces_or_unicode_form_are_one_label() {
    let tree = json!({"label": "ANY", "children": [
        {"label": "Caf\u{e9}"}, {"label": "x"}, {"label": " Cafe\u{301}"}]});
    let column = json!({"name": "x", "role": "quasi_identifier", "taxonomy": tree});
    assert_eq!(
        pointers(json!([column])),
        ["/columns/0/taxonomy/children/2"]
    );
    let tree = json!({"label": "ANY", "children": [{"label": "x"}, {"label": " "}]});
    let column = json!({"name": "x", "role": "quasi_identifier", "taxonomy": tree});
    assert_eq!(
        pointers(json!([column])),
        ["/columns/0/taxonomy/children/1"]
    );
    let tree = json!({"label": " [0,9]", "children": [{"label": "[0,5) "}, {"label": "[5,9]"}]});
    let column = json!({"name": "x", "role": "quasi_identifier", "kind": "numeric",
        "taxonomy": tree});
    let schema = resolve(json!([column])).unwrap();
    assert_eq!(
        schema.columns[0]
            .tree()
            .as_ref()
            .unwrap()
            .leaf_number("[0,5)"),
        Some(0)
    );
}

proptest! {
    #[test]
    fn a_canonical_cell_is_its_own_canonical_form(
        cell in prop_oneof![
            any::<String>(),
            "[ a\u{e9}e\u{301}|\r]{0,6}",
            "[+-]?[0-9]{1,20}(\\.[0-9]{0,20})?(e-?[0-9]{1,3})? ?",
        ],
        role in prop::sample::select(vec!["quasi_identifier", "insensitive"]),
        kind in prop::sample::select(vec!["categorical", "numeric", "set"]),
        missing in prop::sample::select(vec![json!(["-1.0", " NA"]), json!(null), json!(["", "a"])]),
    ) {
        let column = json!({"name": "x", "role": role, "kind": kind, "missing": missing});
        let spec = &resolve(json!([column])).unwrap().columns[0];
        let canonical = spec.canonical(&cell);
        prop_assert_eq!(spec.canonical(&canonical), canonical.as_ref());
        prop_assert_eq!(spec.is_missing(&cell), spec.is_missing(&canonical));
    }
}

/// Items in the order in which they were written would tell rows apart whose sets are equal.
#[test]
fn equal_sets_have_one_form() {
    for role in ["quasi_identifier", "insensitive"] {
        let column = json!({"name": "x", "role": role, "kind": "set", "separator": " ",
            "missing": ["?", "n a"]});
        let spec = &resolve(json!([column])).unwrap().columns[0];
        for (cell, canonical) in [
            ("d e c", "c d e"),
            ("c d e", "c d e"),
            ("e c e d", "c d e"),
            ("?", "?"),
            ("", ""),
        ] {
            assert_eq!(spec.canonical(cell), canonical, "{role}: {cell:?}");
        }
        assert!(spec.is_missing("n a") && spec.is_missing(&spec.canonical("n a")));
        // Among other items a word for missing is ignored.
        assert_eq!(spec.canonical("e ? d"), "d e");
        assert_eq!(spec.canonical("? ?"), "?");
    }
}
