//! Statistics of the columns of a table.

use pais_core::cancellation::Cancellation;
use pais_core::schema::Schema;
use pais_core::table::profile::{ColumnProfile, SetSizes, profile_until};
use pais_io::read::csv;

fn profile(schema: &Schema, file: &str) -> Vec<ColumnProfile> {
    let table = csv::read_table(schema, file.as_bytes()).unwrap();
    profile_until(schema, &table, &Cancellation::new()).unwrap()
}

#[test]
fn profiles_contain_statistics_and_no_values() {
    let definition = serde_json::json!({"name": "t", "columns": [
        {"name": "name", "role": "identifier"},
        {"name": "job", "role": "quasi_identifier", "missing": ["", "NA"]},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
        {"name": "drugs", "role": "quasi_identifier", "kind": "set"},
    ]});
    let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
    let file = "name,job,age,drugs\nJane,Mover,34,a|b|a\nJoe,NA,34.0,a\nJim,,,\nJo,Mover,-1,b\n";
    let found = profile(&schema, file);
    assert_eq!(found.len(), 3);
    assert_eq!((found[0].distinct, found[0].missing), (1, 2));
    assert_eq!((found[1].distinct, found[1].missing), (2, 1));
    assert_eq!((found[1].min, found[1].max), (Some(-1.0), Some(34.0)));
    assert_eq!((found[2].distinct, found[2].missing), (2, 1));
    let mean = 4.0 / 3.0;
    let sizes = SetSizes {
        min: 1,
        max: 2,
        mean,
    };
    assert_eq!(found[2].set_sizes, Some(sizes));
    let single_rows: Vec<u64> = found.iter().map(|column| column.single_rows).collect();
    assert_eq!(single_rows, [0, 1, 3]);
    let json = serde_json::to_string(&found).unwrap();
    assert!(!json.contains("Mover") && !json.contains("\"a\""), "{json}");
}

#[test]
fn dates_have_an_earliest_and_a_latest_one() {
    let definition = serde_json::json!({"name": "t", "columns": [
        {"name": "born", "role": "quasi_identifier", "kind": "date", "format": "%d.%m.%Y"},
        {"name": "seen", "role": "sensitive", "kind": "datetime"},
    ]});
    let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
    let file = "born,seen\n3.9.1987,2020-01-01T10:00Z\n1931-12-24,2020-01-01 12:00+02:00\n,\n";
    let found = profile(&schema, file);
    let range = |column: usize| {
        let column = &found[column];
        (
            column.earliest.as_deref(),
            column.latest.as_deref(),
            column.distinct,
        )
    };
    assert_eq!(range(0), (Some("1931-12-24"), Some("1987-09-03"), 2));
    let moment = Some("2020-01-01T10:00:00");
    assert_eq!(range(1), (moment, moment, 1));
    assert_eq!((found[0].min, found[0].missing), (None, 1));
}

#[test]
fn values_that_differ_only_in_case_are_counted() {
    let definition = serde_json::json!({"name": "t", "columns": [
        {"name": "disease", "role": "sensitive"},
        {"name": "codes", "role": "quasi_identifier", "kind": "set"},
    ]});
    let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
    let file =
        "disease,codes\nHIV,a|b\nhiv,B|a\nHiv,c\nFlu,b|a\n,c\nHIV ,x\n\u{c9}a,d\n\u{e9}A,d\n";
    let found = profile(&schema, file);
    assert_eq!((found[0].distinct, found[0].case_variants), (6, 5));
    assert_eq!(found[0].single_rows, 5);
    // The sets a|b and b|a are one value.
    assert_eq!((found[1].case_variants, found[1].single_rows), (2, 2));
}

#[test]
fn values_that_look_like_another_one_are_counted() {
    let definition = serde_json::json!({"name": "t", "columns": [
        {"name": "disease", "role": "sensitive"},
        {"name": "codes", "role": "quasi_identifier", "kind": "set"},
    ]});
    let schema = Schema::inline(&serde_json::from_value(definition).unwrap()).unwrap();
    let file =
        "disease,codes\nHIV,a|b\nH\u{200b}IV,\u{ff41}\n\u{ff28}IV,c\nhiv,d\n10\u{b2},e\n102,f\n";
    let found = profile(&schema, file);
    assert_eq!((found[0].distinct, found[0].look_alikes), (6, 3));
    assert_eq!((found[1].distinct, found[1].look_alikes), (7, 2));
}
