//! Tests of sets that are made of several columns of a file, in every format, and of the numbers of
//! faults by column.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Int64Array, ListArray, StringArray};
use pais_core::definition::DatasetDefinition;
use pais_core::schema::{Schema, SchemaErrorKind};
use pais_core::table::{MAX_FAULTS, ReadErrorKind};
use serde_json::{Value, json};

use crate::read::format_tests::{from_csv, from_ndjson, from_parquet, texts};
use crate::read::parquet_tests::file;
use crate::read::tests::schema;

fn diagnoses() -> Value {
    json!([
        {"name": "dx", "role": "quasi_identifier", "kind": "set", "from": ["DX1", "DX2", "DX3"],
         "missing": ["", "NA"]},
        {"name": "age", "role": "quasi_identifier", "kind": "numeric"},
    ])
}

#[test]
fn the_items_of_a_set_are_in_its_columns_in_every_format() {
    let schema = schema(diagnoses());
    let in_csv = "DX2,age,DX1,DX3\nB,1,A,\n,2,C,NA\n,3,,\nA,4, A ,B\n";
    let in_ndjson = r#"{"age":1,"DX1":"A","DX2":"B","DX3":null}
{"age":2,"DX1":"C","DX2":"","DX3":"NA"}
{"DX1":null,"DX2":null,"DX3":null,"age":3}
{"DX1":" A ","DX2":"A","DX3":"B","age":4}"#;
    let text = |cells: [Option<&str>; 4]| Arc::new(StringArray::from(cells.to_vec())) as ArrayRef;
    let columns = [
        ("DX3", text([None, Some("NA"), None, Some("B")])),
        (
            "age",
            Arc::new(Int64Array::from(vec![1, 2, 3, 4])) as ArrayRef,
        ),
        ("DX1", text([Some("A"), Some("C"), Some(""), Some(" A ")])),
        ("DX2", text([Some("B"), None, None, Some("A")])),
    ];
    for table in [
        from_csv(&schema, in_csv.as_bytes()),
        from_ndjson(&schema, in_ndjson.as_bytes()),
        from_parquet(&schema, &file(&columns, Default::default()), u64::MAX),
    ] {
        let table = table.unwrap();
        let expected = [Some("A|B"), Some("C"), Some(""), Some("A|B")];
        assert_eq!(texts(&table.columns[0]), expected);
        assert_eq!(table.columns[1].text(3), Some("4"));
    }
}

#[test]
fn a_null_among_the_items_of_a_list_is_no_item() {
    let schema = schema(json!([{"name": "s", "role": "quasi_identifier", "kind": "set"}]));
    let in_ndjson = r#"{"s":["b",null,"a"]}
{"s":[null]}"#;
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("b"), None, Some("a")]);
    lists.append_value([None::<&str>]);
    let lists: ArrayRef = Arc::new(lists.finish());
    let in_parquet = file(&[("s", lists)], Default::default());
    for table in [
        from_ndjson(&schema, in_ndjson.as_bytes()),
        from_parquet(&schema, &in_parquet, u64::MAX),
    ] {
        assert_eq!(texts(&table.unwrap().columns[0]), [Some("a|b"), Some("")]);
    }
}

#[test]
fn the_set_is_read_as_if_it_were_one_column() {
    let tree = json!({"label": "ANY", "children": [{"label": "A"}, {"label": "B"}]});
    let mut made = diagnoses();
    made[0]["taxonomy"] = tree;
    let mut declared = made.clone();
    declared[0].as_object_mut().unwrap().remove("from");
    let in_one = from_csv(&schema(declared), b"dx,age\nA|B,1\n,2\nB,3\n").unwrap();
    let made = schema(made);
    let in_three = from_csv(&made, b"DX1,DX2,DX3,age\nA,B,,1\n,,,2\n,NA,B,3\n").unwrap();
    assert_eq!(in_three, in_one);
    let error = from_csv(&made, b"DX1,DX2,DX3,age\nA,C,,1\n").unwrap_err();
    assert_eq!(error.faults[0].column(), Some("dx"));
    assert_eq!(error.faults[0].line(), Some(2));
}

