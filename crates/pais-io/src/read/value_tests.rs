//! Tests that a value is one value however it is written, in every format.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray};
use pais_core::schema::Schema;
use pais_core::table::{
    EncodedTable, Form, NULL_CODE, ReadError, ReadErrorKind, ReleasedTable, Table,
};
use serde_json::{Value, json};

use crate::read::ReadLimits;
use crate::read::format_tests::{column, from_csv, from_ndjson, from_parquet, texts};
use crate::read::parquet_tests::file;
use crate::read::tests::schema;

/// The table of a column with these cells as strings, from every format.
fn read_each(schema: &Schema, cells: &[&str]) -> [Result<Table, ReadError>; 3] {
    let cells: Vec<_> = cells.iter().map(|cell| Some((*cell).to_owned())).collect();
    let name = schema.columns[0].name();
    let mut column = column(name, Form::Text, &cells);
    column.missing.clear();
    let table = ReleasedTable {
        name: "data".into(),
        rows: cells.len(),
        columns: vec![column],
    };
    let (mut in_csv, mut in_ndjson, mut in_parquet) = (Vec::new(), Vec::new(), Vec::new());
    crate::write::csv(&table, &mut in_csv).unwrap();
    crate::write::ndjson(&table, &mut in_ndjson).unwrap();
    crate::write::parquet(&table, &mut in_parquet).unwrap();
    [
        from_csv(schema, &in_csv),
        from_ndjson(schema, &in_ndjson),
        from_parquet(schema, &in_parquet, u64::MAX),
    ]
}

fn one(mut declared: Value) -> Schema {
    declared["name"] = json!("x");
    schema(json!([declared]))
}

/// Checks that cells are read as `expected` in every format, with one code for each text.
#[track_caller]
fn assert_read_as(declared: Value, cells: &[&str], expected: &[&str]) {
    let schema = one(declared);
    for table in read_each(&schema, cells) {
        let table = table.unwrap();
        let found: Vec<&str> = texts(&table.columns[0]).into_iter().flatten().collect();
        assert_eq!(found, expected);
        let mut distinct = expected.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(table.columns[0].dictionary.len(), distinct.len());
    }
}

#[test]
fn numbers_written_in_three_ways_are_one_value() {
    let cells = ["200", "200.0", "2e2", "+200", "0200", "7.50", "200.0"];
    let expected = ["200", "200", "200", "200", "200", "7.5", "200"];
    for role in ["sensitive", "quasi_identifier", "class", "insensitive"] {
        assert_read_as(json!({"role": role, "kind": "numeric"}), &cells, &expected);
    }
    let load = one(json!({"role": "sensitive", "kind": "numeric"}));
    let typed = b"{\"x\":200}\n{\"x\":200.0}\n{\"x\":2E2}\n{\"x\":\"200\"}\n";
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![200]));
    let fraction: ArrayRef = Arc::new(Float64Array::from(vec![200.0]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["2e2"]));
    let mut tables = vec![from_ndjson(&load, typed).unwrap()];
    for array in [whole, fraction, text] {
        let file = file(&[("x", array)], Default::default());
        tables.push(from_parquet(&load, &file, u64::MAX).unwrap());
    }
    for table in tables {
        let encoded = EncodedTable::new(&load, table);
        assert_eq!(encoded.sensitive[0].values, ["200".into()]);
        assert!(encoded.sensitive[0].codes.iter().all(|&code| code == 0));
    }
}

#[test]
fn spaces_and_unicode_forms_make_no_new_value() {
    let cells = [
        "Caf\u{e9}",
        "Cafe\u{301}",
        " Caf\u{e9}",
        "Cafe\u{301}\u{a0}",
        "Flu\t",
        "Flu",
    ];
    let expected = [
        "Caf\u{e9}",
        "Caf\u{e9}",
        "Caf\u{e9}",
        "Caf\u{e9}",
        "Flu",
        "Flu",
    ];
    for role in ["sensitive", "quasi_identifier", "class"] {
        assert_read_as(json!({"role": role}), &cells, &expected);
    }
    let tree = json!({"label": " ANY", "children": [{"label": "Cafe\u{301} "}, {"label": "Flu"}]});
    for role in ["sensitive", "quasi_identifier", "insensitive"] {
        assert_read_as(json!({"role": role, "taxonomy": tree}), &cells, &expected);
    }
    // An insensitive column without a taxonomy is released unchanged.
    assert_read_as(json!({"role": "insensitive"}), &cells, &cells);
}

#[test]
fn spaces_and_unicode_forms_make_no_new_item() {
    let cells = ["a|e\u{301}", " a | \u{e9}", "a|\u{e9}"];
    let expected = ["a|\u{e9}"; 3];
    let set = json!({"role": "quasi_identifier", "kind": "set"});
    assert_read_as(set, &cells, &expected);
    let tree = json!({"label": "ANY", "children": [{"label": "a\n"}, {"label": "e\u{301}"}]});
    let set = json!({"role": "quasi_identifier", "kind": "set", "taxonomy": tree});
    assert_read_as(set, &cells, &expected);
    let schema = one(json!({"role": "quasi_identifier", "kind": "set"}));
    let lists = "{\"x\":[\"a \",\"e\u{301}\"]}\n{\"x\":[\" a\",\"\u{e9}\"]}";
    let table = from_ndjson(&schema, lists.as_bytes()).unwrap();
    assert_eq!(texts(&table.columns[0]), [Some("a|\u{e9}"); 2]);
}

#[test]
fn a_word_for_missing_is_missing_in_every_spelling() {
    let numeric = json!({"role": "sensitive", "kind": "numeric", "missing": ["-1", "NA"]});
    let schema = one(numeric);
    assert!(schema.columns[0].is_missing("-1.0") && !schema.columns[0].is_missing("-1.5"));
    for table in read_each(&schema, &["-1", "-1.0", "-10e-1", "NA", "5"]) {
        let codes = &EncodedTable::new(&schema, table.unwrap()).sensitive[0].codes;
        assert_eq!(codes[..4], [NULL_CODE; 4]);
        assert_ne!(codes[4], NULL_CODE);
    }
    // The same for a word that is not declared in canonical form.
    let numeric = json!({"role": "sensitive", "kind": "numeric", "missing": ["-1.0"]});
    assert_read_as(numeric, &["-1", "-1.0"], &["-1", "-1"]);
    let text = json!({"role": "sensitive", "missing": [" inconnue\u{301} "]});
    let schema = one(text);
    for table in read_each(&schema, &["inconnu\u{e9}", "inconnue\u{301}\t", "x"]) {
        let codes = &EncodedTable::new(&schema, table.unwrap()).sensitive[0].codes;
        assert_eq!(codes[..2], [NULL_CODE; 2]);
        assert_ne!(codes[2], NULL_CODE);
    }
}

#[test]
fn a_cell_of_spaces_is_the_empty_cell() {
    assert_read_as(
        json!({"role": "sensitive"}),
        &[" ", "", "\u{2003}"],
        &[""; 3],
    );
    let tree = json!({"label": "ANY", "children": [{"label": "Flu"}, {"label": "HIV"}]});
    let declared = json!({"role": "sensitive", "taxonomy": tree, "missing": ["NA"]});
    for table in read_each(&one(declared), &["Flu", "  "]) {
        let error = table.unwrap_err();
        assert_eq!((error.kind, error.faults.len()), (ReadErrorKind::Cells, 1));
    }
}

#[test]
fn a_number_with_spaces_around_is_refused_with_a_fix() {
    let schema = one(json!({"role": "sensitive", "kind": "numeric"}));
    for table in read_each(&schema, &["5", " 5"]) {
        let error = table.unwrap_err();
        let fix = error.faults[0].suggested_fix.as_deref();
        assert_eq!(fix, Some("remove the spaces around the number"));
    }
}