#[test]
fn an_identifier_of_several_columns_is_dropped() {
    let mut columns = diagnoses();
    columns[0]["role"] = json!("identifier");
    let schema = schema(columns);
    let in_csv = from_csv(&schema, b"DX1,DX2,DX3,age\nA|B,B,,1\n").unwrap();
    let in_ndjson = from_ndjson(&schema, br#"{"DX1":["x"],"DX2":1,"DX3":null,"age":1}"#).unwrap();
    assert_eq!((in_csv.columns.len(), in_csv.rows), (1, 1));
    assert_eq!(in_ndjson, in_csv);
}

#[test]
fn the_header_names_the_columns_of_a_set_and_not_the_set() {
    let schema = schema(diagnoses());
    let error = from_csv(&schema, b"dx,age\nA,1\n").unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Header);
    let columns: Vec<_> = error.faults.iter().filter_map(|it| it.column()).collect();
    assert_eq!(columns, ["DX1", "DX2", "DX3"]);
    let fix = error.faults[0].suggested_fix.as_deref().unwrap();
    assert!(fix.contains("`from`"), "{fix}");
}

#[test]
fn an_item_with_the_separator_is_refused_in_every_format() {
    let schema = schema(diagnoses());
    let in_csv = from_csv(&schema, b"DX1,DX2,DX3,age\nA,B,,1\nA|B,,,2\n");
    let lines = b"{\"DX1\":\"A\",\"DX2\":null,\"DX3\":null,\"age\":1}\n\
        {\"DX1\":\"A|B\",\"DX2\":null,\"DX3\":null,\"age\":2}\n";
    let in_ndjson = from_ndjson(&schema, lines);
    for (error, line) in [(in_csv, 3), (in_ndjson, 2)] {
        let error = error.unwrap_err();
        assert_eq!((error.kind, error.faults.len()), (ReadErrorKind::Cells, 1));
        assert_eq!(error.faults[0].line(), Some(line));
        assert_eq!(
            error.faults_by_column,
            BTreeMap::from([("dx".to_owned(), 1)])
        );
    }
    let nested = br#"{"DX1":["A"],"DX2":null,"DX3":null,"age":1}"#;
    assert_eq!(
        from_ndjson(&schema, nested).unwrap_err().kind,
        ReadErrorKind::Cells
    );
    let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<
        arrow_array::types::Int64Type,
        _,
        _,
    >([Some([Some(1)])]));
    let text = || Arc::new(StringArray::from(vec!["A"])) as ArrayRef;
    let age: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let columns = [
        ("DX1", list),
        ("DX2", text()),
        ("DX3", text()),
        ("age", age),
    ];
    let error = from_parquet(&schema, &file(&columns, Default::default()), u64::MAX).unwrap_err();
    assert_eq!(error.faults[0].column(), Some("DX1"));
}

#[test]
fn a_set_is_made_of_columns_of_its_own() {
    let pointers = |columns: Value| {
        let definition: DatasetDefinition =
            serde_json::from_value(json!({"name": "t", "columns": columns})).unwrap();
        let error = Schema::inline(&definition).unwrap_err();
        assert_eq!(error.kind, SchemaErrorKind::Columns);
        let pointers = error.faults.iter().filter_map(|it| it.pointer());
        pointers.map(str::to_owned).collect::<Vec<_>>()
    };
    let set = |name: &str, from: Value| json!({"name": name, "role": "insensitive", "kind": "set", "from": from});
    for (columns, expected) in [
        (json!([set("dx", json!([]))]), "/columns/0/from"),
        (json!([set("dx", json!(["dx"]))]), "/columns/0/from/0"),
        (json!([set("dx", json!(["A", "A"]))]), "/columns/0/from/1"),
        (json!([set("dx", json!(["A", ""]))]), "/columns/0/from/1"),
        (
            json!([set("dx", json!(["A", "B"])), set("px", json!(["B"]))]),
            "/columns/1/from/0",
        ),
        (
            json!([set("dx", json!(["A"])), {"name": "A", "role": "class"}]),
            "/columns/0/from/0",
        ),
        (
            json!([{"name": "dx", "role": "class", "from": ["A"]}]),
            "/columns/0/from",
        ),
    ] {
        assert_eq!(pointers(columns.clone()), [expected], "{columns}");
    }
}