#[test]
fn values_in_several_chunks_have_the_canonical_form_in_each() {
    let schema = one(json!({"role": "quasi_identifier", "kind": "numeric"}));
    let file = "x\n".to_owned() + &"34.0\n34\n".repeat(50_000);
    let mut chunks = 0;
    let read = crate::read::csv::read(&schema, file.as_bytes(), ReadLimits::default(), |chunk| {
        chunks += 1;
        assert_eq!(chunk.columns[0].dictionary, ["34".into()]);
        Ok::<(), ()>(())
    });
    assert_eq!((read.unwrap(), chunks), (100_000, 4));
}

#[test]
fn null_is_stored_as_a_word_for_missing_that_csv_shows() {
    let null = b"{\"x\":null}\n{\"x\":\"b\"}\n";
    for (missing, stored) in [
        (json!(["NA", "-"]), Some("NA")),
        (json!([" NA"]), Some("NA")),
        (json!(["NA", ""]), None),
        (json!([]), None),
        (Value::Null, None),
    ] {
        let schema = one(json!({"role": "sensitive", "missing": missing}));
        let table = from_ndjson(&schema, null).unwrap();
        assert_eq!(table.columns[0].text(0), stored, "{missing}");
        let array: ArrayRef = Arc::new(StringArray::from(vec![None, Some("b")]));
        let in_parquet = file(&[("x", array)], Default::default());
        assert_eq!(from_parquet(&schema, &in_parquet, u64::MAX).unwrap(), table);
    }
}

#[test]
fn without_a_word_for_missing_the_empty_text_is_missing_as_null_is() {
    for declared in [
        json!({"role": "sensitive", "missing": []}),
        json!({"role": "insensitive", "kind": "set", "missing": []}),
        json!({"role": "quasi_identifier", "missing": []}),
    ] {
        assert!(one(declared).columns[0].is_missing(""));
    }
    for declared in [
        json!({"role": "sensitive", "kind": "numeric", "missing": []}),
        json!({"role": "sensitive", "missing": ["NA"]}),
    ] {
        assert!(!one(declared).columns[0].is_missing(""));
    }
}

/// The rows of a CSV file of one column of text.
fn rows_of(file: &str) -> Vec<String> {
    let table = from_csv(&one(json!({"role": "insensitive"})), file.as_bytes()).unwrap();
    let cells = texts(&table.columns[0]).into_iter();
    cells.map(|cell| cell.unwrap().to_owned()).collect()
}

#[test]
fn only_blank_lines_are_skipped() {
    for (file, rows) in [
        ("x\na\n\nb\n", &["a", "b"][..]),
        ("x\r\na\r\n\r\nb\r\n", &["a", "b"]),
        ("\r\n\r\nx\r\na\r\n\r\n\r\n", &["a"]),
        ("x\na\n\"\"\nb\n", &["a", "", "b"]),
        ("x\r\na\r\n\"\"\r\n\r\nb\r\n", &["a", "", "b"]),
        ("x\n\"\"", &[""]),
        ("x\n\"\"\r", &[""]),
        ("x\na\n\r", &["a"]),
        ("\u{feff}x\n\r\n\"\"\n", &[""]),
    ] {
        assert_eq!(rows_of(file), rows, "{file:?}");
    }
    let two = schema(json!([
        {"name": "x", "role": "insensitive"}, {"name": "y", "role": "insensitive"}]));
    let table = from_csv(&two, b"x,y\r\n\r\na,b\r\n").unwrap();
    assert_eq!(table.rows, 1);
    for file in ["x,y\na,b\n\"\"\n", "x,y\r\na,b\r\n\"\"\r\n"] {
        let error = from_csv(&two, file.as_bytes()).unwrap_err();
        assert_eq!(error.faults[0].line(), Some(3));
    }
}

#[test]
fn a_carriage_return_in_quotes_is_not_a_part_of_the_end_of_the_line() {
    // A header cell shows it: the end of a stored text has no carriage return.
    let odd = |name: &str| schema(json!([{"name": name, "role": "insensitive"}]));
    for (name, file) in [
        ("x\r", "\"x\r\"\na\n"),
        ("x\r", "\"x\r\"\r\na\r\n"),
        ("x", "\"x\"\r\na\n"),
        ("x", "x\r\na\n"),
    ] {
        let table = from_csv(&odd(name), file.as_bytes());
        assert_eq!(table.unwrap().columns[0].text(0), Some("a"), "{file:?}");
    }
    assert_eq!(rows_of("x\n\"\r\"\na\n"), ["", "a"]);
    assert_eq!(
        rows_of("x\r\n\"a\rb\"\r\n\"a\r\nb\"\r\n"),
        ["a\rb", "a\r\nb"]
    );
}

#[test]
fn line_ends_are_found_in_every_block_of_a_file() {
    struct InParts<'a>(&'a [u8], usize);
    impl std::io::Read for InParts<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let most = self.1.min(buffer.len());
            (&mut self.0).take(most as u64).read(buffer)
        }
    }
    let file = "x\r\n\"\"\r\n\r\na\r\n\"\r\"\r\n\r\n\"b\"\r\n\"c\rd\"\n\"\"\n\r\ne\r";
    let schema = one(json!({"role": "insensitive"}));
    for part in 1..file.len() {
        let mut rows = crate::chunk::Assembler::default();
        let read = crate::read::csv::read(
            &schema,
            InParts(file.as_bytes(), part),
            ReadLimits::default(),
            |chunk| rows.push(chunk),
        );
        assert_eq!(read.unwrap(), 7, "{part}");
        let found = rows.finish();
        let found: Vec<_> = texts(&found.columns[0]).into_iter().flatten().collect();
        assert_eq!(found, ["", "a", "", "b", "c\rd", "", "e"], "{part}");
    }
}

/// A program writes an id as a floating-point number if another row has none.
#[test]
fn one_person_is_one_person_in_every_format() {
    let subject = json!({"role": "subject"});
    assert_read_as(
        subject.clone(),
        &[
            "1",
            "1.0",
            "1e0",
            " 1 ",
            "007",
            "7",
            "7.0",
            "Bo\u{308}se",
            "B\u{f6}se ",
        ],
        &[
            "1",
            "1",
            "1",
            "1",
            "007",
            "7",
            "7",
            "B\u{f6}se",
            "B\u{f6}se",
        ],
    );
    let schema = one(subject);
    let typed = b"{\"x\":1}\n{\"x\":1.0}\n{\"x\":1E0}\n{\"x\":\"1\"}\n{\"x\":\"1.0\"}\n";
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let fraction: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["1.0"]));
    let mut tables = vec![from_ndjson(&schema, typed).unwrap()];
    for array in [whole, fraction, text] {
        let file = file(&[("x", array)], Default::default());
        tables.push(from_parquet(&schema, &file, u64::MAX).unwrap());
    }
    for table in tables {
        assert_eq!(table.columns[0].dictionary, ["1".into()]);
    }
}

/// A row about nobody would count as one more person.
#[test]
fn a_row_without_a_subject_is_refused_in_every_format() {
    let schema = one(json!({"role": "subject"}));
    for cells in [["p1", ""], ["p1", " "]] {
        for refused in read_each(&schema, &cells) {
            let error = refused.unwrap_err();
            assert_eq!(error.kind, ReadErrorKind::Cells);
            assert_eq!(error.faults.len(), 1);
            assert!(error.faults[0].detail.contains("subject"), "{error}");
        }
    }
    let null = b"{\"x\": \"p1\"}\n{\"x\": null}\n";
    let error = from_ndjson(&schema, null).unwrap_err();
    assert_eq!(error.faults[0].line(), Some(2));
    // Also where another word means missing: all rows without a subject would be rows of one person.
    let schema = one(json!({"role": "subject", "missing": ["NA"]}));
    for cell in ["", "  ", "NA"] {
        for refused in read_each(&schema, &["p1", cell]) {
            assert!(
                refused.unwrap_err().faults[0].detail.contains("subject"),
                "{cell:?}"
            );
        }
    }
}