#[test]
fn a_dataset_has_words_for_missing_for_the_columns_that_have_none() {
    let definition: DatasetDefinition = serde_json::from_value(json!({
        "name": "t", "missing": ["NA", "."],
        "columns": [
            {"name": "a", "role": "sensitive", "kind": "numeric"},
            {"name": "b", "role": "sensitive", "missing": ["-"]},
            {"name": "c", "role": "sensitive", "missing": []},
        ],
    }))
    .unwrap();
    let schema = Schema::inline(&definition).unwrap();
    let is_missing = |column: usize, word| schema.columns[column].is_missing(word);
    assert!(is_missing(0, "NA") && is_missing(0, ".") && !is_missing(0, ""));
    assert!(is_missing(1, "-") && !is_missing(1, "NA"));
    assert!(!is_missing(2, "NA") && is_missing(2, ""));
    let bad: DatasetDefinition = serde_json::from_value(json!({
        "name": "t", "missing": ["NA", "x\r"], "columns": [{"name": "a", "role": "sensitive"}],
    }))
    .unwrap();
    let error = Schema::inline(&bad).unwrap_err();
    assert_eq!(error.faults[0].pointer(), Some("/missing/1"));
}

#[test]
fn all_faults_are_counted_by_column_and_the_first_are_named_in_every_format() {
    let schema = schema(json!([
        {"name": "a", "role": "sensitive", "kind": "numeric"},
        {"name": "b", "role": "sensitive", "kind": "numeric"},
        {"name": "c", "role": "sensitive"},
    ]));
    const ROWS: usize = 70_000;
    let a = |row: usize| if row >= 30 { "x" } else { "1" };
    let b = |row: usize| if row.is_multiple_of(10) { "y" } else { "2" };
    let (mut in_csv, mut in_ndjson) = ("a,b,c\n".to_owned(), String::new());
    for row in 0..ROWS {
        in_csv.push_str(&format!("{},{},z\n", a(row), b(row)));
        in_ndjson.push_str(&format!(
            "{{\"a\":\"{}\",\"b\":\"{}\",\"c\":\"z\"}}\n",
            a(row),
            b(row)
        ));
    }
    let strings = |cell: &dyn Fn(usize) -> &'static str| {
        Arc::new(StringArray::from_iter_values((0..ROWS).map(cell))) as ArrayRef
    };
    let columns = [
        ("a", strings(&a)),
        ("b", strings(&b)),
        ("c", strings(&|_| "z")),
    ];
    for (read, first) in [
        (from_csv(&schema, in_csv.as_bytes()), 2),
        (from_ndjson(&schema, in_ndjson.as_bytes()), 1),
        (
            from_parquet(&schema, &file(&columns, Default::default()), u64::MAX),
            1,
        ),
    ] {
        let error = read.unwrap_err();
        let counted = [
            ("a".to_owned(), ROWS as u64 - 30),
            ("b".to_owned(), ROWS as u64 / 10),
        ];
        assert_eq!(error.faults_by_column, BTreeMap::from(counted));
        assert!(error.detail.starts_with("76970 cells"), "{}", error.detail);
        let lines: Vec<_> = error.faults.iter().filter_map(|it| it.line()).collect();
        assert_eq!(lines.len(), MAX_FAULTS);
        // Rows 0, 10, 20 in b, row 30 in both, and then every row in a.
        let rows = [0, 10, 20, 30].into_iter().chain(30..=40).chain(40..=44);
        assert_eq!(lines, rows.map(|row| row + first).collect::<Vec<u64>>());
    }
}
